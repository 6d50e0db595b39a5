"""Which CDI devices answers to pods have named.

The kubelet saves an answer for as long as its pod exists, and the runtime looks the name up at each creation
of a container. So the name must keep its meaning over an edit of `answer`, a restart and a reboot.

The rules of this file:

* A CDI device stands for the ids that one container was allocated of one resource.
* It is kept while all its ids are held.
* A name that was not saved, or was lost with the memory, is learned again from the kubelet's checkpoint. It
  counts only if it is the name of the ids of its container and all of them are held.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.inventory.identity import hash_of, natural
from genericdp.core.memory.held import PODS_SETTLE_S, Answer, Held
from genericdp.core.rules.name import cdi_kind

_MARK_LENGTH = 10


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """What a container was allocated of one resource.

    ids    in natural order
    given  when Allocate named it or it was learned again, on the clock of `remember`; None: before a restart
    """

    resource: str
    ids: tuple[str, ...]
    given: float | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Its qualified name, `vendor/class=device`."""
        return f"{cdi_kind(self.resource)}={self.short_name}"

    @property
    def short_name(self) -> str:
        """The name within its kind: the id, or for several ids the first one and a hash of all.

        No id contains a colon.
        """
        first = self.ids[0]
        return first if len(self.ids) == 1 else f"{first}:{hash_of(*self.ids)[:_MARK_LENGTH]}"


#: Qualified name -> what it means.
Answered = Mapping[str, CdiDevice]


def answer(answered: Answered, device: CdiDevice, now: float) -> Answered:
    """The CDI devices after Allocate named this one at `now`."""
    ids = set(device.ids)
    kept = {
        name: each
        for name, each in answered.items()
        # The kubelet allocates free ids, and within the admission of one pod those of its init containers.
        if ids.isdisjoint(each.ids) or (each.given is not None and now - each.given <= PODS_SETTLE_S)
    }
    return {**kept, device.name: CdiDevice(device.resource, device.ids, now)}


def resumed_at(answered: Answered, now: float) -> Answered:
    """The CDI devices at a start: perhaps in the middle of the admission for which they were named."""
    return {name: replace(each, given=now) for name, each in answered.items()}


def learn_names(answered: Answered, answer: Answer, held: Held) -> Answered:
    """The CDI devices after an answer of PodResources, given the holdings after it."""
    learned: dict[str, CdiDevice] = {}
    for named in answer.named:
        if named.ids and all(_is_held_of(named.resource, id_, held) for id_ in named.ids):
            device = CdiDevice(named.resource, tuple(sorted(named.ids, key=natural)), answer.asked)
            if device.name in named.cdi and device.name not in answered:
                learned[device.name] = device
    return {**answered, **learned} if learned else answered


def still_held(answered: Answered, held: Held) -> Answered:
    """The CDI devices of which pods may hold all ids."""
    kept = {name: each for name, each in answered.items() if _is_held(each.ids, held)}
    return answered if len(kept) == len(answered) else kept


def _is_held_of(resource: str, id_: str, held: Held) -> bool:
    return id_ in held and held[id_].resource == resource


def _is_held(ids: Iterable[str], held: Held) -> bool:
    return all(id_ in held for id_ in ids)
