"""A target of the fuzzer: what goes in, what must hold for it, and what an input may cost.

The rules of this file:

* hypothesis makes the inputs, shortens one that breaks something and keeps it for the next run.
* An input that takes too much processor time or memory breaks its target, and so does one that hangs.
"""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.database import ExampleDatabase
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from tests.scenes.running import ENDING_S, HANGS_S, HangError, limited

#: How long an input may take by the clock, in seconds: it may wait for others, but not forever. `run` ends
#: what runs in an event loop before that. If this broke off the ending, gRPC servers would outlive the loop.
_LONGEST_S = HANGS_S + ENDING_S

#: How much of an input is shown in the table.
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked.

    check      raises if the input breaks something. Its name is that of the target, its docstring says what
    inputs     what to try
    few        how many inputs `make test` tries
    cpu_s      the most processor time for an input, in seconds, of all threads; machines are busy at times
    mebibytes  the most memory for an input, of the program and of those who attack it
    more_for   what the attackers may cost beside that, in MiB, when the daemon cannot bound it
    """

    check: Callable[[Any], None]
    inputs: SearchStrategy[Any]
    few: int
    cpu_s: float = 2.0
    mebibytes: float = 64.0
    more_for: Callable[[Any], float] = lambda _: 0.0

    @property
    def name(self) -> str:
        return self.check.__name__.replace("_", "-")

    @property
    def what(self) -> str:
        """What it attacks, in one line."""
        return (self.check.__doc__ or "").partition("\n")[0].rstrip(".")


@dataclass(slots=True)
class Tally:
    """What was tried on one target.

    seconds  the time that it took, and to invent it
    failure  what broke; "" if nothing did
    """

    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    slowest: str = ""
    failure: str = ""

    def add(self, tried: object, took_s: float) -> None:
        self.inputs += 1
        if took_s > self.slowest_s:
            shown = repr(tried)
            self.slowest_s, self.slowest = took_s, shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


class OutOfTimeError(BaseException):
    """The search is over. It is not an Exception, so that hypothesis does not take it for a failure."""


def search(
    target: Target,
    tally: Tally,
    *,
    inputs: int,
    seed: int | None = None,
    until: float = math.inf,
    database: ExampleDatabase | None = None,
) -> None:
    """Try so many inputs, the same ones for the same seed; first those that `database` knows to fail.

    Raises what the shortest input that fails raises, with that input in its notes; OutOfTimeError at the
    monotonic time `until`, unless an input is just being shortened.
    """
    failed = False

    @functools.wraps(target.check)
    def check(**argument: Any) -> None:
        nonlocal failed
        (tried,) = argument.values()
        began = time.monotonic()
        if began > until and not failed:
            raise OutOfTimeError
        try:
            _within_limits(target, tried)
        except HypothesisException:
            raise
        except Exception:
            failed = True
            raise
        finally:
            tally.add(tried, time.monotonic() - began)

    settings = hypothesis.settings(
        max_examples=inputs,
        deadline=None,  # processor time is measured instead
        database=database,
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    test = settings(hypothesis.given(target.inputs)(check))
    (test if seed is None else hypothesis.seed(seed)(test))()


def _within_limits(target: Target, tried: Any) -> None:
    before = _forget_peak()
    began = time.process_time()
    try:
        with limited(_LONGEST_S):
            target.check(tried)
    except HangError as error:
        raise AssertionError(f"it hangs: no end after {_LONGEST_S:g} s") from error
    cpu_s = time.process_time() - began
    mebibytes = (_kibibytes("VmHWM") - before) / 1024
    assert cpu_s <= target.cpu_s, f"{cpu_s:.1f} s of processor time, more than {target.cpu_s:g} s"
    most = target.mebibytes + target.more_for(tried)
    assert mebibytes <= most, f"{mebibytes:.0f} MiB more, more than {most:.0f} MiB"


def _forget_peak() -> int:
    """Reset the peak of the memory (proc(5), clear_refs). Returns what is in use now, in KiB."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return _kibibytes("VmRSS")


def _kibibytes(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))
