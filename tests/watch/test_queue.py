"""The kernel's queue of file events: how much of it a turn reads, and that nothing is lost unnoticed."""

import asyncio
import os
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.watch import Event, EventQueue, flags, queue
from tests.scenes.waiting import idle, until

MOST = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))


class Ear:
    """What the queue of a directory passed on, read by read."""

    def __init__(
        self, directory: Path, mask: int = flags.ATTRIB | flags.CREATE, *, read_s: float = queue.READ_S
    ) -> None:
        self.reads: list[list[Event]] = []
        self.queue = EventQueue(self._hear, read_s=read_s)
        self.queue.watch(str(directory), mask)

    @property
    def names(self) -> list[str]:
        return [event.name for events in self.reads for event in events]

    def _hear(self, events: Iterable[Event]) -> None:
        self.reads.append(list(events))


def touch(directory: Path, count: int) -> None:
    """Cause so many events, each unlike the one before, so that the kernel merges none."""
    for name in ("a", "b"):
        (directory / name).touch()
    for index in range(count):
        os.utime(directory / "ab"[index % 2])


async def test_a_turn_reads_a_part_of_the_queue_and_then_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "EVENT_S", 60.0)
    touch(tmp_path, 0)
    ear = Ear(tmp_path)
    touch(tmp_path, 2 * queue.CHUNK // 32)
    for _ in range(3):
        await idle()
        ear.queue.read()
    assert [sorted(event.name for event in events) for events in ear.reads] == [["a", "b"]]
    ear.queue.close()


async def test_a_full_queue_is_read_to_its_end_which_says_that_events_were_lost(tmp_path: Path) -> None:
    touch(tmp_path, 0)
    ear = Ear(tmp_path)
    touch(tmp_path, MOST + 1)
    await until(lambda: any(event.mask & flags.Q_OVERFLOW for events in ear.reads for event in events))
    (tmp_path / "c").touch()
    await until(lambda: "c" in ear.names)
    assert max(map(len, ear.reads)) < 10
    ear.queue.close()


async def test_a_few_events_are_each_heard_at_once(tmp_path: Path) -> None:
    ear = Ear(tmp_path, flags.CREATE)
    for index in range(10):
        (tmp_path / f"{index}").touch()
        await idle()
        assert ear.names[-1] == f"{index}"
    ear.queue.close()


async def test_many_small_reads_are_paused_like_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who causes one event for each turn of the loop must not have the daemon read in each."""
    monkeypatch.setattr(queue, "BURST_S", 9.5)
    ear = Ear(tmp_path, flags.CREATE, read_s=1.0)
    for index in range(100):
        (tmp_path / f"{index}").touch()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert len(ear.reads) == 10
    ear.queue.close()


async def test_a_queue_that_is_closed_while_it_pauses_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "BURST_S", 0.0)
    ear = Ear(tmp_path, read_s=0.01)
    (tmp_path / "a").touch()
    await until(lambda: ear.reads)
    (tmp_path / "b").touch()
    ear.queue.close()
    ear.queue.close()
    await asyncio.sleep(0.02)
    ear.queue.read()
    assert "b" not in ear.names


_EVENTS = st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from(["", "a", "bc", "é" * 20]))


@given(st.lists(_EVENTS, max_size=20))
def test_law_every_event_that_differs_is_passed_on_in_its_order(told: list[tuple[int, int, str]]) -> None:
    data = b""
    for watch, mask, name in told:
        text = name.encode() + b"\0" if name else b""
        text += b"\0" * (-len(text) % 16)
        data += struct.pack("iIII", watch, mask, 0, len(text)) + text
    assert queue._events_in(data) == (len(told), [Event(*each) for each in dict.fromkeys(told)])
