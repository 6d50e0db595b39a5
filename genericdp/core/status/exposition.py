"""The text format in which Prometheus reads metrics, version 0.0.4.

The rules of this file:

* Every family is declared with its kind, its labels and what it is for, and is there even without a
  sample: what is not there cannot be told from what was renamed.
* Label values are made harmless: whatever a device says about itself ends up in one label of one line.
* A family has so many samples at the most; how many were left out is a metric itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from genericdp.core.hostile import for_value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: How many samples one family has at the most.
SAMPLE_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, its kind (counter, gauge, histogram), its labels, what it is for."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


class Samples:
    """The samples of the declared families, in their order.

    left_out  family -> how many samples were one too many
    """

    def __init__(self, families: Sequence[Family]) -> None:
        self.left_out: dict[str, int] = {}
        self._families = {family.name: family for family in families}
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """A sample of a family, with a value for each of its labels."""
        family = self._families[name]
        lines = self._lines.setdefault(name, [])
        if len(lines) < SAMPLE_LIMIT:
            lines.append(_line(name, zip(family.labels, labels, strict=True), value))
        else:
            self.left_out[name] = self.left_out.get(name, 0) + 1

    def add_histogram(self, name: str, bounds: Sequence[float], cases: Sequence[int], total: float) -> None:
        """The samples of a histogram without labels: `cases` for each bound, and one beyond."""
        count = 0
        lines = self._lines.setdefault(name, [])
        for bound, number in zip((*bounds, float("inf")), cases, strict=True):
            count += number
            lines.append(_line(f"{name}_bucket", (("le", _number(bound)),), count))
        lines += (_line(f"{name}_sum", (), total), _line(f"{name}_count", (), count))

    def render(self) -> str:
        """All families as text."""
        return "".join(f"{line}\n" for family in self._families.values() for line in self._render(family))

    def _render(self, family: Family) -> Iterator[str]:
        yield f"# HELP {family.name} {family.help}"
        yield f"# TYPE {family.name} {family.kind}"
        yield from self._lines.get(family.name, ())


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join([f'{label}="{_escape(for_value(text))}"' for label, text in labels])
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escape(text: str) -> str:
    """A cleaned text, which has no line breaks, as a label value."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    whole = int(value)
    return str(whole) if value == whole else repr(value)
