"""Which device of software a node is: its number follows the order of arrival, its name does not."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import locate
from tests.scenes.builders import a_device
from tests.scenes.inventories import inventory_of
from tests.scenes.video import a_gamepad, a_loopback, a_watchdog

RULE = '[[resource]]\nname = "soft"\nmatch = { SUBSYSTEM = "infiniband_*|ptp|input|video4linux|watchdog" }\n'


def a_soft(subsystem: str, node: str, **attributes: str) -> UdevDevice:
    name = node.rpartition("/")[2]
    return a_device(
        f"/sys/devices/virtual/{subsystem}/{name}",
        subsystem=subsystem,
        node=node,
        number=f"c 231:{ord(name[-1])}",
        attributes=attributes,
    )


def ids_of(*devices: UdevDevice) -> list[str]:
    (offer,) = inventory_of(RULE, *devices).offers.values()
    return [each.id for each in offer.devices]


@pytest.mark.parametrize(
    ("one", "later", "other"),
    [
        (
            a_soft("infiniband_verbs", "/dev/infiniband/uverbs2", ibdev="rxe0"),
            a_soft("infiniband_verbs", "/dev/infiniband/uverbs7", ibdev="rxe0"),
            a_soft("infiniband_verbs", "/dev/infiniband/uverbs2", ibdev="rxe1"),
        ),
        (
            a_soft("ptp", "/dev/ptp1", clock_name="KVM virtual PTP"),
            a_soft("ptp", "/dev/ptp0", clock_name="KVM virtual PTP"),
            a_soft("ptp", "/dev/ptp1", clock_name="hyperv"),
        ),
        (a_loopback("front door", 0), a_loopback("front door", 1), a_loopback("back door", 0)),
        (a_watchdog("softdog", 0), a_watchdog("softdog", 1), a_watchdog("IT87 WDT", 0)),
        (a_gamepad("pad", 5), a_gamepad("pad", 6), a_gamepad("wheel", 5)),
        (a_gamepad("pad", 5, UNIQ='"1"'), a_gamepad("pad", 6, UNIQ='"1"'), a_gamepad("pad", 5, UNIQ='"2"')),
    ],
    ids=[
        *("a soft RDMA adapter", "the clock of a guest", "a virtual camera", "a watchdog"),
        *("an input device of a program", "one that says which it is"),
    ],
)
def test_a_device_of_software_is_the_same_under_any_number(
    one: UdevDevice, later: UdevDevice, other: UdevDevice
) -> None:
    assert ids_of(one) == ids_of(later) != ids_of(other)
    assert locate(one).spot == locate(later).spot != locate(other).spot


def test_the_nodes_of_a_soft_adapter_are_two() -> None:
    verbs = a_soft("infiniband_verbs", "/dev/infiniband/uverbs2", ibdev="rxe0")
    management = a_soft("infiniband_mad", "/dev/infiniband/umad2", ibdev="rxe0")
    assert len(set(ids_of(verbs, management))) == 2
    assert locate(verbs).spot != locate(management).spot


def test_an_earlier_release_told_it_by_its_number() -> None:
    before = locate(a_soft("ptp", "/dev/ptp1", clock_name="KVM virtual PTP")).before
    assert before is not None
    assert before == locate(a_soft("ptp", "/dev/ptp1")).before


def test_a_clock_of_hardware_is_told_by_its_place() -> None:
    card = a_device("/sys/devices/pci0000:00/0000:00:05.0", subsystem="pci")
    clock = a_device(
        f"{card.sys_path}/ptp/ptp0",
        subsystem="ptp",
        node="/dev/ptp0",
        number="c 246:0",
        attributes={"clock_name": "bnxt_en_clock"},
        parent=card,
    )
    assert locate(clock).port.exact == card.sys_path


def test_two_clocks_with_one_name_are_two_devices() -> None:
    clocks = [a_soft("ptp", f"/dev/ptp{number}", clock_name="ptp virtual clock") for number in (1, 2)]
    assert len(set(ids_of(*clocks))) == 2
