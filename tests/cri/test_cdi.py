"""When the container runtime is asked whether it reads CDI."""

import asyncio
from pathlib import Path

import pytest

from genericdp.core.rules.settings import AnswerBy
from genericdp.cri.cdi import ReadsCdi
from genericdp.cri.runtime import ContainerRuntime
from genericdp.simulator import Kubelet
from tests.scenes.builders import resources_of
from tests.scenes.rules import FTDI_RULE
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
