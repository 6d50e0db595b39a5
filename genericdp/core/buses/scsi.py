"""Which disk or tape a SCSI device is: by its port, by the name of its transport, or by its own name.

The rules of this file:

* A SCSI host and a session are numbered in the order of arrival, and so is a target behind SAS, Fibre Channel
  and iSCSI. Elsewhere channel and target are addresses: on USB, of virtio, of a RAID controller.
* What is a SCSI host but no controller of disks is one for each of its targets.
* A transport has a name for each target that is the same after every boot. Where there is none, the name that
  the disk has for itself counts (VPD page 0x83). Where there is neither, nothing shows which disk it is.
"""

import re
from collections.abc import Sequence

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import UdevDevice, attributes_by_name

#: What a target is called on a transport, by the beginning of its kernel name: the word in front of it.
_TRANSPORTS = {"end_device-": "sas", "rport-": "fc"}
_COUNTED_TARGET = re.compile(r"/(?:end_device-|rport-|session)\d")

_SESSION = re.compile(r"session\d+")

#: Drivers that count what is not behind SAS: arrays, and disks on NVMe.
_COUNTING_DRIVERS = frozenset({"mptsas", "mpt2sas", "mpt3sas"})


def session_address(device: UdevDevice) -> Address | None:
    """The target of a session of iSCSI; None for anything else, and if the session does not say it."""
    if _SESSION.fullmatch(device.sys_name) is None:
        return None
    target = _told(device)
    return Address(f"iscsi {target}", target) if target else None


def place_of(own: Sequence[UdevDevice], unit: UdevDevice) -> list[str] | None:
    """The place of a SCSI device within a unit; None if nothing tells it.

    own  the device and its ancestors up to the unit, without it, nearest first
    """
    disk = next((each for each in own if each.devtype == "scsi_device" and each.subsystem == "scsi"), None)
    lun = "" if disk is None else disk.sys_name.rpartition(":")[2]
    luns = [f"lun{lun}"] if lun and lun != "0" else []
    if _SESSION.fullmatch(unit.sys_name) is not None:
        return luns
    for each in own:
        for beginning, word in _TRANSPORTS.items():
            if each.sys_name.startswith(beginning) and (told := _told(each)):
                return [word + told.removeprefix("0x"), *luns]
    if not _is_counted(unit, disk):
        return _numbers(disk)
    told = telling(disk.attributes.get("wwid", "")) if disk is not None else ""
    return [told] if told else None


def numbers_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a SCSI device within a unit by its numbers alone, as earlier releases told it."""
    return _numbers(
        next((each for each in own if each.devtype == "scsi_device" and each.subsystem == "scsi"), None)
    )


def ata_port(own: Sequence[UdevDevice]) -> list[str]:
    """A controller has a port for each disk; the number of the SCSI host follows the order of arrival."""
    for each in own:
        if each.sys_name.startswith("ata"):
            for name in attributes_by_name(each.sys_path):
                number = each.attributes.get(name, "").strip()
                return [f"port{number}"] if number.isascii() and number.isdigit() else []
    return []


def _is_counted(unit: UdevDevice, disk: UdevDevice | None) -> bool:
    """Whether the numbers of a SCSI device follow the order of arrival."""
    if unit.devtype == "scsi_host":
        return True
    if disk is None:
        return False
    if unit.subsystem == "pci" and not _is_storage(unit):
        # An adapter of a network has a host for each target (ib_srp).
        return True
    return unit.driver in _COUNTING_DRIVERS or _COUNTED_TARGET.search(disk.sys_path) is not None


def _is_storage(function: UdevDevice) -> bool:
    """Whether a PCI function is a controller of disks: its class is mass storage or Fibre Channel."""
    kind = function.properties.get("PCI_CLASS", "").rjust(6, "0")
    return kind.startswith(("01", "0C04")) or kind == "000000"


def _numbers(disk: UdevDevice | None) -> list[str]:
    """A card reader's slots are the logical units of one interface (host:channel:target:lun)."""
    address = "" if disk is None else disk.sys_name.partition(":")[2]
    return [f"lun{address.replace(':', '-')}"] if address and address != "0:0:0" else []


def _told(device: UdevDevice) -> str:
    """What the transport calls a target; "" if it does not say it."""
    values = (device.attributes.get(name, "") for name in attributes_by_name(device.sys_path))
    return next(filter(None, map(telling, values)), "")
