"""What a device says it is.

The rules of this file:

* Everything here is untrusted text of the device, exactly as read.
* A name comes from the unit itself: its USB device, its PCI function, its HID, I2C or platform device. What
  is above it is another unit: a hub, a bridge, a host controller, the graphics card that an I2C bus is on.
* Where udev's hardware database does not know a device, udev asks it about the device above and gives the
  answer to both. So an entry of the database counts only where it stands on the unit.
"""

import re
from collections.abc import Iterator

from genericdp.core.device import UdevDevice
from genericdp.core.vfio import is_bridge, is_vfio

#: sysfs attributes that name a device, beyond CORE_ATTRIBUTES. Only verbs read them.
NAME_ATTRIBUTES = frozenset({"identity", "model", "model_name", "product"})

#: Subsystems in which a unit is one entry of sysfs.
_UNITS = frozenset(
    {
        "acpi", "amba", "ccw", "hid", "i2c", "mdev", "mmc", "pci", "platform", "pnp", "rpmsg", "scsi",
        "serial", "serio", "spi", "vchiq-bus", "vio", "vmbus", "xen",
    }
)  # fmt: skip

#: Where a part of a unit has a name of its own: properties, then attributes.
_NAMES = ("HID_NAME", "ID_V4L_PRODUCT", "DM_NAME", "MD_NAME", "MMC_NAME", "DEV_NAME")
_NAME_ATTRIBUTES = ("name", "model_name", "model", "identity")

#: Nodes of a bus: it has a name of its own or none, and the unit that it is made of is another thing.
_OF_A_BUS = frozenset({"i2c-dev", "drm_dp_aux_dev"})

#: Nodes that the name of their driver does not tell from those of any other machine.
_NOT_A_MODEL = _OF_A_BUS | {"graphics", "mtd", "ptp", "rtc", "watchdog"}

_NO_WORD = re.compile(r"[^a-z0-9]+")


def identification(device: UdevDevice) -> str:
    """Which device this is, as an operator needs it for a rule: ids, name, serial number; "" if nothing is
    known but where it is.
    """
    usb = device.usb_device
    if usb is not None:
        serial = usb.attributes.get("serial")
        parts = (f"usb {usb_ids(usb)}", _usb_name(device, usb), f"serial {serial}" if serial else "")
        return " ".join(part for part in parts if part)
    unit, is_bus = named_unit_of(device), device.subsystem in _OF_A_BUS
    if name := _own_name(device):
        # A board has several buses of one name.
        where = unit.sys_name if unit is not None and is_bus else ""
        return f"{name}, {where}" if where and where.removeprefix("0000:") not in name else name
    if unit is None or unit.subsystem != "pci" or is_bus:
        return ""
    ids = unit.properties.get("PCI_ID", "").lower()
    # The driver of a function in an IOMMU group says only that a container may get it.
    name = _pci_name(unit) or ("" if is_vfio(device) else unit.driver)
    return " ".join(part for part in ("pci", ids, name) if part)


def driver_and_address(device: UdevDevice) -> str:
    """What is known of a unit without a name: `uart-pl011 fe201000.serial`; "" of one on USB or on no bus."""
    unit = named_unit_of(device) if device.usb_device is None else None
    return "" if unit is None else " ".join(dict.fromkeys(filter(None, (unit.driver, unit.sys_name))))


def usb_ids(usb: UdevDevice) -> str:
    """Vendor and product of a USB device as `lsusb` prints them."""
    names = {"idVendor": "ID_VENDOR_ID", "idProduct": "ID_MODEL_ID"}
    ids = (usb.attributes.get(name) or usb.properties.get(key) or "?" for name, key in names.items())
    return ":".join(ids)


def model_name(device: UdevDevice) -> str:
    """What the unit of a device is called; "" when nothing says it.

    A USB device speaks for all that hangs off it, and its entry in udev's hardware database counts only if it
    says nothing: that names what many makers build in.
    """
    usb = device.usb_device
    if usb is not None:
        return _usb_model(device, usb)
    if device.subsystem in _NOT_A_MODEL:
        return ""
    unit = named_unit_of(device)
    return _own_name(device) or ("" if unit is None else _database_name(unit))


def _usb_name(device: UdevDevice, usb: UdevDevice) -> str:
    """The name of the unit, or, if it says more, of a part of it: the infrared sensor of a camera."""
    model, own = _usb_model(device, usb), _own_name(device)
    maker = usb.properties.get("ID_VENDOR", "")
    is_more = _plain(own) not in (_plain(model), _plain(f"{maker} {model}"))
    # Where a camera has no name, its driver names it by its ids.
    return own if own and is_more and usb_ids(usb) not in own else model


def _usb_model(device: UdevDevice, usb: UdevDevice) -> str:
    # Where udev has no name for the model of a USB device, it repeats the number.
    number = usb_ids(usb).rpartition(":")[2]
    for each in _up_to(usb, device):
        name = each.properties.get("ID_MODEL", "")
        if name and name != number:
            return name
    return usb.attributes.get("product", "").strip() or _database_name(usb)


def _own_name(device: UdevDevice) -> str:
    """What a part of a unit calls itself; "" when nothing below the unit, nor the unit, does."""
    usb = device.usb_device
    for each in _up_to(usb if usb is not None else named_unit_of(device), device):
        if each is usb or each.subsystem == "pci":
            return ""
        if usb is None and (model := each.properties.get("ID_MODEL")):
            return model
        for name in _NAMES:
            if value := each.properties.get(name, "").strip():
                return value
        for name in _NAME_ATTRIBUTES:
            value = each.attributes.get(name, "").strip()
            # A model number does not name anything.
            if value and not value.startswith("0x"):
                return value
        # The kernel's own property, in quotes, where no attribute was read.
        if each.subsystem == "input" and (value := each.properties.get("NAME", "").strip('" ')):
            return value
    return ""


def named_unit_of(device: UdevDevice) -> UdevDevice | None:
    """The unit that a device on no USB bus is or hangs off; None if it is on no bus."""
    found = None
    for each in device.self_and_ancestors():
        if each.subsystem not in _UNITS or (each.subsystem == "scsi" and each.devtype != "scsi_device"):
            continue
        if each.subsystem == "i2c" and each.sys_name.startswith("i2c-") and each.driver == "":
            continue  # a bus, not a device on it
        if found is None and not is_bridge(each):
            found = each
        # The sound card is the PCI function. The platform device between them is only its wiring.
        if device.subsystem != "sound" or each.subsystem == "pci":
            return each if each.subsystem == "pci" and not is_bridge(each) else found
    return found


def _up_to(last: UdevDevice | None, device: UdevDevice) -> Iterator[UdevDevice]:
    for each in device.self_and_ancestors():
        yield each
        if each is last:
            return


def _pci_name(function: UdevDevice) -> str:
    """The name of a PCI function; if the hardware database has none, its maker and class, if it has these."""
    if name := _database_name(function):
        return name
    maker = function.properties.get("ID_VENDOR_FROM_DATABASE", "")
    kinds = ("ID_PCI_SUBCLASS_FROM_DATABASE", "ID_PCI_CLASS_FROM_DATABASE")
    kind = next((function.properties[key] for key in kinds if key in function.properties), "")
    return " ".join(part for part in (maker, "" if "nclassified" in kind else kind) if part)


def _database_name(unit: UdevDevice) -> str:
    """The entry of the hardware database for a unit, unless it is that of the unit above."""
    key = "ID_MODEL_FROM_DATABASE"
    name = unit.properties.get(key, "")
    above = next((each for each in unit.ancestors() if each.subsystem == unit.subsystem), None)
    return "" if above is not None and above.properties.get(key) == name else name


def _plain(name: str) -> str:
    return _NO_WORD.sub("", name.lower())
