"""A kit is one device of several units. Its pod can only start again while all is there that it got."""

from pathlib import Path
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator import ContainerState, PodStatus
from tests.daemon.test_cdi_answers import a_cdi_scene
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene

KIT = FTDI_RULE + 'group_by = "all"\n'
PARTS = """
[[resource.node]]
match.usb = { port = "1" }
[[resource.node]]
match.usb = { port = "2" }
"""

#: The radio has no serial number, so its port tells which one it is.
GPS, RADIO = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial=None, port="2", devnum=5)
ELSEWHERE = a_usb_serial(2, serial=None, port="3", devnum=6)


async def complaints(scene: Scene) -> Any:
    holdings = await scene.daemon.answers._holdings(0.0)
    return scene.daemon.answers.pages.status(holdings)["complaints"]


async def restarts(scene: Scene, pod: PodStatus) -> bool:
    """Whether its container starts again."""
    return (await scene.kubelet.restart_container(pod, "main")).state is ContainerState.RUNNING


def why_not(scene: Scene, link: str, *more: str) -> str:
    what = f"'{scene.settings.link_dir}/{link}' {''.join(more) or 'leads'} nowhere"
    return (
        f"{FTDI}: default/app/main cannot start again: {what}, although ftdi is Healthy; plug in again what "
        "was there, or create the pod again"
    )


def link_of(scene: Scene, unit: UdevDevice) -> str:
    """The link that leads to the device node of a unit."""
    links = scene.daemon.inventory.links().items()
    (link,) = (link for link, node in links if node == scene.udev.node(unit))
    return link


async def look(scene: Scene) -> None:
    """Let the daemon and the kubelet know what is plugged now."""
    scene.daemon._follow_hints()
    await scene.until_allocatable(1)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["", "after a restart of the daemon"])
async def test_a_pod_that_got_a_part_which_is_elsewhere_now_is_complained_of(
    short_dir: Path, is_restarted: bool
) -> None:
    async with a_scene(short_dir, GPS, RADIO, rules=KIT) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        link = link_of(scene, RADIO)
        assert await complaints(scene) == []
        scene.unplug(RADIO)
        scene.plug(ELSEWHERE)
        await look(scene)
        if is_restarted:
            await scene.service.stop()
            await scene.service.start()
            await scene.until_allocatable(1)
        assert not await restarts(scene, pod)
        assert await complaints(scene) == [why_not(scene, link)]


@pytest.mark.parametrize("optional", [False, True])
async def test_a_part_that_has_gone_is_complained_of_once(short_dir: Path, optional: bool) -> None:
    """A kit is Unhealthy without a part that it needs, and Healthy without another one."""
    async with a_scene(
        short_dir, GPS, RADIO, rules=KIT + PARTS + f"optional = {optional}\n".lower()
    ) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        link = link_of(scene, RADIO)
        scene.unplug(RADIO)
        scene.daemon._follow_hints()
        await scene.until_allocatable(int(optional))
        assert not await restarts(scene, pod)
        missing = f"{FTDI}: ftdi is Unhealthy: the device node for usb.port '2' is missing"
        assert await complaints(scene) == [why_not(scene, link) if optional else missing]


async def test_nobody_complains_once_the_part_is_back_or_the_pod_is_a_new_one(short_dir: Path) -> None:
    async with a_scene(short_dir, GPS, RADIO, rules=KIT) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(RADIO)
        await look(scene)
        assert len(await complaints(scene)) == 1
        scene.plug(RADIO)
        await look(scene)
        assert await restarts(scene, pod)
        assert await complaints(scene) == []
        scene.unplug(RADIO)
        scene.plug(ELSEWHERE)
        await look(scene)
        scene.kubelet.delete(pod)
        assert await complaints(scene) == []
        again = await scene.admit()
        assert again.container("main").state is ContainerState.RUNNING
        assert await complaints(scene) == []


async def test_several_links_that_lead_nowhere_are_counted(short_dir: Path) -> None:
    other = a_usb_serial(4, serial=None, port="4", devnum=7)
    async with a_scene(short_dir, GPS, RADIO, other, rules=KIT) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        first = link_of(scene, RADIO)
        scene.unplug(RADIO, other)
        await look(scene)
        assert await complaints(scene) == [why_not(scene, first, "and 1 other link lead")]


async def test_a_pod_that_was_answered_by_cdi_has_no_links(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, GPS, RADIO, rules=KIT, answer=AnswerBy.CDI) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(RADIO)
        scene.plug(ELSEWHERE)
        await look(scene)
        assert await restarts(scene, pod)
        assert await complaints(scene) == []
