"""What udev has said about a device, and what is known where it says nothing."""

from dataclasses import replace

import pytest

from genericdp.core.device import CORE_ATTRIBUTES, UdevDevice
from genericdp.core.hint import RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices, snapshot
from genericdp.udev.bounded import Bounded
from genericdp.udev.database import Database, look_at
from tests.udev import gadgets
from tests.udev.gadgets import Entry
from tests.udev.testbed import RUN, Testbed

pytestmark = pytest.mark.testbed

DONGLE = gadgets.serial_dongle()
TTY = DONGLE[-1]
SUCCESSOR = gadgets.serial_dongle(serial="SUCCESSOR", devnum=6)
OTHER = gadgets.serial_dongle("3", tty=1, serial="OTHER", devnum=9)


def tty(devices: UdevDevices) -> UdevDevice:
    return devices.devices[TTY.sys_path]


def heard(entry: Entry, action: str = "add", *, number_of: UdevDevice, **properties: str) -> Uevent:
    """Udev's event, with what its message says."""
    message = UdevDevice(
        entry.sys_path,
        subsystem=entry.subsystem,
        number=number_of.number,
        devlinks=entry.devlinks,
        properties={**entry.properties, **properties},
        tags=frozenset(entry.tags),
    )
    return Uevent(action, entry.sys_path, entry.subsystem, "udev", 7, message)


def test_a_device_that_udev_has_not_dealt_with_is_not_initialized_until_it_has(bed: Testbed) -> None:
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()
    assert not tty(devices).initialized
    assert "ID_SERIAL_SHORT" not in tty(devices).properties

    for entry in DONGLE:
        bed.initialize(entry)
    devices.apply(Uevent("add", TTY.sys_path, "tty", "udev"))

    assert tty(devices).initialized
    assert tty(devices).properties["ID_SERIAL_SHORT"] == "A50285BI"


def test_a_device_without_a_node_is_not_waited_for(bed: Testbed) -> None:
    """Udev keeps no entry for a device that has neither a node nor anything worth keeping."""
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()

    for device in devices.devices.values():
        assert device.initialized == (device.number is None)


def test_an_entry_that_is_written_after_a_device_was_read_is_not_taken_for_the_one_before(
    bed: Testbed,
) -> None:
    bed.plug(DONGLE, OTHER)
    bounded = Bounded()
    database = Database(str(RUN), bounded)

    def read(entry: Entry) -> UdevDevice | None:
        found = database.read(entry.sys_path, CORE_ATTRIBUTES)
        return database.complete(found, None, None, trust_the_past=True)

    first = read(TTY)
    assert first is not None
    assert first.properties["ID_SERIAL_SHORT"] == "A50285BI"
    bed.replace(DONGLE, SUCCESSOR)
    bounded.plan(look_at, [TTY.sys_path, OTHER[-1].sys_path])
    assert read(OTHER[-1]) is not None  # the first one has been read, too
    for entry in SUCCESSOR:
        bed.initialize(entry)

    found = read(TTY)
    assert found is not None
    assert not found.initialized
    assert "ID_SERIAL_SHORT" not in found.properties
    found = read(TTY)
    assert found is not None
    assert found.initialized
    assert found.properties["ID_SERIAL_SHORT"] == "SUCCESSOR"


def test_an_entry_that_is_written_while_a_device_is_read_is_not_taken_for_the_one_before(
    bed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    bed.replace(DONGLE, SUCCESSOR)
    look = snapshot.look_at

    def look_slowly(sys_path: str, attributes: frozenset[str]) -> UdevDevice | None:
        found = look(sys_path, attributes)
        if sys_path == TTY.sys_path:
            bed.initialize(SUCCESSOR[-1])
        return found

    monkeypatch.setattr(snapshot, "look_at", look_slowly)
    devices.apply(Uevent("change", TTY.sys_path, "tty", "udev"))
    assert not tty(devices).initialized
    assert "ID_SERIAL_SHORT" not in tty(devices).properties

    monkeypatch.undo()
    devices.apply(Uevent("add", TTY.sys_path, "tty", "udev"))
    assert tty(devices).initialized
    assert tty(devices).properties["ID_SERIAL_SHORT"] == "SUCCESSOR"


def test_what_was_read_of_the_device_before_is_not_taken_for_the_one_that_is_there(bed: Testbed) -> None:
    bed.plug(DONGLE, OTHER)
    bounded = Bounded()
    database = Database(str(RUN), bounded)
    bounded.plan(look_at, [TTY.sys_path, OTHER[-1].sys_path])
    database.read(OTHER[-1].sys_path, CORE_ATTRIBUTES)
    bed.unplug(DONGLE)
    bed.plug(SUCCESSOR)

    found = database.read(TTY.sys_path, CORE_ATTRIBUTES).device
    assert found is not None
    assert found.properties["ID_SERIAL_SHORT"] == "SUCCESSOR"


def test_where_nobody_plays_udev_the_kernel_is_believed(bed: Testbed) -> None:
    (RUN / "control").unlink()
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()

    assert tty(devices).initialized
    assert tty(devices).properties == {
        "DEVNAME": "/dev/ttyUSB0",
        "DEVPATH": TTY.path,
        "MAJOR": "188",
        "MINOR": "0",
        "SUBSYSTEM": "tty",
    }


def test_where_the_database_cannot_be_read_the_message_is_believed(bed: Testbed) -> None:
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()

    assert devices.apply(heard(TTY, number_of=tty(devices)))

    assert tty(devices).initialized
    assert tty(devices).properties["ID_SERIAL_SHORT"] == "A50285BI"
    assert tty(devices).devlinks == TTY.devlinks
    assert not devices.resync()
    assert not devices.apply(heard(TTY, number_of=tty(devices)))


def test_a_message_about_another_number_is_about_another_device(bed: Testbed) -> None:
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()
    usb = devices.devices[DONGLE[2].sys_path]

    devices.apply(heard(TTY, number_of=usb))

    assert not tty(devices).initialized
    assert tty(devices).devlinks == ()


def test_a_wiped_database_retracts_nothing_that_udev_reported(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    before = dict(devices.devices)

    bed.wipe_database()

    assert not devices.resync()
    for entry in DONGLE:
        assert not devices.apply(Uevent("change", entry.sys_path, entry.subsystem, "kernel"))
    assert all(devices.devices[sys_path] is device for sys_path, device in before.items())


def test_even_when_udev_is_gone_with_all_its_files(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()

    bed.wipe_database()
    (RUN / "control").unlink()

    assert not devices.resync()
    assert tty(devices).properties["ID_SERIAL_SHORT"] == "A50285BI"


def test_what_the_kernel_says_is_read_anew_although_the_database_is_wiped(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    bed.wipe_database()

    bed.set_attribute(TTY, "line", "3")
    bed.node(TTY).unlink()
    assert devices.resync()

    assert tty(devices).attributes["line"] == "3"
    assert not tty(devices).node_is_there
    assert tty(devices).initialized


def test_what_udev_reported_about_the_old_unit_is_not_valid_for_the_new_one(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()

    bed.unplug(DONGLE)
    bed.attach(gadgets.serial_dongle(serial="NEW"))
    devices.resync()

    assert not tty(devices).initialized
    assert "ID_SERIAL_SHORT" not in tty(devices).properties


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "found"])
def test_an_entry_that_was_written_for_the_old_unit_says_nothing_about_the_new_one(
    bed: Testbed, is_told: bool
) -> None:
    """Udevd hangs or is dead: the number is given away again, the entry is still there."""
    new = gadgets.serial_dongle(serial="NEW")
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()

    entries = {path: path.read_bytes() for path in (RUN / "data").iterdir()}
    kept = {path: path.with_name(f"kept-{path.name}") for path in entries}
    for path, aside in kept.items():
        path.rename(aside)
    bed.unplug(DONGLE)
    for path, aside in kept.items():
        aside.rename(path)
    bed.attach(new)
    if is_told:
        devices.apply(Uevent("remove", TTY.sys_path, "tty", "kernel"))
        devices.apply(Uevent("add", TTY.sys_path, "tty", "kernel"))
    devices.resync()

    assert not tty(devices).initialized
    assert tty(devices).usb_device is not None
    assert not devices.devices[new[2].sys_path].initialized

    for entry in new:
        bed.initialize(entry)
        devices.apply(Uevent("add", entry.sys_path, entry.subsystem, "udev"))

    assert tty(devices).initialized
    assert tty(devices).properties["ID_SERIAL_SHORT"] == "NEW"
    assert devices.devices[new[2].sys_path].initialized


def test_without_udev_the_successor_of_a_device_is_offered_whatever_udev_has_left_behind(
    bed: Testbed,
) -> None:
    """Udevd is dead: the entry of the old unit stays, and nobody will ever write one for the new."""
    new = gadgets.serial_dongle(serial="NEW")
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    entries = {path: path.read_bytes() for path in (RUN / "data").iterdir()}
    kept = {path: path.with_name(f"kept-{path.name}") for path in entries}
    (RUN / "control").unlink()

    for path, aside in kept.items():
        path.rename(aside)
    bed.unplug(DONGLE)
    for path, aside in kept.items():
        aside.rename(path)
    bed.attach(new)
    devices.resync()

    assert tty(devices).initialized
    assert tty(devices).devlinks == ()
    assert tty(devices).properties == {
        "DEVNAME": "/dev/ttyUSB0",
        "DEVPATH": TTY.path,
        "MAJOR": "188",
        "MINOR": "0",
        "SUBSYSTEM": "tty",
    }
    offered = tty(devices)

    (RUN / "control").touch()
    assert not devices.resync()
    assert tty(devices) is offered


def test_what_was_offered_without_udev_stays_when_udev_comes(bed: Testbed) -> None:
    """Udevd is started and asks the kernel for nothing; only a trigger would have it say something."""
    (RUN / "control").unlink()
    bed.attach(DONGLE)
    devices = UdevDevices()
    devices.resync()

    (RUN / "control").touch()
    assert not devices.resync()

    assert tty(devices).initialized


def test_a_device_that_udev_declares_removed_is_not_initialized_although_it_is_there(
    bed: Testbed,
) -> None:
    """`udevadm trigger --action=remove` makes udev forget it, links and all."""
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()

    bed.wipe_database()
    assert devices.apply(Uevent("remove", TTY.sys_path, "tty", "udev"))

    assert not tty(devices).initialized
    assert tty(devices).devlinks == ()


def test_udev_may_change_its_mind(bed: Testbed) -> None:
    """New rules and `udevadm trigger`: other properties, other links."""
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()

    bed.initialize(replace(TTY, udev={"ID_MM_DEVICE_IGNORE": "1"}, devlinks=("/dev/gps",), tags=("a", "b")))
    assert devices.apply(Uevent("change", TTY.sys_path, "tty", "udev"))

    assert tty(devices).devlinks == ("/dev/gps",)
    assert tty(devices).tags == {"a", "b"}
    assert tty(devices).properties["ID_MM_DEVICE_IGNORE"] == "1"
    assert "ID_SERIAL_SHORT" not in tty(devices).properties


def test_a_driver_does_not_outlive_its_unbinding_in_what_udev_reported(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    interface = DONGLE[3]
    for entry in DONGLE:
        devices.apply(heard(entry, number_of=devices.devices[entry.sys_path]))

    bed.wipe_database()
    (bed.root / "sys" / interface.path.lstrip("/") / "uevent").write_text("DEVTYPE=usb_interface\n")
    devices.apply(Resync(RescanCause.DEAF))

    assert "DRIVER" not in devices.devices[interface.sys_path].properties
