"""What the kubelet gives to pods, and what their containers get of it: for laws over any history."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Protocol, TypeVar

from genericdp.core.allocate import RefusedError, allocate
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer

T = TypeVar("T")


class Pod(Protocol):
    """A pod with one id of a resource.

    shared  whether the device was offered to several pods when it got it
    links   what its container gets
    """

    resource: str
    id_: str
    shared: bool
    links: tuple[str, ...]


def healthy(inventory: Inventory) -> set[str]:
    """The ids that the kubelet may give, once it has heard of them."""
    offers = inventory.offers.values()
    return {id_ for offer in offers for id_, device in offer.ids.items() if device.healthy}


def allocated(
    inventory: Inventory, usable: Collection[str], number: int
) -> tuple[Offer, str, tuple[str, ...]] | None:
    """The offer, the id and the links that a pod gets if the kubelet takes one of these ids for free; None if
    it gets none.
    """
    free = [(offer, id_) for offer in inventory.offers.values() for id_ in sorted(offer.ids) if id_ in usable]
    if not free:
        return None
    offer, id_ = free[number % len(free)]
    try:
        answer = allocate(offer, [id_], "/links")
    except RefusedError:
        return None
    return offer, id_, tuple(each.host_path.removeprefix("/links/") for each in answer.devices)


def behind_links(inventory: Inventory, pod: Pod, at: Mapping[str, T]) -> Mapping[str, T] | None:
    """What the container would get if it started now, by link; None if it would not start.

    at  path -> what is there
    """
    links = inventory.links()
    nodes = {link: links.get(link) for link in pod.links}
    found = {link: at[node] for link, node in nodes.items() if node is not None and node in at}
    return found if len(found) == len(nodes) else None


def behind_cdi(inventory: Inventory, pod: Pod, at: Mapping[str, T]) -> Mapping[str, T]:
    """The same for a pod that was answered by CDI; nothing: it would not start."""
    offer = inventory.offers.get(pod.resource)
    device = offer.ids.get(pod.id_) if offer is not None else None
    if device is None or not device.healthy:
        return {}
    return {node.link: at[node.path] for node in device.nodes}


PodT = TypeVar("PodT", bound=Pod)


def apart(pods: Collection[PodT]) -> Iterator[tuple[PodT, PodT]]:
    """Any two pods that must not have the same."""
    return ((one, other) for one, other in combinations(pods, 2) if not (one.shared and other.shared))


def check_lists(inventory: Inventory, pods: Collection[Pod]) -> None:
    """Check that whatever pods hold is listed, and has its links."""
    listed = {id_ for offer in inventory.offers.values() for id_ in offer.ids}
    for pod in pods:
        assert pod.id_ in listed or pod.resource not in inventory.offers
        assert {*pod.links} <= inventory.links().keys()
