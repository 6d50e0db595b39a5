"""A node with two container runtimes: Docker's containerd serves CRI beside the one that the kubelet uses."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.comeback.unknown import LONGEST_MAKING_S
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.status.history import Retried
from genericdp.cri import cdi, comeback, lookout, sockets
from genericdp.simulator import CONTAINERD, Container, Pod, Runtime
from genericdp.simulator.runtimes.runtime import CdiSupport
from genericdp.status import client
from tests.daemon.test_cdi_answers import RULE, cdi_devices_of
from tests.daemon.test_comeback import RESTART, STICK, STOP, replug, stops, until_running
from tests.scenes.rules import FTDI
from tests.scenes.runtimes import another_runtime
from tests.scenes.scene import Scene, a_scene, minors_in
from tests.scenes.service import settings_below
from tests.scenes.waiting import until

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods")

WITHOUT_CDI = replace(CONTAINERD, cdi=CdiSupport.OFF)


@asynccontextmanager
async def beside_docker(
    root: Path, monkeypatch: pytest.MonkeyPatch, *left: Pod, cdi_of_docker: bool = True, **more: Any
) -> AsyncIterator[Scene]:
    """A scene in which another runtime comes before that of the kubelet, and nobody says which it is.

    left  pods that a kubelet left in it
    """
    docker = root / "docker.sock"
    monkeypatch.setattr(sockets, "SOCKETS", (str(docker), f"{root}/runtime.sock"))
    settings = settings_below(root, runtime_socket="", answer=more.pop("answer", AnswerBy.DEVICES))
    runtime = replace(more.pop("runtime", CONTAINERD), cdi_dirs=(settings.cdi_dir,))
    other = replace(CONTAINERD if cdi_of_docker else WITHOUT_CDI, cdi_dirs=(settings.cdi_dir,))
    async with (
        another_runtime(docker, *left, runtime=other),
        a_scene(root, STICK, settings=settings, runtime=runtime, **more) as scene,
    ):
        if more.get("daemon_runs", True):
            await scene.until_allocatable(1)
        yield scene


async def why_not_cdi(scene: Scene) -> str:
    (resource,) = (await asyncio.to_thread(client.status, scene.settings))["resources"]
    return str(resource["whyNotCdi"])


async def test_a_container_is_stopped_in_the_runtime_that_has_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with beside_docker(short_dir, monkeypatch, rules=STOP) as scene:
        pod = await scene.admit()
        scene.unplug(STICK)
        await scene.kubelet.wait_until(lambda: pod.container("main").reason == "CreateContainerError")
        assert stops(scene) == [("app", "main", 30)]


async def test_a_container_is_restarted_in_the_runtime_that_has_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Pod("app", [Container("main", limits={FTDI: 1})])
    async with beside_docker(short_dir, monkeypatch, left, rules=RESTART) as scene:
        pod = await scene.admit()
        await replug(scene)
        await until_running(scene, pod, restarts=1)
        assert minors_in(pod.container("main")) == [3]


async def test_status_says_that_the_runtime_that_is_asked_is_not_the_kubelets(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before a device is unplugged; once the kubelet's runtime is found, the container is stopped."""
    monkeypatch.setattr(lookout, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    # An answer may be under way when the clock jumps. It is then put off for a time that does not jump.
    monkeypatch.setattr("genericdp.core.comeback.plugs.ASK_LATER_S", 0.05)
    passed_s = 0.0
    async with beside_docker(
        short_dir, monkeypatch, rules=STOP, now=lambda: time.monotonic() + passed_s
    ) as scene:
        both, failing, plugs = sockets.SOCKETS, scene.daemon.recorder.history.failing, scene.daemon._comeback
        monkeypatch.setattr(sockets, "SOCKETS", both[:1])
        pod = await scene.admit()
        passed_s = lookout.ALLOCATED_S
        scene.daemon.step()
        await until(lambda: plugs._lookout._unknown)
        assert not failing
        passed_s += LONGEST_MAKING_S
        scene.daemon.step()
        await until(lambda: failing)
        status = await asyncio.to_thread(client.status, scene.settings)
        (complaint,) = status["complaints"]
        assert complaint == (
            f"containers cannot be stopped: containerd on '{short_dir}/docker.sock' has none of the kubelet's"
            " pods, such as default/app"
        )
        assert [each["what"] for each in status["failing"]] == ["runtime"]
        assert [record.levelname for record in caplog.records if "cannot be stopped" in record.message] == [
            "WARNING"
        ]
        scene.unplug(STICK)
        await until(lambda: any(plug.not_before > 0 for plug in plugs._plugs.by_device.values()))
        passed_s += LONGEST_MAKING_S
        scene.daemon.step()
        await until(
            lambda: all(
                plug.not_before > plug.since + LONGEST_MAKING_S or plug.judged
                for plug in plugs._plugs.by_device.values()
            )
        )
        monkeypatch.setattr(sockets, "SOCKETS", both)
        passed_s += LONGEST_MAKING_S
        scene.daemon.step()
        await scene.kubelet.wait_until(lambda: pod.container("main").reason == "CreateContainerError")
        await until(lambda: Retried.RUNTIME not in failing)
        assert stops(scene) == [("app", "main", 30)]


async def test_a_kubelet_that_starts_is_reason_to_look_which_runtime_it_has(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with beside_docker(short_dir, monkeypatch, rules=STOP) as scene:
        monkeypatch.setattr(sockets, "SOCKETS", sockets.SOCKETS[:1])
        looking = scene.daemon._comeback._lookout
        monkeypatch.setattr(lookout, "ALLOCATED_S", 1e9)
        await scene.admit()
        assert not looking._unknown
        await scene.kubelet.restart()
        await until(lambda: looking._unknown)


@pytest.mark.parametrize("kubelets", [CONTAINERD, WITHOUT_CDI], ids=["reads", "ignores"])
async def test_before_the_first_pod_auto_is_cdi_only_if_all_runtimes_read_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, kubelets: Runtime
) -> None:
    async with beside_docker(
        short_dir, monkeypatch, rules=RULE, answer=AnswerBy.AUTO, runtime=kubelets
    ) as scene:
        reads = kubelets is CONTAINERD
        assert await why_not_cdi(scene) == (
            ""
            if reads
            else "containerd v2.3.4: enable_cdi is not set in its configuration; if the kubelet has another"
            " runtime, set 'runtime_socket' to its socket"
        )
        assert bool(await cdi_devices_of(scene, "one")) is reads


async def test_auto_asks_the_kubelets_runtime_as_soon_as_a_pod_tells_which_it_is(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdi, "FIRST_S", 0.05)
    async with beside_docker(
        short_dir, monkeypatch, rules=RULE, answer=AnswerBy.AUTO, cdi_of_docker=False
    ) as scene:
        assert await why_not_cdi(scene)
        await scene.admit(0, name="any")
        await until(lambda: not scene.daemon.cdi.why_not)
        assert await cdi_devices_of(scene, "one") == (f"{FTDI}=ftdi_A",)


async def test_auto_is_devices_while_no_runtime_has_the_pods_that_the_kubelet_lists(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdi, "FIRST_S", 0.05)
    async with beside_docker(
        short_dir, monkeypatch, rules=RULE, answer=AnswerBy.AUTO, daemon_runs=False
    ) as scene:
        both = sockets.SOCKETS
        monkeypatch.setattr(sockets, "SOCKETS", both[:1])
        await scene.admit(0, name="any")
        await scene.service.start()
        await scene.until_allocatable(1)
        assert await why_not_cdi(scene) == (
            "none of the kubelet's pods runs in containerd v2.3.4; set 'runtime_socket' in genericdp.toml to"
            " the kubelet's --container-runtime-endpoint; in a pod, also mount the socket's directory"
        )
        monkeypatch.setattr(sockets, "SOCKETS", both)
        await until(lambda: not scene.daemon.cdi.why_not)
