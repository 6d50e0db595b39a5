"""The reset of a USB unit takes nothing from another container."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState
from tests.scenes.builders import a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene, minors_in
from tests.scenes.udev import FakeUdev
from tests.scenes.waiting import idle, until

WITH_RESET = 'prestart = { wait = "20s", usb_reset = true }\n'


def an_adapter(first: int) -> list[UdevDevice]:
    """One USB unit with two serial ports, /dev/ttyUSB`first` and the next one."""
    usb = a_usb_device("2", product="6010", serial="DUAL")
    return [
        a_usb_node(usb, "tty", f"ttyUSB{first + n}", interface=f"{n:02x}", number=f"c 188:{first + n}")
        for n in range(2)
    ]


class Resetting:
    """Resets a unit: its nodes come back under the next numbers, between two steps of the daemon.

    Like libusb, it is called in a thread. But a daemon that hears of nothing must not see half of it.

    made    its nodes, when the first one has this number
    resets  what was reset
    """

    def __init__(self, made: Callable[[int], Sequence[UdevDevice]]) -> None:
        self.made = made
        self.resets: list[tuple[int, int]] = []
        self._first = 0
        self._loop = asyncio.get_running_loop()

    @property
    def now(self) -> Sequence[UdevDevice]:
        return self.made(self._first)

    def __call__(self, udev: FakeUdev, busnum: int, devnum: int) -> None:
        self.resets.append((busnum, devnum))
        asyncio.run_coroutine_threadsafe(self._come_back(udev), self._loop).result()

    async def _come_back(self, udev: FakeUdev) -> None:
        with udev.unheard():
            udev.unplug(*self.now)
            self._first += len(self.now)
            udev.plug(*self.now)


def warnings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    logged = (each for each in caplog.records if each.name == "genericdp.usb")
    return [(each.message, each.__dict__["fields"]) for each in logged]


def not_reset(id_: str) -> tuple[str, object]:
    fields = {
        "device": "/dev/bus/usb/001/004",
        "id": id_,
        "hint": "it is reset when a container starts while no other container has a part of it",
    }
    return "a USB device is not reset: another container may have a part of it", fields


async def test_a_unit_is_not_reset_while_another_pod_has_one_of_its_ports(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reset = Resetting(an_adapter)
    async with a_scene(short_dir, *an_adapter(0), rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        one = await scene.admit(name="one")
        assert minors_in(one.container("main")) == [2]
        two = await scene.admit(name="two")
        assert minors_in(two.container("main")) == [3]
        assert reset.resets == [(1, 4)]
    assert warnings(caplog) == [not_reset("ftdi_DUAL")]


async def test_a_unit_is_reset_for_the_container_that_has_all_of_its_ports(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reset = Resetting(an_adapter)
    async with a_scene(short_dir, *an_adapter(0), rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(2)
        assert minors_in(pod.container("main")) == [2, 3]
        await scene.kubelet.restart_container(pod, "main")
        assert minors_in(pod.container("main")) == [4, 5]
    assert warnings(caplog) == []


async def test_a_shared_device_is_not_reset_while_another_pod_has_it(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reset = Resetting(lambda first: [a_usb_serial(first)])
    rules = FTDI_RULE + "replicas = 2\n" + WITH_RESET
    async with a_scene(short_dir, a_usb_serial(0), rules=rules, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        await scene.admit(name="one")
        two = await scene.admit(name="two")
        assert minors_in(two.container("main")) == [1]
        assert reset.resets == [(1, 4)]
    assert warnings(caplog) == [not_reset("ftdi_A50285BI.0")]


@pytest.mark.usefixtures("pods_leave_at_once")
async def test_once_the_other_pod_has_gone_the_unit_is_reset(short_dir: Path) -> None:
    reset = Resetting(an_adapter)
    async with a_scene(short_dir, *an_adapter(0), rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        one = await scene.admit(name="one")
        two = await scene.admit(name="two")
        scene.kubelet.delete(one)
        await scene.kubelet.restart_container(two, "main")
        assert minors_in(two.container("main")) == [5]


async def test_a_pod_that_has_its_port_under_an_edited_rule_keeps_the_unit_from_being_reset(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = FTDI_RULE.replace('vendor = "0403"', 'vendor = "0403", interface = "01"')
    reset = Resetting(an_adapter)
    async with a_scene(short_dir, *an_adapter(0), usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        one = await scene.admit(name="one")
        assert minors_in(one.container("main")) == [0]
        scene.edit_rules(port + WITH_RESET)
        await until(lambda: scene.daemon.rules.resources[0].prestart is not None)
        await scene.service.stop()
        await scene.service.start()
        await scene.until_allocatable(1, capacity=2)
        two = await scene.admit(name="two")
        assert minors_in(two.container("main")) == [1]
        assert reset.resets == []
    assert warnings(caplog) == [not_reset("ftdi_DUAL")]


@pytest.mark.usefixtures("kubelet_knows_its_pods")
async def test_pods_that_follow_a_replug_do_not_stop_each_other_by_resets(short_dir: Path) -> None:
    follow = 'on_replug = "restart"\ndebounce = "20ms"\n'
    reset = Resetting(an_adapter)
    rules = FTDI_RULE + follow + WITH_RESET
    async with a_scene(short_dir, *an_adapter(0), rules=rules, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="one"), await scene.admit(name="two")]
        await asyncio.sleep(0.2)
        await idle()
        assert [pod.container("main").restarts for pod in pods] == [0, 0]
        # What a restart of the one does to the other.
        await scene.kubelet.restart_container(pods[0], "main")
        await asyncio.sleep(0.2)
        await idle()
        # The other one is stopped once, because its device has been reset, too.
        await scene.kubelet.wait_until(
            lambda: {pod.container("main").state for pod in pods} == {ContainerState.RUNNING}
        )
        assert reset.resets == [(1, 4)]


async def test_a_container_that_starts_during_the_reset_of_its_unit_waits_for_its_end(
    short_dir: Path,
) -> None:
    """It must not start with a node that is about to go."""
    loop, plays = asyncio.get_running_loop(), Resetting(an_adapter)
    begun, goes_on = asyncio.Event(), asyncio.Event()

    def reset(udev: FakeUdev, busnum: int, devnum: int) -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result()
        plays(udev, busnum, devnum)

    async with a_scene(short_dir, *an_adapter(0), rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        admitting = [asyncio.ensure_future(scene.admit(name="one"))]
        await begun.wait()
        admitting.append(asyncio.ensure_future(scene.admit(name="two")))
        await until(lambda: starting(scene) == 2)
        goes_on.set()
        assert [minors_in((await pod).container("main")) for pod in admitting] == [[2], [3]]
    assert plays.resets == [(1, 4)]


@pytest.mark.parametrize("keys", ['prestart = { wait = "20s" }\n', WITH_RESET], ids=["waits", "resets"])
async def test_a_container_that_starts_during_the_reset_of_a_hub_above_its_unit_waits_for_its_end(
    short_dir: Path, keys: str
) -> None:
    """The reset of the hub resets the unit, too, so it is not reset again."""
    loop, begun, goes_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    resets: list[tuple[int, int]] = []
    hub = a_usb_device("2", vendor="1234", product="0001", serial="HUB", devnum=4)

    def behind(number: int) -> UdevDevice:
        unit = replace(a_usb_device("2.1", serial="DEV", devnum=5 + number), parent=hub)
        return a_usb_node(unit, "tty", f"ttyUSB{number}", interface="00", number=f"c 188:{number}")

    def reset(udev: FakeUdev, busnum: int, devnum: int) -> None:
        resets.append((busnum, devnum))
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result()
        with udev.unheard():
            udev.unplug(behind(0))
            udev.plug(behind(1))

    match = '{ SUBSYSTEM = "usb", usb = { vendor = "1234" } }'
    rules = f'[[resource]]\nname = "hub"\nmatch = {match}\n{WITH_RESET}{FTDI_RULE}{keys}'
    async with a_scene(short_dir, hub, behind(0), rules=rules, usb_reset=reset) as scene:
        await scene.until_allocatable(1)
        await scene.until_allocatable(1, f"{DOMAIN}/hub")
        of_hub = asyncio.ensure_future(scene.admit(resource=f"{DOMAIN}/hub", name="hub"))
        await begun.wait()
        behind_it = asyncio.ensure_future(scene.admit(name="behind"))
        await until(lambda: starting(scene))
        await idle()
        assert not behind_it.done()
        goes_on.set()
        await of_hub
        assert minors_in((await behind_it).container("main")) == [1]
    assert resets == [(1, 4)]


async def test_pods_that_start_at_the_same_time_have_their_own_units_reset(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    units = [a_usb_serial(n, serial="AB"[n], port=f"{n + 1}", devnum=n + 4) for n in range(2)]
    resets: list[tuple[int, int]] = []

    def reset(_: FakeUdev, busnum: int, devnum: int) -> None:
        resets.append((busnum, devnum))

    async with a_scene(short_dir, *units, rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        pods = await asyncio.gather(scene.admit(name="one"), scene.admit(name="two"))
        assert sorted(resets) == [(1, 4), (1, 5)]
        # Now both have been held for long.
        await asyncio.gather(*(scene.kubelet.restart_container(pod, "main") for pod in pods))
        assert sorted(resets) == [(1, 4), (1, 4), (1, 5), (1, 5)]
    assert warnings(caplog) == []


async def test_pods_that_start_at_the_same_time_with_ports_of_one_unit_have_it_not_reset(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reset = Resetting(an_adapter)
    async with a_scene(short_dir, *an_adapter(0), rules=FTDI_RULE + WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="one"), await scene.admit(name="two")]
        reset.resets.clear()
        caplog.clear()
        await asyncio.gather(*(scene.kubelet.restart_container(pod, "main") for pod in pods))
        assert reset.resets == []
        assert [pod.container("main").state for pod in pods] == [ContainerState.RUNNING] * 2
    assert sorted(warnings(caplog), key=str) == [not_reset("ftdi_DUAL"), not_reset("ftdi_DUAL.if01")]


def starting(scene: Scene) -> int:
    return scene.daemon.plugins.plugins[FTDI].starting


@pytest.mark.parametrize("serial", ["DEV", "ZDEV"])
@pytest.mark.parametrize("keys", ["", 'group_by = "all"\n'], ids=["two ids", "a kit"])
async def test_what_is_plugged_in_behind_a_hub_of_the_container_is_reset_with_the_hub(
    short_dir: Path, serial: str, keys: str
) -> None:
    """The kernel disconnects it before it resets the hub, so its number is another one afterwards."""
    hub = a_usb_device("2", vendor="1234", product="0001", serial="HUB", devnum=4)

    def behind(devnum: int) -> list[UdevDevice]:
        unit = a_usb_device("2.1", vendor="1234", product="0002", serial=serial, devnum=devnum)
        return [replace(unit, parent=hub)]

    resetting = Resetting(lambda n: behind(5 + n))

    def reset(udev: FakeUdev, busnum: int, devnum: int) -> None:
        assert devnum == 4
        resetting(udev, busnum, devnum)

    match = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "usb", usb = { vendor = "1234" } }\n'
    async with a_scene(short_dir, hub, *behind(5), rules=match + keys + WITH_RESET, usb_reset=reset) as scene:
        count = 1 if keys else 2
        await scene.until_allocatable(count)
        pod = await scene.admit(count)
        assert pod.container("main").state is ContainerState.RUNNING
        await scene.kubelet.restart_container(pod, "main")
        assert pod.container("main").state is ContainerState.RUNNING
    assert resetting.resets == [(1, 4), (1, 4)]
