"""A case: a rule of the image, tested on a node."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.image.node import Node
from tests.image.unpacked import Unpacked

#: How long a case may take, in seconds; the longest one builds the image again.
PATIENCE_S = 300.0

#: `async def a_rule_in_words(node)`. It returns what it measured.
Case = Callable[[Node], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case. `problem` is "" if it passed."""

    case: str
    took_s: float
    measured: str = ""
    problem: str = ""


def name_of(case: Case) -> str:
    """The rule that a case tests, in words."""
    return str(getattr(case, "__name__", case)).replace("_", " ")


def tried(case: Case, image: Unpacked) -> Outcome:
    """Run a case. Every exception becomes its `problem`."""
    started = time.monotonic()
    measured = problem = ""
    try:
        measured = asyncio.run(_on_a_node(case, image)) or ""
    except Exception as error:  # noqa: BLE001  (it is reported, with its place)
        problem = "".join(traceback.format_exception(error))
    return Outcome(name_of(case), time.monotonic() - started, measured, problem)


async def _on_a_node(case: Case, image: Unpacked) -> str | None:
    async with asyncio.timeout(PATIENCE_S):
        async with Node(image) as node:
            try:
                return await case(node)
            except BaseException as error:
                error.add_note(node.describe())
                raise
