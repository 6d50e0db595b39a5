"""Siblings of which a pod got one before an edit named the property that tells them apart."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.take import take_inventory
from tests.core.memory.test_siblings_on_boards import Booting, sensors
from tests.scenes.builders import a_card, by_sys_path, resources_of
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN

ANY = rule("x")
EDITS = [rule("x", 'identity = ["PART"]'), rule("y", 'identity = ["PART"]'), rule("x", 'group_by = "PART"')]
IN_DOUBT = "the device plugged in now may not be the one that a pod got; delete that pod"


def card(parts: Mapping[int, int], since: int, serial: str | None) -> tuple[UdevDevice, ...]:
    """A card whose own ports keep their directories in sysfs as long as it stays plugged in."""
    usb, *nodes = a_card("1", parts, since, serial)
    return usb, *(
        replace(node, incarnation=since + 1 + part) for part, node in zip(parts, nodes, strict=True)
    )


@pytest.mark.parametrize("serial", ["CARD", None])
@pytest.mark.parametrize("edited", EDITS)
def test_which_one_a_pod_got_stays_in_doubt_after_an_edit(edited: str, serial: str | None) -> None:
    """The second one was never seen before the edit, and both have come together since."""
    node = Node()
    (link,) = node.look(ANY, *card({0: 0}, 10, serial))
    node.allocate(link)
    node.look(ANY)
    node.look(edited)
    for parts in ({0: 0, 1: 1}, {1: 1}, {0: 0, 1: 1}, {0: 0}):
        assert "Healthy" not in node.look(edited, *card(parts, 20, serial)).values(), parts
        assert node.links()[link] is None
    assert node.look(ANY, *card({1: 1}, 20, serial))[link] == IN_DOUBT


def test_a_second_camera_on_a_board_is_in_doubt_over_boots_although_the_rule_tells_them_apart() -> None:
    match = '{ SUBSYSTEM = "video4linux" }'
    before, after = rule("cam", match=match), rule("cam", 'identity = ["ID_V4L_PRODUCT"]', match=match)
    node = Booting()
    link = node.give(before, *sensors(1, 9))
    for boot, buses in enumerate([(9, 10), (10,), (10, 9)], 2):
        node.reboot()
        assert "Healthy" not in node.look(after, *sensors(boot, *buses)).values(), buses
    assert node.look(before, *sensors(4, 10))[link] == IN_DOUBT


@pytest.mark.parametrize("serial", ["CARD", None])
@pytest.mark.parametrize("edited", EDITS)
def test_one_with_another_value_is_not_what_a_pod_got_if_its_value_is_known(
    edited: str, serial: str | None
) -> None:
    node = Node()
    (link,) = node.look(ANY, *card({0: 0}, 10, serial))
    node.allocate(link)
    told = node.look(edited, *card({0: 0}, 10, serial))
    node.look(edited)
    assert "Healthy" not in node.look(edited, *card({1: 1}, 20, serial)).values()
    assert node.look(edited, *card({0: 0, 1: 1}, 20, serial)).items() >= told.items()
    assert node.look(ANY, *card({0: 0, 1: 1}, 20, serial))[link] == "Healthy"
    assert node.links()[link] == "/dev/ttyUSB0"


SECOND = rule("x", match='{ SUBSYSTEM = "tty", PART = "v1" }')
WHOLE = rule("x", 'group_by = "usb_device"')


@pytest.mark.parametrize("serial", ["CARD", None])
@pytest.mark.parametrize(
    "edits",
    [[WHOLE], [WHOLE, SECOND], [SECOND, WHOLE], [SECOND, WHOLE, SECOND], [WHOLE, SECOND, WHOLE, SECOND]],
)
@pytest.mark.parametrize("undone", [ANY, SECOND])
def test_a_pod_has_its_sibling_again_when_edits_are_undone(
    edits: list[str], undone: str, serial: str | None
) -> None:
    node, both = Node(), card({0: 0, 1: 1}, 10, serial)
    node.look(ANY, *both)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyUSB1")
    node.allocate(link)
    for edited in edits:
        node.look(edited, *both)
    assert node.look(undone, *both)[link] == "Healthy"
    assert node.links()[link] == "/dev/ttyUSB1"


@pytest.mark.parametrize("serial", ["CARD", None])
def test_a_pod_has_its_sibling_again_although_the_other_one_has_left_before_the_edit_is_undone(
    serial: str | None,
) -> None:
    node, both = Node(), card({0: 0, 1: 1}, 10, serial)
    node.look(ANY, *both)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyUSB1")
    node.allocate(link)
    node.look(WHOLE, *both)
    for there in (card({1: 1}, 10, serial), both):
        node.look(WHOLE, *there)
        assert node.look(ANY, *there)[link] == "Healthy"
        assert node.links()[link] == "/dev/ttyUSB1"


def test_a_shared_group_is_offered_while_a_pod_has_one_sibling_of_it() -> None:
    """Its id is not that of the pod, which had less."""
    shared = "replicas = 2"
    node, both = Node(), card({0: 0, 1: 1}, 10, "CARD")
    node.look(rule("x", shared), *both)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyUSB1")
    node.allocate(f"{link}.0")
    told = node.look(rule("x", shared, 'group_by = "usb_device"'), *both)
    assert (told["x_CARD.0"], told["x_CARD.1"]) == ("Healthy", "Healthy")


def test_a_builder_that_knew_the_pod_and_a_new_one_agree_when_it_has_gone() -> None:
    node, both = Node(), card({0: 0, 1: 1}, 10, "CARD")
    node.look(ANY, *both)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyUSB1")
    node.allocate(link)
    node.look(WHOLE, *both)
    kept = Builder(resources_of(SECOND, domain=DOMAIN), DOMAIN)
    for answer in None, node.nobody_holds_anything(), None:
        plugged, now = by_sys_path(*both), node.now + 1.0
        inventory, memory = take_inventory(kept, plugged, node.memory, now, answer)
        node.look(SECOND, *both, answer=answer)
        assert (inventory, memory) == (node.inventory, node.memory)
    assert not node.memory.held
