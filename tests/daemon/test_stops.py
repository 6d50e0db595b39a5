"""Only the containers of a device that was unplugged are stopped."""

from pathlib import Path

import pytest

from genericdp.core.comeback.plugs import Plugs
from genericdp.errors import UnreadError
from tests.daemon.test_comeback import STICK, STOP
from tests.scenes.scene import Scene, a_scene
from tests.scenes.waiting import until

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods")


def unplugs(scene: Scene) -> list[str]:
    """The devices whose containers are judged as unplugged."""
    plugs: Plugs = scene.daemon._comeback._plugs
    return [id_ for (_, id_), plug in plugs.by_device.items() if plug.numbers is None]


async def test_a_device_that_cannot_be_read_at_the_start_is_not_unplugged(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=STOP) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await scene.service.stop()
        scene.udev._devices.clear()  # it is plugged in, but sysfs cannot be read
        scene.udev.unread = UnreadError(
            "cannot read '/sys/devices/x': Cannot allocate memory", paths={"/sys/devices/x": ""}
        )
        await scene.service.start()
        assert unplugs(scene) == []


async def test_a_device_of_which_nothing_is_known_is_not_unplugged(short_dir: Path) -> None:
    """The memory is lost, and the rules were edited: the pod still has its device, which is plugged in."""
    async with a_scene(short_dir, STICK, rules=STOP) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await scene.service.stop()
        Path(scene.settings.state_dir, "memory.json").write_text("{")
        scene.rules.become(STOP + 'identity = "port"\n')
        await scene.service.start()
        await until(lambda: "ftdi_A" in scene.daemon.memory.held)
        assert unplugs(scene) == []
