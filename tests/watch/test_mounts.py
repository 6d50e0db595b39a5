"""Mounts, which cause no events of a directory: what is reported of them, and how often. Real mounts."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from genericdp.log_lines import fields_of
from genericdp.watch import mounts
from genericdp.watch.mounts import AGAIN_S
from tests.scenes.mounts import an_empty_file_system_over, bind_mounted
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle, until
from tests.watch.test_directory import Ear, as_nobody


@contextmanager
def listening() -> Iterator[list[float]]:
    """When mounts were reported in the block."""
    told: list[float] = []
    loop = asyncio.get_running_loop()
    end = mounts.listen(lambda: told.append(loop.time()))
    try:
        yield told
    finally:
        end()


def mount_and_unmount(directory: Path) -> None:
    """As a container that comes and goes."""
    with an_empty_file_system_over(directory):
        pass


@pytest.fixture
def long_pause(monkeypatch: pytest.MonkeyPatch) -> float:
    """How long further changes wait, in seconds: it passes only when a test says so."""
    monkeypatch.setattr(mounts, "PAUSE_S", 20.0)
    return 20.0


@pytest.mark.parametrize("kind", ["a new file system", "another directory of the same one"])
async def test_a_directory_that_is_mounted_over_another_is_watched_until_it_is_unmounted(
    tmp_path: Path, kind: str
) -> None:
    rules, other = tmp_path / "rules.d", tmp_path / "other"
    for each in (rules, other):
        each.mkdir()
    is_new = kind == "a new file system"
    with Ear(rules) as ear:
        with an_empty_file_system_over(rules) if is_new else bind_mounted(other, rules):
            await ear.hears()
            (rules / "a").touch()
            await ear.hears("a")
        await ear.hears()
        (rules / "b").touch()
        await ear.hears("b")


@pytest.mark.parametrize("covered", ["above", "above/rules.d", "target", "target/rules.d"])
async def test_a_mount_anywhere_on_the_way_is_heard(tmp_path: Path, covered: str) -> None:
    (tmp_path / "target" / "rules.d").mkdir(parents=True)
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "rules.d").symlink_to("../target/rules.d")
    directory = tmp_path / "above" / "rules.d"
    with Ear(directory) as ear, an_empty_file_system_over(tmp_path / covered):
        await ear.hears()
        if not directory.exists():
            directory.mkdir(parents=True) if covered == "above" else (tmp_path / "target/rules.d").mkdir()
            await ear.hears()
        (directory / "50-modem.toml").touch()
        await ear.hears("50-modem.toml")


async def test_a_directory_that_is_absent_may_come_with_a_mount(tmp_path: Path) -> None:
    source, over = tmp_path / "source", tmp_path / "over"
    (source / "rules.d").mkdir(parents=True)
    over.mkdir()
    with Ear(over / "rules.d") as ear, bind_mounted(source, over):
        await ear.hears()
        (over / "rules.d" / "50-modem.toml").touch()
        await ear.hears("50-modem.toml")


async def test_a_file_system_that_is_mounted_over_another_one_of_its_kind_is_noticed(tmp_path: Path) -> None:
    """The two roots have the same inode."""
    with an_empty_file_system_over(tmp_path):
        inode = tmp_path.stat().st_ino
        with Ear(tmp_path) as ear, an_empty_file_system_over(tmp_path):
            assert tmp_path.stat().st_ino == inode
            await ear.hears()


async def test_a_mount_elsewhere_is_not_reported(tmp_path: Path) -> None:
    for name in ("rules.d", "beside"):
        (tmp_path / name).mkdir()
    (tmp_path / "rules.d" / "below").mkdir()
    with Ear(tmp_path / "rules.d") as ear, listening() as told:
        for directory in (tmp_path / "beside", tmp_path / "rules.d" / "below"):
            mount_and_unmount(directory)
            await until(lambda: told)
            told.clear()
        assert await ear.heard() == []


async def test_a_mount_does_not_hasten_the_next_look_at_a_directory_that_cannot_be_watched(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be one more look, and one more warning, for each mount."""
    short_dir.chmod(0o755)
    secret = short_dir / "secret"
    secret.mkdir(mode=0)
    with as_nobody():
        ear = Ear(secret)
    with ear, listening() as told, an_empty_file_system_over(secret):
        await until(lambda: told)
        assert await ear.heard() == []
        assert caplog.messages == ["cannot watch a directory, polling it instead"]


async def test_a_closed_watch_hears_of_no_mount(tmp_path: Path) -> None:
    with Ear(tmp_path) as ear, listening() as told:
        ear.watch.close()
        with an_empty_file_system_over(tmp_path):
            await until(lambda: told)
            assert await ear.heard() == []


async def test_the_first_mount_is_told_at_once_and_those_that_follow_together(
    tmp_path: Path, long_pause: float
) -> None:
    time = LoopTime()
    with listening() as told:
        mount_and_unmount(tmp_path)
        await until(lambda: told, timeout_s=long_pause / 2)
        for _ in range(20):
            mount_and_unmount(tmp_path)
            await idle()
        assert len(told) == 1
        time.advance(long_pause)
        await until(lambda: len(told) > 1)
        await idle()
        # Other tests on this machine may mount something in between.
        assert len(told) <= 3


async def test_no_mount_is_lost_while_others_are_gathered(tmp_path: Path, long_pause: float) -> None:
    time = LoopTime()
    (tmp_path / "beside").mkdir()
    with Ear(tmp_path) as ear, listening() as told:
        mount_and_unmount(tmp_path / "beside")
        await until(lambda: told)
        with an_empty_file_system_over(tmp_path):
            assert await ear.heard() == []
            time.advance(long_pause)
            await ear.hears()


#: What is reported of one mount, and then of none for hours, on a machine where nobody else mounts anything.
QUIET = """
import asyncio
import sys
from pathlib import Path
from genericdp.cli import loop
from genericdp.watch.mounts import PAUSE_S
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle, until
from tests.watch.test_mounts import listening, mount_and_unmount
async def main():
    time = LoopTime()
    with listening() as told:
        mount_and_unmount(Path(sys.argv[2]))
        await until(lambda: told)
        for _ in range(3):
            time.advance(PAUSE_S)
            await idle()
        first = len(told)
        for _ in range(3):
            time.advance(3600)
            await idle()
        timers = [each for each in asyncio.get_running_loop()._scheduled if not each.cancelled()]
        print(first, len(told) - first, len(timers))
{"epoll": asyncio.run, "poll": loop.run}[sys.argv[1]](main())
"""


@pytest.mark.parametrize("loop", ["epoll", "poll"])
def test_without_a_mount_nothing_wakes_up(tmp_path: Path, loop: str) -> None:
    """The daemon waits by poll(2)."""
    command = ["unshare", "--mount", sys.executable, "-c", QUIET, loop, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, later, timers = map(int, told.split())
    assert 1 <= first <= 3
    assert (later, timers) == (0, 0)


async def test_all_listeners_share_one_descriptor_of_mountinfo(tmp_path: Path) -> None:
    def count() -> int:
        names = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return sum(os.readlink(name).endswith("/mountinfo") for name in names if os.path.lexists(name))

    with Ear(tmp_path), Ear(tmp_path), listening():
        assert count() == 1
    assert count() == 0


async def test_a_listener_that_comes_after_all_others_have_ended_is_told(tmp_path: Path) -> None:
    with listening():
        pass
    with listening() as told:
        mount_and_unmount(tmp_path)
        await until(lambda: told)


async def test_a_listener_that_another_one_has_ended_is_told_nothing_more(tmp_path: Path) -> None:
    told: list[str] = []

    def tell() -> None:
        told.append("first")
        end_second()

    end_first = mounts.listen(tell)
    end_second = mounts.listen(lambda: told.append("second"))
    try:
        mount_and_unmount(tmp_path)
        await until(lambda: told)
        assert told == ["first"]
    finally:
        end_first()


@pytest.mark.parametrize("kind", ["absent", "a file"])
async def test_while_mounts_cannot_be_watched_all_listeners_look_every_few_seconds_and_one_warning_says_so(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    time, mountinfo, rules = LoopTime(), tmp_path / "mountinfo", tmp_path / "rules.d"
    rules.mkdir()
    if kind == "a file":
        mountinfo.touch()
    with monkeypatch.context() as patched, caplog.at_level("INFO"):
        patched.setattr(mounts, "MOUNTINFO", str(mountinfo))
        with Ear(rules) as ear, listening() as told:
            with an_empty_file_system_over(rules):
                assert await ear.heard() == []
                time.advance(AGAIN_S)
                await ear.hears()
            time.advance(AGAIN_S)
            await until(lambda: len(told) == 2)
            patched.undo()
            time.advance(AGAIN_S)
            await until(lambda: len(told) == 3)
            with an_empty_file_system_over(rules):
                await ear.hears()
    assert caplog.messages == [
        "cannot watch mounts, looking every few seconds instead",
        "watching mounts again",
    ]
    why = os.strerror(errno.ENOENT if kind == "absent" else errno.EPERM)
    assert fields_of(caplog.records[0]) == {
        "why": f"cannot watch '{mountinfo}': {why}",
        "hint": "genericdp needs /proc",
    }
