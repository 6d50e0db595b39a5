"""Privileged containers and those in user namespaces follow their device, too."""

from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.simulator import CONTAINERD, CRIO, Container, LowLevel, Pod, Runtime
from tests.daemon.test_comeback import OTHER, RENAMED, STICK, replug, stops, until_judged, until_running
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene, nodes_in

RESTART = 'on_replug = "restart"\ndebounce = "20ms"\n'
BY_NAME = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
"""
BY_LINK = FTDI_RULE.replace("/dev/serial{index}", "{link}")

every_runtime = pytest.mark.parametrize(
    "runtime",
    [replace(runtime, low_level=low) for runtime in (CONTAINERD, CRIO) for low in LowLevel],
    ids=lambda each: f"{each.personality.value}-{each.low_level.value}",
)

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods", "evidence_is_asked_for_soon")


async def test_a_privileged_container_that_has_its_device_under_the_name_of_another_is_left_alone(
    short_dir: Path,
) -> None:
    """Containerd also lists the other one under this path, and runc keeps the first."""
    async with a_scene(short_dir, STICK, OTHER, rules=BY_NAME + RESTART) as scene:
        await scene.until_allocatable(2)
        pod = await scene.kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1}, privileged=True)]))
        main = pod.container("main")
        ((path, _, minor), *_) = nodes_in(main)
        scene.unplug(STICK, OTHER)
        await scene.until_allocatable(0, capacity=2)
        # The names are exchanged.
        scene.plug(a_usb_serial(1, serial="A"), a_usb_serial(0, serial="B", port="3"))
        await scene.until_allocatable(2)
        await until_running(scene, pod, restarts=1)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        for _ in range(2):
            assert (path, 188, 1 - minor) in nodes_in(main)
            assert stops(scene) == [("app", "main", 30)]
            await scene.service.stop()
            await scene.service.start()
            await until_judged(scene, "ftdi_A", "ftdi_B")
        assert stops(scene) == [("app", "main", 30)]


@every_runtime
@pytest.mark.parametrize("privileged", [False, True], ids=["", "privileged"])
@pytest.mark.parametrize("host_users", [False, True], ids=["user-namespace", ""])
async def test_a_container_with_the_path_of_the_link_is_restarted_once_and_then_left_alone(
    short_dir: Path, runtime: Runtime, privileged: bool, host_users: bool
) -> None:
    """In a user namespace, runc binds what is at the path on the host: the device of the link."""
    async with a_scene(short_dir, STICK, rules=BY_LINK + RESTART, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        container = Container("main", limits={FTDI: 1}, privileged=privileged)
        pod = await scene.kubelet.admit(Pod("app", [container], host_users=host_users))
        await replug(scene, STICK, RENAMED)
        await until_running(scene, pod, restarts=1)
        assert (f"{short_dir}/links/ftdi_A", 188, 3) in nodes_in(pod.container("main"))
        await scene.service.stop()
        await scene.service.start()
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == [("app", "main", 30)]
