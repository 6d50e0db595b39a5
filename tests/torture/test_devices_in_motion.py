"""Devices that leave, return elsewhere or change their descriptors, and are never confused."""

from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState, ContainerStatus, Phase, Runtime
from tests.scenes.builders import a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, a_scene, both_runtimes, ids_told, minors_in
from tests.scenes.service import links_in, settings_below
from tests.scenes.waiting import idle, until

BY_PORT = FTDI_RULE + 'identity = "port"\n'

#: A Coral Edge TPU: another vendor and product until its firmware is loaded.
CORAL = """
[[resource]]
name = "tpu"
match = [
    { SUBSYSTEM = "usb", DEVTYPE = "usb_device", usb = { vendor = "1a6e", product = "089a" } },
    { SUBSYSTEM = "usb", DEVTYPE = "usb_device", usb = { vendor = "18d1", product = "9302" } },
]
identity = "port"
container_path = "/dev/bus/usb/tpu"
"""

#: A modem that is a CD-ROM until it is switched to modem mode.
STICK = """
[[resource]]
name = "modem"
match = [
    { usb = { vendor = "12d1", product = "1f01" } },
    { usb = { vendor = "12d1", product = "14dc" } },
]
identity = "port"
group_by = "usb_device"

[[resource.node]]
match = { SUBSYSTEM = "tty" }
container_path = "/dev/modem"
"""


@pytest.mark.parametrize("coalesce_s", [0.005, 0.05, 2.0])
@pytest.mark.parametrize("again", [0, 7], ids=["same name", "new name"])
async def test_a_replug_within_the_coalescing_time_ends_in_the_right_state_with_the_same_id(
    short_dir: Path, coalesce_s: float, again: int
) -> None:
    async with a_scene(
        short_dir, a_usb_serial(0), settings=settings_below(short_dir, coalesce_s=coalesce_s)
    ) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(a_usb_serial(0))
        scene.plug(a_usb_serial(again))
        await idle()
        assert links_in(scene.settings)["ftdi_A50285BI"] == scene.udev.node(a_usb_serial(again))
        # The kubelet never received a list without the device.
        assert scene.kubelet.messages(FTDI) == 1
        assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [again]


async def test_of_many_changes_in_the_coalescing_time_the_kubelet_gets_only_the_last(short_dir: Path) -> None:
    async with a_scene(
        short_dir, a_usb_serial(0), settings=settings_below(short_dir, coalesce_s=2.0)
    ) as scene:
        await scene.until_allocatable(1)
        time = LoopTime()
        for number in range(1, 21):
            scene.unplug(a_usb_serial(number - 1))
            await idle()
            scene.plug(a_usb_serial(number))
            await idle()
        scene.unplug(a_usb_serial(20))
        time.advance(2.1)
        await scene.until_allocatable(0)
        assert scene.kubelet.messages(FTDI) <= 3


async def test_at_another_port_a_device_keeps_its_id_by_serial_number_and_gets_a_new_one_by_port(
    short_dir: Path,
) -> None:
    by_serial, by_port = short_dir / "serial", short_dir / "port"
    async with a_scene(by_serial, a_usb_serial(0, port="1")) as scene:
        await scene.until_allocatable(1)
        before = set(scene.kubelet.devices(FTDI))
        scene.unplug(a_usb_serial(0, port="1"))
        scene.plug(a_usb_serial(1, port="4"))
        await scene.until_allocatable(1, capacity=1)
        assert set(scene.kubelet.devices(FTDI)) == before
    async with a_scene(by_port, a_usb_serial(0, port="1"), rules=BY_PORT) as scene:
        await scene.until_allocatable(1)
        before = set(scene.kubelet.devices(FTDI))
        scene.unplug(a_usb_serial(0, port="1"))
        scene.plug(a_usb_serial(1, port="4"))
        # The old port is remembered, because a pod may hold it.
        await scene.until_allocatable(1, capacity=2)
        assert set(scene.kubelet.devices(FTDI)) > before


@both_runtimes
async def test_with_identity_by_port_a_replacement_unit_takes_over_the_id(
    short_dir: Path, runtime: Runtime
) -> None:
    """A dead dongle is replaced by a new one in the same port: no edit, the same id."""
    old, new = a_usb_serial(0, serial="OLD"), a_usb_serial(3, serial="NEW")
    async with a_scene(short_dir, old, rules=BY_PORT, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(old)
        await scene.until_allocatable(0)
        scene.plug(new)
        await scene.until_allocatable(1, capacity=1)
        status = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(status) == [3]


@both_runtimes
@pytest.mark.parametrize("daemon_is_up", [True, False], ids=["daemon up", "daemon down"])
async def test_after_a_swap_of_names_each_container_gets_its_own_unit_or_none(
    short_dir: Path, runtime: Runtime, daemon_is_up: bool
) -> None:
    """A and B, each held by a pod, exchange their names; both containers restart."""
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2")
    a_after, b_after = a_usb_serial(1, serial="A", port="1"), a_usb_serial(0, serial="B", port="2")
    minors = {"ftdi_A": [1], "ftdi_B": [0]}

    async with a_scene(short_dir, a, b, runtime=runtime) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name=name) for name in ("one", "two")]
        (held,) = zip(*(ids_told(pod.container("main")) for pod in pods), strict=True)
        scene.unplug(a, b)
        await scene.until_allocatable(0)
        if daemon_is_up:
            scene.plug(a_after, b_after)
            await scene.until_allocatable(2)
            for pod, id_ in zip(pods, held, strict=True):
                assert minors_in(await scene.kubelet.restart_container(pod, "main")) == minors[id_]
        else:
            await scene.service.stop()
            await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
            scene.plug(a_after, b_after)
            for pod in pods:
                status = await scene.kubelet.restart_container(pod, "main")
                assert status.state is ContainerState.WAITING


@both_runtimes
async def test_a_container_refused_while_the_daemon_was_down_starts_when_it_is_up_again(
    short_dir: Path, runtime: Runtime
) -> None:
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(0, serial="B", port="2")

    async with a_scene(short_dir, a, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(a)
        await scene.until_allocatable(0)
        await scene.service.stop()
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
        scene.plug(b)
        refused = await scene.kubelet.restart_container(pod, "main")
        assert refused.state is ContainerState.WAITING
        await scene.service.start()
        await scene.until_allocatable(1, capacity=2)
        scene.plug(a_usb_serial(1, serial="A", port="1"))
        await scene.until_allocatable(2)
        await scene.kubelet.sync(pod)
        assert minors_in(pod.container("main")) == [1]


async def test_a_stick_returns_under_another_name_because_an_app_still_holds_the_old_one(
    short_dir: Path,
) -> None:
    """The kernel keeps ttyUSB0 while it is open; a restarted container gets the stick's new name."""
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        for number in range(1, 6):
            scene.unplug(a_usb_serial(number - 1))
            await scene.until_allocatable(0)
            scene.plug(a_usb_serial(number))
            await scene.until_allocatable(1, capacity=1)
            status = await scene.kubelet.restart_container(pod, "main")
            assert (minors_in(status), ids_told(status)) == ([number], ["ftdi_A50285BI"])


async def test_a_third_unit_with_the_same_serial_number_changes_no_id(short_dir: Path) -> None:
    twins = [a_usb_serial(n, serial="SAME", port=str(n + 1)) for n in range(2)]
    async with a_scene(short_dir, *twins) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name=name) for name in ("one", "two")]
        ids, links = set(scene.kubelet.devices(FTDI)), links_in(scene.settings)
        scene.plug(a_usb_serial(2, serial="SAME", port="1.1"))
        await scene.until_allocatable(3)
        assert set(scene.kubelet.devices(FTDI)) > ids
        assert links.items() <= links_in(scene.settings).items()
        for pod in pods:
            before = minors_in(pod.container("main"))
            assert minors_in(await scene.kubelet.restart_container(pod, "main")) == before


# Firmware


def coral(product: str, devnum: int) -> UdevDevice:
    vendor = {"089a": "1a6e", "9302": "18d1"}[product]
    return a_usb_device("3", vendor=vendor, product=product, serial=None, devnum=devnum)


@both_runtimes
async def test_a_device_that_loads_its_firmware_stays_one_device_under_two_usb_ids(
    short_dir: Path, runtime: Runtime
) -> None:
    tpu = "example.com/tpu"

    async with a_scene(short_dir, coral("089a", 4), rules=CORAL, runtime=runtime) as scene:
        await scene.until_allocatable(1, tpu)
        pod = await scene.admit(resource=tpu)
        (id_,) = scene.kubelet.devices(tpu)
        scene.unplug(coral("089a", 4))
        scene.plug(coral("9302", 5))
        await until(lambda: links_in(scene.settings)[id_] == scene.udev.node(coral("9302", 5)))
        await scene.until_allocatable(1, tpu, capacity=1)
        assert set(scene.kubelet.devices(tpu)) == {id_}
        status: ContainerStatus = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(status) == [4]


async def test_a_modem_is_unhealthy_until_it_has_switched_its_mode_and_keeps_its_id(short_dir: Path) -> None:
    modem = "example.com/modem"
    cdrom = a_usb_device("3", vendor="12d1", product="1f01", serial=None, devnum=4)
    usb = a_usb_device("3", vendor="12d1", product="14dc", serial=None, devnum=5)
    switched = (usb, a_usb_node(usb, "tty", "ttyUSB0", number="c 188:0"))

    async with a_scene(short_dir, *switched, rules=STICK) as scene:
        await scene.until_allocatable(1, modem)
        pod = await scene.admit(resource=modem)
        (id_,) = scene.kubelet.devices(modem)
        # It was reset and is a CD-ROM again.
        scene.unplug(*switched)
        scene.plug(cdrom)
        await scene.until_allocatable(0, modem, capacity=1)
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING
        scene.unplug(cdrom)
        scene.plug(*switched)
        await scene.until_allocatable(1, modem, capacity=1)
        assert set(scene.kubelet.devices(modem)) == {id_}
        await scene.kubelet.sync(pod)
        assert pod.phase is Phase.RUNNING
        assert minors_in(pod.container("main")) == [0]


# Composite devices


async def test_a_device_is_healthy_only_when_its_last_member_has_come(short_dir: Path) -> None:
    """A sound card's pcm node comes after its control node; no container may start with only one of them."""
    rules = """
[[resource]]
name = "sound"
match = { SUBSYSTEM = "sound", usb = { vendor = "0d8c" } }
group_by = "usb_device"
[[resource.node]]
match = { DEVNAME = "*control*" }
container_path = "/dev/snd/control"
[[resource.node]]
match = { DEVNAME = "*pcm*p" }
container_path = "/dev/snd/pcm"
"""
    sound = "example.com/sound"
    usb = a_usb_device("3", vendor="0d8c", product="0014", serial="S", devnum=7)
    control = a_usb_node(usb, "sound", "snd/controlC1", number="c 116:2")
    pcm = a_usb_node(usb, "sound", "snd/pcmC1D0p", number="c 116:3")

    async with a_scene(short_dir, control, rules=rules) as scene:
        await scene.until_allocatable(0, sound, capacity=1)
        pod = await scene.admit(resource=sound)
        assert pod.phase is Phase.FAILED
        scene.plug(pcm)
        await scene.until_allocatable(1, sound, capacity=1)
        pod = await scene.admit(resource=sound, name="second")
        assert minors_in(pod.container("main")) == [2, 3]
