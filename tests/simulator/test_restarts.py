"""Restarts of containers, kubelets and machines: what is asked again and what comes from the cache."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from inotify_simple import INotify, flags

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import (
    Container,
    ContainerState,
    Kubelet,
    ManualClock,
    Phase,
    Pod,
    Point,
    SimulatorError,
)
from genericdp.simulator.errors import stopped_endpoint
from tests.scenes.waiting import idle
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer, device

ONE = Pod("p", [Container("c", limits={RESOURCE: 1})])


def null_at(path: Path | str) -> Any:
    """An answer to Allocate whose device has the host path `path`."""
    spec = api.DeviceSpec(host_path=str(path), container_path="/dev/thing", permissions="rw")
    return lambda _ids, _context: answer(devices=[spec])


async def test_a_restarted_container_gets_the_cached_answer_and_the_node_that_the_link_points_to_now(
    short_dir: Path,
) -> None:
    link = short_dir / "link"
    link.symlink_to("/dev/null")
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = null_at(link)
        pod = await kubelet.admit(ONE)
        before = pod.container("c").created
        (short_dir / "new").symlink_to("/dev/zero")
        (short_dir / "new").rename(link)
        status = await kubelet.restart_container(pod, "c")
        assert before is not None
        assert status.created is not None
        assert [(n.major, n.minor) for n in (*before.nodes, *status.created.nodes)] == [(1, 3), (1, 5)]
        assert status.restarts == 1
        assert len(plugin.called("Allocate")) == 1
        await plugin.stop()


async def test_a_restarted_container_gets_the_cached_answer_even_without_the_device_or_its_plugin(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        pod = await kubelet.admit(ONE)
        for lists in ([device("a", api.UNHEALTHY), device("b", api.UNHEALTHY)], []):
            await plugin.send(kubelet, *lists)
            assert (await kubelet.restart_container(pod, "c")).state is ContainerState.RUNNING
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        assert (await kubelet.restart_container(pod, "c")).state is ContainerState.RUNNING
        await kubelet.restart()
        assert pod.phase is Phase.RUNNING
        status = await kubelet.restart_container(pod, "c")
        assert status.state is ContainerState.RUNNING
        assert status.restarts == 4
        assert len(plugin.called("Allocate")) == 1


async def test_five_minutes_after_the_plugin_has_gone_its_containers_cannot_restart(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        clock.advance(301)
        kubelet.tick()
        status = await kubelet.restart_container(pod, "c")
        assert (status.state, status.reason, status.message) == (
            ContainerState.WAITING,
            "CreateContainerConfigError",
            f"endpoint not found in cache for a registered resource: {RESOURCE}",
        )


async def test_running_containers_survive_a_kubelet_restart_without_a_call_to_the_plugin(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        calls = len(plugin.calls)
        await kubelet.restart()
        assert (pod.phase, pod.container("c").restarts) == (Phase.RUNNING, 0)
        assert len(plugin.calls) == calls
        assert kubelet.allocated(RESOURCE) == {"a"}
        await plugin.stop()


async def test_a_stopped_container_fails_its_pod_when_the_kubelet_restarts_before_the_plugin(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = null_at(short_dir / "missing")
        pod = await kubelet.admit(ONE)
        assert pod.container("c").reason == "CreateContainerError"
        await kubelet.restart()
        assert (pod.phase, pod.reason) == (Phase.FAILED, "UnexpectedAdmissionError")
        assert pod.message == (
            "Pod was rejected: Allocate failed due to no healthy devices present; "
            f"cannot allocate unhealthy devices {RESOURCE}, which is unexpected"
        )
        await plugin.stop()


@pytest.mark.parametrize(("ids", "phase"), [(["a"], Phase.RUNNING), (["b"], Phase.FAILED)])
async def test_after_a_reboot_the_plugin_must_register_first_with_the_same_ids(
    short_dir: Path, ids: list[str], phase: Phase
) -> None:
    links = short_dir / "links"
    links.mkdir()
    (links / "a").symlink_to("/dev/null")
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = null_at(links / "a")
        pod = await kubelet.admit(ONE)
        await kubelet.reboot(wipe=[links], readmit=False)
        await plugin.stop()
        assert list(links.iterdir()) == []
        assert pod.container("c").state is ContainerState.TERMINATED
        (links / "a").symlink_to("/dev/zero")
        again = await SmallPlugin(*ids).join(kubelet, "again.sock")
        await kubelet.readmit()
        assert pod.phase is phase
        assert again.called("Allocate") == []
        if phase is Phase.RUNNING:
            created = pod.container("c").created
            assert created is not None
            assert created.nodes[0].minor == 5
        else:
            assert pod.message == (
                "Pod was rejected: Allocate failed due to previously allocated devices are no longer "
                f"healthy; cannot allocate unhealthy devices {RESOURCE}, which is unexpected"
            )
        await again.stop()


async def test_a_reboot_without_the_plugin_fails_every_pod_with_devices(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        other = await kubelet.admit(Pod("other", [Container("c")]))
        await kubelet.reboot()
        assert pod.phase is Phase.FAILED
        assert other.phase is Phase.RUNNING
        await plugin.stop()


async def test_a_lost_checkpoint_makes_the_kubelet_allocate_again_when_the_container_starts(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        await kubelet.stop()
        (kubelet.directory / "kubelet_internal_checkpoint").unlink()
        await kubelet.start()
        await plugin.stop()
        again = await SmallPlugin("a").join(kubelet, "again.sock")
        await kubelet.restart_container(pod, "c")
        assert again.called("Allocate") == [["a"]]
        await again.stop()


async def test_pre_start_is_called_before_every_creation_with_a_deadline_of_30_seconds(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.send(kubelet, device("a", api.UNHEALTHY))
        await kubelet.restart_container(pod, "c")
        assert plugin.called("PreStartContainer") == [["a"], ["a"]]
        assert plugin.remaining is not None
        assert abs(plugin.remaining - 30) < 1
        await plugin.stop()


async def test_a_pod_has_one_worker_so_none_of_its_containers_is_started_twice_at_once(
    short_dir: Path,
) -> None:
    """The timer fires while an admission waits for PreStartContainer."""
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        with kubelet.faults.hold(Point.PRE_START) as gate:
            admitting = asyncio.create_task(kubelet.admit(ONE))
            await gate.reached()
            (pod,) = kubelet.pods
            syncing = asyncio.create_task(kubelet.sync(pod))
            await idle()
            gate.open()
            await asyncio.gather(admitting, syncing)
        assert plugin.called("PreStartContainer") == [["a"]]
        assert pod.container("c").restarts == 0
        await plugin.stop()


async def test_a_failed_pre_start_keeps_the_container_waiting_and_is_retried(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        plugin.on_pre_start = lambda _ids, context: context.abort(grpc.StatusCode.UNAVAILABLE, "no 'a'")
        pod = await kubelet.admit(ONE)
        status = pod.container("c")
        assert (pod.phase, status.state) == (Phase.PENDING, ContainerState.WAITING)
        assert status.reason == "CreateContainerConfigError"
        assert status.message == (
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Unavailable desc = no 'a'"
        )
        plugin.on_pre_start = lambda _ids, _context: None
        await kubelet.sync(pod)
        assert (pod.phase, status.restarts) == (Phase.RUNNING, 0)
        await plugin.stop()


async def test_a_pre_start_that_takes_more_than_30_seconds_fails(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        plugin.on_pre_start = lambda _ids, _context: clock.advance(30.1)
        pod = await kubelet.admit(ONE)
        assert pod.container("c").message == (
            "device plugin PreStartContainer rpc failed with err: "
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        )
        await plugin.stop()


async def test_pre_start_needs_a_living_plugin_until_the_kubelet_has_restarted(short_dir: Path) -> None:
    async with Kubelet(short_dir, clock=ManualClock()) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        status = await kubelet.restart_container(pod, "c")
        assert (status.reason, status.message) == (
            "CreateContainerConfigError",
            "device plugin PreStartContainer rpc failed with err: "
            + stopped_endpoint(RESOURCE, 0.0, connected=True),
        )
        await kubelet.sync(pod)
        assert status.state is ContainerState.WAITING


async def test_right_after_a_restart_the_kubelet_knows_no_options_and_skips_pre_start(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        pod = await kubelet.admit(ONE)
        await kubelet.restart()
        status = await kubelet.restart_container(pod, "c")
        assert status.state is ContainerState.RUNNING
        assert plugin.called("PreStartContainer") == [["a"]]
        await plugin.stop()


async def test_pre_start_without_a_cached_allocation_fails_for_good(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        pod = await kubelet.admit(ONE)
        await kubelet.stop()
        (kubelet.directory / "kubelet_internal_checkpoint").unlink()
        await kubelet.start()
        await plugin.stop()
        again = await SmallPlugin("a", pre_start_required=True).join(kubelet, "again.sock")
        status = await kubelet.restart_container(pod, "c")
        assert status.message == (
            f"no devices found allocated in local cache for pod {pod.uid}, container c, resource {RESOURCE}"
        )
        await again.stop()


async def test_a_failed_init_container_holds_the_others_back(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = null_at(short_dir / "missing")
        pod = await kubelet.admit(
            Pod("p", [Container("c")], init_containers=[Container("i", limits={RESOURCE: 1})])
        )
        assert pod.container("i").reason == "CreateContainerError"
        assert pod.container("c").reason == "PodInitializing"
        (short_dir / "missing").symlink_to("/dev/null")
        await kubelet.sync(pod)
        assert pod.container("i").reason == "Completed"
        assert pod.phase is Phase.RUNNING
        await plugin.stop()


async def test_everybody_can_read_the_device_plugin_directory_and_no_other(short_dir: Path) -> None:
    """The store of its checkpoint makes it (0755), before the server of the device plugins would (0750)."""
    before = os.umask(0o022)
    try:
        async with Kubelet(short_dir) as kubelet:
            modes = {path.name: path.stat().st_mode & 0o777 for path in short_dir.iterdir() if path.is_dir()}
            assert modes == {"device-plugins": 0o755, "pod-resources": 0o750, "plugins_registry": 0o750}
            await kubelet.stop()
            kubelet.faults.remove_directory()
            kubelet.faults.make_directory()
            assert kubelet.directory.stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)


async def test_a_crash_leaves_a_half_written_checkpoint_beside_the_good_one(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        await kubelet.crash()
        assert [path.name[0] for path in kubelet.directory.iterdir() if path.is_file()].count(".") == 1
        await kubelet.start()
        assert kubelet.allocated(RESOURCE) == {"a"}
        assert pod.phase is Phase.RUNNING
        await plugin.stop()


async def test_a_stopped_kubelet_cannot_admit_pods(short_dir: Path) -> None:
    kubelet = Kubelet(short_dir)
    with pytest.raises(SimulatorError, match=r"^the kubelet is not running$"):
        await kubelet.admit(ONE)
    assert kubelet.pods == ()
    assert kubelet.describe() == "the kubelet is stopped"


async def test_the_creation_of_kubelet_sock_can_be_delayed(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        await kubelet.stop()
        with kubelet.faults.hold(Point.LISTEN) as gate:
            starting = asyncio.create_task(kubelet.start())
            await gate.reached()
            assert not kubelet.socket.exists()
            gate.open()
            await starting
        assert kubelet.socket.exists()


async def test_a_bound_socket_refuses_until_the_kubelet_listens_which_no_inotify_event_tells(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        await kubelet.stop()
        with kubelet.faults.hold(Point.ACCEPT) as gate:
            starting = asyncio.create_task(kubelet.start())
            await gate.reached()
            with socket.socket(socket.AF_UNIX) as probe, pytest.raises(ConnectionRefusedError):
                probe.connect(str(kubelet.socket))
            with INotify() as inotify:
                inotify.add_watch(str(kubelet.directory), flags.CREATE | flags.DELETE | flags.MOVED_TO)
                gate.open()
                await starting
                assert inotify.read(timeout=0) == []
        plugin = await SmallPlugin("a").join(kubelet)
        await kubelet.restart()
        again = await SmallPlugin("a").join(kubelet, "again.sock")
        await plugin.stop()
        await again.stop()


async def test_the_directory_can_be_removed_and_created_again(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.faults.remove_directory()
        await plugin.send(kubelet, "a", "b")
        assert kubelet.capacity == {RESOURCE: 2}, "a checkpoint that cannot be written is only logged"
        kubelet.faults.make_directory()
        assert not kubelet.socket.exists()
        await plugin.stop()
        await kubelet.restart()
        await (again := await SmallPlugin("a").join(kubelet)).stop()
        assert again.called("ListAndWatch") == [None]


async def test_the_kubelet_does_not_notice_a_deleted_socket(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.faults.remove_socket()
        await plugin.send(kubelet, "a", "b")
        assert kubelet.capacity == {RESOURCE: 2}
        assert not kubelet.socket.exists()
        await plugin.stop()
        await kubelet.restart()
        assert kubelet.socket.exists()


async def test_registrations_can_be_refused_and_streams_broken(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.faults.end_streams(RESOURCE)
        await plugin.wait_until(lambda: plugin.cancelled == 1)
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})
        assert kubelet.socket.exists()
        kubelet.faults.refuse_registrations("not today")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await plugin.register(kubelet)
        assert caught.value.details() == "not today"
        kubelet.faults.refuse_registrations(None)
        await plugin.register(kubelet)
        await plugin.stop()
