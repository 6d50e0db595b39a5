"""Which unit `/dev/fw1` is."""

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import UNKNOWN, Spot, locate
from tests.scenes.builders import a_device
from tests.scenes.inventories import offered
from tests.scenes.storage import below

CARD = a_device("/sys/devices/pci0000:00/0000:02:00.0", subsystem="pci", driver="firewire_ohci")
ONE, TWO = "0x00b09d0100a1b2c3", "0x00b09d0100d4e5f6"
RULE = """
[[resource]]
name = "camera"
match = { SUBSYSTEM = "firewire" }
"""


def a_camera(number: int, guid: str) -> UdevDevice:
    return a_device(
        f"{CARD.sys_path}/fw{number}",
        subsystem="firewire",
        node=f"/dev/fw{number}",
        number=f"c 242:{number}",
        attributes={"guid": guid} if guid else {},
        parent=CARD,
    )


def test_a_unit_is_the_same_under_any_number() -> None:
    before = {each.id: each.nodes[0].path for each in offered(RULE, a_camera(1, ONE), a_camera(2, TWO))}
    after = {each.id: each.nodes[0].path for each in offered(RULE, a_camera(1, TWO), a_camera(2, ONE))}
    one, two = "camera_00b09d0100a1b2c3", "camera_00b09d0100d4e5f6"
    assert before == {one: "/dev/fw1", two: "/dev/fw2"}
    assert after == {one: "/dev/fw2", two: "/dev/fw1"}


def test_what_is_behind_a_unit_belongs_to_it() -> None:
    host = below(below(a_camera(1, ONE), "fw1.0", "firewire"), "host6", "scsi", "scsi_host")
    assert locate(host).port == Port("firewire 00b09d0100a1b2c3", "00b09d0100a1b2c3")


def test_the_memory_of_an_earlier_release_has_a_unit_at_its_card() -> None:
    assert locate(a_camera(1, ONE)).before == Spot(CARD.sys_path, "", "fw", UNKNOWN)


def test_a_unit_that_says_no_guid_is_a_part_of_its_card() -> None:
    for guid in ("", "0x0000000000000000"):
        assert locate(a_camera(1, guid)).unit is CARD
