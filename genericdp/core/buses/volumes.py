"""Which volume a virtual disk is: `/dev/dm-0`, `/dev/md127` and `/dev/rbd0` have numbers of arrival.

The rules of this file:

* A volume is told by its UUID. One of device mapper without a UUID is told by the name that somebody gave it.
* An image of Ceph is told by its id in its pool, and each snapshot of it is another one.
* Kernels before 5.18 show no UUID of an array. There udev's counts, which mdadm writes in another form.
"""

import re

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import OF_IMAGE, UdevDevice

_DM = re.compile(r"dm-\d+")
_MD = re.compile(r"md(?:\d+|_.+)")


def kind_of(device: UdevDevice) -> str:
    """What a device is that the kernel has numbered: "volume", "array" or "image"; "" for any other one."""
    if device.subsystem == "rbd":
        return "image"
    return "volume" if _is(_DM, device) else "array" if _is(_MD, device) else ""


def volume_address(device: UdevDevice) -> Address | None:
    """Which volume a device is; None for anything else, and if nothing tells it."""
    if _is(_DM, device):
        uuid = telling(device.attributes.get("dm/uuid", ""))
        told = uuid or device.attributes.get("dm/name", "").strip()
        return Address(f"dm {'uuid' if uuid else 'name'} {told}", told) if told else None
    if _is(_MD, device):
        uuid = device.attributes.get("md/uuid", "") or device.property("MD_UUID") or ""
        told = telling(re.sub(r"[^0-9a-f]", "", uuid.lower()))
        return Address(f"md uuid {told}", told) if told else None
    return None


def image_address(device: UdevDevice) -> Address | None:
    """Which image of Ceph a device on its bus is; None if nothing tells it."""
    image = telling(device.attributes.get("image_id", ""))
    told = [device.attributes.get(name, "").strip() for name in OF_IMAGE]
    return Address(f"rbd {told!a}", image) if image else None


def _is(name: re.Pattern[str], device: UdevDevice) -> bool:
    is_disk = device.subsystem == "block" and device.devtype != "partition"
    return is_disk and name.fullmatch(device.sys_name) is not None
