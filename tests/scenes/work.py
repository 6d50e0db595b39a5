"""How much work something is, so that a test can say how it grows.

The rules of this file:

* No test compares a time with a number of seconds: machines differ, and are busy at times. Work is counted,
  or two times of the same kind of work are compared.
"""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

#: How many times as large the larger work is. Work that grows with the square takes 64 times as long.
FACTOR = 8
#: Work that grows in proportion takes `FACTOR` times as long, give or take a busy machine.
IN_PROPORTION = 2.5 * FACTOR


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of the program it runs. What the C library does is not counted."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if "/genericdp/" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times as long `work(FACTOR * size)` takes as `work(size)`, in processor time.

    Of the smaller work, the shortest of at least three runs counts; of more, if they are too short to measure
    well. The larger work takes most of the time. While it is not in proportion, it is repeated as often, or
    ten times, because a machine is slow for whole milliseconds.
    """
    smaller: list[float] = []
    _spare_the_collector()
    while len(smaller) < 3 or (sum(smaller) < 0.005 and len(smaller) < 100):
        smaller.append(_taken(work, size))
    larger = [_taken(work, FACTOR * size)]
    for _ in range(max(10, len(smaller) - 1)):
        if min(larger) < IN_PROPORTION * min(smaller):
            break
        smaller.append(_taken(work, size))
        larger.append(_taken(work, FACTOR * size))
    return min(larger) / min(smaller)


def growth_of_memory(work: Callable[[int], object], size: int) -> float:
    """How many times as much memory `work(FACTOR * size)` needs at its peak as `work(size)`."""
    return peak(lambda: work(FACTOR * size)) / peak(lambda: work(size))


def _spare_the_collector() -> None:
    """Free what is young, and never look at the rest again: after thousands of tests, that takes 0.1 s."""
    gc.collect(1)
    gc.freeze()


def _taken(work: Callable[[int], object], size: int) -> float:
    started = time.thread_time()
    work(size)
    return time.thread_time() - started


def peak(work: Callable[[], object]) -> int:
    """How much memory it needs at its peak, in bytes."""
    _spare_the_collector()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
