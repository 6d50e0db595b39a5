"""An id that a pod holds is listed, also if the memory was lost and `replicas` was edited."""

from dataclasses import replace

import pytest

from genericdp.core.inventory.plugged import NOTHING_PLUGGED
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.answered import held_links
from genericdp.core.memory.held import HELD, Holding
from genericdp.core.memory.memory import Memory, resumed
from tests.scenes.builders import a_modem, a_usb_serial
from tests.scenes.edits import Node, rule


@pytest.mark.parametrize("now", ["replicas = 2", ""])
@pytest.mark.parametrize("plugged", [True, False])
def test_an_id_of_a_replica_that_a_pod_holds_is_listed_even_if_nothing_is_remembered(
    now: str, plugged: bool
) -> None:
    node = Node()
    rules = rule("x", now)
    devices = (a_usb_serial(0, serial="A"),) if plugged else ()
    node.look(rules, *devices)
    held = frozenset({("example.com/x", "x_A.3")})
    for _ in range(2):
        told = node.look(rules, *devices, answer=Answer(held, node.now, complete=True))
        assert told["x_A.3"] != "Healthy"
    node.now += 1000.0
    assert "x_A.3" not in node.look(rules, *devices, answer=node.nobody_holds_anything())


def test_ids_of_another_plugin_take_no_more_room_than_one_id_each() -> None:
    """Its pods may still run under the name of the resource, so the kubelet's checkpoint names them."""
    node = Node()
    rules, stick = rule("x", "replicas = 10000", 'unplug_grace = "1s"'), a_usb_serial(0, serial="A")
    others = frozenset(("example.com/x", f"old_{number}") for number in range(20))
    answer = Answer(frozenset(), 0.0, complete=False, checkpointed=None, earlier=others)
    for each in (answer, None):
        told = node.look(rules, stick, answer=each)
        assert len(told) == 10_020
        assert told["x_A.9999"] == "Healthy"
        assert told["old_7"] == "only its id is known"
        assert node.inventory.refusals == ()
    assert node.inventory.links()["old_7"] is None
    assert "old_7" not in node.look(rules, stick, answer=node.nobody_holds_anything())


ONLY = rule("x", "replicas = 1")
EDITS = {
    "shared by two": (rule("x", "replicas = 2"), "x_A.1"),
    "renamed, and shared by two": (rule("y", "replicas = 2"), "y_A.1"),
}


@pytest.mark.parametrize("loses", ["after the edit", "before the edit"])
@pytest.mark.parametrize(("edited", "other"), EDITS.values(), ids=EDITS)
def test_what_only_one_pod_may_have_is_not_shared_although_the_memory_is_lost(
    edited: str, other: str, loses: str
) -> None:
    """Its id looks like that of one of several replicas. The links tell that it was the only one."""
    stick, node = a_usb_serial(0, serial="A"), Node()
    node.look(ONLY, stick)
    node.allocate("x_A.0")
    node.look(ONLY, stick)
    if loses == "after the edit":
        assert node.look(edited, stick)[other] == "a pod may still hold it as x_A.0" + (
            "" if other.startswith("x") else " of example.com/x"
        )
    held = frozenset({("example.com/x", "x_A.0")})
    led = {name: path for name, path in node.links().items() if path is not None}
    node.memory = resumed(Memory(), node.now)
    first = Answer(frozenset(), node.now, complete=False, checkpointed=None, earlier=held, led=led)
    told = node.look(edited, stick, answer=replace(first, ours=frozenset({"example.com/x"})))
    assert told[other].startswith("a pod may still hold it as x_A.0")
    for _ in range(2):
        told = node.look(edited, stick, answer=Answer(held, node.now, complete=True, led=led))
        assert told[other].startswith("a pod may still hold it as x_A.0")
        assert node.links()["held+x_A.0"] == stick.device_node
        # The memory is lost once more.
        led = {name: path for name, path in node.links().items() if path is not None}
        node.memory = resumed(Memory(), node.now)
    node.look(edited, stick, answer=Answer(held, node.now, complete=True, led=led))
    assert node.look(edited, stick, answer=node.nobody_holds_anything())[other] == "Healthy"
    assert not [name for name in node.links() if name.startswith(HELD)]


@pytest.mark.parametrize(
    ("link", "is_lost", "is_shared"),
    [
        ("held+x_A.0", True, False),
        ("held+x_A.0", False, True),
        ("held+x_A", True, True),
        ("x_A.0", True, True),
    ],
)
def test_only_a_held_link_of_a_replica_says_that_it_was_the_only_one_and_only_if_the_memory_is_lost(
    link: str, is_shared: bool, *, is_lost: bool
) -> None:
    stick, node, shared = a_usb_serial(0, serial="A"), Node(), rule("x", "replicas = 2")
    node.look(shared, stick)
    node.allocate("x_A.0")
    if is_lost:
        node.memory = resumed(Memory(), node.now)
    held, led = frozenset({("example.com/x", "x_A.0")}), {link: "/dev/ttyUSB0"}
    node.look(shared, stick, answer=Answer(held, node.now, complete=True, led=led))
    assert node.memory.held["x_A.0"].shared is is_shared


def test_what_several_pods_share_needs_no_further_link() -> None:
    node = Node()
    for rules in (rule("x", "replicas = 2"), rule("x", "replicas = 2") + rule("y")):
        node.look(rules, a_usb_serial(0, serial="A"))
        node.allocate("x_A.0")
        node.look(rules, a_usb_serial(0, serial="A"))
        assert [*node.links()] == ["x_A"]


def test_the_id_of_a_device_itself_needs_no_further_link() -> None:
    node = Node()
    node.look(rule("x"), a_usb_serial(0, serial="A"))
    node.allocate("x_A")
    node.look(rule("x"), a_usb_serial(0, serial="A"))
    assert [*node.links()] == ["x_A"]


def test_the_link_of_an_only_replica_leads_to_the_first_node_of_its_device() -> None:
    node, modem = Node(), a_modem(serial="A")[1:]
    rules = rule("x", "replicas = 1", 'group_by = "usb_device"')
    node.look(rules, *modem)
    node.allocate("x_A.0")
    node.look(rules, *modem)
    assert node.links()["held+x_A.0"] == "/dev/ttyUSB1"


def test_what_is_not_remembered_has_no_link() -> None:
    held = {"x_A.0": Holding("example.com/x", "x_A", shared=False)}
    assert held_links(held, {}, NOTHING_PLUGGED, {}, {}) == {}
