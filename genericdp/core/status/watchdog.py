"""Whether the service manager may be told that all is well.

The rules of this file:

* Only what a restart of the daemon would mend counts. A kubelet that is down or refuses does not: a refused
  registration is tried again, and a try is a sign of life.
* A resource is stuck if there is a kubelet, but neither a live stream nor a try to register.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: How long a resource may go without a stream and without a try, in seconds: the longest pause between two
#: tries (30), plus a Register without an answer (15), doubled.
STUCK_AFTER_S = 90.0


@dataclass(frozen=True, slots=True)
class Sign:
    """The signs of life of one resource.

    content   the kubelet follows its list, or there is no kubelet
    tries     how often it has tried to register
    """

    content: bool
    tries: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A sign, and since when it has not changed (seconds)."""

    sign: Sign
    since: float


def look(before: Mapping[str, Seen], signs: Mapping[str, Sign], now: float) -> dict[str, Seen]:
    """The sign of each resource, with its time from `before` if it did not change."""
    seen: dict[str, Seen] = {}
    for name, sign in signs.items():
        known = before.get(name)
        seen[name] = known if known is not None and known.sign == sign else Seen(sign, now)
    return seen


def stuck(seen: Mapping[str, Seen], now: float) -> tuple[str, ...]:
    """The resources that have stopped trying, sorted."""
    return tuple(
        sorted(name for name, one in seen.items() if not one.sign.content and now - one.since > STUCK_AFTER_S)
    )
