"""Inventories, from the text of a rule file and some udev devices: what the tests of the core ask about."""

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Past, Ties
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import Memory
from tests.scenes.builders import by_sys_path, resources_of

DOMAIN = "example.com"


def inventory_of(
    rules: str, *devices: UdevDevice, ties: Ties | None = None, known_ports: Ties | None = None
) -> Inventory:
    """The inventory of these rules on these devices and all their parents."""
    builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)
    return builder.build(by_sys_path(*devices), Past(ties or {}, known_ports or {}))


def answered(held: frozenset[str] | None, memory: Memory, now: float) -> Answer | None:
    """The answer of PodResources when pods hold these ids of remembered devices; None: there is no answer."""
    if held is None:
        return None
    names = {known.resource for known in memory.devices.values()}
    of = {id_: [memory.devices[id_].resource] if id_ in memory.devices else names for id_ in held}
    return Answer(frozenset((name, id_) for id_ in held for name in of[id_]), now, complete=True)


def devices_of(inventory: Inventory) -> list[Device]:
    """The devices of all its resources."""
    return [device for offer in inventory.offers.values() for device in offer.devices]


def ids_of(inventory: Inventory) -> list[str]:
    """Their ids."""
    return [device.id for device in devices_of(inventory)]


def offered(rules: str, *devices: UdevDevice) -> list[Device]:
    """The devices that these rules offer."""
    return devices_of(inventory_of(rules, *devices))


def the_device(rules: str, *devices: UdevDevice) -> Device:
    """The one device that these rules offer."""
    (device,) = offered(rules, *devices)
    return device
