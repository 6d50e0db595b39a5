"""A device that cannot be read now is neither gone nor another one; it is read again later."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import pyudev

from genericdp.core.hint import RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices, snapshot
from tests.scenes.shortage import descriptors_left
from tests.udev import gadgets
from tests.udev.gadgets import Entry
from tests.udev.listening import by_node
from tests.udev.testbed import RUN, Testbed

#: More descriptors than reading a device takes.
ENOUGH = 12

WANTED = ("power/control", "uevent", "dev")

DONGLE = gadgets.serial_dongle()
USB, TTY = DONGLE[2], DONGLE[-1]
TTY_NODE = "/dev/ttyUSB0"

TOO_MANY = "Too many open files"
RAISE = "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"


def read_now() -> UdevDevices:
    devices = UdevDevices(WANTED)
    devices.resync()
    return devices


def as_text(devices: UdevDevices, below: str) -> dict[str, str]:
    return {path: repr(device) for path, device in devices.devices.items() if path.startswith(below)}


def event(entry: Entry, action: str, source: str = "udev") -> Uevent:
    return Uevent(action, entry.sys_path, entry.subsystem, source)


def check_that_a_snapshot_is_whole_or_missed_and_reported(left: int, below: str = "/sys/devices/") -> None:
    """With so many descriptors left, in that part of sysfs: devices that are known, and new ones."""
    known, new = read_now(), UdevDevices(WANTED)
    before, whole = dict(known.devices), as_text(known, below)
    assert whole
    assert known.unread is None

    with descriptors_left(left):
        known.resync()
        new.resync()

    assert all(known.devices[path] is before[path] for path in whole)
    found = as_text(new, below)
    assert found.items() <= whole.items()
    assert (new.unread is None) == (found == whole)
    assert new.unread is not None or left
    new.resync()
    assert (as_text(new, below), new.unread) == (whole, None)


@pytest.mark.parametrize("left", range(ENOUGH))
def test_with_few_descriptors_a_device_of_this_machine_is_whole_or_missed_and_reported(left: int) -> None:
    # Elsewhere, other tests plug and unplug.
    check_that_a_snapshot_is_whole_or_missed_and_reported(left, "/sys/devices/virtual/mem/")


@pytest.mark.testbed
@pytest.mark.parametrize("left", range(ENOUGH))
def test_with_few_descriptors_a_device_in_udevs_database_is_too(bed: Testbed, left: int) -> None:
    bed.plug(DONGLE, gadgets.webcam())
    check_that_a_snapshot_is_whole_or_missed_and_reported(left)


@pytest.mark.testbed
def test_an_event_without_descriptors_neither_loses_nor_spoils_its_device(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = read_now()
    before = dict(devices.devices)

    with descriptors_left(0):
        for entry in DONGLE:
            assert not devices.apply(event(entry, "change"))

    assert devices.devices == before
    assert (
        str(devices.unread)
        == f"cannot read {len(before)} devices, such as '{DONGLE[0].sys_path}': {TOO_MANY}"
    )
    assert devices.unread is not None
    assert devices.unread.hint == RAISE
    for path in before:
        devices.apply(Uevent("change", path, "", "udev"))
    assert devices.unread is None


@pytest.mark.testbed
def test_a_device_that_is_plugged_in_without_descriptors_is_found_later(bed: Testbed) -> None:
    devices = read_now()
    bed.plug(DONGLE)

    with descriptors_left(0):
        assert not devices.apply(event(TTY, "add"))
    assert str(devices.unread) == f"cannot read '{TTY.sys_path}': {TOO_MANY}"

    assert devices.apply(Resync(RescanCause.UNREAD))
    assert TTY_NODE in by_node(devices)
    assert devices.unread is None


@pytest.mark.testbed
def test_a_device_that_is_unplugged_without_descriptors_is_gone(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = read_now()
    bed.unplug(DONGLE)

    with descriptors_left(0):
        assert devices.apply(event(USB, "remove", "kernel"))
    assert TTY_NODE not in by_node(devices)
    assert devices.unread is None


@pytest.mark.testbed
def test_one_that_another_replaced_is_gone_even_if_the_other_cannot_be_read(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = read_now()
    bed.unplug(DONGLE)
    bed.plug(DONGLE)

    with descriptors_left(0):
        assert devices.apply(event(TTY, "add"))
    assert TTY_NODE not in by_node(devices)

    devices.resync()
    assert TTY_NODE in by_node(devices)


@pytest.mark.testbed
def test_a_child_is_not_read_without_its_parent(bed: Testbed) -> None:
    bed.plug(DONGLE)
    bed.root.chmod(0o755)
    (bed.root / USB.sys_path.removeprefix("/") / "uevent").chmod(0o600)
    with as_nobody():
        devices = read_now()
    assert TTY_NODE not in by_node(devices)
    assert str(devices.unread) == f"cannot read '{USB.sys_path}': Permission denied"

    devices.resync()
    assert TTY_NODE in by_node(devices)
    assert devices.unread is None


@pytest.mark.testbed
def test_what_may_not_be_looked_at_is_not_gone(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = read_now()
    before = dict(devices.devices)
    bed.root.chmod(0o755)
    (bed.root / USB.sys_path.removeprefix("/")).chmod(0o700)
    with as_nobody():
        for hint in (event(USB, "remove", "kernel"), event(TTY, "change"), Resync(RescanCause.DEAF)):
            assert not devices.apply(hint)
            assert devices.devices == before
            assert str(devices.unread).endswith(": Permission denied")
    assert not devices.resync()
    assert devices.unread is None


@pytest.mark.testbed
def test_a_device_is_not_read_without_its_entry_in_udevs_database(bed: Testbed) -> None:
    """Libudev then lists no property at all."""
    bed.plug(DONGLE)
    bed.root.chmod(0o755)
    devices = read_now()
    before = dict(devices.devices)
    entry = RUN / "data" / f"c{TTY.number}"
    entry.chmod(0o600)
    with as_nobody():
        assert not devices.apply(event(TTY, "change"))
    assert devices.devices == before
    assert str(devices.unread).startswith(f"cannot read '{TTY.sys_path}': ")
    entry.chmod(0o644)
    devices.resync()
    assert devices.unread is None


@pytest.mark.parametrize("misses", [1, 2])
def test_a_device_whose_successor_appears_while_it_is_looked_for_is_found(
    monkeypatch: pytest.MonkeyPatch, misses: int
) -> None:
    """Libudev finds nothing, and then the directory is there."""
    path, real = "/sys/devices/virtual/mem/null", pyudev.Devices.from_sys_path
    looks: list[str] = []

    def from_sys_path(context: pyudev.Context, sys_path: str) -> pyudev.Device:
        looks.append(sys_path)
        if len(looks) <= misses:
            raise pyudev.DeviceNotFoundError(sys_path)
        return real(context, sys_path)

    monkeypatch.setattr(pyudev.Devices, "from_sys_path", from_sys_path)
    if misses == 1:
        assert snapshot.find(path) is not None
    else:
        with pytest.raises(OSError, match="Input/output error"):
            snapshot.find(path)
    assert looks == [path, path]


def test_an_attribute_is_not_absent_because_a_thread_took_the_last_descriptor() -> None:
    device = snapshot.find("/sys/devices/virtual/mem/null")
    assert device is not None
    assert snapshot._attribute(device, "none") is None
    with descriptors_left(0), pytest.raises(OSError, match=TOO_MANY):
        snapshot._attribute(device, "dev")
    fresh = snapshot.find("/sys/devices/virtual/mem/null")
    assert fresh is not None
    assert snapshot._attribute(fresh, "dev") == b"1:3"


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's permission to read everything."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
