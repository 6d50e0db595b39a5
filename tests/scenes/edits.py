"""A node whose rules are edited while pods hold devices, for tests of the core."""

from collections.abc import Collection, Mapping

from genericdp.core.allocate import allocate
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.memory import Memory, after_allocate
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import by_sys_path, resources_of
from tests.scenes.inventories import DOMAIN


def rule(name: str = "ftdi", *keys: str, match: str = '{ SUBSYSTEM = "tty" }') -> str:
    return "\n".join(("[[resource]]", f'name = "{name}"', f"match = {match}", *keys, ""))


def of_product(product: str, name: str, *keys: str) -> str:
    """A rule for the ttys of one model on USB, or of several: `600*`."""
    return rule(name, *keys, match=f'{{ SUBSYSTEM = "tty", usb = {{ product = "{product}" }} }}')


class Node:
    """A node whose rules are edited while pods hold what they got."""

    def __init__(self) -> None:
        self.inventory, self.memory, self.now = Inventory(), Memory(), 0.0

    def look(
        self,
        rules: str,
        *devices: UdevDevice,
        answer: Answer | None = None,
        domain: str = DOMAIN,
        unread: Collection[str] | Mapping[str, str] = (),
    ) -> dict[str, str]:
        """What the kubelet is told then: id -> `Healthy`, or why it is not.

        unread  what cannot be read; if that is in sockets of USB 3, as in `UnreadError.paths`
        """
        self.now += 1.0
        builder = Builder(resources_of(rules, domain=domain), domain)
        plugged = by_sys_path(*devices)
        paths = unread if isinstance(unread, Mapping) else dict.fromkeys(unread, "")
        self.inventory, self.memory = take_inventory(
            builder, plugged, self.memory, self.now, answer, unread=paths
        )
        return {
            id_: device.reason or str(device.health)
            for offer in self.inventory.offers.values()
            for id_, device in offer.ids.items()
        }

    def allocate(self, *ids: str) -> None:
        """A pod gets these ids of one resource, unless Allocate refuses them."""
        offer = self.offer_of(ids[0])
        allocate(offer, ids, "/dev/genericdp")
        self.memory = after_allocate(self.memory, offer, ids, None, self.now)

    def links(self) -> dict[str, str | None]:
        """All links in the directory of links, with the device nodes to which they lead."""
        return {**self.inventory.links(), **self.inventory.held_links}

    def offer_of(self, id_: str) -> Offer:
        return next(offer for offer in self.inventory.offers.values() if id_ in offer.ids)

    def nobody_holds_anything(self) -> Answer:
        self.now += PODS_SETTLE_S
        return Answer(frozenset(), self.now, complete=True)
