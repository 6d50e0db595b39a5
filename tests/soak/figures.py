"""The figures of a soak, and whether they stay flat.

The rules of this file:

* Figures are taken while the node is at rest, so that two of them can be compared.
* The first sixth of the rows warms up and does not count: until then, Python and malloc grow to what their
  busiest moment takes. The medians of the first and the last rows after it are compared.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: How many rows are the beginning, and how many the end: minutes of an hour.
COMPARED = 10

#: The part of the rows that warms up.
WARM_UP = 1 / 6


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured at the end of one round.

    operations      so far
    resident        MiB of memory; `anonymous` is the part that is in no file, `peak` the most in this round
    saved           bytes of the state directory
    lines, busy_s   log lines and processor time of this round, for each operation
    plugs           ms from a plug to the kubelet's list
    admissions      ms that a pod's GetPreferredAllocation, Allocate and PreStartContainer took
    """

    operations: int
    descriptors: int
    threads: int
    resident: float
    anonymous: float
    peak: float
    saved: int
    lines: float
    busy_s: float
    plugs: tuple[float, ...]
    admissions: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One column. `bound`: how many times as large the end may be as the beginning; None: just shown."""

    name: str
    value: Callable[[Row], float]
    shown: str
    bound: float | None = None


FIGURES = (
    Figure("operations", lambda row: row.operations, "{:.0f}"),
    Figure("descriptors", lambda row: row.descriptors, "{:.0f}", 1.0),
    # gRPC starts and ends threads as it needs them.
    Figure("threads", lambda row: row.threads, "{:.0f}", 1.25),
    Figure("RSS MiB", lambda row: row.resident, "{:.2f}", 1.05),
    Figure("anon MiB", lambda row: row.anonymous, "{:.2f}", 1.05),
    Figure("peak MiB", lambda row: row.peak, "{:.1f}", 1.25),
    Figure("state B", lambda row: row.saved, "{:.0f}", 1.05),
    Figure("log/op", lambda row: row.lines, "{:.2f}", 1.5),
    Figure("cpu ms/op", lambda row: row.busy_s * 1000, "{:.2f}", 1.5),
    # What else the machine does makes some of them slow, but hardly all.
    Figure("plug p10", lambda row: percentile(row.plugs, 10), "{:.1f}", 1.5),
    Figure("p50 ms", lambda row: percentile(row.plugs, 50), "{:.1f}"),
    Figure("p99 ms", lambda row: percentile(row.plugs, 99), "{:.1f}"),
    Figure("admit p10", lambda row: percentile(row.admissions, 10), "{:.1f}", 1.5),
    Figure("p50 ms", lambda row: percentile(row.admissions, 50), "{:.1f}"),
    Figure("p99 ms", lambda row: percentile(row.admissions, 99), "{:.1f}"),
)


def width(figure: Figure) -> int:
    """How wide its column is."""
    return max(len(figure.name), 7)


COLUMNS = " ".join(["minute", *(f"{figure.name:>{width(figure)}}" for figure in FIGURES)])


def line(number: int, row: Row) -> str:
    """The figures of one row."""
    shown = (f"{figure.shown.format(figure.value(row)):>{width(figure)}}" for figure in FIGURES)
    return " ".join([f"{number:6}", *shown])


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many percent of the others are below."""
    return sorted(values)[len(values) * percent // 100]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure at the beginning and at the end."""

    figure: Figure
    first: float
    last: float

    @property
    def ratio(self) -> float:
        """How many times as large it is at the end."""
        return self.last / self.first if self.first else (1.0 if not self.last else float("inf"))

    @property
    def holds(self) -> bool:
        """Whether it is within its bound."""
        return self.figure.bound is None or self.ratio <= self.figure.bound

    def __str__(self) -> str:
        numbers = " ".join(f"{self.figure.shown.format(value):>10}" for value in (self.first, self.last))
        bound = "" if self.figure.bound is None else f"<= {self.figure.bound:.2f}"
        verdict = "" if self.holds else "  GREW"
        return f"{self.figure.name:<12} {numbers} {self.ratio:8.3f}   {bound}{verdict}".rstrip()


def compare(rows: Sequence[Row]) -> list[Comparison]:
    """Each figure at the beginning and at the end; none if there are fewer than three rows."""
    warm = rows[max(1, int(len(rows) * WARM_UP)) :]
    count = min(COMPARED, len(warm) // 2)
    if not count:
        return []
    return [
        Comparison(
            figure,
            statistics.median(figure.value(row) for row in warm[:count]),
            statistics.median(figure.value(row) for row in warm[-count:]),
        )
        for figure in FIGURES[1:]
    ]
