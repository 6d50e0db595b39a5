"""Units with siblings that come back, at any port: a pod has its own of them again, or none."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.core.memory.test_siblings import IN_DOUBT
from tests.scenes.builders import a_device, a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule
from tests.scenes.wireless import a_paired

X = rule("x")
WHOLE = rule("x", 'group_by = "usb_device"')
BY_FOO = rule("x", 'identity = ["FOO"]')

FIRST = "x_A"


def unit(
    *ttys: int,
    port: str = "1",
    plug: int = 1,
    serial: str = "A",
    foo: str = "f",
    names: Sequence[int] = (0, 1),
) -> list[UdevDevice]:
    """A unit with these of its ttys, which the kernel calls so. `plug` counts how often it was plugged in."""
    usb = a_usb_device(port, serial=serial)
    nodes = [
        a_usb_node(usb, "tty", f"ttyACM{names[tty]}", number=f"c 166:{names[tty]}", properties={"FOO": foo})
        for tty in ttys
    ]
    return [usb, *(replace(node, incarnation=100 * plug + int(node.sys_name[6:])) for node in nodes)]


def restarted(node: Node) -> None:
    """The daemon is restarted: nothing shows."""
    text = saved.dump(node.memory, "boot")
    node.memory = saved.load(text, "boot")
    assert saved.dump(node.memory, "boot") == text


def paths_of(node: Node, ids: Sequence[str]) -> list[str | None]:
    return [node.inventory.links()[id_] for id_ in ids]


def given(node: Node, *paths: str) -> list[str]:
    """Pods get the devices of these paths, one each. Returns their ids."""
    ids = [next(link for link, path in node.inventory.links().items() if path == each) for each in paths]
    for id_ in ids:
        node.allocate(id_)
    return ids


def looks(node: Node, rules: str, *plugged: Sequence[UdevDevice]) -> None:
    for devices in plugged:
        for _ in range(2):
            node.look(rules, *devices)


TTYS = ("/dev/ttyACM0", "/dev/ttyACM1")


@pytest.mark.parametrize("port", ["1", "4"])
@pytest.mark.parametrize("has_restarted", [False, True])
def test_two_pods_do_not_exchange_siblings_of_which_one_was_bound_again(
    port: str, has_restarted: bool
) -> None:
    """It has a name behind that of the other one by then."""
    node = Node()
    looks(node, X, unit(0, 1))
    ids = given(node, *TTYS)
    looks(node, X, unit(1), unit(0, 1, names=(7, 1)))
    assert paths_of(node, ids) == ["/dev/ttyACM7", "/dev/ttyACM1"]
    looks(node, X, [])
    if has_restarted:
        restarted(node)
    looks(node, X, unit(0, 1, port=port, plug=2))
    assert paths_of(node, ids) == [*TTYS]


@pytest.mark.parametrize("port", ["1", "4"])
@pytest.mark.parametrize("grouping", ['group_by = "usb_device"', 'group_by = "FOO"'])
def test_a_property_that_all_siblings_have_does_not_tell_which_one_has_come(grouping: str, port: str) -> None:
    node, by_foo = Node(), rule("x", 'identity = ["FOO"]', grouping)
    looks(node, by_foo, unit(0, 1), unit(0))
    (link,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM0")
    node.allocate(link.partition("@")[0])
    looks(node, by_foo, [], unit(1, plug=2, port=port))
    assert paths_of(node, [link]) == [None]


@pytest.mark.parametrize("has_restarted", [False, True])
@pytest.mark.parametrize("rules", [X, WHOLE])
def test_a_guess_that_was_made_before_a_pod_came_does_not_count_for_it(
    rules: str, has_restarted: bool
) -> None:
    """The unit came with one of its siblings, and nobody can tell which one that was."""
    node = Node()
    node.look(rules, *unit(0, 1))
    for _ in range(2):
        node.look(rules, *unit(1, plug=2))
    (link,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM1")
    node.allocate(FIRST)
    node.look(rules)
    if has_restarted:
        restarted(node)
    told = node.look(rules, *unit(0, 1, plug=3))
    assert told[FIRST] == IN_DOUBT
    assert node.inventory.links()[link] is None
    node.look(rules, *unit(0, 1, plug=3), answer=node.nobody_holds_anything())
    assert node.look(rules, *unit(0, 1, plug=3))[FIRST] == "Healthy"


def test_a_property_tells_a_unit_at_another_port_although_its_serial_number_tells_nothing() -> None:
    """Another one with that number is unplugged, too."""
    node = Node()
    both = [
        *unit(0, 1, serial="0001", foo="p"),
        *unit(0, port="3", names=(4,), serial="0001", foo="r"),
    ]
    looks(node, BY_FOO, both)
    ids = given(node, "/dev/ttyACM0", "/dev/ttyACM4")
    looks(node, BY_FOO, [], unit(0, port="6", plug=3, serial="0001", foo="r"))
    assert paths_of(node, ids) == [None, "/dev/ttyACM0"]


def test_a_serial_number_that_tells_nothing_keeps_no_other_unit_from_pods() -> None:
    node = Node()
    looks(node, X, unit(0, 1, serial="0001"))
    given(node, *TTYS)
    looks(node, X, [], unit(0, port="3", plug=2, serial="0001"))
    (offer,) = node.inventory.offers.values()
    assert [device.spots[0].port[-1] for device in offer.devices if device.healthy] == ["3"]


def test_what_an_earlier_release_saved_is_late_if_it_is_not_in_the_order_of_the_paths() -> None:
    node = Node()
    looks(node, X, unit(0, 1))
    ids = given(node, *TTYS)
    looks(node, X, unit(1), unit(0, 1, names=(7, 1)))
    document = json.loads(saved.dump(node.memory, "boot"))
    del document["late"]
    node.memory = saved.load(json.dumps(document).encode(), "boot")
    assert paths_of(node, ids) == ["/dev/ttyACM7", "/dev/ttyACM1"]
    looks(node, X, [], unit(0, 1, plug=2))
    assert paths_of(node, ids) == [None, None]


def test_a_unit_is_known_at_a_port_where_another_resource_had_it_meanwhile() -> None:
    odd = rule("x", match='{ SUBSYSTEM = "tty", DEVNAME = "*1" }')
    node = Node()
    node.look(odd, *unit(0, 1))
    node.allocate(FIRST)
    for rules in (X, rule("y")):
        node.look(rules, *unit(0, 1))
    node.look(rule("y"))
    for rules in (rule("y"), X):
        node.look(rules, *unit(0, 1, port="4", plug=2))
    node.look(X)
    node.look(X, *unit(0, 1, port="4", plug=3))
    assert node.inventory.links()[FIRST] == "/dev/ttyACM1"


def test_hids_come_in_the_order_of_their_hexadecimal_numbers() -> None:
    """Two mice that are paired with one receiver, which does not say its slots: 0003:….000A follows .0009."""
    mice, node = rule("mouse", match='{ SUBSYSTEM = "hidraw" }'), Node()
    looks(node, mice, [a_paired(3, "", 0, 0), a_paired(4, "", 0, 1)])
    ids = given(node, "/dev/hidraw0", "/dev/hidraw1")
    looks(node, mice, [], [a_paired(9, "", 0, 0), a_paired(10, "", 0, 1)])
    assert paths_of(node, ids) == ["/dev/hidraw0", "/dev/hidraw1"]


@pytest.mark.parametrize("port", ["1", "4"])
@pytest.mark.parametrize("rules", [X, BY_FOO])
def test_those_that_came_against_their_order_are_told_by_nothing_when_they_come_again(
    rules: str, port: str
) -> None:
    """Not even by a property, if they have it in common."""
    node = Node()
    looks(node, rules, unit(1), unit(0, 1))
    ids = given(node, *TTYS)
    looks(node, rules, [], unit(0, 1, plug=2, port=port))
    assert paths_of(node, ids) == [None, None]


@pytest.mark.parametrize("port", ["1", "4"])
def test_nor_are_those_that_come_again_against_it(port: str) -> None:
    """A process still held the name of the first one open when the driver bound it."""
    node = Node()
    looks(node, X, unit(0, 1))
    ids = given(node, *TTYS)
    first = unit(0, plug=2, port=port, names=(1,))
    second = [replace(each, incarnation=299) for each in unit(0, plug=2, port=port)[1:]]
    looks(node, X, [], first, [*first, *second])
    assert paths_of(node, ids) == [None, None]


def test_nor_are_those_of_which_one_was_guessed_while_another_one_stayed() -> None:
    node, names = Node(), (0, 1, 2)
    first = unit(0)
    second, third = (unit(n, plug=2, names=names)[1:] for n in (1, 2))
    looks(node, X, unit(0, 1, 2, names=names), first, [*first, *third])
    ids = given(node, "/dev/ttyACM2")
    looks(node, X, [*first, *third, *second])
    ids += given(node, "/dev/ttyACM1")
    looks(node, X, [], unit(0, 1, 2, plug=3, names=names))
    assert paths_of(node, ids) == [None, None]


@pytest.mark.parametrize("port", ["1", "4"])
def test_that_a_unit_has_several_is_not_forgotten_while_one_of_them_is_missing(port: str) -> None:
    node = Node()
    looks(node, X, unit(0, 1), [], unit(1, plug=2))
    ids = given(node, "/dev/ttyACM1")
    looks(node, X, [], unit(0, plug=3, port=port))
    assert paths_of(node, ids) == [None]


@pytest.mark.parametrize("has_restarted", [False, True])
@pytest.mark.parametrize("is_told", [True, False])
def test_siblings_are_known_at_another_port_if_another_node_of_their_unit_comes_first(
    is_told: bool, has_restarted: bool
) -> None:
    whole = rule("x", 'group_by = "usb_device"', match='{ SUBSYSTEM = ["tty", "hidraw"] }')

    def with_hidraw(*ttys: int, port: str = "1", plug: int = 1) -> list[UdevDevice]:
        usb, *nodes = unit(*ttys, port=port, plug=plug)
        hidraw = a_usb_node(usb, "hidraw", "hidraw0", number="c 240:0")
        return [usb, replace(hidraw, incarnation=100 * plug + 50), *nodes]

    node = Node()
    looks(node, whole, *(() if is_told else (with_hidraw(1),)), with_hidraw(0, 1))
    node.allocate("x_A")
    own = dict(node.inventory.links())
    looks(node, whole, [], with_hidraw(port="4", plug=2))
    if has_restarted:
        restarted(node)
    looks(node, whole, with_hidraw(0, 1, port="4", plug=2))
    now = {link: path for link, path in node.inventory.links().items() if link in own}
    assert now == (own if is_told else dict.fromkeys(own))


def test_boards_keep_their_pods_over_a_reboot_although_one_of_them_was_made_again() -> None:
    board = a_device("/sys/devices/pci0000:00/0000:00:05.0", subsystem="pci")

    def nodes(*numbers: int, boot: int = 1) -> list[UdevDevice]:
        found = [
            a_device(
                f"{board.sys_path}/acq/acq{n}",
                subsystem="acq",
                node=f"/dev/acq{n}",
                number=f"c 98:{n}",
                parent=board,
            )
            for n in numbers
        ]
        return [replace(each, incarnation=100 * boot + n) for n, each in enumerate(found)]

    some = rule("v", 'unplug_grace = "1s"', match='{ SUBSYSTEM = "acq", DEVNAME = "*[12]" }')
    node = Node()
    looks(node, some, nodes(0, 1, 2))
    ids = given(node, "/dev/acq1", "/dev/acq2")
    looks(node, some, nodes(0, 1, 2)[1:], [*nodes(0, boot=2), *nodes(0, 1, 2)[1:]])
    node.memory = saved.load(saved.dump(node.memory, "before"), "after")
    looks(node, some, nodes(0, 1, 2, boot=3))
    assert paths_of(node, ids) == ["/dev/acq1", "/dev/acq2"]


def test_a_number_of_which_nothing_is_known_does_not_come_back_with_a_restart() -> None:
    """A device is still remembered with it: the first camera was forgotten, and others came after a guess."""
    cameras, node = rule("cam", match='{ SUBSYSTEM = "misc" }'), Node()

    def nodes(*numbers: int, since: int = 1) -> list[UdevDevice]:
        made = [a_device(f"/sys/devices/virtual/misc/cam{n}", node=f"/dev/cam{n}") for n in numbers]
        return [replace(each, incarnation=100 * since + n) for n, each in zip(numbers, made, strict=True)]

    looks(node, cameras, nodes(0, 1, 2), nodes(1, 2))
    forgotten = min(id_ for id_, known in node.memory.devices.items() if known.absent_since is not None)
    remembered = {id_: known for id_, known in node.memory.devices.items() if id_ != forgotten}
    node.memory = replace(node.memory, devices=remembered)
    looks(node, cameras, nodes(1, 2), [], nodes(1, since=2))
    assert {spot.number for known in node.memory.devices.values() for spot in known.device.spots} == {0, 1, 2}
    assert [*map(sorted, node.memory.siblings.values())] == [[0, 1]]
    restarted(node)
