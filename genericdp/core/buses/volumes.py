"""Which volume a virtual disk is: `/dev/dm-0`, `/dev/md127` and `/dev/zd16` have numbers of arrival.

The rules of this file:

* A volume is told by its UUID. One of device mapper without a UUID is told by the name that somebody gave it.
  It may get another name, and one without a UUID may get one, while it is in use.
* An image of Ceph is told by its id in its pool, and each snapshot of it is another one.
* Where sysfs does not say it, udev counts: for arrays before Linux 5.18 (mdadm writes the UUID in another
  form), for caches, and for volumes of ZFS, which have nothing but their names.
* A number that somebody chooses for a disk is the name of the disk: `/dev/loop0`, `/dev/drbd1000`.
"""

import re

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import OF_IMAGE, UdevDevice

_DM = re.compile(r"dm-\d+")
_MD = re.compile(r"md(?:\d+|_.+)")
_BCACHE = re.compile(r"bcache\d+")
_ZFS = re.compile(r"zd\d+")
_RNBD = re.compile(r"rnbd\d+")

#: What ZFS calls a volume: `/dev/zvol/tank/vm0`.
_ZFS_NAMES = "/dev/zvol/"

#: Any other virtual disk with a number, and those of which the number is chosen.
_NUMBERED = re.compile(r"/sys/devices/virtual/block/[A-Za-z]+\d+")
_CHOSEN = re.compile(r"(?:loop|ram|zram|nbd|drbd|nullb|ploop|ublkb)\d+")


def kind_of(device: UdevDevice) -> str:
    """What a disk is that the kernel has numbered: such as "volume"; "" for any other device."""
    if device.subsystem == "rbd":
        return "image"
    if not _is_disk(device) or _CHOSEN.fullmatch(device.sys_name) is not None:
        return ""
    for name, kind in ((_DM, "volume"), (_MD, "array")):
        if name.fullmatch(device.sys_name) is not None:
            return kind
    return "virtual disk" if _NUMBERED.fullmatch(device.sys_path) is not None else ""


def volume_address(device: UdevDevice) -> Address | None:
    """Which volume a device is; None for anything else, and if nothing tells it."""
    if not _is_disk(device):
        return None
    name, says = device.sys_name, device.attributes
    if _DM.fullmatch(name) is not None:
        uuid = telling(says.get("dm/uuid", ""))
        told = uuid or says.get("dm/name", "").strip()
        return Address(f"dm {'uuid' if uuid else 'name'} {told}", told) if told else None
    if _MD.fullmatch(name) is not None:
        return _by_uuid("md", says.get("md/uuid", "") or device.property("MD_UUID"))
    if _BCACHE.fullmatch(name) is not None:
        return _by_uuid("bcache", says.get("bcache/backing_dev_uuid", "") or device.property("CACHED_UUID"))
    if _ZFS.fullmatch(name) is not None:
        names = [each.removeprefix(_ZFS_NAMES) for each in device.devlinks if each.startswith(_ZFS_NAMES)]
        return Address(f"zvol {min(names)}", min(names)) if names else None
    if _RNBD.fullmatch(name) is not None:
        told = telling(says.get("rnbd/mapping_path", ""))
        return Address(f"rnbd {telling(says.get('rnbd/session', ''))} {told}", told) if told else None
    return None


def image_address(device: UdevDevice) -> Address | None:
    """Which image of Ceph a device on its bus is; None if nothing tells it."""
    image = telling(device.attributes.get("image_id", ""))
    told = [device.attributes.get(name, "").strip() for name in OF_IMAGE]
    return Address(f"rbd {told!a}", image) if image else None


def _by_uuid(word: str, uuid: str | None) -> Address | None:
    told = telling(re.sub(r"[^0-9a-f]", "", (uuid or "").lower()))
    return Address(f"{word} uuid {told}", told) if told else None


def _is_disk(device: UdevDevice) -> bool:
    return device.subsystem == "block" and device.devtype != "partition"
