"""Of which model a unit is: what a rule says that holds for every unit of it.

The rules of this file:

* What gets its firmware from a program is of one model before and after.
"""

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import unit_of
from genericdp.core.rules.match import usb_value
from genericdp.core.suggest.conditions import Conditions, one_or_more
from genericdp.core.suggest.quoting import exactly
from genericdp.core.suggest.units.firmware import loaded_of
from genericdp.core.suggest.units.siblings import Siblings
from genericdp.core.suggest.units.targets import target_of


def model_of(unit: UdevDevice) -> Conditions:
    """What every unit of the model of a USB device satisfies."""
    if loaded := loaded_of(unit):
        vendors, products = zip(*(ids.split(":") for ids in loaded.ids), strict=True)
        return {"usb": {"vendor": one_or_more({*vendors}), "product": one_or_more(products)}}
    return {"usb": {key: exactly(value) for key in ("vendor", "product") if (value := usb_value(unit, key))}}


def named_model_of(node: UdevDevice) -> Conditions:
    """What a USB device says of its model: makers of boards share numbers. {} without."""
    unit = unit_of(node)
    product = unit.properties.get("ID_MODEL") if unit.subsystem == "usb" else None
    if not product or loaded_of(unit):
        return {}
    named: Conditions = {"ID_MODEL": exactly(product)}
    return named if node is unit else {"parent": {"DEVTYPE": "usb_device", **named}}


def model_of_any(group: Siblings) -> Conditions:
    """What every unit of the model of a device satisfies; {} when it has none that a rule can name."""
    unit = unit_of(group.nodes[0])
    if target_of(group.nodes[0]):
        # Its driver is that of any other target.
        return {}
    match unit.subsystem:
        case "usb":
            return model_of(unit)
        case "pci" if "PCI_ID" in unit.properties:
            return {"parent": {"PCI_ID": exactly(unit.properties["PCI_ID"])}}
        case "pnp":
            # What leads where from a mainboard, its driver does not know.
            return {}
        case _:
            # The parts of a chip have no numbers of vendor and product; the driver knows no other model.
            return {"parent": {"DRIVER": exactly(driver)}} if (driver := driver_of(group.nodes[0])) else {}


def driver_of(node: UdevDevice) -> str:
    """The driver of a device node, or of the nearest of its parents that has one; "" without."""
    drivers = (
        # Every serial port has the two of the kernel's own bus, `ctrl` and `port`.
        each.driver
        for each in node.self_and_ancestors()
        if each.subsystem != "serial-base"
    )
    return next(filter(None, drivers), "")
