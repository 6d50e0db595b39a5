"""Which containers hold which devices, by the names that Kubernetes has for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.inventory.inventory import Inventory, Orphan
from genericdp.core.inventory.naming.ids import may_be_id_of
from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.answered import Answered
from genericdp.core.memory.held import Holding

#: How long a kubelet may take from its start until it knows its pods, in seconds. Before it has reached the
#: API server, its PodResources API lists no holders at all.
KUBELET_SETTLES_S = 120.0


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A container that holds a device."""

    namespace: str
    pod: str
    container: str


#: The namespace of a pod, and its name.
PodName = tuple[str, str]

#: (resource, id as the kubelet knows it) -> its holders.
Holdings = dict[tuple[str, str], tuple[Holder, ...]]

#: Device -> (id as the kubelet knows it, holder) for each holder; only devices that are held.
Held = Mapping[str, Sequence[tuple[str, Holder]]]


def holding_pods(holdings: Holdings) -> frozenset[PodName]:
    """The pods that hold a device, of any resource: they run, or are about to."""
    return frozenset((each.namespace, each.pod) for holders in holdings.values() for each in holders)


def are_complete(kubelet_up_s: float) -> bool:
    """Whether the holdings of a kubelet that has been up for so many seconds include every holder."""
    return kubelet_up_s >= KUBELET_SETTLES_S


@dataclass(frozen=True, slots=True)
class Stranded:
    """Containers that cannot start again: what they got with a Healthy device, links, leads nowhere now."""

    id: str
    holders: tuple[Holder, ...]
    links: tuple[str, ...]


def stranded(
    holdings: Holdings | None, given: Mapping[str, Holding], answered: Answered, inventory: Inventory
) -> Mapping[str, Sequence[Stranded]]:
    """Resource -> its stranded containers, by id; only resources with any.

    given     what Allocate gave under each id
    answered  what answers by CDI named: they depend on no link
    """
    by_cdi = {id_ for device in answered.values() for id_ in device.ids}
    found: dict[str, list[Stranded]] = {}
    leads = inventory.links()
    for (name, id_), holders in sorted((holdings or {}).items()):
        holding, offer = given.get(id_), inventory.offers.get(name)
        if holding is None or offer is None or holding.resource != name:
            continue
        device = offer.device(id_)
        if device is None or not device.healthy:
            continue
        # The one link of a device that was not grouped is not saved.
        is_alone = not holding.links and id_ not in by_cdi and holding.device in device.links
        links = (holding.device,) if is_alone else holding.links
        dead = tuple(link for link in links if leads.get(link) is None)
        if dead:
            found.setdefault(name, []).append(Stranded(id_, holders, dead))
    return found


def unlisted(held: Mapping[str, Holding], holdings: Holdings) -> frozenset[tuple[str, str]]:
    """(resource, device) of what pods may hold although PodResources does not list it.

    It may be another pod's than those listed: a kubelet that has not reached the API server knows its static
    pods.
    """
    return frozenset(
        (holding.resource, holding.device)
        for id_, holding in held.items()
        if (holding.resource, id_) not in holdings
    )


def by_device(holdings: Holdings | None, inventory: Inventory) -> Mapping[str, Held]:
    """Resource -> the holders of its devices; only resources with a device that is held."""
    by_resource: dict[str, dict[str, tuple[Holder, ...]]] = {}
    for (name, id_), holders in (holdings or {}).items():
        by_resource.setdefault(name, {})[id_] = holders
    return {
        name: _of_one(inventory.offers[name], held)
        for name, held in by_resource.items()
        if name in inventory.offers
    }


def of_orphans(
    holdings: Holdings | None, inventory: Inventory
) -> Mapping[Orphan, Sequence[tuple[str, Holder]]]:
    """The holders of the devices whose resources the rules no longer define, each with the id that it got."""
    found: dict[Orphan, list[tuple[str, Holder]]] = {orphan: [] for orphan in inventory.orphans}
    for (name, id_), holders in sorted((holdings or {}).items()) if found else ():
        # The id of the device itself, or of one of its replicas.
        devices = (each for each in (id_, id_.rpartition(".")[0]) if may_be_id_of(each, id_))
        if orphan := next((each for device in devices if (each := Orphan(name, device)) in found), None):
            found[orphan] += [(id_, holder) for holder in holders]
    return found


def _of_one(offer: Offer, by_id: Mapping[str, tuple[Holder, ...]]) -> Held:
    held: dict[str, list[tuple[str, Holder]]] = {}
    ids = offer.ids
    for id_ in sorted(by_id.keys() & ids.keys()):
        held.setdefault(ids[id_].id, []).extend((id_, holder) for holder in by_id[id_])
    return held
