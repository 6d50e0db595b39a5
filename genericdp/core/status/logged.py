"""A warning or an error that was logged."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Logged:
    """Logged `count` times, last at `at` (seconds, on the clock of the history)."""

    at: float
    level: str
    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    count: int = 1
