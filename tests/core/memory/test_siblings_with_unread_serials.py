"""Ports of a card whose serial number could not be read, under rules whose ids do not depend on it."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations, count

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
        ("group_by", '"ID_PATH"'),
        ("group_by", '"HALF"'),
        ("group_by", '"usb_device"'),
        ("group_by", '"all"'),
        ("replicas", "2"),
    )
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
        told = {"ID_PATH": "pci-0000:00:14.0-usb-0:1:1.0", "HALF": f"h{part // 2}", "ODD": f"o{part == 1}"}
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
            if path in {each.path for each in device.nodes}
        )
        node.allocate(self.id)
        node.look(rules, *card.values())
        names = {link for link in node.links() if link.startswith(self.id.partition(".")[0])}
        self.got = {link: part_at(node.links()[link], card) for link in names}

    def look(self, card: Mapping[str, UdevDevice]) -> dict[str, str]:
        """What the kubelet is told. No link of the pod leads to another port than the one that it got."""
        told = self.node.look(self.rules, *card.values())
        for link, part in self.got.items():
            assert part_at(self.node.links()[link], card) in (part, None)
        return told


def part_at(path: str | None, card: Mapping[str, UdevDevice]) -> int | None:
    return None if path is None else card[path].incarnation % 100 - 1


@by_all
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("serials", [("CARD", None), (None, "CARD")], ids=["unread", "read"])
def test_no_link_leads_to_another_port_of_a_card_of_which_some_come_without_its_serial_number(
    rules: str, serials: tuple[str | None, str | None], *, restarts: bool
) -> None:
    before, after = serials
    for path in (f"/dev/ttyUSB{n}" for n in PARTS):
        for parts in (parts for n in (1, 2, 3, 4) for parts in combinations(PARTS, n)):
            node, card = Node(), a_card(serial=before)
            node.look(rules, *card.values())
            pod = Pod(node, rules, path, card)
            if restarts:
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


@by_all
def test_it_may_be_another_card_if_its_model_is_another_one(rules: str) -> None:
    """Its ports do not wait, but where the rule says that they belong to the device of the pod."""
    node, card = Node(), a_card()
    node.look(rules, *card.values())
    Pod(node, rules, "/dev/ttyUSB0", card)
    told = node.look(rules, *a_card([0, 1, 2], None, product="6011").values())
    assert "Healthy" in told.values()
