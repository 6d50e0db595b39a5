"""What the monitor tells, in a machine made of files: plugs seen from the event loop."""

import asyncio
import errno
import os

import pytest

from genericdp.core.hint import Deafness, Hint, RescanCause, Resync, Silence, SilenceCause, Uevent
from genericdp.udev import Monitor, UdevDevices
from tests.udev import gadgets
from tests.udev.listening import Heard, by_node
from tests.udev.testbed import RUN, Testbed

pytestmark = pytest.mark.testbed

DONGLE = gadgets.serial_dongle()
TTY = DONGLE[-1]


async def test_a_plug_is_reported_device_by_device_and_leads_to_the_devices(bed: Testbed) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with Monitor(heard) as monitor:
        devices.resync()
        bed.plug(DONGLE)
        event = await heard.event("add", TTY.sys_path)

        assert monitor.silence is None
    assert by_node(devices)["/dev/ttyUSB0"].initialized
    assert not devices.resync()
    assert [hint.sys_path for hint in heard.hints if isinstance(hint, Uevent)] == [
        entry.sys_path for entry in DONGLE
    ]
    assert (event.subsystem, event.source, event.seqnum) == ("tty", "udev", len(DONGLE))
    assert event.device is not None
    assert event.device.properties == TTY.properties
    assert event.device.devlinks == tuple(sorted(TTY.devlinks))
    assert event.device.device_node == "/dev/ttyUSB0"


async def test_an_unplug_is_reported_by_the_kernel_and_by_udev(bed: Testbed) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    heard = Heard(devices)
    with Monitor(heard):
        devices.resync()
        bed.unplug(DONGLE)
        await heard.event("remove", DONGLE[2].sys_path)
        kernel = await heard.event("remove", DONGLE[2].sys_path, "kernel")

    assert kernel.device is None
    assert set(by_node(devices)) == {"/dev/bus/usb/001/001"}


@pytest.mark.parametrize("action", ["add", "change", "bind", "unbind", "move", "online", "offline"])
async def test_any_action_is_reported_unchanged(bed: Testbed, action: str) -> None:
    bed.plug(DONGLE)
    heard = Heard()
    with Monitor(heard):
        bed.uevent(TTY, action, DEVPATH_OLD="/devices/old")
        event = await heard.event(action, TTY.sys_path)

    assert event.old_sys_path == ("/sys/devices/old" if action == "move" else "")


async def test_properties_of_the_event_are_not_mistaken_for_those_of_the_device(bed: Testbed) -> None:
    bed.plug(DONGLE)
    heard = Heard()
    with Monitor(heard):
        bed.uevent(TTY, "change", SYNTH_UUID="0", SYNTH_ARG_X="1", USEC_INITIALIZED="5", X="y")
        event = await heard.event("change", TTY.sys_path)

    assert event.device is not None
    assert event.device.properties == {**TTY.properties, "X": "y"}


async def test_a_message_of_hostile_text_keeps_its_bytes(bed: Testbed) -> None:
    bed.plug(DONGLE)
    heard = Heard()
    name = b"\xff\xfe\n\x1b".decode("utf-8", "surrogateescape")
    with Monitor(heard):
        bed.uevent(TTY, "change", NAME=name)
        event = await heard.event("change", TTY.sys_path)

    assert event.device is not None
    assert event.device.properties["NAME"].startswith(name[:2])


async def test_a_device_whose_name_is_not_text_is_not_reported(bed: Testbed) -> None:
    odd = gadgets.Entry(b"/devices/virtual/misc/\xff".decode("utf-8", "surrogateescape"), "misc")
    bed.plug(DONGLE)
    heard = Heard()
    with Monitor(heard):
        bed.uevent(odd, "add")
        bed.uevent(TTY, "change")
        event = await heard.event("change", TTY.sys_path)

    assert heard.hints == [event]


async def test_many_devices_at_once_leave_the_loop_its_turns(bed: Testbed) -> None:
    # The endless turn is what is left of the loop's work.
    bed.plug(DONGLE)
    heard = Heard()
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    loop = asyncio.get_running_loop()
    with Monitor(heard):
        for _ in range(1000):
            bed.uevent(TTY, "change")
        loop.call_soon(turn)
        await heard.wait_until(lambda: len(heard.events("change", TTY.sys_path)) == 1000)

    assert turns > 10


async def test_a_missing_udev_is_reported_at_once_and_looked_for_later(bed: Testbed) -> None:
    silence = Silence(SilenceCause.NO_UDEV, detail=f"{RUN}/control")
    absent = f"udev is not running ('{RUN}/control' does not exist)"

    (RUN / "control").unlink()
    heard = Heard()
    with Monitor(heard, rescan_s=0.05) as monitor:
        assert monitor.silence == silence
        assert heard.hints == [Deafness(silence), Resync(RescanCause.TROUBLE, silence=silence)]
        assert (heard.deafness(), heard.resyncs()) == ([absent], [absent])
        await heard.wait_until(lambda: heard.resyncs().count("periodic rescan") == 2)
        (RUN / "control").touch()
        await heard.wait_until(lambda: not monitor.silence)

        assert heard.hints[-2:] == [Deafness(None), Resync(RescanCause.HEARD_AGAIN, silence=silence)]
        assert heard.resyncs()[-1] == f"udev events arrive again, after: {absent}"
        assert monitor._rescan is None


async def test_events_of_udev_prove_that_it_runs(bed: Testbed) -> None:
    """In a container with the host's network, /run/udev may be hidden and udev heard nevertheless."""
    (RUN / "control").unlink()
    bed.plug(DONGLE)
    heard = Heard()
    with Monitor(heard) as monitor:
        bed.uevent(TTY, "change")
        await heard.wait_until(lambda: not monitor.silence)

        assert heard.deafness()[-1] == ""


async def test_while_udev_is_heard_and_nothing_happens_no_timer_runs(bed: Testbed) -> None:
    heard = Heard()
    with Monitor(heard):
        bed.plug(DONGLE)
        await heard.event("add", TTY.sys_path)
        monitor_timers = [each for each in _timers() if "Monitor" in repr(each)]

        assert len(monitor_timers) <= 1, "patience with the last event, no more"
    assert [each for each in _timers() if "Monitor" in repr(each)] == []


def _timers() -> list[asyncio.TimerHandle]:
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]  # what else would show it
    return [each for each in scheduled if not each.cancelled()]


async def test_a_closed_monitor_tells_nothing_and_may_be_closed_again(bed: Testbed) -> None:
    bed.plug(DONGLE)
    heard = Heard()
    monitor = Monitor(heard)
    monitor.start()
    bed.uevent(TTY, "change")
    monitor.close()
    monitor.close()
    other = Heard()
    with Monitor(other):
        bed.uevent(TTY, "change")
        await other.event("change", TTY.sys_path)

    assert heard.hints == []


async def test_a_sink_may_close_the_monitor(bed: Testbed) -> None:
    bed.plug(DONGLE)
    hints: list[Hint] = []
    done = asyncio.Event()

    def sink(hint: Hint) -> None:
        hints.append(hint)
        monitor.close()
        done.set()

    monitor = Monitor(sink)
    monitor.start()
    bed.uevent(TTY, "change")
    bed.uevent(TTY, "change")
    await done.wait()
    assert len(hints) == 1


class _Broken:
    """A socket's other end as it is after the file descriptor was lost: each call fails."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def poll(self, timeout: float | None = None) -> None:  # noqa: ARG002  (pyudev's signature)
        raise OSError(errno.EIO, os.strerror(errno.EIO))


async def test_a_socket_that_stays_broken_is_replaced_and_everything_looked_at(bed: Testbed) -> None:
    bed.plug(DONGLE)
    heard = Heard()
    with Monitor(heard) as monitor:
        old = monitor._subscriptions["udev"]
        kept, old._monitor = old._monitor, _Broken(old.fileno)  # type: ignore[assignment]  # that is the point
        for _ in range(3):
            bed.uevent(TTY, "change")
        await heard.wait_until(lambda: len(heard.resyncs()) == 3)
        assert monitor._subscriptions["udev"] is not old
        del kept

        bed.uevent(TTY, "change")
        await heard.event("change", TTY.sys_path)
    assert heard.resyncs() == ["the socket for udev events failed: [Errno 5] Input/output error"] * 3
