"""When the container runtime is asked whether it reads CDI."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.core.status import holdings
from genericdp.cri import cdi
from genericdp.cri.cdi import ReadsCdi
from genericdp.cri.choice import Choice, chosen
from genericdp.cri.runtime import ContainerRuntime
from genericdp.simulator import CONTAINERD, Container, Kubelet, Pod
from tests.scenes.builders import resources_of
from tests.scenes.rules import FTDI_RULE
from tests.scenes.runtimes import another_runtime
from tests.scenes.scene import LoopTime
from tests.scenes.service import settings_below
from tests.scenes.waiting import idle, until


async def test_a_kubelet_that_starts_while_the_runtime_is_asked_has_it_asked_again(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    settings = settings_below(short_dir, answer=AnswerBy.AUTO)
    it = ReadsCdi(settings, lambda: resources_of(FTDI_RULE), told.append)
    real, asked = ContainerRuntime.configuration, 0

    async def configuration(self: ContainerRuntime) -> dict[str, str]:
        nonlocal asked
        asked += 1
        answer = await real(self)
        if asked == 1:
            it.look_again()
        return answer

    monkeypatch.setattr(ContainerRuntime, "configuration", configuration)
    async with Kubelet(short_dir):
        task = asyncio.create_task(it.run())
        await until(lambda: len(told) == 2)
        await idle()
        assert asked == 2
        task.cancel()
        await asyncio.wait((task,))


async def test_once_the_kubelet_knows_its_pods_the_runtime_is_asked_once_more(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that, nothing tells that it is another one."""
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 10.0)
    told: list[str] = []
    docker = short_dir / "docker.sock"
    settings = settings_below(short_dir, answer=AnswerBy.AUTO, runtime_socket=str(docker))
    it = ReadsCdi(settings, lambda: resources_of(FTDI_RULE), told.append)
    time = LoopTime()
    runtime = replace(CONTAINERD, cdi_dirs=(settings.cdi_dir,))
    async with Kubelet(short_dir) as kubelet, another_runtime(docker, runtime=runtime):
        task = asyncio.create_task(it.run())
        await until(lambda: told == [""])
        await kubelet.admit(Pod("app", [Container("main")]))
        await idle()
        assert told == [""]
        time.advance(10.0)
        await until(lambda: len(told) == 2)
        assert told[1].startswith("none of the kubelet's pods runs in containerd v2.3.4; ")
        task.cancel()
        await asyncio.wait((task,))


async def test_it_is_asked_once_more_and_then_no_more(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 10.0)
    asked = 0

    def counted(settings: Settings) -> AbstractAsyncContextManager[Choice]:
        nonlocal asked
        asked += 1
        return chosen(settings)

    monkeypatch.setattr(cdi, "chosen", counted)
    told: list[str] = []
    settings = settings_below(short_dir, answer=AnswerBy.AUTO)
    it = ReadsCdi(settings, lambda: resources_of(FTDI_RULE), told.append)
    time = LoopTime()
    async with Kubelet(short_dir) as kubelet:
        await kubelet.admit(Pod("app", [Container("main")]))
        task = asyncio.create_task(it.run())
        await until(lambda: len(told) == 1)
        await idle()
        time.advance(10.0)
        await until(lambda: len(told) == 2)
        await idle()
        time.advance(10.0)
        await idle()
        assert asked == 2
        task.cancel()
        await asyncio.wait((task,))
