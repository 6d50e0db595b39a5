"""Siblings of which a pod got one before an edit named the property that tells them apart."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from tests.core.memory.test_siblings_on_boards import Booting, sensors
from tests.scenes.builders import a_card
from tests.scenes.edits import Node, rule

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
