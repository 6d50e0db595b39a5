"""The unit of a pod stays plugged in, but its driver lets it go or is late; then a twin is plugged in."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.simulator import Container, Kubelet, Pod, PodStatus
from tests.daemon.test_hotplug import RULES, a_node, nodes_seen, under_umockdev
from tests.scenes.rules import FTDI
from tests.scenes.scene import LoopTime, minors_in, until_allocatable
from tests.scenes.service import Service
from tests.scenes.waiting import until
from tests.udev import gadgets
from tests.udev.testbed import Testbed

ID = "ftdi_A50285BI"

pytestmark = pytest.mark.testbed


def made_by_driver(unit: Sequence[gadgets.Entry]) -> tuple[gadgets.Entry, ...]:
    return tuple(entry for entry in unit if "ttyUSB" in entry.path)


def bind(bed: Testbed, unit: Sequence[gadgets.Entry]) -> None:
    """A driver makes the device node, and udev looks at it."""
    for entry in bed.attach(made_by_driver(unit)):
        bed.initialize(entry)
        bed.uevent(entry, "add")


def unbind(bed: Testbed, unit: Sequence[gadgets.Entry]) -> None:
    for entry in reversed(made_by_driver(unit)):
        bed.detach(entry)
        bed.uevent(entry, "remove")


def without_driver(unit: Sequence[gadgets.Entry]) -> tuple[gadgets.Entry, ...]:
    """What the kernel has of a unit that no driver is bound to."""
    return tuple(entry for entry in unit if entry not in made_by_driver(unit))


async def with_a_pod(bed: Testbed, kubelet: Kubelet) -> tuple[gadgets.Entry, ...]:
    """The unit of a pod, at the first port."""
    unit = gadgets.serial_dongle("1", tty=0, devnum=5)
    bed.plug(unit)
    await until_allocatable(kubelet, 1)
    await a_pod(kubelet, "one")
    return unit


def reason_of(service: Service, id_: str = ID) -> str:
    device = service.daemon.inventory.offers[FTDI].device(id_)
    return "" if device is None else device.reason


async def a_pod(kubelet: Kubelet, name: str) -> PodStatus:
    return await kubelet.admit(Pod(name, [Container("main", limits={FTDI: 1})]))


@pytest.mark.parametrize("boot", [False, True], ids=["the driver lets it go", "the driver is late at boot"])
def test_no_two_pods_get_one_unit_and_none_gets_the_twin(
    short_dir: Path, bed: Testbed, *, boot: bool
) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, service):
            unit = gadgets.serial_dongle("1", tty=0, devnum=5)
            twin = gadgets.serial_dongle("2", tty=1, devnum=7)
            bed.plug(unit)
            await until_allocatable(kubelet, 1)
            one = await a_pod(kubelet, "one")
            if boot:
                await service.stop()
                unbind(bed, unit)
                bed.plug(twin)
                await service.start()
            else:
                unbind(bed, unit)
                await until_allocatable(kubelet, 0)
                bed.plug(twin)
            await until(lambda: "/dev/ttyUSB1" in nodes_seen(service.daemon.inventory))
            why = "1-1, which lacks its device node: bind a driver to 1-1, or unplug it"
            assert reason_of(service) == f"it is unplugged, or it is {why}"
            (refusal,) = service.daemon.inventory.refusals
            waits = f"its id, {ID}, may belong to another unit, which a pod may still hold"
            assert (refusal.node, refusal.reason) == ("/dev/ttyUSB1", f"{waits}; that unit may be {why}")
            assert os.readlink(short_dir / "links" / ID) == ID
            bind(bed, unit)
            await until_allocatable(kubelet, 2)
            await kubelet.restart_container(one, "main")
            assert minors_in(one.container("main")) == [0]
            two = await a_pod(kubelet, "two")
            assert minors_in(two.container("main")) == [1]

    under_umockdev(main())


@pytest.mark.parametrize("late", [False, True], ids=["at once", "its driver is late"])
def test_a_unit_at_another_port_comes_back_as_soon_as_it_has_its_node(
    short_dir: Path, bed: Testbed, *, late: bool
) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _):
            here = await with_a_pod(bed, kubelet)
            there = gadgets.serial_dongle("2", tty=1, devnum=7)
            bed.unplug(here)
            await until_allocatable(kubelet, 0)
            if late:
                bed.plug(without_driver(there))
                bind(bed, there)
            else:
                bed.plug(there)
            await until_allocatable(kubelet, 1)
            assert os.readlink(short_dir / "links" / ID) == "/dev/ttyUSB1"

    under_umockdev(main())


def test_a_twin_whose_driver_is_late_is_known_as_a_twin_at_once(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, service):
            unit = await with_a_pod(bed, kubelet)
            twin = gadgets.serial_dongle("2", tty=1, devnum=7)
            bed.plug(without_driver(twin))
            await until(lambda: ID in service.daemon.memory.ties)
            bed.unplug(unit)
            await until_allocatable(kubelet, 0)
            bind(bed, twin)
            await until_allocatable(kubelet, 1)
            assert os.readlink(short_dir / "links" / ID) == ID

    under_umockdev(main())


def test_a_twin_is_known_as_a_twin_of_a_unit_without_its_device_node_after_a_minute(
    short_dir: Path, bed: Testbed
) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        clock = LoopTime()
        async with a_node(short_dir, RULES, now=asyncio.get_running_loop().time) as (kubelet, service):
            unit = await with_a_pod(bed, kubelet)
            unbind(bed, unit)
            await until_allocatable(kubelet, 0)
            bed.plug(gadgets.serial_dongle("2", tty=1, devnum=7))
            await until(lambda: "which lacks its device node" in reason_of(service))
            assert not service.daemon.memory.ties
            clock.advance(TWO_AFTER_S)
            await until_allocatable(kubelet, 1, capacity=2)
            bed.unplug(without_driver(unit))
            await until(lambda: reason_of(service).endswith("plug this one in at its old port (USB port 1)"))
            assert os.readlink(short_dir / "links" / ID) == ID

    under_umockdev(main(), TWO_AFTER_S + 30.0)


def test_the_twin_is_taken_for_the_unit_when_that_is_unplugged(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, service):
            unit = await with_a_pod(bed, kubelet)
            unbind(bed, unit)
            await until_allocatable(kubelet, 0)
            bed.plug(gadgets.serial_dongle("2", tty=1, devnum=7))
            await until(lambda: "which lacks its device node" in reason_of(service))
            bed.unplug(without_driver(unit))
            await until_allocatable(kubelet, 1)
            assert os.readlink(short_dir / "links" / ID) == "/dev/ttyUSB1"

    under_umockdev(main())
