"""Prometheus' text format for metrics, version 0.0.4.

The rules of this file:

* Every family is declared with its kind, labels and help, and is rendered even without a sample: otherwise
  a missing metric would look like a renamed one.
* Label values are sanitized: whatever a device says about itself stays within one label of one line.
  Different values stay different, because no series may appear twice.
* Each family has a limited number of samples; how many were dropped is a metric itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from genericdp.core.hostile import for_label

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: The most samples that one family may have.
SAMPLE_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, kind (counter, gauge, histogram), labels and help."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


class Samples:
    """The samples of the declared families, in the order of the declarations.

    left_out  family -> how many samples were dropped
    """

    def __init__(self, families: Sequence[Family]) -> None:
        self.left_out: dict[str, int] = {}
        self._families = {family.name: family for family in families}
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add a sample with a value for each label of its family."""
        family = self._families[name]
        lines = self._lines.setdefault(name, [])
        if len(lines) < SAMPLE_LIMIT:
            lines.append(_line(name, zip(family.labels, labels, strict=True), value))
        else:
            self.left_out[name] = self.left_out.get(name, 0) + 1

    def add_histogram(self, name: str, bounds: Sequence[float], cases: Sequence[int], total: float) -> None:
        """Add a histogram without labels: the number of cases for each bound, and one beyond the last."""
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
    pairs = ",".join([f'{label}="{_escape(for_label(text))}"' for label, text in labels])
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escape(text: str) -> str:
    """A sanitized text, which has no line breaks, as a label value."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    whole = int(value)
    return str(whole) if value == whole else repr(value)
