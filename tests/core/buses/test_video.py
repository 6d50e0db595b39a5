"""Which node of a camera a V4L node is: by its index if the driver orders the nodes, or else by its name."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import locate
from tests.scenes.builders import a_device
from tests.scenes.inventories import inventory_of
from tests.scenes.machines import node
from tests.scenes.video import a_sensor

RULE = '[[resource]]\nname = "camera"\nmatch = { SUBSYSTEM = "video4linux" }\n'


def a_function(driver: str) -> UdevDevice:
    return a_device("/sys/devices/pci0000:00/0000:00:05.0", subsystem="pci", driver=driver)


def test_on_a_board_it_is_told_by_its_name_and_not_by_its_index() -> None:
    spots = {locate(a_sensor("rkisp_mainpath", number, index)).spot for number in (0, 4) for index in (0, 7)}
    assert {spot.within for spot in spots} == {"rkisp_mainpath"}


def test_the_number_of_a_bus_in_its_name_does_not_count() -> None:
    left, right = a_sensor("vi-output, imx219 9-0010", 0), a_sensor("vi-output, imx219 10-0010", 1)
    other = a_sensor("vi-output, imx219 9-0018", 2)
    assert locate(left).spot == locate(right).spot != locate(other).spot
    inventory = inventory_of(RULE, left, right, other)
    assert len({device.id for device in inventory.offers["example.com/camera"].devices}) == 3
    assert len(inventory.unsure) == 2


def ids_by_name(*names: str) -> dict[str, str]:
    """The ids of sensors that are found in this order."""
    devices = (
        inventory_of(RULE, *(a_sensor(name, number) for number, name in enumerate(names)))
        .offers["example.com/camera"]
        .devices
    )
    return {names[int(device.nodes[0].path.removeprefix("/dev/video"))]: device.id for device in devices}


def test_of_two_that_differ_in_the_number_of_a_bus_the_lower_number_comes_first() -> None:
    left, right = "vi-output, imx219 9-0010", "vi-output, imx219 10-0010"
    assert ids_by_name(left, right) == ids_by_name(right, left)


@pytest.mark.parametrize("driver", ["ipu3-cio2", "intel-ipu6", "intel_ipu6", "atomisp-isp2"])
def test_an_image_processor_on_pci_registers_its_nodes_as_sensors_are_found(driver: str) -> None:
    assert locate(a_sensor("capture 0", 0, 3, on=a_function(driver))).spot.within == "capture-0"


def test_the_nodes_of_a_grabber_are_told_by_their_index_as_before() -> None:
    place = locate(a_sensor("Magewell", 1, on=a_function("ProCapture")))
    assert (place.spot.within, place.before) == ("index1", None)


def test_a_sensor_behind_a_multiplexer_is_told_by_its_channel() -> None:
    left, right = (node("jetson", f"/dev/v4l-subdev{number}") for number in (0, 1))
    assert locate(left).spot != locate(right).spot


def test_an_earlier_release_told_it_by_its_index() -> None:
    before = locate(a_sensor("rkisp_selfpath", 1)).before
    assert before is not None
    assert before.within == "index1"
