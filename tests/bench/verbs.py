"""How long an operator waits for an answer: each verb as a process, from its start to its end."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

from genericdp.cli.main import VERBS
from tests.bench.row import Row

RUNS = 7

#: What is typed; those that go on until somebody ends them, and the help of those that are the daemon.
TYPED: Mapping[str, tuple[str, ...]] = {
    "run": ("--help",),
    "check": ("examples",),
    "list": ("--all", "--rules", "examples"),
    "explain": ("/dev/null", "--rules", "examples"),
    "suggest": ("--all", "--rules", "examples"),
    "monitor": ("--help",),
    "status": (),
    "simulate": ("--help",),
    "schema": ("rules",),
}


def rows() -> Iterator[Row]:
    """A row for each verb."""
    for verb in VERBS:
        typed = TYPED.get(verb, ("--help",))
        took = min(_one_run(verb, typed) for _ in range(RUNS))  # what it takes when nothing else runs
        yield Row(f"genericdp {' '.join((verb, *typed))}", f"{took * 1000:.0f} ms", "< 300 ms")


def _one_run(verb: str, typed: tuple[str, ...]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "genericdp", verb, *typed], capture_output=True, check=False)
    return time.perf_counter() - started
