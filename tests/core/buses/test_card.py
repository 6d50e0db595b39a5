"""Cards of which sysfs shows no parent."""

from genericdp.core.inventory.place import locate
from tests.scenes.builders import a_device
from tests.scenes.cards import a_hailo


def test_a_card_is_told_by_where_its_driver_says_that_it_is() -> None:
    assert locate(a_hailo(0, "0000:01:00.0")).port == locate(a_hailo(1, "0000:01:00.0")).port
    assert locate(a_hailo(0, "0000:01:00.0")).port != locate(a_hailo(0, "0000:02:00.0")).port
    assert locate(a_hailo(0, "0000:01:00.0")).port.readable == "port-0000:01:00.0"


def test_one_that_sysfs_shows_on_its_bus_is_told_by_that() -> None:
    pci = a_device("/sys/devices/pci0000:00/0000:00:01.0", subsystem="pci")
    node = a_device(
        f"{pci.sys_path}/hailo_chardev/hailo0",
        subsystem="hailo_chardev",
        node="/dev/hailo0",
        attributes={"board_location": "0000:00:01.0"},
        parent=pci,
    )
    assert locate(node).unit is pci


def test_a_driver_that_does_not_say_it_makes_siblings() -> None:
    assert locate(a_hailo(0, "")).spot == locate(a_hailo(1, "")).spot
