"""Real devices of the kernel that come and go, with a real systemd-udevd, without one, out of its reach."""

import asyncio
import os
import resource
import subprocess
from pathlib import Path

import pytest

from genericdp.core.hint import Deafness, RescanCause, Resync, Silence, SilenceCause
from genericdp.core.status.wording import why_silent
from genericdp.udev import Monitor, UdevDevices
from genericdp.udev.subscription import hears_no_uevents
from tests.udev.elsewhere import Elsewhere
from tests.udev.hotplug import (
    CONTROL,
    NULL,
    RULES_D,
    Console,
    forget,
    macvtap,
    reserve_console,
    trigger,
    udevd,
)
from tests.udev.listening import Heard, by_node

pytestmark = pytest.mark.hotplug

NO_UDEV = "udev is not running ('/run/udev/control' does not exist)"


@pytest.fixture(scope="module")
def vcs() -> Console:
    """The console that comes and goes."""
    return reserve_console()


@pytest.fixture(scope="module")
def other_vcs() -> Console:
    return reserve_console()


async def test_a_console_comes_and_goes(vcs: Console) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with udevd(), Monitor(heard) as monitor:
        devices.resync()
        assert vcs.node not in by_node(devices)
        assert monitor.silence is None

        with vcs.plugged():
            event = await heard.event("add", vcs.sys_path)
            device = by_node(devices)[vcs.node]
            assert device.initialized
            assert device.node_is_there
            assert str(device.number) == f"c 7:{vcs.number}"
            assert device.sys_path == vcs.sys_path
            assert event.device is not None
            assert event.device.device_node == vcs.node

        await heard.event("remove", vcs.sys_path, "kernel")
        assert vcs.node not in by_node(devices)
        await heard.event("remove", vcs.sys_path)


async def test_a_console_that_comes_back_is_another_incarnation(vcs: Console) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    incarnations = set()
    with udevd(), Monitor(heard):
        devices.resync()
        for _ in range(5):
            heard.hints.clear()
            with vcs.plugged():
                await heard.event("add", vcs.sys_path)
                incarnations.add(by_node(devices)[vcs.node].incarnation)
            await heard.event("remove", vcs.sys_path)
    assert len(incarnations) == 5


async def test_a_macvtap_has_its_network_interface_above_it() -> None:
    devices = UdevDevices(["address", "speed"])
    heard = Heard(devices)
    with udevd(), Monitor(heard):
        devices.resync()
        with macvtap("gdp0") as node:
            await heard.wait_until(lambda: node in by_node(devices) and by_node(devices)[node].initialized)
            tap = by_node(devices)[node]
            net = tap.parent
            assert tap.subsystem == "macvtap"
            assert tap.node_is_there
            assert net is not None
            assert (net.subsystem, net.sys_name) == ("net", "gdp0")
            # `speed` of an interface that is down fails with EINVAL.
            assert set(net.attributes) == {"address"}
        await heard.wait_until(lambda: node not in by_node(devices))
        assert not devices.resync()


async def test_what_the_kernel_shows_is_found_without_events_too(vcs: Console) -> None:
    devices = UdevDevices()
    devices.resync()
    with vcs.plugged():
        assert devices.resync()
        assert by_node(devices)[vcs.node].node_is_there
        assert by_node(devices)["/dev/null"].properties["DEVMODE"] == "0666"
    assert devices.resync()
    assert vcs.node not in by_node(devices)


KERNEL_OVERFLOWED = "the socket for kernel events overflowed"
UDEV_OVERFLOWED = "the socket for udev events overflowed"


async def test_a_storm_that_overflows_the_socket_is_followed_by_a_resync_and_later_events_arrive(
    vcs: Console,
) -> None:
    heard = Heard()
    with Monitor(heard, receive_buffer=16384):
        trigger(times=5_000)
        await heard.wait_until(lambda: KERNEL_OVERFLOWED in heard.resyncs())
        await _plug_until_heard(heard, vcs, "kernel")
        turns = await _idle_turns(heard)

    assert set(heard.resyncs()) == {NO_UDEV, KERNEL_OVERFLOWED}
    assert len(heard.events("change", NULL, "kernel")) < 5_000
    assert turns < 100, "the loop spins"


async def test_an_overflow_of_udevs_events_too_is_survived(vcs: Console) -> None:
    heard = Heard()
    with udevd() as running, Monitor(heard, receive_buffer=16384):
        trigger(times=200)
        # The loop stands still meanwhile, and the socket runs over.
        running.settle()
        await heard.wait_until(lambda: UDEV_OVERFLOWED in heard.resyncs())
        await _plug_until_heard(heard, vcs, "udev")
        turns = await _idle_turns(heard)

    assert heard.deafness() == []
    assert len(heard.events("change", NULL)) < 200
    assert turns < 100, "the loop spins"


async def _plug_until_heard(heard: Heard, vcs: Console, source: str) -> None:
    """Until the tail of the storm has been read there is no room for more, so it may take two plugs."""
    while not heard.events("add", vcs.sys_path, source):
        with vcs.plugged():
            await _idle_turns(heard)


async def _idle_turns(heard: Heard) -> int:
    """How often the loop wakes up in 0.2 s for nothing (other runs of these tests make events, too)."""
    before = len(heard.hints)
    loop = asyncio.get_running_loop()
    selector = loop._selector  # type: ignore[attr-defined]  # what else could count them
    select, turns = selector.select, 0

    def counting(timeout: float | None = None) -> object:
        nonlocal turns
        turns += 1
        return select(timeout)

    selector.select = counting
    await asyncio.sleep(0.2)
    selector.select = select
    return turns - (len(heard.hints) - before)


async def test_an_idle_monitor_wakes_nobody_up() -> None:
    heard = Heard()
    with udevd(), Monitor(heard):
        trigger()
        await heard.event("change", NULL)
        turns = await _idle_turns(heard)

    assert turns <= 2, "one for the sleep, maybe one for the test itself"


async def test_a_killed_udevd_is_noticed_and_bridged_until_there_is_another(
    vcs: Console, other_vcs: Console
) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with udevd() as running, Monitor(heard, patience_s=0.3) as monitor:
        devices.resync()
        running.kill()
        with vcs.plugged():
            await heard.wait_until(lambda: monitor.silence)
            silence = monitor.silence
            assert silence is not None
            # Other tests plug and unplug, too.
            assert silence == Silence(SilenceCause.UNANSWERED, detail=silence.detail)
            assert silence.detail.startswith("/sys/devices/")
            assert heard.hints[-2:] == [Deafness(silence), Resync(RescanCause.TROUBLE, silence=silence)]
            assert heard.deafness() == [why_silent(silence)]
            # udev has files here, so it may come back and deal with the device.
            assert not by_node(devices)[vcs.node].initialized

            with other_vcs.plugged():
                await heard.event("add", other_vcs.sys_path, "kernel")
                assert by_node(devices)[other_vcs.node].node_is_there

            running.restart()
            trigger(vcs.sys_path, "add")
            await heard.wait_until(lambda: not monitor.silence)
            await heard.event("add", vcs.sys_path)
            assert heard.deafness() == [why_silent(silence), ""]
            assert heard.resyncs()[-1] == f"udev events arrive again, after: {why_silent(silence)}"
            assert by_node(devices)[vcs.node].initialized
        await heard.wait_until(lambda: vcs.node not in by_node(devices))


async def test_a_plug_that_a_killed_udevd_took_with_it_is_looked_at_although_the_next_one_goes_on(
    vcs: Console, other_vcs: Console
) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with udevd() as running, Monitor(heard, patience_s=3.0) as monitor:
        devices.resync()
        running.pause()
        with vcs.plugged(), other_vcs.plugged():
            running.kill()
            running.restart()
            trigger(other_vcs.sys_path, "add")
            await heard.event("add", other_vcs.sys_path)
            assert vcs.node not in by_node(devices)

            await heard.event("add", vcs.sys_path, "kernel")
            assert not by_node(devices)[vcs.node].initialized
            assert by_node(devices)[other_vcs.node].initialized
            assert monitor.silence is None

            trigger(vcs.sys_path, "add")
            await heard.event("add", vcs.sys_path)
            assert by_node(devices)[vcs.node].initialized
    assert heard.deafness() == []


async def test_a_slow_udevd_is_no_deafness() -> None:
    heard = Heard()
    with udevd() as running, Monitor(heard, patience_s=5.0) as monitor:
        running.pause()
        trigger(times=100)
        await asyncio.to_thread(subprocess.run, ["sleep", "0.2"], check=True)
        running.resume()
        await heard.wait_until(lambda: len(heard.events("change", NULL)) == 100)

        assert monitor.silence is None
    assert heard.deafness() == []


async def test_a_restarted_udevd_with_a_wiped_database_retracts_nothing(vcs: Console) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with udevd() as running, Monitor(heard), vcs.plugged():
        await heard.event("add", vcs.sys_path)
        devices.resync()
        before = by_node(devices)[vcs.node]
        running.kill()
        forget()
        running.restart()
        devices.resync()

        assert by_node(devices)[vcs.node] is before


async def test_without_any_udev_the_kernel_is_believed(vcs: Console) -> None:
    devices = UdevDevices()
    heard = Heard(devices)
    with Monitor(heard) as monitor:
        devices.resync()
        silence = Silence(SilenceCause.NO_UDEV, detail="/run/udev/control")
        assert heard.hints == [Deafness(silence), Resync(RescanCause.TROUBLE, silence=silence)]
        assert heard.deafness() == [NO_UDEV]
        with vcs.plugged():
            await heard.event("add", vcs.sys_path, "kernel")
            device = by_node(devices)[vcs.node]
            assert device.initialized
            assert device.node_is_there
        await heard.event("remove", vcs.sys_path, "kernel")

        assert vcs.node not in by_node(devices)
        assert monitor.silence == silence


async def test_a_udevd_that_starts_later_is_noticed_without_an_event() -> None:
    heard = Heard()
    with Monitor(heard, rescan_s=0.05) as monitor:
        with udevd():
            await heard.wait_until(lambda: not monitor.silence)
            assert heard.deafness() == [NO_UDEV, ""]


async def test_without_file_descriptors_there_is_no_socket_until_there_are_some_again(vcs: Console) -> None:
    no_socket = "no socket for kernel events: Could not create udev monitor"

    UdevDevices()
    heard = Heard()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with udevd():
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))
        try:
            monitor = Monitor(heard, rescan_s=0.05)
            monitor.start()
            assert heard.deafness() == [no_socket]
            assert monitor.silence == Silence(
                SilenceCause.NO_SOCKET, "kernel", "Could not create udev monitor"
            )
            await heard.wait_until(lambda: "periodic rescan" in heard.resyncs())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        await heard.wait_until(lambda: not monitor.silence)
        with vcs.plugged():
            await heard.event("add", vcs.sys_path)
        monitor.close()
    assert heard.deafness() == [no_socket, ""]


async def test_in_another_network_namespace_udev_is_not_heard_and_its_database_is_read_nevertheless(
    vcs: Console,
) -> None:
    with udevd() as running:
        async with Elsewhere("unshare", "--net") as there:
            trigger()
            await there.says(cause=SilenceCause.UNANSWERED)

            running.pause()
            with vcs.plugged():
                first = await there.says(action="add", sys_path=vcs.sys_path)
                assert (first["source"], first["initialized"]) == ("kernel", False)
                running.resume()
                again = await there.says(sys_path=vcs.sys_path, initialized=True)
                assert again["source"] == "kernel"
            await there.says(action="remove", sys_path=vcs.sys_path)
            await there.says(resync="periodic rescan")


async def test_in_the_network_namespace_of_a_user_namespace_nothing_is_heard_and_that_is_known(
    vcs: Console,
) -> None:
    with udevd():
        async with Elsewhere("unshare", "--user", "--map-root-user", "--net") as there:
            reason = "the kernel sends no events to the network namespace of a user namespace"
            assert there.reports[0] == {"deaf": reason}
            with vcs.plugged():
                await there.says(resync="periodic rescan")
            assert not [report for report in there.reports if "action" in report]


async def test_a_user_namespace_on_the_hosts_network_hears_everything() -> None:
    """As a service with PrivateUsers=yes has it."""
    with udevd():
        async with Elsewhere("unshare", "--user", "--map-root-user") as there:
            trigger()
            assert (await there.says(action="change", sys_path=NULL))["source"] == "udev"
            assert not [report for report in there.reports if "deaf" in report]


async def test_a_service_without_capabilities_hears_with_the_buffer_that_it_gets() -> None:
    with udevd():
        async with Elsewhere("setpriv", "--bounding-set=-all", "--inh-caps=-all") as there:
            trigger()
            assert (await there.says(action="change", sys_path=NULL))["source"] == "udev"
            assert not [report for report in there.reports if "deaf" in report]


#: What a container sees: a /dev of its own with the nodes it needs, and no /run/udev.
_CONTAINER = """
mount -t tmpfs tmpfs /dev
for node in 'null c 1 3' 'urandom c 1 9'; do mknod /dev/$node; done
exec "$@"
"""


async def test_a_container_where_libudev_subscribes_to_nothing_hears_udev_once_it_is_there() -> None:
    async with Elsewhere("unshare", "--mount", "sh", "-euc", _CONTAINER, "sh") as there:
        assert there.reports[0] == {"deaf": NO_UDEV}
        trigger()
        assert (await there.says(action="change", sys_path=NULL))["source"] == "kernel"
        with udevd():
            await there.says(deaf="")
            trigger()
            assert (await there.says(action="change", sys_path=NULL, source="udev"))["initialized"]


def test_a_node_is_called_what_the_kernel_calls_it_whatever_a_rule_imports(short_dir: Path) -> None:
    """A program of udev's rules may print what a device calls itself: older versions of v4l_id did."""
    console = reserve_console()
    program = short_dir / "v4l_id"
    program.write_text('#!/bin/sh\nprintf "ID_V4L_PRODUCT=Cam\\nDEVNAME=/dev/full\\n"\n')
    program.chmod(0o755)
    rule = RULES_D / "61-import.rules"
    RULES_D.mkdir(parents=True, exist_ok=True)
    rule.write_text(f'KERNEL=="{console.sys_path.rpartition("/")[2]}", IMPORT{{program}}="{program}"\n')
    try:
        with udevd() as udev, console.plugged():
            udev.settle()
            found = UdevDevices()
            found.resync()
            device = found.devices[console.sys_path]
    finally:
        rule.unlink(missing_ok=True)
    assert device.properties["ID_V4L_PRODUCT"] == "Cam"
    assert (device.device_node, device.properties["DEVNAME"]) == (console.node, console.node)


def test_this_namespace_gets_uevents() -> None:
    assert not hears_no_uevents()


def test_an_unreadable_namespace_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert not hears_no_uevents(str(tmp_path / "absent"))
    assert not hears_no_uevents(str(tmp_path / "file"))


def test_a_machine_of_its_own_begins_without_udev() -> None:
    assert not CONTROL.exists()
    assert os.environ["GENERICDP_TEST_MACHINE"] == "hotplug"
