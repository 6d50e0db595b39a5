"""Containers that get their devices by CDI: what they find is what is there now."""

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import held
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.status.history import Retried
from genericdp.simulator import CONTAINERD, CRIO, Container, ContainerState, ContainerStatus, Pod, Runtime
from genericdp.simulator.runtimes.runtime import CdiSupport
from genericdp.status import client
from tests.scenes.builders import a_fuse, a_usb_device, a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI
from tests.scenes.scene import Scene, a_scene, both_runtimes, ids_told, minors_in
from tests.scenes.service import settings_below
from tests.scenes.waiting import until

A, B = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")
RULE = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
ENV = "GENERICDP_" + FTDI.upper().translate(str.maketrans("./-", "___"))


@asynccontextmanager
async def a_cdi_scene(
    root: Path,
    *devices: UdevDevice,
    runtime: Runtime = CONTAINERD,
    answer: AnswerBy = AnswerBy.CDI,
    **more: Any,
) -> AsyncIterator[Scene]:
    settings = settings_below(root, answer=answer)
    more.setdefault("rules", RULE)
    mine = replace(runtime, cdi_dirs=(settings.cdi_dir,))
    async with a_scene(root, *devices, runtime=mine, settings=settings, **more) as scene:
        yield scene


def named_in(scene: Scene) -> list[str]:
    """The CDI devices in the spec files."""
    return [
        device["name"]
        for path in sorted(Path(scene.settings.cdi_dir).glob("*.json"))
        for device in json.loads(path.read_text())["devices"]
    ]


def refusal(status: ContainerStatus) -> str:
    """Why the container was not created."""
    assert status.state is ContainerState.WAITING
    return status.message


def envs_in(status: ContainerStatus) -> dict[str, str]:
    assert status.created is not None, f"{status.reason}: {status.message}"
    return dict(status.created.envs)


@both_runtimes
async def test_after_a_replug_a_restarted_container_finds_its_device_under_its_new_path(
    runtime: Runtime, short_dir: Path
) -> None:
    async with a_cdi_scene(short_dir, A, B, runtime=runtime) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit()
        (mine,) = ids_told(pod.containers["main"])
        device = A if mine.endswith("A") else B
        scene.unplug(device)
        await scene.until_allocatable(1)
        refused = await scene.kubelet.restart_container(pod, "main")
        assert refusal(refused).endswith(f"unresolvable CDI devices {FTDI}={mine}")
        moved = a_usb_serial(7, port="1" if device is A else "2", serial=mine[-1])
        scene.plug(moved)
        await scene.until_allocatable(2)
        again = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(again) == [7]
        assert envs_in(again)[ENV] == scene.udev.node(moved)
        assert ids_told(again) == [mine]
        assert again.created is not None
        assert [node.container_path for node in again.created.nodes] == [scene.udev.node(moved)]


async def test_a_process_that_is_not_root_gets_the_group_of_the_node(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, replace(A, gid=20)) as scene:
        await scene.until_allocatable(1)
        container = Container("main", limits={FTDI: 1}, run_as_user=1000, run_as_group=1000)
        status = await scene.kubelet.admit(Pod("app", [container]))
        created = status.containers["main"].created
        assert created is not None
        assert created.groups == (20,)


async def test_two_devices_in_one_container_are_told_together_after_a_replug_and_a_restart_of_genericdp(
    short_dir: Path,
) -> None:
    async with a_cdi_scene(short_dir, A, B) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(2)
        assert envs_in(pod.containers["main"])[ENV] == f"{scene.udev.node(A)},{scene.udev.node(B)}"
        await scene.service.stop()
        assert named_in(scene) == []
        scene.unplug(A)
        scene.plug(moved := a_usb_serial(5, port="1", serial="A"))
        await scene.service.start()
        assert len(named_in(scene)) == 3
        again = await scene.kubelet.restart_container(pod, "main")
        assert envs_in(again)[ENV] == f"{scene.udev.node(moved)},{scene.udev.node(B)}"
        assert sorted(minors_in(again)) == [1, 5]
        scene.unplug(B)
        await scene.until_allocatable(1)
        refused = await scene.kubelet.restart_container(pod, "main")
        assert f"unresolvable CDI devices {FTDI}=ftdi_B, {FTDI}=ftdi_A:" in refusal(refused)


async def test_init_containers_that_share_devices_keep_what_each_was_told(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, B) as scene:
        await scene.until_allocatable(2)
        first, main = Container("first", limits={FTDI: 2}), Container("main", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("app", [main], init_containers=[first]))
        for name, count in (("first", 2), ("main", 1)):
            status = await scene.kubelet.restart_container(pod, name)
            assert len(ids_told(status)) == len(minors_in(status)) == count


async def test_replicas_share_a_device_and_each_container_is_told_its_own_id(short_dir: Path) -> None:
    rules = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "*/fuse" }\nreplicas = 3\n'
    fuse = f"{DOMAIN}/fuse"
    async with a_cdi_scene(short_dir, a_fuse(), rules=rules) as scene:
        await scene.until_allocatable(3, fuse)
        assert named_in(scene) == []
        pods = [await scene.admit(1, fuse, name) for name in ("one", "two")]
        told = [ids_told(pod.containers["main"], fuse)[0] for pod in pods]
        assert sorted(named_in(scene)) == sorted(told)
        assert len(set(told)) == 2
        assert [minors_in(pod.containers["main"]) for pod in pods] == [[229], [229]]


async def test_a_held_device_keeps_its_name_when_rules_go_back_to_devices(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, B, answer=AnswerBy.DEVICES, rules=RULE + 'answer = "cdi"') as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit()
        told = ids_told(pod.containers["main"])
        scene.edit_rules(RULE)
        await until(lambda: named_in(scene) == told)
        again = await scene.kubelet.restart_container(pod, "main")
        assert ids_told(again) == told
        other = await scene.admit(name="other")
        created = other.containers["main"].created
        assert created is not None
        assert created.cdi_devices == ()


async def test_by_default_nothing_is_written_and_what_a_killed_process_left_is_removed(
    short_dir: Path,
) -> None:
    async with a_cdi_scene(short_dir, A, answer=AnswerBy.DEVICES, daemon_runs=False) as scene:
        stale = Path(scene.settings.cdi_dir) / "genericdp_genericdp.io_old.json"
        await scene.service.start()
        assert not stale.parent.exists()
        await scene.service.stop()
        stale.parent.mkdir()
        stale.write_text("")
        await scene.service.start()
        assert not stale.exists()


async def test_while_the_files_cannot_be_written_no_container_is_sent_here(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, daemon_runs=False) as scene:
        # The directory of the memory is elsewhere than that of the spec files.
        blocking = Path(scene.settings.cdi_dir)
        blocking.write_text("")
        await scene.service.start()
        await scene.until_allocatable(0, capacity=1)
        failing = scene.daemon.recorder.history.failing
        assert failing[Retried.CDI].why == f"cannot use the CDI directory '{blocking}': Not a directory"
        blocking.unlink()
        await scene.until_allocatable(1)
        assert Retried.CDI not in failing


async def test_after_an_edit_with_which_no_container_can_start_status_says_why(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        mounts = 'mounts = [{ host_path = "/srv", container_path = "/dev/ttyUSB0" }]\n'
        scene.edit_rules(f'{RULE}container_path = "/dev/{{sysname}}"\n{mounts}')
        await scene.until_allocatable(0, capacity=1)
        (resource,) = (await asyncio.to_thread(client.status, scene.settings))["resources"]
        (device,) = resource["devices"]
        assert device["reason"] == (
            "a mount and a device node would both be '/dev/ttyUSB0' in the container; "
            "choose another 'container_path' for one of the two in the rule"
        )
        scene.edit_rules(RULE)
        await scene.until_allocatable(1)


async def test_a_spec_file_that_somebody_removes_comes_back(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        shutil.rmtree(scene.settings.cdi_dir)
        await until(lambda: named_in(scene) == ["ftdi_A"])


async def test_kubevirt_finds_the_bus_address_of_now(short_dir: Path) -> None:
    rules = (
        '[[resource]]\nname = "usb"\nmatch = { SUBSYSTEM = "usb", DEVTYPE = "usb_device" }\nkubevirt = true\n'
    )
    usb = f"{DOMAIN}/usb"
    before, after = a_usb_device("1", serial="A", devnum=5), a_usb_device("1", serial="A", devnum=6)
    async with a_cdi_scene(short_dir, before, rules=rules) as scene:
        await scene.until_allocatable(1, usb)
        pod = await scene.admit(1, usb)
        name = "USB_RESOURCE_" + usb.upper().translate(str.maketrans("./", "__"))
        assert envs_in(pod.containers["main"])[name].endswith(":5")
        scene.unplug(before)
        await scene.until_allocatable(0, usb)
        scene.plug(after)
        await scene.until_allocatable(1, usb)
        again = await scene.kubelet.restart_container(pod, "main")
        assert envs_in(again)[name].endswith(":6")


@pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
async def test_when_genericdp_was_killed_a_node_that_is_gone_is_refused(
    runtime: Runtime, short_dir: Path
) -> None:
    async with a_cdi_scene(short_dir, A, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        left = {path: path.read_text() for path in Path(scene.settings.cdi_dir).glob("*.json")}
        await scene.service.stop()
        for path, text in left.items():
            path.write_text(text)
        scene.unplug(A)
        refused = await scene.kubelet.restart_container(pod, "main")
        assert refusal(refused).endswith("no such file or directory")


# `answer = "auto"`


async def cdi_devices_of(scene: Scene, name: str) -> tuple[str, ...]:
    """The CDI devices that a new pod is answered with."""
    created = (await scene.admit(name=name)).containers["main"].created
    assert created is not None
    return created.cdi_devices


@pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
async def test_auto_is_cdi_if_the_runtime_reads_it(
    runtime: Runtime, short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with a_cdi_scene(short_dir, A, runtime=runtime, answer=AnswerBy.AUTO) as scene:
        await scene.until_allocatable(1)
        assert await cdi_devices_of(scene, "one") == (f"{FTDI}=ftdi_A",)
    assert caplog.messages.count('answer = "auto": containers get their devices by CDI') == 1


@pytest.mark.parametrize(
    ("support", "name"), [(CdiSupport.OFF, "containerd v2.3.4"), (CdiSupport.IGNORED, "containerd 1.7.24")]
)
async def test_auto_is_devices_if_the_runtime_does_not_read_cdi_and_status_says_why(
    support: CdiSupport, name: str, short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = replace(CONTAINERD, cdi=support)
    async with a_cdi_scene(short_dir, A, runtime=runtime, answer=AnswerBy.AUTO) as scene:
        await scene.until_allocatable(1)
        assert await cdi_devices_of(scene, "one") == ()
        (resource,) = (await asyncio.to_thread(client.status, scene.settings))["resources"]
        assert (resource["answer"], resource["whyNotCdi"]) == (
            "devices",
            f"{name}: enable_cdi is not set in its configuration",
        )
    assert caplog.messages == ['answer = "auto": containers get device nodes, without CDI']


async def test_auto_is_devices_until_the_runtime_answers(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, B, answer=AnswerBy.AUTO, daemon_runs=False) as scene:
        await scene.kubelet.container_runtime.stop()
        await scene.service.start()
        await scene.until_allocatable(2)
        assert await cdi_devices_of(scene, "one") == ()
        await scene.kubelet.container_runtime.start()
        await until(lambda: len(named_in(scene)) == 2)
        assert len(await cdi_devices_of(scene, "two")) == 1


async def test_rules_that_begin_to_say_auto_are_answered_by_cdi_as_well(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, answer=AnswerBy.DEVICES) as scene:
        await scene.until_allocatable(1)
        scene.edit_rules(RULE + 'answer = "auto"')
        await until(lambda: named_in(scene) == ["ftdi_A"])
        assert await cdi_devices_of(scene, "one") == (f"{FTDI}=ftdi_A",)


@pytest.mark.parametrize("answer", [AnswerBy.CDI, AnswerBy.DEVICES])
@pytest.mark.parametrize(
    ("before", "after"), [*itertools.permutations(["", "replicas = 1", "replicas = 3"], 2)]
)
async def test_what_pods_have_outlasts_an_edit_of_replicas(
    before: str, after: str, answer: AnswerBy, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ids are refused to new pods only."""
    monkeypatch.setattr(held, "PODS_SETTLE_S", 0.0)
    async with a_cdi_scene(short_dir, A, answer=answer, rules=RULE + before) as scene:
        await scene.until_allocatable(3 if "3" in before else 1)
        pods = [await scene.admit(name=f"pod-{n}") for n in range(scene.kubelet.allocatable[FTDI])]
        scene.edit_rules(RULE + after)
        await until(lambda: scene.daemon.inventory.offers[FTDI].refused)
        for pod in pods:
            await scene.kubelet.restart_container(pod, "main")
            assert pod.container("main").state is ContainerState.RUNNING
