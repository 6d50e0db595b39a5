"""Asking a container runtime: the simulated ones, and those that are late, silent or something else."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from genericdp.core.comeback.container import Container as Found
from genericdp.core.comeback.container import Inside
from genericdp.cri.api import ContainerState
from genericdp.cri.runtime import ContainerRuntime, connected
from genericdp.cri.sockets import RuntimeUnavailableError
from genericdp.simulator import Container, Kubelet, Pod, Point, Runtime
from genericdp.simulator.node.container_runtime import id_of
from tests.scenes.answering import a_grpc_server
from tests.scenes.scene import both_runtimes


@both_runtimes
async def test_a_runtime_tells_its_name_and_what_runs(short_dir: Path, runtime: Runtime) -> None:
    async with Kubelet(short_dir, runtime=runtime) as kubelet:
        pod = await kubelet.admit(Pod("app", [Container("main")], grace_period_s=7))
        gone = await kubelet.admit(Pod("gone", [Container("main")]))
        kubelet.finish(gone)
        async with connected(str(kubelet.runtime_socket)) as asked:
            assert asked.name == runtime.personality.value
            assert asked.tells_devices
            (container,) = await asked.containers()
            assert container.id == id_of(pod, pod.container("main"))
            assert (container.holder.pod, container.pod, container.grace_s) == ("app", pod.uid, 7)
            assert await asked.inside(container.id) == Inside({})


@both_runtimes
async def test_a_container_is_listed_before_it_runs_but_not_while_it_is_created(
    short_dir: Path, runtime: Runtime
) -> None:
    async with (
        Kubelet(short_dir, runtime=runtime) as kubelet,
        connected(str(kubelet.runtime_socket)) as asked,
    ):
        hold = kubelet.faults.hold
        with hold(Point.CREATE) as creating, hold(Point.START) as starting:
            admitting = asyncio.ensure_future(kubelet.admit(Pod("app", [Container("main")])))
            await creating.reached()
            assert await asked.containers() == ()
            creating.open()
            await starting.reached()
            (created,) = await asked.containers()
            assert not created.runs
            assert await asked.inside(created.id) == Inside({})
            await asked.stop(created.id, 0)
            starting.open()
            await admitting
        (running,) = await asked.containers()
        assert running == replace(created, runs=True), "a runtime stops no container that was not started"


async def test_a_container_that_starts_between_two_questions_is_not_missed(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Kubelet(short_dir) as kubelet, connected(str(kubelet.runtime_socket)) as asked:
        with kubelet.faults.hold(Point.START) as starting:
            admitting = asyncio.ensure_future(kubelet.admit(Pod("app", [Container("main")])))
            await starting.reached()
            question = ContainerRuntime._in_state

            async def and_start(self: ContainerRuntime, state: ContainerState) -> list[Found]:
                answer = await question(self, state)
                starting.open()
                await admitting
                return answer

            monkeypatch.setattr(ContainerRuntime, "_in_state", and_start)
            (running,) = await asked.containers()
            assert running.runs


async def test_a_container_that_is_stopped_ends_with_sigterm_or_is_killed(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        containers = [Container("main"), Container("deaf", ends_after_s=3600.0)]
        pod = await kubelet.admit(Pod("app", containers))
        async with connected(str(kubelet.runtime_socket)) as asked:
            for status in pod.containers.values():
                await asked.stop(id_of(pod, status), 0)
                await asked.stop(id_of(pod, status), 0)  # already stopped
            assert await asked.containers() == ()
        assert {status.spec.name: status.exit_code for status in pod.containers.values()} == {
            "main": 143,
            "deaf": 137,
        }


async def test_a_server_without_cri_is_not_a_runtime(short_dir: Path) -> None:
    path = short_dir / "other.sock"
    async with a_grpc_server(path):
        with pytest.raises(RuntimeUnavailableError) as caught:
            async with connected(str(path)):
                pass
    assert str(caught.value).startswith(f"the container runtime does not answer on '{path}': ")
    assert caught.value.hint == (
        "it does not serve CRI (v1): set 'runtime_socket' to the socket of the kubelet's runtime"
    )


async def test_one_that_accepts_and_never_answers_is_not_waited_for(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.cri.runtime._TIMEOUT_S", 0.05)
    path = short_dir / "silent.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        with pytest.raises(RuntimeUnavailableError):
            async with connected(str(path)):
                pass


async def test_a_runtime_that_ends_meanwhile_is_an_error_and_not_an_empty_list(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        async with connected(str(kubelet.runtime_socket)) as asked:
            await kubelet.container_runtime.stop()
            with pytest.raises(RuntimeUnavailableError):
                await asked.containers()


async def test_an_answer_that_cannot_be_decoded_is_an_error(short_dir: Path) -> None:
    async def say(request: bytes, context: object) -> bytes:
        del request, context
        return b"\xff"

    path = short_dir / "odd.sock"
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(say)
    handler = grpc.method_handlers_generic_handler("runtime.v1.RuntimeService", {"Version": method})
    async with a_grpc_server(path, handler):
        with pytest.raises(RuntimeUnavailableError):
            async with connected(str(path)):
                pass


async def test_a_container_whose_shim_hangs_is_not_known_and_hides_no_other(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.cri.runtime._TIMEOUT_S", 0.2)
    async with Kubelet(short_dir) as kubelet:
        pod = await kubelet.admit(Pod("app", [Container("main"), Container("other")]))
        hanging, other = (id_of(pod, pod.container(name)) for name in ("main", "other"))
        kubelet.container_runtime.hanging.add(hanging)
        async with connected(str(kubelet.runtime_socket)) as asked:
            assert await asked.inside(hanging) is None
            assert await asked.inside(other) == Inside({})


async def test_a_container_whose_status_is_refused_is_not_known_and_hides_no_other(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        pod = await kubelet.admit(Pod("app", [Container("main")]))
        async with connected(str(kubelet.runtime_socket)) as asked:
            assert await asked.inside("ended meanwhile") is None
            assert await asked.inside(id_of(pod, pod.container("main"))) == Inside({})
            await kubelet.container_runtime.stop()
            with pytest.raises(RuntimeUnavailableError):
                await asked.inside(id_of(pod, pod.container("main")))
