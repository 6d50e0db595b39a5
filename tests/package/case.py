"""A case: a rule of the installed package, tested on a booted machine."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.package.node import Node

#: How long a case may take, in seconds; the longest one waits five seconds for a watchdog.
PATIENCE_S = 120.0

#: `async def a_rule_in_words(node)`; the table of results shows its name.
Case = Callable[[Node], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case. `problem` is "" if it passed."""

    case: str
    took_s: float
    problem: str = ""


def name_of(case: Case) -> str:
    """The rule that a case tests, in words."""
    return str(getattr(case, "__name__", case)).replace("_", " ")


async def tried(case: Case, node: Node, prepare: Sequence[Callable[[], Awaitable[None]]]) -> Outcome:
    """Run a case. Every exception becomes its `problem`."""
    started = time.monotonic()
    problem = ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            for step in prepare:
                await step()
            started = time.monotonic()
            await case(node)
    except Exception as error:  # noqa: BLE001  (it is reported, with its place)
        problem = "".join(traceback.format_exception(error))
    return Outcome(name_of(case), time.monotonic() - started, problem)
