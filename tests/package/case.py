"""A case: a rule that the installed package keeps, tried on a booted machine."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.package.node import Node

#: How long a case may take, in seconds; the longest waits for a watchdog, and takes five.
PATIENCE_S = 120.0

#: `async def a_rule_in_words(node)`; its name is what the table says.
Case = Callable[[Node], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case came out. `problem` is "" when it holds."""

    case: str
    took_s: float
    problem: str = ""


def name_of(case: Case) -> str:
    """The rule in words."""
    return str(getattr(case, "__name__", case)).replace("_", " ")


async def tried(case: Case, node: Node, prepare: Sequence[Callable[[], Awaitable[None]]]) -> Outcome:
    """Try one; whatever goes wrong is its problem."""
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
