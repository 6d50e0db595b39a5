"""Siblings on a running node: no node is in two containers, and what stays plugged is not stopped."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from genericdp.cli.survey import remembered, survey_of
from genericdp.core.comeback.plugs import Plug
from genericdp.core.status import holdings
from genericdp.simulator import ContainerState
from tests.daemon.test_comeback import STOP, stops
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene, minors_in
from tests.scenes.waiting import until

CARD = a_usb_device(serial="A")
FIRST, SECOND, THIRD = (a_usb_node(CARD, "tty", f"ttyUSB{n}", number=f"c 188:{n}") for n in range(3))


@pytest.mark.parametrize("how", ["in one look", "while the daemon is down"])
async def test_a_node_that_a_container_has_gets_into_no_other_one(short_dir: Path, how: str) -> None:
    async with a_scene(short_dir, FIRST, SECOND, rules=FTDI_RULE) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="a"), await scene.admit(name="b")]
        one, other = sorted(pods, key=lambda pod: minors_in(pod.container("main")))
        if how == "while the daemon is down":
            await scene.service.stop()
        steps = scene.service.steps
        scene.unplug(FIRST)
        scene.plug(THIRD)
        if how == "while the daemon is down":
            await scene.service.start()
        else:
            await scene.service.wait_until(lambda: scene.service.steps > steps)
        await scene.kubelet.restart_container(one, "main")
        main = one.container("main")
        if main.state is ContainerState.RUNNING:
            assert not {*minors_in(main)} & {*minors_in(other.container("main"))}


async def test_list_tells_siblings_apart_as_the_daemon_does(short_dir: Path) -> None:
    """Both know the boot in which the memory was saved."""
    async with a_scene(short_dir, FIRST, SECOND, rules=FTDI_RULE) as scene:
        await scene.until_allocatable(2)
        scene.unplug(FIRST)
        await scene.until_allocatable(1)
        await scene.service.stop()
        memory, remarks = remembered(scene.settings)
        resources, devices = scene.rules.resources, scene.daemon._devices.devices
        listed = survey_of(scene.settings, resources, devices, memory).inventory.offers[FTDI].devices
        told = scene.daemon.inventory.offers[FTDI].devices
        assert [(each.id, each.healthy) for each in listed] == [(each.id, each.healthy) for each in told]
        assert remarks == ()


async def test_only_the_container_of_the_one_that_left_is_stopped(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    async with a_scene(short_dir, FIRST, SECOND, rules=STOP) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="a"), await scene.admit(name="b")]

        def plugs() -> Mapping[tuple[str, str], Plug]:
            return scene.daemon._comeback._plugs.by_device

        holder = {minors_in(pod.container("main"))[0]: pod for pod in pods}
        scene.unplug(FIRST)
        # The runtime refuses to create it again.
        await scene.kubelet.wait_until(lambda: holder[0].container("main").reason == "CreateContainerError")
        await until(lambda: all(plug.judged for plug in plugs().values() if plug.numbers is None))
        await scene.kubelet.wait_until(lambda: True)
        assert {name for name, _, _ in stops(scene)} == {holder[0].name}
