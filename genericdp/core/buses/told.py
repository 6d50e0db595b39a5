"""All that buses say: which devices are units wherever they are, and what tells apart the parts of a unit.

The rules of this file:

* It is asked about every device node, and few are on these buses: the subsystem rules out the others.
"""

from collections.abc import Sequence

from genericdp.core.buses import firewire, nvme, pmem, scsi, volumes, wireless
from genericdp.core.buses.address import Address
from genericdp.core.device import UdevDevice

_UNITS = {
    "block": volumes.volume_address,
    "firewire": firewire.guid_address,
    "hid": wireless.hid_address,
    "nvme": nvme.controller_address,
    "nvme-subsystem": nvme.drive_address,
    "tty": wireless.serial_port_address,
}
#: Units of NVMe that Linux numbers in the order of arrival.
_COUNTED_DRIVES = frozenset({"nvme-subsystem", "nvme-fabrics"})


def address_of(device: UdevDevice) -> Address | None:
    """What tells a device that is a unit of its own and plugged in nowhere; None for any other."""
    address = _UNITS.get(device.subsystem)
    if address is not None:
        return address(device)
    return scsi.session_address(device) if "/session" in device.sys_path else None


def place_of(own: Sequence[UdevDevice], unit: UdevDevice) -> tuple[list[str], str]:
    """The place of a device within a unit, and what nobody can tell it to be ("disk"), "" if it is told.

    own  the device and its ancestors up to the unit, without it, nearest first
    """
    if unit.subsystem == "block":
        return [], "" if volumes.volume_address(unit) is not None else volumes.kind_of(unit)
    if unit.subsystem != "scsi" and _has_none(own):
        is_counted = unit.subsystem in _COUNTED_DRIVES and address_of(unit) is None
        return [*nvme.place_of(own), *pmem.place_of(own)], "disk" if is_counted else ""
    disk, paired = scsi.place_of(own, unit), wireless.place_of(own)
    return ([*scsi.numbers_of(own), *paired], "disk") if disk is None else ([*disk, *paired], "")


def place_before(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a device within a unit as earlier releases told it: by numbers and models."""
    return [] if _has_none(own) else [*scsi.numbers_of(own), *wireless.model_of(own)]


def _has_none(own: Sequence[UdevDevice]) -> bool:
    """Whether nothing among these is on a bus that tells the parts of a unit apart."""
    return all(each.subsystem not in ("scsi", "hid") for each in own)
