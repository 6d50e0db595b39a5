"""Disks, their partitions, and the drives that they are in: which part a rule takes, and what else there is.

The rules of this file:

* A disk and each of its partitions are devices of their own, on every bus. A rule says which of them it
  takes, because a disk may be partitioned again.
* A drive may have several disks: a card reader has one for each slot. The number of a disk in its drive
  (the LUN) lasts; its letter follows the order of arrival.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import natural
from genericdp.core.suggest.quoting import exactly

#: Discs and floppies, volumes and memory are used as a whole.
_WITHOUT_PARTITIONS = ("sr", "fd")
_VOLUMES = ("dm-", "zd", "ram", "zram")

#: Their names are fixed, but what is behind them is not.
_ATTACHED_BY = {"loop": "losetup", "nbd": "nbd-client", "drbd": "drbdadm"}

_PARTITION = "partition"

_MOUNTED = (
    "If it writes to what is mounted, it destroys the file system; for files, use a local persistent volume."
)


def is_disk(node: UdevDevice) -> bool:
    """Whether it is a whole disk."""
    return (node.subsystem, node.devtype) == ("block", "disk")


def is_disc_drive(node: UdevDevice) -> bool:
    """Whether it is a drive for CDs, DVDs or Blu-ray discs."""
    return is_disk(node) and node.sys_name.startswith("sr")


def scsi_device_of(node: UdevDevice) -> UdevDevice | None:
    """The disk, tape drive or changer that a device node belongs to, if the kernel talks SCSI to it."""
    return next((each for each in node.ancestors() if each.devtype == "scsi_device"), None)


def is_card(node: UdevDevice) -> bool:
    """Whether it is a card or a partition of one, which has a number of its own, whatever reads it."""
    return node.subsystem == "block" and any(each.subsystem == "mmc" for each in node.ancestors())


def lun_of(node: UdevDevice) -> str:
    """The number, in its drive, of the disk that a device node belongs to; "" when it has none."""
    scsi = scsi_device_of(node)
    return "" if scsi is None else scsi.sys_name.rpartition(":")[2]


def is_part_of_drive(node: UdevDevice) -> bool:
    """Whether it is a partition, or a further disk of a drive."""
    return node.devtype == _PARTITION or (is_disk(node) and lun_of(node) not in ("", "0"))


def part_name(node: UdevDevice) -> str:
    """What a disk or a partition is called beside its drive."""
    if node.devtype == _PARTITION:
        return f"part{node.properties.get('PARTN', '')}"
    lun = lun_of(node)
    return f"lun{lun}" if lun else "disk"


def which_of_disk(node: UdevDevice) -> dict[str, str]:
    """Conditions that distinguish a disk from its partitions, or a partition from the rest of the disk."""
    part = node.properties.get("PARTN")
    if part is not None and node.devtype == _PARTITION:
        return {"PARTN": exactly(part)}
    return {"DEVTYPE": exactly(node.devtype)} if node.devtype else {}


def which_of_drive(node: UdevDevice) -> Mapping[str, Mapping[str, str]]:
    """The conditions that distinguish the disks of a drive; {} for what is in no drive with numbers."""
    lun = lun_of(node)
    return {"parent": {"DEVTYPE": "scsi_device", "DEVPATH": f"*:{exactly(lun)}"}} if lun else {}


def rest_of_drive(
    node: UdevDevice, nodes: Iterable[UdevDevice]
) -> Iterator[tuple[UdevDevice, Mapping[str, str | Mapping[str, str]]]]:
    """The disk of a partition, the partitions of a disk, the other disks of the drive and its command node.

    Each with the conditions that distinguish it from the rest of the drive.
    """
    disk = node.parent if node.devtype == _PARTITION and node.parent is not None else node
    drive, usb = scsi_device_of(node), node.usb_device
    for each in sorted(nodes, key=lambda other: (other.subsystem, natural(other.device_node or ""))):
        if each is node:
            continue
        if _is_or_is_below(each, disk):
            yield each, which_of_disk(each)
        elif drive is not None and each.subsystem == "scsi_generic" and _is_or_is_below(each, drive):
            yield each, {"SUBSYSTEM": each.subsystem}
        elif usb is not None and is_disk(each) and lun_of(each) and _is_or_is_below(each, usb):
            yield each, {**which_of_disk(each), **which_of_drive(each)}


def _is_or_is_below(device: UdevDevice, above: UdevDevice) -> bool:
    return f"{device.sys_path}/".startswith(f"{above.sys_path}/")


def commands_of(node: UdevDevice, nodes: Iterable[UdevDevice]) -> Iterator[UdevDevice]:
    """The command node of a drive for tapes or discs, or of a changer: `mtx` and programs that copy discs
    open that one.
    """
    drive = scsi_device_of(node)
    if drive is None or not (node.subsystem in ("scsi_tape", "scsi_changer") or is_disc_drive(node)):
        return
    for each in nodes:
        if each.subsystem == "scsi_generic" and _is_or_is_below(each, drive):
            yield each


def about_rest(other: UdevDevice, node: UdevDevice) -> str:
    """What another node of the drive is, for who asked for this one."""
    if other.subsystem == "scsi_generic":
        return "to send commands to the drive"
    if other.devtype == _PARTITION:
        return "a partition"
    return (
        "the whole disk"
        if _is_or_is_below(node, other)
        else f"another disk of the drive (LUN {lun_of(other)})"
    )


def who_attaches(node: UdevDevice) -> str:
    """What attaches a disk to a name that is fixed; "" for a disk that has its name from the kernel."""
    name = re.match(r"[a-z]+", node.sys_name) if node.subsystem == "block" else None
    return "" if name is None else _ATTACHED_BY.get(name[0], "")


def what_of_disk(node: UdevDevice) -> str:
    """What a container gets of a disk; "" for anything else."""
    if node.devtype == _PARTITION:
        return f"A container gets this partition and nothing else of the disk. {_MOUNTED}"
    if not is_disk(node) or node.sys_name.startswith(_WITHOUT_PARTITIONS):
        return ""
    if node.sys_name.startswith(_VOLUMES):
        return f"A container gets the whole volume. {_MOUNTED}"
    return (
        "A container gets the whole disk: it can read and write all partitions, but gets no device nodes "
        f"for them. {_MOUNTED}"
    )
