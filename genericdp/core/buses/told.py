"""All that buses say: which devices are units wherever they are, and what tells apart the parts of a unit.

The rules of this file:

* It is asked about every device node, and few are on these buses: the subsystem rules out the others.
"""

from collections.abc import Sequence

from genericdp.core.buses import card, firewire, nvme, pmem, scsi, software, video, volumes, wireless
from genericdp.core.buses.address import Address
from genericdp.core.device import UdevDevice

_UNITS = {
    "block": volumes.volume_address,
    "rbd": volumes.image_address,
    "hailo_chardev": card.card_address,
    "firewire": firewire.guid_address,
    "hid": wireless.hid_address,
    "infiniband_mad": software.software_address,
    "infiniband_verbs": software.software_address,
    "input": software.software_address,
    "nvme": nvme.controller_address,
    "nvme-subsystem": nvme.drive_address,
    "ptp": software.software_address,
    "tty": wireless.serial_port_address,
    "video4linux": software.software_address,
    "watchdog": software.software_address,
}

#: The property that may tell what nothing else does.
_PROPERTIES = {
    "disk": "ID_SERIAL",
    "virtual disk": "ID_FS_UUID",
    "volume": "DM_UUID",
    "array": "MD_UUID",
    "image": "ID_FS_UUID",
}

#: Units of NVMe that Linux numbers in the order of arrival.
_COUNTED_DRIVES = frozenset({"nvme-subsystem", "nvme-fabrics"})

#: Subsystems of what tells the parts of a unit apart.
_TELLING = frozenset({"scsi", "hid"})


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
    if video.is_video(own):
        return video.place_of(own, unit), ""
    numbered = unit if unit.subsystem in ("block", "rbd") else next(filter(_is_image, own), None)
    if numbered is not None:
        return [], "" if address_of(numbered) is not None else volumes.kind_of(numbered)
    if unit.subsystem != "scsi" and _has_none(own):
        is_counted = unit.subsystem in _COUNTED_DRIVES and address_of(unit) is None
        return [*nvme.place_of(own), *pmem.place_of(own)], "disk" if is_counted else ""
    disk, paired = scsi.place_of(own, unit), wireless.place_of(own)
    return ([*scsi.numbers_of(own), *paired], "disk") if disk is None else ([*disk, *paired], "")


def place_before(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a device within a unit as earlier releases told it: by numbers and models."""
    if video.is_video(own):
        return video.index_of(own)
    return [] if _has_none(own) else [*scsi.numbers_of(own), *wireless.model_of(own)]


def why_untold(what: str, *, in_group: bool = False) -> str:
    """Why nothing shows which one a device is, and what to do; `what` is from `place_of`."""
    leave = "leave out 'group_by' and " if in_group else ""
    return (
        f"nothing shows which {what} it is; {leave}give the resource an identity, "
        f'such as identity = ["{_PROPERTIES[what]}"]'
    )


def _has_none(own: Sequence[UdevDevice]) -> bool:
    """Whether nothing among these is on a bus that tells the parts of a unit apart."""
    return _TELLING.isdisjoint([each.subsystem for each in own])


def _is_image(device: UdevDevice) -> bool:
    return device.subsystem == "rbd"
