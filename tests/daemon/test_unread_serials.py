"""The kernel could not read the serial number of the unit of a pod when that was plugged in again."""

import os
from pathlib import Path

import pytest

from tests.daemon.test_hotplug import RULES, a_node, under_umockdev
from tests.daemon.test_without_nodes import ID, a_pod, reason_of
from tests.scenes.rules import FTDI
from tests.scenes.scene import minors_in, until_allocatable
from tests.scenes.waiting import until
from tests.udev import gadgets
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restart"])
def test_no_second_pod_gets_the_unit_and_the_first_one_has_it_again_with_its_serial_number(
    short_dir: Path, bed: Testbed, *, restart: bool
) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, service):
            unit = gadgets.serial_dongle("1", tty=0, devnum=5)
            unread = gadgets.serial_dongle("1", tty=1, devnum=6, serial=None)
            bed.plug(unit)
            await until_allocatable(kubelet, 1)
            one = await a_pod(kubelet, "one")
            bed.unplug(unit)
            await until_allocatable(kubelet, 0)
            bed.plug(unread)
            await until(lambda: "/dev/ttyUSB1, whose serial number could not be read" in reason_of(service))
            if restart:
                await service.stop()
                await service.start()
                await until(lambda: "could not be read" in reason_of(service))
            assert list(kubelet.devices(FTDI)) == [ID]
            (refusal,) = service.daemon.inventory.refusals
            assert refusal.node == "/dev/ttyUSB1"
            assert refusal.reason == (
                f"its serial number could not be read, so it may be {ID}, which a pod may still hold; "
                "unplug it and plug it in again, at another port if it has no serial number"
            )
            assert os.readlink(short_dir / "links" / ID) == ID
            bed.unplug(unread)
            bed.plug(unit)
            await until_allocatable(kubelet, 1)
            assert list(kubelet.devices(FTDI)) == [ID]
            await kubelet.restart_container(one, "main")
            assert minors_in(one.container("main")) == [0]

    under_umockdev(main())
