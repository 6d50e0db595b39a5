"""What has happened since the daemon began: since when things are as they are, and how often what was.

The rules of this file:

* Times are seconds on a clock that does not jump; whoever shows one says what the wall clock had then.
  A node without a battery sets its clock after we have begun.
* It is told as things happen and costs next to nothing then: whether anybody ever asks is not known.
* It does not grow with what devices invent: a count has so many kinds, and the rest is "other".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from genericdp.core.inventory.changes import Changes
from genericdp.core.inventory.inventory import Inventory

#: How many different kinds one count tells apart.
KIND_LIMIT = 500

#: What all further kinds are called.
OTHER = "other"

#: The kernel's words for what happens to a device (kobject_action).
ACTIONS = frozenset({"add", "bind", "change", "move", "offline", "online", "remove", "unbind"})

#: Upper bounds of the time that an answer to Allocate took, in seconds.
ALLOCATION_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1.0)


class Counts:
    """How often each kind of something happened; a kind is a tuple of label values."""

    def __init__(self) -> None:
        self.by_kind: dict[tuple[str, ...], int] = {}

    def add(self, *kind: str) -> None:
        if kind not in self.by_kind and len(self.by_kind) >= KIND_LIMIT:
            kind = (OTHER,) * len(kind)
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1


@dataclass(slots=True)
class Durations:
    """How long something took, as a histogram: a number of cases for each bound, and one beyond."""

    cases: list[int] = field(default_factory=lambda: [0] * (len(ALLOCATION_BOUNDS_S) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        place = next(
            (place for place, bound in enumerate(ALLOCATION_BOUNDS_S) if seconds <= bound),
            len(ALLOCATION_BOUNDS_S),
        )
        self.cases[place] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class Since:
    """What something is, and since when (seconds)."""

    what: str
    at: float

    def follow(self, what: str, now: float) -> "Since":
        """The same if nothing changed, or what it is now, since now."""
        return self if what == self.what else Since(what, now)


class History:
    """Told by the daemon as things happen.

    began        when the daemon did
    kubelet      "here" or "away"
    deaf         why udev cannot be heard, "" when it can
    files        rule file -> the digest of the version in force
    registered   resource -> "registered" or not ("")
    devices      (resource, device) -> its health
    read         when all rule files were last without a mistake; None when they never were
    """

    def __init__(self, now: float) -> None:
        self.began = now
        self.kubelet = Since("away", now)
        self.deaf = Since("", now)
        self.files: dict[str, Since] = {}
        self.registered: dict[str, Since] = {}
        self.devices: dict[str, dict[str, Since]] = {}
        self.read: float | None = None
        self.uevents = Counts()
        self.rescans = Counts()
        self.overflows = 0
        self.kubelets = 0
        self.registrations = Counts()
        self.lost = Counts()
        self.lists = Counts()
        self.allocations = Counts()
        self.refusals = Counts()
        self.reloads = Counts()
        self.allocating = Durations()

    def saw_kubelet(self, there: bool, now: float) -> None:
        """A kubelet is there, another one than before; or there is none."""
        self.kubelets += there
        self.kubelet = Since("here" if there else "away", now)

    def heard_uevent(self, action: str, subsystem: str) -> None:
        self.uevents.add(action if action in ACTIONS else OTHER, subsystem)

    def looked_at_everything(self, reason: str, overflow: bool) -> None:
        self.rescans.add(reason)
        self.overflows += overflow

    def heard(self, deaf: str, now: float) -> None:
        """Whether udev can be heard: why not, or ""."""
        self.deaf = self.deaf.follow(deaf, now)

    def read_rules(self, digests: Mapping[str, str], mistakes: bool, now: float) -> None:
        """The rule files were read: which version of each is in force."""
        self.files = {
            path: self.files.get(path, Since("", now)).follow(digest, now) for path, digest in digests.items()
        }
        self.reloads.add("error" if mistakes else "success")
        if not mistakes:
            self.read = now

    def registered_as(self, resource: str, registered: bool, error: str, now: float) -> None:
        """How far a registration is: there, failed with an error, or neither."""
        before = self.registered.get(resource, Since("", self.began))
        self.registered[resource] = before.follow("registered" if registered else "", now)
        if registered:
            self.registrations.add(resource, "success")
        elif before.what:
            self.lost.add(resource)
        elif error:
            self.registrations.add(resource, "error")

    def sent_list(self, resource: str) -> None:
        """The kubelet was sent a list."""
        self.lists.add(resource)

    def allocated(self, resource: str, reason: str, seconds: float) -> None:
        """Allocate was answered, or refused for a reason."""
        if reason:
            self.refusals.add(resource, reason)
        else:
            self.allocations.add(resource)
            self.allocating.add(seconds)

    def stepped(self, inventory: Inventory, changes: Changes, now: float) -> None:
        """There is another inventory. Only what changed is looked at."""
        for name in changes.removed:
            self.devices.pop(name, None)
            self.registered.pop(name, None)
        for name in (*changes.added, *changes.updated):
            before = self.devices.get(name, {})
            self.devices[name] = _followed(
                before, ((device.id, str(device.health)) for device in inventory.offers[name].devices), now
            )


def _followed(before: Mapping[str, Since], after: Iterable[tuple[str, str]], now: float) -> dict[str, Since]:
    return {id_: before.get(id_, Since("", now)).follow(health, now) for id_, health in after}
