"""What has happened since the daemon started.

It counts what happens, and keeps since when things are as they are.

The rules of this file:

* Times are seconds on a clock that does not jump; they become wall clock times when they are shown. A
  node without a battery sets its clock after the daemon has started.
* Recording costs next to nothing, because it may be that nobody ever asks.
* Devices cannot make it grow without limit: each count has a limited number of kinds, and the rest is
  "other".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from genericdp.core.allocate import RefusalReason
from genericdp.core.hint import RescanCause
from genericdp.core.inventory.inventory import Changes, Inventory

#: How many different kinds one count distinguishes.
KIND_LIMIT = 500

#: The name of all further kinds.
OTHER = "other"

#: The kernel's words for what happens to a device (kobject_action).
ACTIONS = frozenset({"add", "bind", "change", "move", "offline", "online", "remove", "unbind"})

#: Upper bounds of the buckets for the duration of an answer to Allocate, in seconds.
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
    """The state of something, and since when (seconds)."""

    what: str
    at: float

    def follow(self, what: str, now: float) -> "Since":
        """The same if the state did not change, or the new state since now."""
        return self if what == self.what else Since(what, now)


class Retried(StrEnum):
    """What is tried again until it works. The values are labels of genericdp_failing."""

    #: Reading every device.
    DEVICES = "devices"
    #: What udevd owes to the devices that were there before it.
    COLDPLUG = "coldplug"
    #: Saving the memory.
    MEMORY = "memory"
    #: Keeping what the rule files say.
    RULES = "rules"
    #: Reading the kubelet's checkpoint.
    CHECKPOINT = "checkpoint"
    #: Writing the CDI spec files.
    CDI = "cdi"
    #: Noting the directories that pods depend on, and clearing those that were `cdi_dir`.
    DIRECTORIES = "directories"
    #: Listening on the control socket.
    CONTROL = "control"
    #: Listening on the address for metrics.
    METRICS = "metrics"
    #: Asking the container runtime.
    RUNTIME = "runtime"
    #: Following events, when an error of the system has interrupted it.
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something fails, what to do about it ("" if that is obvious), and since when (seconds)."""

    why: str
    hint: str
    at: float


class History:
    """Counts and times since the daemon started.

    began        when the daemon started
    kubelet      "here" or "away"
    silence      why udev's events do not arrive, "" if they do
    failing      what fails now and is tried again
    files        rule file -> the digest of the version in effect
    registered   resource -> "registered" or ""
    devices      resource -> device -> its health
    read         when all rule files were last without a mistake; None if they never were
    """

    def __init__(self, now: float) -> None:
        self.began = now
        self.kubelet = Since("away", now)
        self.silence = Since("", now)
        self.failing: dict[Retried, Failure] = {}
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
        self.stops = Counts()
        self.failed_stops = Counts()
        self.allocating = Durations()

    def saw_kubelet(self, there: bool, now: float) -> None:
        """A new kubelet started, or the last one stopped."""
        self.kubelets += there
        self.kubelet = Since("here" if there else "away", now)

    def heard_uevent(self, action: str, subsystem: str) -> None:
        self.uevents.add(action if action in ACTIONS else OTHER, subsystem)

    def rescanned(self, cause: RescanCause) -> None:
        self.rescans.add(cause)
        self.overflows += cause is RescanCause.OVERFLOW

    def heard_udev(self, silence: str, now: float) -> None:
        """Events of udev arrive (""), or why they do not."""
        self.silence = self.silence.follow(silence, now)

    def failed(self, what: Retried, why: str, hint: str, now: float) -> bool:
        """Something failed and is tried again. Returns whether it worked before."""
        before = self.failing.get(what)
        self.failing[what] = Failure(why, hint, now if before is None else before.at)
        return before is None

    def works(self, what: Retried) -> bool:
        """Something works. Returns whether it failed before."""
        return self.failing.pop(what, None) is not None

    def read_rules(self, digests: Mapping[str, str], mistakes: bool, now: float) -> None:
        """The rule files were read; `digests` are those of the versions in effect."""
        self.files = {
            path: self.files.get(path, Since("", now)).follow(digest, now) for path, digest in digests.items()
        }
        self.reloads.add("error" if mistakes else "success")
        if not mistakes:
            self.read = now

    def registered_as(self, resource: str, registered: bool, error: str, now: float) -> None:
        """A registration succeeded, failed with an error, or neither yet."""
        before = self.registered.get(resource, Since("", self.began))
        self.registered[resource] = before.follow("registered" if registered else "", now)
        if registered:
            self.registrations.add(resource, "success")
        elif before.what:
            self.lost.add(resource)
        elif error:
            self.registrations.add(resource, "error")

    def sent_list(self, resource: str) -> None:
        """A list was sent to the kubelet."""
        self.lists.add(resource)

    def allocated(self, resource: str, refused: RefusalReason | None, seconds: float) -> None:
        """Allocate was answered, or refused for a reason."""
        if refused is not None:
            self.refusals.add(resource, refused)
        else:
            self.allocations.add(resource)
            self.allocating.add(seconds)

    def stopped(self, resource: str, cause: str) -> None:
        """The container runtime was asked to stop a container."""
        self.stops.add(resource, cause)

    def stopping_failed(self, resource: str) -> None:
        """The container runtime did not stop a container."""
        self.failed_stops.add(resource)

    def stepped(self, inventory: Inventory, changes: Changes, now: float) -> None:
        """The inventory changed. Only the changes are examined."""
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
