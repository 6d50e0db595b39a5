"""Which volume `/dev/dm-0` and `/dev/md127` are."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import Port, locate
from tests.core.buses.test_scsi import DISK, id_of, refusals_of
from tests.scenes.builders import a_device
from tests.scenes.storage import a_volume, an_array, an_image

UUID = "3aaa0122-2982-7cfa-5331-ad66ca767371"


@pytest.mark.parametrize(
    ("one", "later", "other"),
    [
        (a_volume(0, "LVM-abc", "vg-root"), a_volume(4, "LVM-abc", "vg-renamed"), a_volume(0, "LVM-def")),
        (a_volume(0, "", "test"), a_volume(4, "", "test"), a_volume(0, "", "other")),
        (an_array(127, UUID), an_array(126, UUID), an_array(127, UUID[::-1])),
        (an_image(0, "1f5c6b8b4567"), an_image(1, "1f5c6b8b4567"), an_image(0, "1f5d6b8b4567")),
        (an_image(0, "1f5c6b8b4567", "4"), an_image(1, "1f5c6b8b4567", "4"), an_image(0, "1f5c6b8b4567")),
    ],
    ids=["the UUID of a volume", "its name", "the UUID of an array", "an image of Ceph", "its snapshot"],
)
def test_a_volume_is_the_same_under_any_number(one: UdevDevice, later: UdevDevice, other: UdevDevice) -> None:
    assert id_of(one) == id_of(later) != id_of(other)
    assert locate(one).spot == locate(later).spot != locate(other).spot


def test_udev_says_the_uuid_of_an_array_if_the_kernel_does_not() -> None:
    of_udev = an_array(127, properties={"MD_UUID": "3aaa0122:29827cfa:5331ad66:ca767371"})
    assert locate(of_udev).spot == locate(an_array(127, UUID)).spot


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
    ],
    ids=["a volume", "an array", "an array that is not assembled yet", "an image of Ceph"],
)
def test_a_volume_that_nothing_tells_is_refused(volume: UdevDevice, kind: str, name: str) -> None:
    reason = f'nothing tells which {kind} it is; give the resource an identity, such as identity = ["{name}"]'
    assert refusals_of(volume) == (Refusal(DISK, volume.device_node or "", reason),)


def test_other_virtual_disks_are_called_as_before() -> None:
    loop = a_device("/sys/devices/virtual/block/loop0", subsystem="block", devtype="disk", node="/dev/loop0")
    assert locate(loop).port.readable == "loop0"
