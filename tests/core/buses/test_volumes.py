"""Which volume `/dev/dm-0` and `/dev/md127` are."""

import pytest

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import UNKNOWN, Spot, locate
from tests.core.buses.test_scsi import DISK, id_of, refusals_of
from tests.scenes.builders import a_device
from tests.scenes.storage import a_cached_disk, a_virtual_disk, a_volume, a_zvol, an_array, an_image

UUID = "3aaa0122-2982-7cfa-5331-ad66ca767371"


def an_rnbd_disk(number: int, path: str) -> UdevDevice:
    return a_virtual_disk(f"rnbd{number}", attributes={"rnbd/session": "blya", "rnbd/mapping_path": path})


@pytest.mark.parametrize(
    ("one", "later", "other"),
    [
        (a_volume(0, "LVM-abc", "vg-root"), a_volume(4, "LVM-abc", "vg-renamed"), a_volume(0, "LVM-def")),
        (a_volume(0, "", "test"), a_volume(4, "", "test"), a_volume(0, "", "other")),
        (an_array(127, UUID), an_array(126, UUID), an_array(127, UUID[::-1])),
        (an_image(0, "1f5c6b8b4567"), an_image(1, "1f5c6b8b4567"), an_image(0, "1f5d6b8b4567")),
        (an_image(0, "1f5c6b8b4567", "4"), an_image(1, "1f5c6b8b4567", "4"), an_image(0, "1f5c6b8b4567")),
        (a_cached_disk(0, UUID), a_cached_disk(1, UUID), a_cached_disk(0, UUID[::-1])),
        (a_zvol(0, "tank/vm0"), a_zvol(16, "tank/vm0"), a_zvol(0, "tank/vm1")),
        (an_rnbd_disk(0, "/disk0"), an_rnbd_disk(1, "/disk0"), an_rnbd_disk(0, "/disk1")),
    ],
    ids=[
        *("the UUID of a volume", "its name", "the UUID of an array", "an image of Ceph", "its snapshot"),
        "the UUID of a cached disk",
        *("the name of a volume of ZFS", "what a disk of a server is there"),
    ],
)
def test_a_volume_is_the_same_under_any_number(one: UdevDevice, later: UdevDevice, other: UdevDevice) -> None:
    assert id_of(one) == id_of(later) != id_of(other)
    assert locate(one).spot == locate(later).spot != locate(other).spot


def test_udev_says_the_uuid_of_an_array_if_the_kernel_does_not() -> None:
    of_udev = an_array(127, properties={"MD_UUID": "3aaa0122:29827cfa:5331ad66:ca767371"})
    assert locate(of_udev).spot == locate(an_array(127, UUID)).spot


def test_udev_says_the_uuid_of_a_cached_disk_if_the_kernel_does_not() -> None:
    of_udev = a_virtual_disk("bcache0", properties={"CACHED_UUID": UUID.upper()})
    assert locate(of_udev).spot == locate(a_cached_disk(0, UUID)).spot


@pytest.mark.parametrize("disk", [a_zvol(16, "tank/vm0"), a_zvol(16)], ids=["told", "untold"])
def test_a_partition_of_a_volume_of_zfs_is_where_the_volume_is(disk: UdevDevice) -> None:
    partition = a_device(
        f"{disk.sys_path}/zd16p1", subsystem="block", devtype="partition", node="/dev/zd16p1", parent=disk
    )
    whole, part = locate(disk), locate(partition)
    assert (part.port, part.untold) == (whole.port, whole.untold)


def test_the_memory_of_an_earlier_release_has_a_disk_under_its_number() -> None:
    was = Spot("/sys/devices/virtual/block/zd16", "", "node")
    assert locate(a_zvol(16, "tank/vm0")).before == was._replace(number=UNKNOWN)
    assert locate(a_zvol(16)).spot == was


def test_the_partitions_of_an_array_belong_to_it() -> None:
    array = an_array(127, UUID)
    partition = a_device(f"{array.sys_path}/md127p1", subsystem="block", devtype="partition", parent=array)
    assert locate(partition).port == Port("md uuid 3aaa012229827cfa5331ad66ca767371", UUID.replace("-", ""))


@pytest.mark.parametrize(
    ("volume", "kind", "name"),
    [
        (a_volume(0), "volume", "DM_UUID"),
        (an_array(127), "array", "MD_UUID"),
        (an_array(127, "00000000-0000-0000-0000-000000000000"), "array", "MD_UUID"),
        (an_image(0), "image", "ID_FS_UUID"),
        (a_cached_disk(0), "virtual disk", "ID_FS_UUID"),
        (a_zvol(16), "virtual disk", "ID_FS_UUID"),
        (a_virtual_disk("acme0"), "virtual disk", "ID_FS_UUID"),
    ],
    ids=[
        *("a volume", "an array", "an array that is not assembled yet", "an image of Ceph"),
        *("a cached disk", "a volume of ZFS"),
        "any other disk with a number",
    ],
)
def test_a_volume_that_nothing_tells_is_refused(volume: UdevDevice, kind: str, name: str) -> None:
    reason = f'nothing shows which {kind} it is; give the resource an identity, such as identity = ["{name}"]'
    assert refusals_of(volume) == (Refusal(DISK, volume.device_node or "", reason),)


@pytest.mark.parametrize(
    "name", ["loop0", "ram1", "zram0", "nbd2", "drbd1000", "ublkb0", "etherd!e0.1", "ubiblock0_1"]
)
def test_a_virtual_disk_whose_number_somebody_chooses_is_called_as_before(name: str) -> None:
    place = locate(a_virtual_disk(name))
    assert (place.port.readable, place.untold, place.before) == (name, "", None)
