"""Wireless devices: a pod gets the unit that it had, however many others connect to the same radio."""

from pathlib import Path

import pytest

from genericdp.core.buses import told
from genericdp.core.device import UdevDevice
from genericdp.core.status import holdings
from genericdp.simulator import ContainerState
from tests.daemon.test_comeback import STOP
from tests.scenes.scene import a_scene, minors_in
from tests.scenes.waiting import idle
from tests.scenes.wireless import LINK, UHID, a_hid

SCANNER = "example.com/scanner"
ONE, OTHER, THIRD = "aa:bb:cc:00:00:01", "dd:ee:ff:00:00:02", "11:22:33:00:00:03"
RULE = """
[[resource]]
name = "scanner"
match = { SUBSYSTEM = "hidraw", parent = { SUBSYSTEM = "hid", HID_ID = "0005:*" } }
"""
BY_ADDRESS = RULE + 'identity = ["HID_UNIQ"]\n'

radios = pytest.mark.parametrize("radio", [UHID, LINK], ids=["uhid", "a USB adapter"])
rules = pytest.mark.parametrize("rules", [RULE, BY_ADDRESS], ids=["by default", "by its address"])


@radios
@rules
async def test_a_unit_that_connects_is_not_the_one_that_a_pod_holds(
    short_dir: Path, radio: UdevDevice, rules: str
) -> None:
    one, other = a_hid(radio, 1, ONE, 0), a_hid(radio, 2, OTHER, 1, model="05E0:1200")
    async with a_scene(short_dir, one, rules=rules) as scene:
        await scene.until_allocatable(1, SCANNER)
        pod = await scene.admit(resource=SCANNER)
        scene.unplug(one)
        await scene.until_allocatable(0, SCANNER)
        scene.plug(other)
        await scene.until_allocatable(1, SCANNER)
        await scene.kubelet.restart_container(pod, "main")
        assert pod.container("main").state is not ContainerState.RUNNING
        reasons = [each.reason for each in scene.daemon.inventory.offers[SCANNER].devices]
        assert sorted(reasons) == ["", "it is unplugged"]
        scene.plug(a_hid(radio, 3, ONE, 2))
        await scene.until_allocatable(2, SCANNER)
        await scene.kubelet.restart_container(pod, "main")
        assert minors_in(pod.container("main")) == [2]


@radios
async def test_two_units_of_a_model_keep_their_ids_over_a_boot(short_dir: Path, radio: UdevDevice) -> None:
    before = (a_hid(radio, 1, ONE, 0), a_hid(radio, 2, OTHER, 1))
    async with a_scene(short_dir, *before, rules=RULE) as scene:
        await scene.until_allocatable(2, SCANNER)
        pods = [await scene.admit(resource=SCANNER, name=name) for name in "ab"]
        holder = {minors_in(pod.container("main"))[0]: pod for pod in pods}
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(a_hid(radio, 1, OTHER, 5, incarnation=2001), a_hid(radio, 2, ONE, 6, incarnation=2002))
        await scene.service.start()
        await scene.until_allocatable(2, SCANNER)
        for pod in pods:
            await scene.kubelet.restart_container(pod, "main")
        assert minors_in(holder[0].container("main")) == [6]
        assert minors_in(holder[1].container("main")) == [5]


async def test_after_an_upgrade_no_pod_gets_the_unit_of_another_one_of_the_same_model(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = RULE + 'identity = ["HID_ID"]\n'
    both = a_hid(LINK, 1, OTHER, 1), a_hid(LINK, 2, ONE, 2)
    with monkeypatch.context() as release_before:
        release_before.setattr(told, "_UNITS", {})
        async with a_scene(short_dir, *both, rules=rules) as scene:
            await scene.until_allocatable(2, SCANNER)
            pods = [await scene.admit(resource=SCANNER, name=name) for name in "ab"]
            await scene.service.stop()
            release_before.undo()
            await scene.service.start()
            await scene.until_allocatable(0, SCANNER)
            for pod in pods:
                await scene.kubelet.restart_container(pod, "main")
                assert pod.container("main").state is not ContainerState.RUNNING


async def test_a_unit_comes_back_whatever_connected_meanwhile_that_no_rule_takes(short_dir: Path) -> None:
    one = a_hid(UHID, 1, ONE, 0)
    only_this = RULE.replace('HID_ID = "0005:*"', f'HID_UNIQ = "{ONE}"')
    async with a_scene(short_dir, one, rules=only_this) as scene:
        await scene.until_allocatable(1, SCANNER)
        pod = await scene.admit(resource=SCANNER)
        scene.unplug(one)
        await scene.until_allocatable(0, SCANNER)
        scene.plug(a_hid(UHID, 2, THIRD, 0, model="046D:B342"))
        scene.plug(a_hid(UHID, 3, ONE, 4))
        await scene.until_allocatable(1, SCANNER)
        await scene.kubelet.restart_container(pod, "main")
        assert minors_in(pod.container("main")) == [4]


async def test_a_container_is_not_started_again_with_another_unit(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    keys = [line for line in STOP.splitlines() if line.startswith(("on_", "debounce"))]
    one = a_hid(LINK, 1, ONE, 0)
    async with a_scene(short_dir, one, rules=RULE + "\n".join(keys) + "\n") as scene:
        await scene.until_allocatable(1, SCANNER)
        pod = await scene.admit(resource=SCANNER)
        scene.unplug(one)
        scene.plug(a_hid(LINK, 2, OTHER, 1, model="05E0:1200"))
        await scene.kubelet.wait_until(lambda: pod.container("main").reason == "CreateContainerError")
        await idle()
        assert pod.container("main").state is not ContainerState.RUNNING
