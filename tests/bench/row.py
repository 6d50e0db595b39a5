"""A measurement as it is printed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, how it came out, and what was promised ("" for nothing)."""

    what: str
    measured: str
    promised: str = ""
