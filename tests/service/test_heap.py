"""The heap of the daemon: what its busiest moment needed is given back."""

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from genericdp.service import heap
from genericdp.service.heap import Heap
from tests.scenes.waiting import until

#: What the scripts below have in common: `libc`, `mallinfo2`, and what glibc needs to be called.
_BEGIN = """
import ctypes, sys
from genericdp.service import heap

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
if sys.argv[1] == "kept small":
    heap.keep_small()
"""

#: Frees a block of 1 MiB, and then says whether one of 256 KiB is mapped on its own (`mallinfo2.hblkhd`).
_LARGE_BLOCK = """
libc.free(libc.malloc(1 << 20))
before = libc.mallinfo2().hblkhd
block = libc.malloc(256 << 10)
print(libc.mallinfo2().hblkhd > before)
"""

#: Fills the heap with 8 MiB, frees all but the end of it, and says whether that much memory is given back:
#: first by free(3), then by `give_back`.
_HOLE = """
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

blocks = [libc.malloc(64 << 10) for _ in range(129)]
for block in blocks:
    ctypes.memset(block, 1, 64 << 10)
full = resident()
for block in blocks[:-1]:
    libc.free(block)
print(full - resident() > 7 << 20)
heap.give_back()
print(full - resident() > 7 << 20)
"""


#: Says how many heaps there are (malloc_info(3)) while threads run that the daemon has started.
_HEAPS = """
import threading
from genericdp.cli import service
from genericdp.core.rules.settings import Settings

def run(serving):
    serving.close()
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(service.THREADS)]
    for thread in threads:
        thread.start()
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    end.set()
    print(open(sys.argv[2]).read().count("<heap nr="))

service.loop.run = run
service.serve(Settings(), None)
"""


def lines_of(script: str, how: str = "kept small", *more: str) -> list[str]:
    command = [sys.executable, "-c", _BEGIN + script, how, *more]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_large_block_leaves_no_hole_in_the_heap_after_another_one_was_freed() -> None:
    assert lines_of(_LARGE_BLOCK) == ["True"]
    assert lines_of(_LARGE_BLOCK, "as glibc does it") == ["False"], "glibc raises its threshold no longer"


def test_free_memory_in_the_middle_of_the_heap_is_given_back() -> None:
    assert lines_of(_HOLE) == ["False", "True"]


def test_all_threads_of_the_daemon_share_one_heap(tmp_path: Path) -> None:
    """Those that only find out whether there are enough threads, too: glibc gives their heaps to others."""
    assert lines_of(_HEAPS, "as the daemon does it", f"{tmp_path}/malloc_info") == ["1"]


@pytest.fixture
def heap_of_a_daemon() -> Iterator[Heap]:
    yield Heap()
    gc.unfreeze()


class _Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


async def test_reference_cycles_are_freed_before_memory_is_given_back(
    monkeypatch: pytest.MonkeyPatch, heap_of_a_daemon: Heap
) -> None:
    left = weakref.ref(_Cycle())
    was_there: list[bool] = []
    monkeypatch.setattr(heap, "give_back", lambda: was_there.append(left() is not None))
    monkeypatch.setattr(heap, "GIVE_BACK_AFTER_S", 0.0)
    heap_of_a_daemon.see_work()
    await until(lambda: was_there)
    assert was_there == [False]


async def test_the_longer_a_search_for_cycles_took_the_later_the_next_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine a search waits for the processor, and that does not count."""
    clock, work, searched, given_back = [100.0], [7.0], list[float](), list[float]()

    def search() -> None:
        searched.append(clock[0])
        work[0] += 0.25
        clock[0] += 5.0

    monkeypatch.setattr(heap, "give_back", lambda: given_back.append(clock[0]))
    monkeypatch.setattr(heap, "GIVE_BACK_AFTER_S", 0.0)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "collect", search)
    of_many_devices = Heap(lambda: clock[0], lambda: work[0])
    for now in (100.0, 2599.0, 2600.0):
        clock[0] = now
        given_back.clear()
        of_many_devices.see_work()
        await until(lambda: given_back)
    assert searched == [100.0, 2600.0]


@pytest.mark.usefixtures("heap_of_a_daemon")
def test_cycles_are_not_looked_for_among_what_was_there_before_the_daemon() -> None:
    assert gc.get_freeze_count() > len(sys.modules)


async def test_memory_is_given_back_once_for_all_the_work_until_then(
    monkeypatch: pytest.MonkeyPatch, heap_of_a_daemon: Heap
) -> None:
    given_back: list[float] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(heap, "give_back", lambda: given_back.append(loop.time()))
    monkeypatch.setattr(heap, "GIVE_BACK_AFTER_S", 0.05)
    seen, began = heap_of_a_daemon, loop.time()
    for _ in range(3):
        seen.see_work()
    await until(lambda: given_back)
    (at,) = given_back
    assert at >= began + 0.05
    seen.see_work()
    await until(lambda: len(given_back) == 2)
