"""An id that a pod holds is listed, also if the memory was lost and `replicas` was edited."""

import pytest

from genericdp.core.memory.held import Answer
from tests.scenes.builders import a_usb_serial
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
