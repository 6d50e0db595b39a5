"""Which device nodes that udev does not know may be offered, and why others are refused."""

from collections.abc import Callable

import pytest

from genericdp.core.bare_node import Sighting, device_of, judge
from genericdp.core.device import DeviceNumber
from tests.scenes.steps import growth

GPU0, GPU1 = DeviceNumber("c", 195, 0), DeviceNumber("c", 195, 1)
NULL = DeviceNumber("c", 1, 3)


def everything(path: str) -> bool:
    del path
    return True


def test_a_character_device_of_root_may_be_offered() -> None:
    assert judge([Sighting("/dev/nvidia0", GPU0)], {}, everything) == {"/dev/nvidia0": ""}


def test_what_udev_knows_by_this_path_is_not_a_bare_node() -> None:
    assert judge([Sighting("/dev/null", NULL)], {NULL: "/dev/null"}, everything) == {}


def test_a_node_of_another_number_at_the_path_of_a_udev_device_is_not_a_second_device() -> None:
    assert judge([Sighting("/dev/null", GPU0)], {NULL: "/dev/null"}, everything) == {}


@pytest.mark.parametrize(
    ("sighting", "reason"),
    [
        (
            Sighting("/dev/acme0", NULL),
            "it has the number of '/dev/null', c 1:3; match that device node instead",
        ),
        (
            Sighting("/dev/acme0", GPU1),
            "it has the number of another device, c 195:1; match that device node instead",
        ),
        (
            Sighting("/dev/acme0", None, target="/dev/null"),
            "it is a symlink; match the device node to which it leads, '/dev/null'",
        ),
        (Sighting("/dev/acme0", DeviceNumber("b", 8, 0)), "it is a block device that udev does not know"),
        (Sighting("/dev/acme0", GPU0, uid=1000), "udev does not know it, and it does not belong to root"),
    ],
)
def test_others_are_refused(sighting: Sighting, reason: str) -> None:
    owners = {NULL: "/dev/null", GPU1: ""}
    assert judge([sighting], owners, everything) == {"/dev/acme0": reason}


def test_of_two_nodes_with_one_number_none_is_offered() -> None:
    assert judge([Sighting("/dev/a", GPU0), Sighting("/dev/b", GPU0)], {}, everything) == {
        "/dev/a": "udev does not know it, and '/dev/b' has the same number, c 195:0",
        "/dev/b": "udev does not know it, and '/dev/a' has the same number, c 195:0",
    }
    three = [Sighting(f"/dev/{name}", GPU0) for name in "cab"]
    assert judge(three, {}, everything)["/dev/b"] == (
        "udev does not know it, and '/dev/a' and '/dev/c' have the same number, c 195:0"
    )
    many = [Sighting(f"/dev/{name}", GPU0) for name in "abcdefghijklmn"]
    assert judge(many, {}, everything)["/dev/b"] == (
        "udev does not know it, and '/dev/a', '/dev/c' and 11 more have the same number, c 195:0"
    )


@pytest.mark.parametrize("is_named", [everything, lambda _: False], ids=["named", "shown"])
def test_twice_as_many_nodes_with_one_number_are_twice_as_much_work(is_named: Callable[[str], bool]) -> None:
    def judging(size: int) -> Callable[[], object]:
        return lambda: judge([Sighting(f"/dev/acme{n}", GPU0) for n in range(size)], {}, is_named)

    assert growth(judging, 100) < 2.2


def test_a_node_that_no_rule_names_is_in_nobody_s_way() -> None:
    sightings = [Sighting("/dev/named", GPU0), Sighting("/dev/other", GPU0)]
    assert judge(sightings, {}, lambda path: path == "/dev/named") == {
        "/dev/named": "",
        "/dev/other": "udev does not know it, and '/dev/named' has the same number, c 195:0",
    }


def test_a_bare_node_has_a_path_and_a_number_and_nothing_else() -> None:
    device = device_of(Sighting("/dev/infiniband/acme0", GPU1, gid=44), "")

    assert device.is_bare
    assert dict(device.properties) == {"DEVNAME": "/dev/infiniband/acme0", "MAJOR": "195", "MINOR": "1"}
    assert {name: device.property(name) for name in ("SUBSYSTEM", "DEVTYPE", "DRIVER", "DEVPATH")} == {
        "SUBSYSTEM": None,
        "DEVTYPE": None,
        "DRIVER": None,
        "DEVPATH": None,
    }
    assert (device.device_node, device.number, device.gid) == ("/dev/infiniband/acme0", GPU1, 44)
    assert (device.sys_path, device.parent, device.attributes) == ("/dev/infiniband/acme0", None, {})
