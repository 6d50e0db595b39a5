"""Pods may hold ids that another plugin gave for the same resource. Whatever these are, nothing is lost."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from tests.scenes.builders import a_usb_serial
from tests.scenes.edits import Node, rule

FTDI = "example.com/ftdi"

RULES = (rule(), rule("ftdi", "replicas = 2"), rule("ftdi", "replicas = 1"), rule("other"), "")
IDS = st.text("a1.0_-", min_size=1, max_size=6) | st.sampled_from(
    ["ftdi_A", "ftdi_A.0", "ftdi_A.1", "ftdi_A.1.2", "ftdi_B", "ftdi_B.0", "ftdi_A.if01", "1-1.1", "1-1.1.2"]
)


@given(st.lists(st.tuples(st.sampled_from(RULES), st.frozensets(IDS, max_size=5)), min_size=1, max_size=4))
def test_a_memory_with_ids_of_other_plugins_is_read_as_it_was_saved(
    steps: list[tuple[str, frozenset[str]]],
) -> None:
    node, stick = Node(), a_usb_serial(0, serial="A")
    node.look(rule(), stick)
    for rules, ids in steps:
        node.now += 1000
        node.look(rules, stick, answer=Answer(frozenset((FTDI, id_) for id_ in ids), node.now, complete=True))
        again = saved.load(saved.dump(node.memory))
        assert again.held.keys() == node.memory.held.keys()
        assert again.devices.keys() == node.memory.devices.keys()
        assert again.shares.withdrawn.keys() == node.memory.shares.withdrawn.keys()


def test_an_id_that_continues_one_of_another_plugin_is_not_ours() -> None:
    node, stick = Node(), a_usb_serial(0, serial="A")
    answer = Answer(frozenset({(FTDI, "1-1.1"), (FTDI, "1-1.1.2")}), 1000.0, complete=True)
    node.look(rule(), stick)
    node.look(rule(), stick, answer=replace(answer, asked=node.now))
    assert set(node.memory.held) == {"1-1.1"}
