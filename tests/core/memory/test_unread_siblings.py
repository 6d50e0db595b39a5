"""A sibling that cannot be read at the start is not missing: no other one takes its place."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from tests.core.memory.test_siblings_on_boards import TUNERS, Booting, tuner
from tests.scenes.builders import a_card, a_device, a_usb_node
from tests.scenes.edits import rule
from tests.scenes.sockets import SHIFT, in_socket, unread
from tests.scenes.video import a_loopback

MATCH = '{ SUBSYSTEM = ["dvb", "tty", "video4linux"] }'
KEYS = ("", 'group_by = "all"')
HANG = (
    "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
    "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-7",
    "/dev/acme0",
)


def tuners(numbers: Sequence[int], since: int) -> list[UdevDevice]:
    return [TUNERS, *(tuner(number, since + number) for number in numbers)]


def cameras(numbers: Sequence[int], since: int) -> list[UdevDevice]:
    return [replace(a_loopback("cam", number), incarnation=since + number) for number in numbers]


def ports(numbers: Sequence[int], since: int) -> list[UdevDevice]:
    return [*a_card("1", {number: number for number in numbers}, since)]


Make = Callable[[Sequence[int], int], list[UdevDevice]]


def with_two(rules: str, make: Make) -> tuple[Booting, dict[str, str], dict[str, str | None]]:
    """A node on which pods have two siblings, what the kubelet is told of them, and their links."""
    node = Booting()
    told = node.look(rules, *make([0, 1], 10))
    for id_ in told:
        node.allocate(id_)
    node.look(rules, *make([0, 1], 10))
    return node, told, node.links()


@pytest.mark.parametrize("make", [tuners, cameras, ports])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("boots", [True, False], ids=["boot", "restart"])
def test_what_was_never_seen_does_not_get_the_id_of_a_sibling_that_cannot_be_read(
    make: Make, keys: str, *, boots: bool
) -> None:
    node, rules = Booting(), rule("x", keys, match=MATCH)
    link = node.give(rules, *make([0], 10))
    first = make([0], 10)[-1]
    node.reboot() if boots else node.restart()
    since = 20 if boots else 10
    for _ in range(2):
        told = node.look(rules, *make([1], since), unread=[first.sys_path])
        assert "Healthy" not in told.values()
        assert node.links()[link] is None
    # Nothing says which of them is the one that was known.
    both = make([0, 1], since)
    assert "Healthy" not in node.look(rules, *both).values()
    node.look(rules, *both, answer=node.nobody_holds_anything())
    told = node.look(rules, *both, answer=node.nobody_holds_anything())
    assert [*told.values()] == ["Healthy"] * (1 if keys else 2)


@pytest.mark.parametrize("numbers", [[0], [0, 1]])
@pytest.mark.parametrize("keys", [*KEYS, 'identity = "port"'])
@pytest.mark.parametrize("boots", [True, False], ids=["boot", "restart"])
def test_a_node_of_the_same_name_that_hangs_on_another_card_is_no_sibling(
    numbers: list[int], keys: str, *, boots: bool
) -> None:
    node, rules = Booting(), rule("x", keys, match=MATCH)
    told = node.look(rules, *tuners(numbers, 10))
    for id_ in told:
        node.allocate(id_)
    node.look(rules, *tuners(numbers, 10))
    links = node.links()
    node.reboot() if boots else node.restart()
    other = "/sys/devices/pci0000:00/0000:00:1c.0/0000:04:00.0/dvb/dvb2.frontend0"
    assert node.look(rules, *tuners(numbers, 20 if boots else 10), unread=[other]) == told
    assert node.links() == links


@pytest.mark.parametrize("make", [tuners, cameras, ports])
@pytest.mark.parametrize("keys", KEYS)
def test_one_that_was_known_has_its_id_again_when_it_can_be_read(make: Make, keys: str) -> None:
    rules = rule("x", keys, match=MATCH)
    node, told, links = with_two(rules, make)
    node.restart()
    second = make([1], 10)[-1]
    node.look(rules, *make([0], 10), unread=[second.sys_path])
    assert second.device_node not in node.links().values()
    assert node.look(rules, *make([0, 1], 10)) == told
    assert node.links() == links


@pytest.mark.parametrize("make", [tuners, cameras, ports])
@pytest.mark.parametrize("keys", KEYS)
def test_siblings_come_back_although_something_else_cannot_be_read(make: Make, keys: str) -> None:
    """What hangs for good must not keep them from their pods after each boot."""
    rules = rule("x", keys, match=MATCH)
    node, told, links = with_two(rules, make)
    node.reboot()
    assert node.look(rules, *make([0, 1], 20), unread=HANG) == told
    assert node.links() == links


def test_no_sibling_is_missing_while_a_list_of_devices_cannot_be_read() -> None:
    node, rules = Booting(), rule("x", match=MATCH)
    link = node.give(rules, *tuners([0], 10))
    node.reboot()
    node.look(rules, *tuners([1], 20), unread=["/sys/class/dvb"])
    assert node.links()[link] is None


def test_one_that_is_there_is_no_other_one_although_it_cannot_be_read_again() -> None:
    """The daemon keeps what it knows of a device that does not answer."""
    node, rules = Booting(), rule("x", match=MATCH)
    link = node.give(rules, *tuners([0, 1], 10)[:2])
    node.look(rules, TUNERS)
    told = node.look(
        rules, *tuners([0], 20), unread=[a_device(TUNERS.sys_path).sys_path, tuner(0, 20).sys_path]
    )
    assert (node.links()[link], [*told.values()]) == ("/dev/dvb/adapter0/frontend0", ["Healthy"])


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("cannot", ["sibling", "interface", "of no interface"])
def test_what_was_never_seen_does_not_pass_for_the_unread_sibling_of_a_card_at_another_port(
    keys: str, cannot: str
) -> None:
    node, rules = Booting(), rule("x", keys, match=MATCH)
    link = node.give(rules, *a_card("1", {0: 0}, 10))
    node.look(rules)
    card, pods, other = a_card("2", {0: 0, 1: 1}, 20)
    hang = {"sibling": pods.sys_path, "interface": pods.sys_path.rpartition("/")[0]}
    for _ in range(2):
        told = node.look(rules, card, other, unread=[hang.get(cannot, f"{card.sys_path}/ep_00")])
        assert ("Healthy" in told.values(), node.links()[link]) == (False, None)
    assert "Healthy" not in node.look(rules, card, pods, other).values()


@pytest.mark.parametrize("make", [tuners, ports])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("hang", ["sibling", "its parent", "another name", "another unit", "interface"])
def test_siblings_that_were_known_come_back_one_after_the_other_after_a_boot(
    make: Make, keys: str, hang: str
) -> None:
    """One of them is readable only later. Other unreadable devices do not count as unknown siblings."""
    rules = rule("x", keys, match=MATCH)
    node, told, links = with_two(rules, make)
    node.reboot()
    last = make([1], 20)[-1].sys_path
    above, _, name = last.rpartition("/")
    others = {
        "sibling": last,
        "its parent": f"{last}/tty/{name}",
        "another name": f"{above}/other0",
        "another unit": f"{above.replace('1-1', '1-7').replace('03:00', '04:00')}/{name[:-1]}7",
        "interface": f"{above}/{name[:-1]}7".replace("1-1:1.0", "1-1:1.1").replace("03:00", "04:00"),
    }
    assert node.look(rules, *make([0], 20), unread=[last, others[hang]]) != told
    assert node.look(rules, *make([0, 1], 20)) == told
    assert node.links() == links


@pytest.mark.parametrize("serial", ["CARD", None])
@pytest.mark.parametrize("comes", ["replug", "restart", "boot"])
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shift", [0, SHIFT])
def test_what_was_never_seen_does_not_pass_for_an_unread_sibling_in_a_socket_of_usb_3(
    serial: str | None, comes: str, shift: int, *, fast: bool
) -> None:
    def card(parts: Sequence[int], since: int) -> list[UdevDevice]:
        usb = replace(in_socket(fast=fast, shift=shift, serial=serial), incarnation=since)
        nodes = [a_usb_node(usb, "tty", f"ttyUSB{part}", number=f"c 188:{part}") for part in parts]
        return [usb, *(replace(each, incarnation=since + n) for n, each in enumerate(nodes, 1))]

    node, rules = Booting(), rule("x", match=MATCH)
    link = node.give(rules, *card([0], 10))
    if comes == "replug":
        node.look(rules)
    elif comes == "boot":
        node.reboot()
    else:
        node.restart()
    usb, first, second = card([0, 1], 10 if comes == "restart" else 20)
    assert "Healthy" not in node.look(rules, usb, second, unread=unread(first)).values()
    assert node.links()[link] is None


@pytest.mark.parametrize("make", [tuners, ports])
@pytest.mark.parametrize("hang", ["siblings", "unit"])
def test_siblings_that_cannot_be_read_for_a_while_are_the_same_again(make: Make, hang: str) -> None:
    """Their paths and inodes say so, although the first one was bound again under a higher name."""
    node, rules = Booting(), rule("x", match=MATCH)
    unit, first, second = make([0, 1], 10)
    told = node.look(rules, unit, first, second)
    for id_ in told:
        node.allocate(id_)
    node.look(rules, unit, first, second)
    (link,) = (link for link, path in node.links().items() if path == first.device_node)
    node.look(rules, unit, second)
    again = replace(make([3], 20)[-1], parent=second.parent)
    assert node.look(rules, unit, second, again) == told
    links = node.links()
    assert links[link] == again.device_node
    node.restart()
    cannot = [second.sys_path, again.sys_path] if hang == "siblings" else [unit.sys_path]
    for _ in range(2):
        node.look(rules, unread=cannot)
    assert node.look(rules, unit, second, again) == told
    assert node.links() == links
    node.look(rules, unit, second)
    assert node.links()[link] is None
