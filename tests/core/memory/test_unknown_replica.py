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
