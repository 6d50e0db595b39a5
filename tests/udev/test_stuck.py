"""A device that hangs in the kernel, as they do while a driver probes it: all others go on."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from queue import SimpleQueue

import pytest

from genericdp.core.hint import Poll, RescanCause, Resync, Uevent
from genericdp.core.inventory.place import locate
from genericdp.core.rules.node_names import names_of
from genericdp.errors import MORE_THREADS
from genericdp.machine.bare_nodes import BareNodes
from genericdp.machine.devices import MachineDevices
from genericdp.udev import UdevDevices, snapshot
from genericdp.udev.bounded import BOUND_S, LIMIT, Bounded
from tests.scenes.waiting import PATIENCE_S, idle
from tests.udev import gadgets
from tests.udev.gadgets import Entry, Gadget
from tests.udev.listening import Heard, by_node
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed

HEALTHY = gadgets.serial_dongle()
STUCK = gadgets.serial_dongle("3", tty=1, serial="STUCK", devnum=9)
ROOT_HUB, USB, TTY = STUCK[1], STUCK[2], STUCK[-1]

#: The rest of what a hub says of itself.
DESCRIPTOR = {"bcdDevice": "0601", "bDeviceProtocol": "01", "bDeviceSubClass": "00", "version": " 2.00"}

NO_ANSWER = "the kernel does not answer"
UNPLUG_IT = (
    "a driver may still be busy with it, or its hardware hangs; if this lasts longer than a minute,"
    " unplug it; 'journalctl --dmesg' may say more"
)


def threads() -> set[threading.Thread]:
    """Those that read devices; those of an earlier test may be about to end."""
    return {thread for thread in threading.enumerate() if thread.name == "sysfs"}


def stick(number: int) -> Gadget:
    return gadgets.serial_dongle(f"{3 + number}", tty=1 + number, serial=f"S{number}", devnum=9 + number)


def usb_of(gadget: Gadget) -> Entry:
    return gadget[2]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def look_until_all_is_read(devices: UdevDevices, answered: threading.Event) -> None:
    while devices.unread is not None:
        assert answered.wait(PATIENCE_S)
        answered.clear()
        devices.apply(Resync(RescanCause.UNREAD))


def complete_hub(bed: Testbed, entry: Entry) -> None:
    """Give a hub what every hub has, and gadgets have not."""
    for name, value in DESCRIPTOR.items():
        bed.set_attribute(entry, name, value)
    uevent = "".join(f"{name}={value}\n" for name, value in entry.kernel_properties.items())
    bed.set_attribute(entry, "uevent", f"{uevent}PRODUCT=1d6b/2/601\nTYPE=9/0/1")
    bed.initialize(replace(entry, udev={"ID_MODEL_ID": "0002", "ID_VENDOR_ID": "1d6b"}))


def look_until_it_says(said: str, devices: UdevDevices, answered: threading.Event) -> None:
    while str(devices.unread) != said:
        assert answered.wait(PATIENCE_S)
        answered.clear()
        devices.apply(Resync(RescanCause.UNREAD))


def test_others_are_read_and_the_device_is_when_it_answers(bed: Testbed) -> None:
    bed.plug(HEALTHY, STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(USB) as release:
        devices.resync()

        assert "/dev/ttyUSB0" in by_node(devices)
        assert "/dev/ttyUSB1" not in by_node(devices)
        assert devices.unread is not None
        assert str(devices.unread) == f"cannot read '{USB.sys_path}': {NO_ANSWER}"
        assert devices.unread.hint == UNPLUG_IT
        assert not answered.is_set()

        release()
        look_until_all_is_read(devices, answered)
    usb = by_node(devices)["/dev/ttyUSB1"].usb_device
    assert usb is not None
    assert usb.attributes["serial"] == "STUCK"


def test_a_known_device_stays_what_it_was(bed: Testbed) -> None:
    bed.plug(HEALTHY, STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)
    devices.resync()
    before = dict(devices.devices)

    with bed.stuck(USB) as release:
        assert not devices.apply(Uevent("change", USB.sys_path, "usb", "udev"))
        assert str(devices.unread) == f"cannot read '{USB.sys_path}': {NO_ANSWER}"
        assert not devices.resync()
        assert devices.devices == before
        release()
        look_until_all_is_read(devices, answered)
    assert devices.devices == before


def test_what_does_not_answer_is_neither_waited_for_nor_asked_again(bed: Testbed) -> None:
    bed.plug(STUCK)
    answered, before = threading.Event(), threads()
    devices = UdevDevices(("manufacturer", "product"), on_answer=answered.set)

    with bed.stuck(USB) as release:
        devices.resync()
        with at_most(100 * BOUND_S / 2):
            for _ in range(100):
                devices.resync()
                assert devices.unread is not None
        assert len(threads() - before) == 2
        release()
        look_until_all_is_read(devices, answered)


def test_what_answers_too_late_is_used_by_who_wants_only_what_is_unread(bed: Testbed) -> None:
    """A device that always takes a little too long is offered, too."""
    bed.plug(STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(USB) as release:
        devices.resync()
        release()
        assert answered.wait(PATIENCE_S)
    with bed.stuck(USB):
        devices.apply(Resync(RescanCause.UNREAD))
        assert devices.unread is None
        assert "/dev/ttyUSB1" in by_node(devices)

        devices.apply(Resync(RescanCause.UNREAD))
        assert devices.unread is None


@pytest.mark.parametrize(
    "meanwhile",
    [Uevent("change", USB.sys_path, "usb", "udev"), Resync(RescanCause.OVERFLOW)],
    ids=["an event", "lost events"],
)
@pytest.mark.parametrize("answers_first", [False, True])
def test_what_answers_too_late_is_asked_again_if_something_may_have_changed(
    bed: Testbed, meanwhile: Uevent | Resync, *, answers_first: bool
) -> None:
    bed.plug(STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(USB) as release:
        devices.resync()
        if not answers_first:
            devices.apply(meanwhile)
        release()
        assert answered.wait(PATIENCE_S)
    answered.clear()
    with bed.stuck(USB) as release:
        if answers_first:
            devices.apply(meanwhile)
        devices.apply(Resync(RescanCause.UNREAD))
        assert str(devices.unread) == f"cannot read '{USB.sys_path}': {NO_ANSWER}"
        release()
        look_until_all_is_read(devices, answered)
    assert "/dev/ttyUSB1" in by_node(devices)


def test_who_wants_only_what_is_unread_reads_nothing_else(bed: Testbed) -> None:
    bed.plug(HEALTHY, STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(USB) as release, bed.stuck(usb_of(HEALTHY)) as release_other:
        devices.resync()
        release_other()
        look_until_it_says(f"cannot read '{USB.sys_path}': {NO_ANSWER}", devices, answered)
        with bed.stuck(usb_of(HEALTHY)):
            release()
            look_until_all_is_read(devices, answered)
    assert by_node(devices).keys() >= {"/dev/ttyUSB0", "/dev/ttyUSB1"}


def test_those_that_always_answer_too_late_do_not_keep_the_others_waiting_for_long() -> None:
    released: SimpleQueue[None] = SimpleQueue()
    answered: SimpleQueue[None] = SimpleQueue()
    bounded = Bounded(on_answer=lambda: answered.put(None))

    def read(_: object) -> None:
        released.get(timeout=PATIENCE_S)

    def late(what: int) -> None:
        with pytest.raises(TimeoutError):
            bounded.call(read, what)
        released.put(None)
        answered.get(timeout=PATIENCE_S)

    bounded.plan(read)
    for what in range(LIMIT):
        late(what)
    with at_most(50 * BOUND_S / 2):
        for what in range(50):
            late(LIMIT + what)


def test_health_that_is_polled_does_not_wait_for_it_either(bed: Testbed) -> None:
    bed.plug(STUCK)
    answered = threading.Event()
    devices = UdevDevices(("product",), on_answer=answered.set)
    devices.resync()
    before = dict(devices.devices)
    poll = Poll({TTY.sys_path: frozenset({"product"})})

    with bed.stuck(USB) as release:
        assert not devices.apply(Uevent("change", USB.sys_path, "usb", "udev"))
        with at_most(100 * BOUND_S / 2):
            for _ in range(100):
                assert not devices.apply(poll)
        assert str(devices.unread) == f"cannot read '{USB.sys_path}': {NO_ANSWER}"
        assert devices.devices == before
        release()
        look_until_all_is_read(devices, answered)


@pytest.mark.parametrize("count", [LIMIT, LIMIT + 2])
def test_however_many_hang_all_others_are_read(bed: Testbed, count: int) -> None:
    sticks = [stick(number) for number in range(count)]
    # They are read after those that hang.
    healthy = [
        gadgets.serial_dongle(f"9{number:02}", tty=100 + number, serial=f"H{number}", devnum=60 + number)
        for number in range(40)
    ]
    bed.plug(*sticks, *healthy)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)
    stuck = {f"/dev/ttyUSB{number + 1}" for number in range(count)}

    with ExitStack() as stack:
        releases = [stack.enter_context(bed.stuck(usb_of(each))) for each in sticks]
        with at_most((LIMIT + len(healthy) / 2) * BOUND_S):
            devices.resync()
        # One that takes longer than the short patience on a busy machine is read when it answers.
        first = min(usb_of(each).sys_path for each in sticks)
        said = f"cannot read {count} devices, such as '{first}': {NO_ANSWER}"
        look_until_it_says(said, devices, answered)
        assert by_node(devices).keys() >= {f"/dev/ttyUSB{100 + number}" for number in range(40)}
        assert not by_node(devices).keys() & stuck

        bed.plug(HEALTHY)
        devices.apply(Uevent("add", usb_of(HEALTHY).sys_path, "usb", "kernel"))
        devices.apply(Uevent("add", HEALTHY[-1].sys_path, "tty", "kernel"))
        look_until_it_says(said, devices, answered)
        assert "/dev/ttyUSB0" in by_node(devices)

        for release in releases:
            release()
        look_until_all_is_read(devices, answered)
    assert by_node(devices).keys() >= stuck


@contextmanager
def without_threads() -> Iterator[None]:
    size = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(size)


def test_without_threads_devices_are_read_later(bed: Testbed) -> None:
    bed.plug(HEALTHY)
    devices = UdevDevices()

    with without_threads():
        devices.resync()
    error = devices.unread
    assert error is not None
    assert str(error) == f"cannot read 3 devices, such as '{ROOT_HUB.sys_path}': can't start new thread"
    assert error.hint == MORE_THREADS

    devices.resync()
    assert devices.unread is None
    assert "/dev/ttyUSB0" in by_node(devices)


def test_there_is_one_thread_and_only_when_something_is_read(bed: Testbed) -> None:
    before = threads()
    devices = UdevDevices()
    devices.resync()
    assert threads() <= before

    bed.plug(HEALTHY, STUCK)
    for _ in range(3):
        devices.resync()
    (thread,) = threads() - before

    del devices
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_behind_a_hub_that_does_not_answer_the_others_are_read(bed: Testbed) -> None:
    """While it probes what is plugged into a hub, the kernel has the lock of that hub, too."""
    bed.plug(HEALTHY, STUCK)
    complete_hub(bed, ROOT_HUB)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(ROOT_HUB) as release_hub, bed.stuck(USB) as release:
        devices.resync()

        tty = by_node(devices)["/dev/ttyUSB0"]
        assert not by_node(devices).keys() & {"/dev/ttyUSB1", "/dev/bus/usb/001/001"}
        assert str(devices.unread) == f"cannot read '{USB.sys_path}': {NO_ANSWER}"
        devices.resync()
        assert by_node(devices)["/dev/ttyUSB0"] is tty
        release()
        release_hub()
        look_until_all_is_read(devices, answered)

    fresh = UdevDevices()
    fresh.resync()
    assert by_node(devices).keys() == by_node(fresh).keys() >= {"/dev/ttyUSB1", "/dev/bus/usb/001/001"}
    after = by_node(devices)["/dev/ttyUSB0"]
    assert after.usb_device is not None
    assert [each.attributes for each in after.ancestors()] == [
        each.attributes for each in by_node(fresh)["/dev/ttyUSB0"].ancestors()
    ]
    assert locate(after) == replace(locate(tty), unit=after.usb_device)
    hubs = [device for each in (tty, after) for device in each.ancestors() if device.sys_name == "usb1"]
    instead, hub = ({name: each.property(name) for name in hubs[1].properties} for each in hubs)
    assert instead == hub
    assert hubs[0].attributes == hubs[1].attributes


def test_of_a_hub_that_udev_has_not_described_nothing_is_taken_from_another_one(bed: Testbed) -> None:
    gadget = gadgets.hub(behind=1)
    bed.plug(gadget)
    devices = UdevDevices()
    devices.resync()
    bed.replace(gadget, gadget)
    for name, value in DESCRIPTOR.items():
        bed.set_attribute(usb_of(gadget), name, value)

    with bed.stuck(usb_of(gadget)):
        devices.resync()
        tty = by_node(devices)["/dev/ttyUSB10"]
        (hub,) = (each for each in tty.ancestors() if each.sys_path == usb_of(gadget).sys_path)
        assert hub.property("BUSNUM") == "001"
        assert hub.property("ID_MODEL_ID") is None


def test_nothing_stands_for_a_hub_with_a_serial_number(bed: Testbed) -> None:
    """It may be the unit of a group. That of a root hub is known: the name of its controller."""
    gadget = gadgets.hub(behind=1)
    bed.plug(gadget)
    for name, value in {**DESCRIPTOR, "serial": "HUB1"}.items():
        bed.set_attribute(usb_of(gadget), name, value)
    devices = UdevDevices()

    with bed.stuck(usb_of(gadget)):
        devices.resync()
        assert "/dev/ttyUSB10" not in by_node(devices)


@pytest.mark.parametrize("name", ["product", "power/control"])
def test_if_rules_may_ask_about_the_hub_what_is_behind_it_waits(bed: Testbed, name: str) -> None:
    bed.plug(HEALTHY)
    complete_hub(bed, ROOT_HUB)
    bed.set_attribute(ROOT_HUB, name, "xHCI Host Controller")
    devices = UdevDevices((name,))

    with bed.stuck(ROOT_HUB):
        devices.resync()
        assert by_node(devices) == {}
        assert str(devices.unread) == f"cannot read '{ROOT_HUB.sys_path}': {NO_ANSWER}"


def test_what_udev_said_of_it_meanwhile_counts_when_it_answers(bed: Testbed) -> None:
    bed.plug(STUCK)
    message = snapshot.look_at(TTY.sys_path, frozenset())
    assert message is not None
    bed.wipe_database()
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)

    with bed.stuck(TTY) as release:
        devices.apply(Uevent("add", TTY.sys_path, "tty", "udev", device=message))
        devices.apply(Uevent("change", TTY.sys_path, "tty", "kernel"))
        devices.resync()
        assert "/dev/ttyUSB1" not in by_node(devices)
        release()
        look_until_all_is_read(devices, answered)
    tty = by_node(devices)["/dev/ttyUSB1"]
    assert (tty.initialized, tty.properties) == (True, message.properties)


def test_a_device_that_is_unplugged_before_it_answers_is_gone(bed: Testbed) -> None:
    bed.plug(STUCK)
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)
    devices.resync()

    with bed.stuck(USB):
        devices.resync()
        bed.unplug(STUCK)
        for entry in reversed(STUCK):
            if not entry.shared:
                devices.apply(Uevent("remove", entry.sys_path, entry.subsystem, "kernel"))
        assert devices.unread is None
        assert not by_node(devices).keys() & {"/dev/ttyUSB1", USB.node}
    look_until_all_is_read(devices, answered)


def test_whoever_listens_is_told_to_look_when_it_answers(bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(STUCK)
        machine, heard = MachineDevices(()), Heard()
        close = machine.listen(heard, 3600.0)
        with bed.stuck(USB) as release:
            machine.resync()
            await idle()
            assert heard.hints == []
            release()
            await heard.wait_until(lambda: heard.hints == [Resync(RescanCause.UNREAD)])
        machine.resync()
        assert machine.unread is None
        close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_the_node_of_such_a_device_is_no_bare_node(bed: Testbed) -> None:
    bed.plug(STUCK)
    node = f"/dev/{USB.node}"
    bare = BareNodes(names_of([node]))

    with bed.stuck(USB, "uevent"):
        bare.resync()
        bare.judge({})
        error = bare.unread
        assert error is not None
        assert (str(error), error.hint) == (f"cannot read '{node}': {NO_ANSWER}", UNPLUG_IT)


@pytest.mark.parametrize("verb", [("list", "--all"), ("suggest", "--all"), ("explain", "/dev/ttyUSB0")])
def test_a_verb_ends_and_says_which_device_it_could_not_read(bed: Testbed, verb: tuple[str, ...]) -> None:
    bed.plug(HEALTHY, STUCK)

    with bed.stuck(USB):
        done = subprocess.run(
            [sys.executable, "-m", "genericdp", *verb],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    text = " ".join((done.stdout + done.stderr).split())
    assert "/dev/ttyUSB0" in text
    assert f"cannot read '{USB.sys_path}': {NO_ANSWER}; {UNPLUG_IT}" in text
