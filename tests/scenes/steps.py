"""How much work something is, as a number that does not depend on the machine or on what else it does.

The rules of this file:

* What is counted are lines of Python. A loop inside the interpreter, like that of `list.remove`, is one step.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python run, a line that runs again counted again."""
    counted = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal counted
        del frame, event, arg
        counted += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times the steps of a doubled input are: 2 for linear work, 4 for quadratic work.

    `work` prepares an input of a size, and returns what is to be counted.
    """
    return steps(work(2 * size)) / steps(work(size))
