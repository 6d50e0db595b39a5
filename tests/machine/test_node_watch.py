"""What happens to names below /dev: what the watch tells, and what it does not hear."""

import asyncio
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from genericdp.machine import node_watch
from genericdp.machine.node_watch import NodeWatch
from genericdp.watch import queue
from tests.scenes.dev import a_directory, make_node


@pytest.fixture
def dev() -> Iterator[Path]:
    with a_directory() as path:
        yield path


class Ear:
    """A watch of a directory, and what it told."""

    def __init__(self, *directories: Path, again_s: float = 60.0) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.watch = NodeWatch(self.told.put_nowait, again_s=again_s)
        for directory in directories:
            self.watch.add(str(directory))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()

    async def heard(self) -> list[str]:
        """What it told so far: everything that happened before this call."""
        for _ in range(2):  # one round of the loop finds that there is something, the next reads it
            await asyncio.sleep(0)
        return [self.told.get_nowait() for _ in range(self.told.qsize())]


async def test_nodes_that_come_go_or_change_are_told_by_their_paths(dev: Path) -> None:
    with Ear(dev) as ear:
        make_node(dev / "acme0", 0)
        assert await ear.heard() == [f"{dev}/acme0"]
        os.chown(dev / "acme0", 1000, 1000)
        assert await ear.heard() == [f"{dev}/acme0"]
        (dev / "acme0").rename(dev / "acme1")
        assert await ear.heard() == [f"{dev}/acme0", f"{dev}/acme1"]
        (dev / "acme1").unlink()
        assert set(await ear.heard()) == {f"{dev}/acme1"}


async def test_nothing_is_heard_of_a_node_that_is_used(dev: Path) -> None:
    make_node(dev / "null", 3, major=1)
    with Ear(dev) as ear:
        (dev / "null").write_bytes(b"x")
        (dev / "null").read_bytes()
        assert await ear.heard() == []


async def test_a_directory_is_told_when_it_changes_itself(dev: Path) -> None:
    (dev / "caps").mkdir()
    with Ear(dev / "caps") as ear:
        (dev / "caps").chmod(0o777)
        assert await ear.heard() == [f"{dev}/caps"]


async def test_a_directory_that_is_not_kept_is_no_longer_watched(dev: Path) -> None:
    (dev / "a").mkdir()
    (dev / "b").mkdir()
    with Ear(dev / "a", dev / "b") as ear:
        ear.watch.keep({f"{dev}/b"})
        make_node(dev / "a/acme0", 0)
        make_node(dev / "b/acme1", 1)
        assert await ear.heard() == [f"{dev}/b/acme1"]
        ear.watch.keep(set())
        make_node(dev / "b/acme2", 2)
        assert await ear.heard() == []


async def test_a_directory_that_is_made_again_is_watched_again(dev: Path) -> None:
    (dev / "caps").mkdir()
    with Ear(dev, dev / "caps") as ear:
        shutil.rmtree(dev / "caps")
        (dev / "caps").mkdir()
        assert f"{dev}/caps" in await ear.heard()
        ear.watch.add(f"{dev}/caps")
        make_node(dev / "caps/acme0", 0)
        assert await ear.heard() == [f"{dev}/caps/acme0"]


async def test_a_directory_that_is_not_there_is_no_trouble(
    dev: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Ear(dev, dev / "caps") as ear:
        (dev / "caps").mkdir()
        assert await ear.heard() == [f"{dev}/caps"]
    assert caplog.messages == []


async def test_after_lost_events_anything_may_have_happened(dev: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    with Ear(dev) as ear:
        for _ in range(most // 2 + 1):
            (dev / "acme0").touch()
            (dev / "acme0").unlink()
        while await ear.told.get():
            pass


async def test_what_others_touch_all_the_time_is_told_once_for_each_read(dev: Path) -> None:
    """Any user may change the times of /dev/null."""
    make_node(dev / "null", 3, major=1)
    make_node(dev / "zero", 5, major=1)
    with Ear(dev) as ear:
        for _ in range(100):
            os.utime(dev / "null")
            os.utime(dev / "zero")
        make_node(dev / "acme0", 0)
        assert await ear.heard() == [f"{dev}/{name}" for name in ("null", "zero", "acme0")]


async def test_reading_again_and_again_is_paused_by_what_follows_from_it(
    dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at a node takes the longer the more nodes there are."""
    monkeypatch.setattr(node_watch, "READ_S", 60.0)
    with Ear(dev) as ear:
        make_node(dev / "acme0", 0)
        assert await ear.heard() == [f"{dev}/acme0"]
        make_node(dev / "acme1", 1)
        assert await ear.heard() == []


async def test_without_inotify_everything_is_looked_at_periodically_and_the_log_says_so_twice(
    dev: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(**_: bool) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    caplog.set_level("INFO")
    with monkeypatch.context() as patched:
        patched.setattr(queue, "INotify", refuse)
        with Ear(dev, again_s=0.0) as ear:
            for _ in range(3):
                assert await ear.told.get() == ""
                ear.watch.add(str(dev))
            patched.undo()
            assert await ear.told.get() == ""
            ear.watch.add(str(dev))
            make_node(dev / "acme0", 0)
            assert await ear.told.get() == f"{dev}/acme0"
    assert caplog.messages == ["cannot watch a directory, polling it instead", "watching the directory again"]
