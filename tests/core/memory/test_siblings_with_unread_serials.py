"""Ports of a card whose serial number could not be read, under rules whose ids do not depend on it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, count, product

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

PARTS = range(4)
RULES = {
    f"{key} = {value}": rule("x", f"{key} = {value}")
    for key, value in (
        ("identity", '["ID_PATH"]'),
        ("identity", '["HALF"]'),
        ("identity", '["ODD"]'),
        ("group_by", '"HALF"'),
        ("group_by", '"usb_device"'),
        ("replicas", "2"),
    )
}
BY_VALUE = {
    **{key: rules for key, rules in RULES.items() if "[" in key or "HALF" in key},
    "both": rule("x", 'group_by = "HALF"', 'identity = ["ID_PATH"]'),
}
by_all = pytest.mark.parametrize("rules", RULES.values(), ids=RULES)

#: No directory of sysfs has the inode of another one in one boot.
_plugs = count(100, 100)


def a_card(
    parts: Collection[int] = PARTS, serial: str | None = "CARD", *, port: str = "1", product: str = "6001"
) -> Mapping[str, UdevDevice]:
    """A card as it is plugged in, with its ports that are bound: the path of each -> the port."""
    since = next(_plugs)
    usb = a_usb_device(port, serial=serial, devnum=since // 100, product=product)
    usb = replace(usb, incarnation=since)
    found = {"": usb}
    for n, part in enumerate(sorted(parts)):
        values = {"HALF": f"h{part // 2}", "ODD": f"o{part == 1}", "PART": f"p{part}"}
        told = {"ID_PATH": "pci-0000:00:14.0-usb-0:1:1.0", **values}
        node = a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties=told)
        found[f"/dev/ttyUSB{n}"] = replace(node, incarnation=since + 1 + part)
    return found


class Pod:
    """A pod with one device, and what it got: link -> the port of the card."""

    def __init__(self, node: Node, rules: str, path: str, card: Mapping[str, UdevDevice]) -> None:
        self.node, self.rules = node, rules
        self.id = next(
            id_
            for offer in node.inventory.offers.values()
            for id_, device in offer.ids.items()
            if device.healthy and path in {each.path for each in device.nodes}
        )
        node.allocate(self.id)
        node.look(rules, *card.values())
        leads = {link: path for link, path in node.links().items() if path is not None}
        self.got = {
            link: part_at(path, card)
            for link, path in leads.items()
            if link.startswith(self.id.partition(".")[0])
        }

    def look(self, card: Mapping[str, UdevDevice], *, is_another: bool = False) -> dict[str, str]:
        """What the kubelet is told.

        No link of the pod leads to another port than the one that it got, and no other pod gets that one.
        """
        told = self.node.look(self.rules, *card.values())
        for link, part in self.got.items():
            assert part_at(self.node.links()[link], card) in (part, None)
        free = (
            device
            for offer in self.node.inventory.offers.values()
            for device in offer.devices
            if device.id != self.id.partition(".")[0] and told.get(device.id) == "Healthy"
        )
        paths = [node.path for device in free for node in device.nodes]
        if not is_another:
            assert {part_at(path, card) for path in paths}.isdisjoint(self.got.values())
        return told


def seen_before(rules: str, path: str, before: str | None, then: str | None) -> tuple[Node, Pod]:
    """A pod that got a port of a card that had been seen with the other serial number before."""
    node, card = Node(), a_card(serial=then)
    node.look(rules, *a_card(serial=before).values())
    node.look(rules)
    node.look(rules, *card.values())
    return node, Pod(node, rules, path, card)


def part_at(path: str | None, card: Mapping[str, UdevDevice]) -> int | None:
    return None if path is None else card[path].incarnation % 100 - 1


def are_taken_for(parts: Collection[int], before: Collection[int]) -> bool:
    """Whether other ports have come than before, but as many: by order, or with one value."""
    alike = [{*PARTS}, {0, 1}, {2, 3}, {0, 2, 3}]
    both = [(each.intersection(parts), each.intersection(before)) for each in alike]
    return any(now != then and len(now) == len(then) for now, then in both)


@by_all
@pytest.mark.parametrize("serials", [("CARD", None), (None, "CARD")], ids=["unread", "read"])
def test_no_link_leads_to_another_port_of_a_card_of_which_some_come_without_its_serial_number(
    rules: str, serials: tuple[str | None, str | None]
) -> None:
    before, after = serials
    for path in (f"/dev/ttyUSB{n}" for n in PARTS):
        for parts in (parts for n in (1, 2, 3, 4) for parts in combinations(PARTS, n)):
            node, card = Node(), a_card(serial=before)
            node.look(rules, *card.values())
            pod = Pod(node, rules, path, card)
            if len(parts) % 2:
                node.memory = load(dump(node.memory, "boot"), "boot")
            # Ports that are bound late have come to the same unit.
            late = a_card(parts, after)
            pod.look(late)
            names = iter(range(len(parts), len(PARTS)))
            more = {
                f"/dev/ttyUSB{n}": replace(
                    a_usb_node(
                        late[""], "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties=each.properties
                    ),
                    incarnation=late[""].incarnation + 1 + part,
                )
                for part, each in zip(PARTS, [*card.values()][1:], strict=True)
                if part not in parts
                for n in (next(names),)
            }
            for _ in range(2):
                pod.look({**late, **more})
            pod.look(a_card(serial=before))
            assert pod.look(a_card(serial=before))[pod.id] == "Healthy"


@pytest.mark.parametrize("rules", BY_VALUE.values(), ids=BY_VALUE)
@pytest.mark.parametrize("serials", [("CARD", None), (None, "CARD")], ids=["unread", "read"])
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
@pytest.mark.parametrize("first", [PARTS, (1, 2, 3), (0, 2), (1,)], ids=str)
def test_nor_if_they_come_so_at_another_port(
    rules: str, serials: tuple[str | None, str | None], after: str, first: Collection[int]
) -> None:
    before, then = serials
    for path in (f"/dev/ttyUSB{n}" for n in range(len(first))):
        for parts in (parts for n in (1, 2, 3, 4) for parts in combinations(PARTS, n)):
            if are_taken_for(parts, first):
                continue
            node, card = Node(), a_card(first, before)
            node.look(rules, *card.values())
            pod = Pod(node, rules, path, card)
            if after == "replug":
                pod.look({})
            else:
                node.memory = load(dump(node.memory, "1"), "1" if after == "restart" else "2")
            for _ in range(2):
                pod.look(a_card(parts, then, port="2"))


@pytest.mark.parametrize("rules", BY_VALUE.values(), ids=BY_VALUE)
@pytest.mark.parametrize("serials", [*product(("CARD", None), repeat=3)], ids=str)
@pytest.mark.parametrize("port", ["1", "3"])
def test_nor_if_they_come_back_from_there(rules: str, serials: Sequence[str | None], port: str) -> None:
    first, then, last = serials
    for path in ("/dev/ttyUSB0", "/dev/ttyUSB2"):
        for parts in (parts for n in (1, 2, 3) for parts in combinations(PARTS, n)):
            node, card = Node(), a_card(serial=first)
            node.look(rules, *card.values())
            pod = Pod(node, rules, path, card)
            for there in ({}, a_card(serial=then, port="2"), {}):
                pod.look(there)
            for _ in range(2):
                pod.look(a_card(parts, last, port=port))


@by_all
@pytest.mark.parametrize("serials", [("CARD", None), (None, "CARD")], ids=["unread", "read"])
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
def test_nor_if_they_were_remembered_with_the_other_serial_number_before_the_pod_got_one(
    rules: str, serials: tuple[str | None, str | None], after: str
) -> None:
    before, then = serials
    for path in ("/dev/ttyUSB0", "/dev/ttyUSB2"):
        for parts in (parts for n in (1, 2, 3) for parts in combinations(PARTS, n)):
            node, pod = seen_before(rules, path, before, then)
            if after == "replug":
                pod.look({})
            else:
                node.memory = load(dump(node.memory, "1"), "1" if after == "restart" else "2")
            pod.look(a_card(parts, before))
            pod.look({})
            assert pod.look(a_card(serial=then))[pod.id] == "Healthy"


@pytest.mark.parametrize("rules", [RULES[key] for key in RULES if "[" in key])
@pytest.mark.parametrize("serials", [("CARD", None), (None, "CARD")], ids=["unread", "read"])
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
def test_all_ports_are_known_with_and_without_the_serial_number(
    rules: str, serials: tuple[str | None, str | None], after: str
) -> None:
    before, then = serials
    for path in (f"/dev/ttyUSB{n}" for n in PARTS):
        node, pod = seen_before(rules, path, before, then)
        for serial in (before, then, then, before, before):
            if after != "replug":
                node.memory = load(dump(node.memory, "1"), "1" if after == "restart" else "2")
            assert pod.look(a_card(serial=serial))[pod.id] == "Healthy"


OF_ONE_PORT = {key: rule("x", key) for key in ('identity = ["PART"]', 'group_by = "PART"')}


@pytest.mark.parametrize("rules", OF_ONE_PORT.values(), ids=OF_ONE_PORT)
@pytest.mark.parametrize("given", ["read", "unread"])
@pytest.mark.parametrize("port", ["1", "2"])
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
def test_the_free_ports_are_offered_once_the_serial_number_is_read_again(
    rules: str, given: str, port: str, after: str
) -> None:
    """The pod's own port has its id again, so no other one can be that."""
    for path in (f"/dev/ttyUSB{n}" for n in PARTS):
        node, card = Node(), a_card(serial="CARD" if given == "read" else None)
        node.look(rules, *card.values())
        pod = Pod(node, rules, path, card)
        pod.look({})
        if given == "read":
            # It may be another card.
            assert [id_ for id_, why in pod.look(a_card(serial=None)).items() if why == "Healthy"] == [pod.id]
            pod.look({})
        for _ in range(2):
            if after != "replug":
                node.memory = load(dump(node.memory, "1"), "1" if after == "restart" else "2")
            pod.look(a_card(port=port))
        assert {*pod.look(a_card(port=port)).values()} == {"Healthy"}


def test_they_wait_as_long_as_the_port_of_the_pod_is_missing() -> None:
    rules, node, card = rule("x", 'identity = ["PART"]'), Node(), a_card()
    node.look(rules, *card.values())
    pod = Pod(node, rules, "/dev/ttyUSB0", card)
    for there in ({}, a_card(serial=None), {}):
        pod.look(there)
    assert "Healthy" not in pod.look(a_card([1, 2, 3])).values()
    assert {*pod.look(a_card()).values()} == {"Healthy"}


@pytest.mark.parametrize("key", ['identity = ["{}"]', 'group_by = "{}"'])
@pytest.mark.parametrize(
    ("name", "parts"), [("HALF", [0]), ("HALF", [3, 1]), ("ODD", [1]), ("ODD", [3]), ("ODD", [1, 0])]
)
@pytest.mark.parametrize("port", ["1", "2"])
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
def test_those_with_other_values_are_offered_as_well(
    key: str, name: str, parts: Sequence[int], port: str, after: str
) -> None:
    """Also if other pods have them."""
    node, rules, card = Node(), rule("x", key.format(name)), a_card(serial=None)
    node.look(rules, *card.values())
    pods = [Pod(node, rules, f"/dev/ttyUSB{part}", card) for part in parts]
    node.look(rules)
    if after != "replug":
        node.memory = load(dump(node.memory, "1"), "1" if after == "restart" else "2")
    *_, told = [pod.look(a_card(port=port), is_another=len(pods) > 1) for pod in (*pods, *pods)]
    values = [pod.id.split("_")[1] for pod in pods]
    free = {pod.id for pod in pods}.union(id_ for id_ in told if id_.split("_")[1] not in values)
    assert {told[id_] for id_ in free} == {"Healthy"}


def test_those_with_its_value_wait() -> None:
    """Their order was another one when the pods got them, because one was not bound."""
    rules, node, card = rule("x", 'identity = ["HALF"]'), Node(), a_card(serial=None)
    node.look(rules, *card.values())
    card = {path: each for path, each in card.items() if path != "/dev/ttyUSB0"}
    node.look(rules, *card.values())
    pods = [Pod(node, rules, f"/dev/ttyUSB{n}", card) for n in (1, 2)]
    for pod in pods:
        pod.look({})
        told = pod.look(a_card(port="2"))
        assert {id_ for id_, why in told.items() if why == "Healthy"} == {each.id for each in pods}


def test_it_is_said_that_they_cannot_be_told_apart() -> None:
    rules = rule("x", 'identity = ["ID_PATH"]')
    node, card = Node(), a_card()
    node.look(rules, *card.values())
    pod = Pod(node, rules, "/dev/ttyUSB0", card)
    why = (
        "it is unplugged, or it is one of several that look alike: plug it in again at its old "
        "port, or delete that pod"
    )
    assert pod.look(a_card([1, 2, 3], None))[pod.id] == why


@pytest.mark.parametrize(("serial", "product"), [("OTHER", "6001"), (None, "6011")])
def test_the_ports_of_another_card_do_not_wait(serial: str | None, product: str) -> None:
    """It is another one if both have a serial number, or if they are of two models."""
    rules = rule("x", 'identity = ["ID_PATH", "ID_MODEL_ID"]')
    node, card = Node(), a_card()
    node.look(rules, *card.values())
    pod = Pod(node, rules, "/dev/ttyUSB0", card)
    told = pod.look(a_card([0, 1, 2], serial, product=product), is_another=True)
    assert [*told.values()].count("Healthy") == 3


@pytest.mark.parametrize("serials", [("A", "B"), ("B", "A")])
@pytest.mark.parametrize("key", ["HALF", "ODD"])
def test_it_may_be_any_of_two_cards_that_were_there(key: str, serials: tuple[str, str]) -> None:
    """They have different ports. So nobody can tell which ones these are."""
    rules = rule("x", f'identity = ["{key}"]')
    for path in ("/dev/ttyUSB2", "/dev/ttyUSB3"):
        node, card = Node(), a_card(serial=serials[0])
        node.look(rules, *card.values())
        pod = Pod(node, rules, path, card)
        pod.look({})
        node.look(rules, *a_card([0, 1], serials[1]).values())
        node.look(rules)
        for parts in (parts for n in (1, 2, 3) for parts in combinations(PARTS, n)):
            again = Node()
            again.inventory, again.memory, again.now = node.inventory, node.memory, node.now
            pod.node = again
            pod.look(a_card(parts, None))


def test_what_is_saved_of_siblings_is_all_that_is_known_of_them() -> None:
    """The pod got the ports of a card whose serial number is read at another port only."""
    rules, node = rule("x", 'group_by = "usb_device"', 'identity = ["ID_VENDOR_ID"]'), Node()
    unread = a_card([0, 1], None)
    (id_,) = node.look(rules, *unread.values())
    node.allocate(id_)
    for there in (unread, {}, a_card([0, 1], port="6")):
        node.look(rules, *there.values())
    assert load(dump(node.memory)).siblings == node.memory.siblings
