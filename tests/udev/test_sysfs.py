"""To which device node the kernel gives a device number."""

import shutil

import pytest

from genericdp.core.device import DeviceNumber
from genericdp.udev import sysfs
from tests.udev.gadgets import Entry
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed


def test_a_number_leads_to_the_node_of_its_device(bed: Testbed) -> None:
    bed.plug((Entry("/devices/virtual/misc/tun", "misc", node="net/tun", number="10:200"),))

    assert sysfs.node_of(DeviceNumber("c", 10, 200)) == "/dev/net/tun"
    assert sysfs.node_of(DeviceNumber("b", 10, 200)) is None
    assert sysfs.node_of(DeviceNumber("c", 10, 201)) is None


def test_the_number_of_a_device_of_another_network_namespace_is_not_free(bed: Testbed) -> None:
    # The kernel shows the number of its macvtap everywhere, and the device only where it belongs.
    (bed.root / "sys/dev/char/246:1").symlink_to("../../devices/virtual/net/mvt0/macvtap/tap4")

    assert sysfs.node_of(DeviceNumber("c", 246, 1)) == ""


def test_without_sysfs_no_number_is_known_to_be_free(bed: Testbed) -> None:
    shutil.rmtree(bed.root / "sys/dev")

    with pytest.raises(FileNotFoundError):
        sysfs.node_of(DeviceNumber("c", 246, 1))
    (bed.root / "sys/dev").mkdir()
