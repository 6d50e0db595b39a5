"""Whether the service manager may be told that all is well.

The rules of this file:

* Only what a restart of ours would mend counts. A kubelet that is away, or says no, is none of that:
  whoever is refused tries again, and to try is a sign of life.
* A resource that has a kubelet but no live stream, and does not try either, is stuck.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: How long a resource may be without a stream and without a try, in seconds: the longest pause between
#: two tries (30), a Register that is not answered (15), and as much again.
STUCK_AFTER_S = 90.0


@dataclass(frozen=True, slots=True)
class Sign:
    """What is seen of one resource.

    content   a kubelet listens to it, or there is no kubelet
    tries     how often it began to register
    """

    content: bool
    tries: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A sign, and since when it has been the same (seconds)."""

    sign: Sign
    since: float


def look(before: Mapping[str, Seen], signs: Mapping[str, Sign], now: float) -> dict[str, Seen]:
    """What is seen of each resource now, after what was seen `before`."""
    seen: dict[str, Seen] = {}
    for name, sign in signs.items():
        known = before.get(name)
        seen[name] = known if known is not None and known.sign == sign else Seen(sign, now)
    return seen


def stuck(seen: Mapping[str, Seen], now: float) -> tuple[str, ...]:
    """The resources that have stopped trying."""
    return tuple(
        sorted(name for name, one in seen.items() if not one.sign.content and now - one.since > STUCK_AFTER_S)
    )
