"""Sys paths: to which device node the kernel gives a device number, and what is below a path."""

import shutil
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import DeviceNumber
from genericdp.udev import sysfs
from tests.udev.gadgets import Entry
from tests.udev.testbed import Testbed


@pytest.mark.testbed
def test_a_number_leads_to_the_node_of_its_device(bed: Testbed) -> None:
    bed.plug((Entry("/devices/virtual/misc/tun", "misc", node="net/tun", number="10:200"),))

    assert sysfs.node_of(DeviceNumber("c", 10, 200)) == "/dev/net/tun"
    assert sysfs.node_of(DeviceNumber("b", 10, 200)) is None
    assert sysfs.node_of(DeviceNumber("c", 10, 201)) is None


@pytest.mark.testbed
def test_the_number_of_a_device_of_another_network_namespace_is_not_free(bed: Testbed) -> None:
    # The kernel shows the number of its macvtap everywhere, and the device only where it belongs.
    (bed.root / "sys/dev/char/246:1").symlink_to("../../devices/virtual/net/mvt0/macvtap/tap4")

    assert sysfs.node_of(DeviceNumber("c", 246, 1)) == ""


@pytest.mark.testbed
def test_without_sysfs_no_number_is_known_to_be_free(bed: Testbed) -> None:
    shutil.rmtree(bed.root / "sys/dev")

    with pytest.raises(FileNotFoundError):
        sysfs.node_of(DeviceNumber("c", 246, 1))
    (bed.root / "sys/dev").mkdir()


# Characters on both sides of the "/", which separates what is below from what has a longer name.
_NAME = st.text("ab.0:", min_size=1, max_size=2)
_PATH = st.lists(_NAME, max_size=3).map(lambda names: "/".join(["", *names]))


@given(st.sets(_PATH), st.sets(_PATH), _PATH)
def test_law_what_is_below_a_path_is_found_among_all(
    paths: Collection[str], gone: Collection[str], asked: str
) -> None:
    found = sysfs.SysPaths()
    for path in paths:
        found.add(path)
    for path in set(gone) & set(paths):
        found.remove(path)
    left = set(paths) - set(gone)
    assert found.at_and_below(asked) == sorted(
        each for each in left if each == asked or each.startswith(f"{asked}/")
    )
