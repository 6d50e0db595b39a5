"""An error of the system that nothing expected: shown and tried again, and the daemon does not end."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.hint import Hint
from genericdp.core.memory.answer import Answer
from genericdp.core.status.history import Retried
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene
from tests.scenes.waiting import idle, until

FIRST, SECOND = a_usb_serial(0, serial="A"), a_usb_serial(1, serial="B", port="3")
TWICE = f"{FTDI_RULE}replicas = 2\n"


class Broken:
    """A function that fails until it is mended."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real
        self.fails = True

    def __call__(self, *arguments: Any) -> Any:
        if self.fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real(*arguments)


def failing(scene: Scene) -> list[str]:
    """What the status says of events."""
    history = scene.daemon.recorder.history
    return [each.why for what, each in history.failing.items() if what is Retried.EVENTS]


@pytest.mark.parametrize(
    ("part", "name"),
    [("_devices", "apply"), ("_links", "apply"), ("cdi", "apply"), ("_saving", "keep"), ("_comeback", "see")],
)
async def test_a_plug_whose_following_fails_is_followed_later(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, part: str, name: str
) -> None:
    caplog.set_level("INFO")
    time = LoopTime()
    async with a_scene(short_dir, FIRST) as scene:
        await scene.until_allocatable(1)
        of = getattr(scene.daemon, part)
        broken = Broken(getattr(of, name))
        monkeypatch.setattr(of, name, broken)
        scene.plug(SECOND)
        said = "an event could not be followed: [Errno 28] No space left on device"
        await until(lambda: failing(scene) == [said])
        for pause_s in (1.0, 2.0):
            time.advance(pause_s)
            await idle()
        assert failing(scene) == [said]
        broken.fails = False
        time.advance(4.0)
        await until(lambda: not failing(scene))
        await scene.until_allocatable(2)
        assert "events are followed again" in caplog.messages
        assert not scene.service.has_ended()
        shown = [
            each for each in caplog.records if each.message.startswith("an event could not be followed;")
        ]
        assert shown[0].exc_info is not None, "with a traceback"


async def test_an_edit_whose_following_fails_is_followed_later(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing hears of the next edit when the files cannot be watched."""
    time = LoopTime()
    async with a_scene(short_dir, FIRST) as scene:
        await scene.until_allocatable(1)
        broken = Broken(scene.rules.watch)
        monkeypatch.setattr(scene.rules, "watch", broken)
        scene.edit_rules(TWICE)
        await until(lambda: failing(scene))
        broken.fails = False
        time.advance(1.0)
        await scene.until_allocatable(2)
        assert failing(scene) == []


async def test_an_answer_of_the_kubelet_whose_following_fails_ends_nothing(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = LoopTime()
    async with a_scene(short_dir, FIRST, kubelet_runs=False) as scene:
        broken = Broken(scene.daemon._links.apply)
        monkeypatch.setattr(scene.daemon._links, "apply", broken)
        async with scene.kubelet:
            await until(lambda: failing(scene))
            broken.fails = False
            time.advance(1.0)
            await until(lambda: not failing(scene))
            await scene.until_allocatable(1)
        assert not scene.service.has_ended()


async def test_what_answers_have_said_meanwhile_is_not_lost(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given before this daemon serves is said once."""
    time = LoopTime()
    async with a_scene(short_dir, FIRST, kubelet_runs=False) as scene:
        broken = Broken(scene.daemon._links.apply)
        monkeypatch.setattr(scene.daemon._links, "apply", broken)
        earlier = frozenset({(FTDI, "ftdi_A")})
        for answer in (
            Answer(frozenset(), 0.0, complete=False, first=True, earlier=earlier),
            Answer(frozenset({(FTDI, "ftdi_Z")}), 1.0, complete=False),
        ):
            scene.daemon.step(answer)
            assert failing(scene)
        assert scene.daemon.memory.held == {}
        broken.fails = False
        time.advance(1.0)
        await until(lambda: not failing(scene))
        listed = {id_: holding.listed for id_, holding in scene.daemon.memory.held.items()}
        assert listed == {"ftdi_A": False, "ftdi_Z": True}


async def test_any_other_exception_ends_it(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what is true then."""

    def fail(_hint: Hint) -> bool:
        raise RuntimeError("a bug")

    async with a_scene(short_dir, FIRST) as scene:
        await scene.until_allocatable(1)
        monkeypatch.setattr(scene.daemon._devices, "apply", fail)
        scene.plug(SECOND)
        await until(scene.service.has_ended)
        with pytest.raises(ExceptionGroup) as ended:
            await scene.service.stop()
        assert ended.group_contains(RuntimeError, match="a bug")
