"""Which unit a wireless device is: its address tells it, never the radio or the order of connecting."""

import pytest

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import UNKNOWN, Place, Spot, locate
from genericdp.core.memory import saved
from tests.scenes.builders import a_device
from tests.scenes.edits import Node, rule
from tests.scenes.wireless import DONGLE, LINK, UHID, a_hid, a_paired

ADDRESS = "aa:bb:cc:00:00:01"
RAW = rule("x", match='{ SUBSYSTEM = "hidraw" }')
radios = pytest.mark.parametrize("radio", [UHID, LINK], ids=["uhid", "a USB adapter"])


@radios
def test_a_unit_behind_a_radio_is_a_unit_of_its_own(radio: UdevDevice) -> None:
    place = locate(a_hid(radio, 1, ADDRESS, 0))
    assert place.port == Port(f"hid 0005 {ADDRESS}", ADDRESS)
    assert place.serial == ADDRESS
    assert (place.within, place.spot) == ("hidraw", Spot(f"hid 0005 {ADDRESS}", ADDRESS, "hidraw"))
    assert place.usb is None


@radios
def test_it_is_the_same_whenever_it_connects(radio: UdevDevice) -> None:
    assert locate(a_hid(radio, 1, ADDRESS, 0)).spot == locate(a_hid(radio, 9, ADDRESS.upper(), 4)).spot
    assert locate(a_hid(radio, 1, ADDRESS, 0)).spot != locate(a_hid(radio, 1, "aa:bb:cc:00:00:02", 0)).spot


def test_what_a_program_makes_is_a_unit_on_any_bus() -> None:
    assert locate(a_hid(UHID, 1, "token-1", 0, bus="0003")).port.exact == "hid 0003 token-1"


@pytest.mark.parametrize("address", [None, "", "00:00:00:00:00:00"])
def test_one_without_an_address_may_be_any_of_its_model(address: str | None) -> None:
    place = locate(a_hid(UHID, 1, address, 0))
    assert (place.port.exact, place.serial) == ("hid 0005:0C2E:0B81", None)
    assert place.spot.is_anonymous
    assert not locate(a_hid(UHID, 1, ADDRESS, 0)).spot.is_anonymous


def test_what_is_paired_with_a_receiver_is_told_by_its_serial_number_or_else_by_its_slot() -> None:
    assert locate(a_paired(4, "c4-a5-3c-11", 1, 0)).within == "if02-hidraw-046D-4082-c4-a5-3c-11"
    assert locate(a_paired(4, "", 2, 0)).within == "if02-hidraw-046D-4082-slot2"
    assert locate(a_paired(4, "", 0, 0)).within == "if02-hidraw-046D-4082"
    assert locate(a_paired(4, "c4-a5-3c-11", 1, 0)).spot == locate(a_paired(7, "c4-a5-3c-11", 3, 2)).spot


def test_a_serial_port_over_bluetooth_is_a_unit_whether_a_program_has_it_open_or_not() -> None:
    def at(above: str, parent: UdevDevice | None = None) -> Place:
        return locate(a_device(f"{above}/tty/rfcomm0", subsystem="tty", parent=parent))

    is_closed, is_open = at("/sys/devices/virtual"), at(LINK.sys_path, LINK)
    assert is_closed.spot == is_open.spot
    assert is_closed.port == is_open.port == Port("/sys/devices/virtual/tty/rfcomm0", "rfcomm0")
    assert is_closed.before is None
    # While it was open, an earlier release took the adapter for its unit.
    assert is_open.before == locate(DONGLE).spot._replace(within="if00", number=UNKNOWN)


def test_what_the_adapter_says_about_itself_identifies_nothing_behind_it() -> None:
    assert DONGLE.property("ID_MODEL_ID") == "0001"
    node = Node()
    node.look(RAW + 'identity = ["ID_MODEL_ID"]\n', a_hid(LINK, 1, ADDRESS, 0))
    assert [each.reason for each in node.inventory.refusals] == [
        "it has no property ID_MODEL_ID, which 'identity' uses"
    ]


# Units without an address

NO_ADDRESS = (
    "it has no address (HID_UNIQ), so it cannot be told apart from a device that a pod may still hold; "
    "it is offered when that pod is deleted"
)


def test_one_without_an_address_is_never_taken_for_one_that_a_pod_holds() -> None:
    node = Node()
    (id_,) = node.look(RAW, a_hid(UHID, 1, None, 0))
    node.allocate(id_)
    node.look(RAW)
    later = a_hid(UHID, 2, None, 0)
    in_doubt = {id_: "the device plugged in now may not be the one that a pod got; delete that pod"}
    assert node.look(RAW, later) == in_doubt
    assert [each.reason for each in node.inventory.refusals] == [NO_ADDRESS]
    assert node.inventory.links() == {id_: None}
    assert node.look(RAW, later) == in_doubt
    node.look(RAW, later, answer=node.nobody_holds_anything())
    assert node.look(RAW, later) == {id_: "Healthy"}


def test_one_without_an_address_that_stays_is_the_same_after_a_restart_of_the_daemon() -> None:
    node, unit = Node(), a_hid(UHID, 1, None, 0)
    (id_,) = node.look(RAW, unit)
    node.allocate(id_)
    node.look(RAW, unit)
    text = saved.dump(node.memory, "this boot")
    node.memory = saved.load(text, "this boot")
    assert node.look(RAW, unit) == {id_: "Healthy"}
    node.memory = saved.load(text, "the next boot")
    assert node.look(RAW, unit) == {
        id_: "the device plugged in now may not be the one that a pod got; delete that pod"
    }


def test_if_no_pod_holds_it_the_next_one_is_the_one_that_was_there() -> None:
    node = Node()
    (id_,) = node.look(RAW, a_hid(UHID, 1, None, 0))
    node.look(RAW)
    assert node.look(RAW, a_hid(UHID, 2, None, 0)) == {id_: "Healthy"}
