"""A dock with a serial number, whose parts have none, is known at any port under any name."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

DOCKS = 'group_by = { ID_MODEL_ID = "d0cc" }'
BY_PORT = rule("left", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = "2.*" } }') + rule("x", DOCKS)


def a_dock(port: str, since: int, *, serial: str = "D1", parts: str = "12") -> tuple[UdevDevice, ...]:
    """The device nodes of its parts, as it is plugged in there."""

    def found() -> Iterator[UdevDevice]:
        dock = replace(a_usb_device(port, product="d0cc", serial=serial, devnum=9 + since), incarnation=since)
        for part in map(int, parts):
            unit = replace(
                a_usb_device(f"{port}.{part}", serial=None, devnum=40 + 4 * since + part),
                parent=dock,
                incarnation=1000 + 4 * since + part,
            )
            number = 4 * since + part
            node = a_usb_node(unit, "tty", f"ttyUSB{number}", number=f"c 188:{number}")
            yield replace(node, incarnation=2000 + number)

    return tuple(found())


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize(
    "after", [rule("y", DOCKS), BY_PORT], ids=["renamed", "another resource takes the port"]
)
def test_a_dock_waits_at_another_port_under_another_name(after: str, restarts: str) -> None:
    node = Node()
    before = BY_PORT if after is BY_PORT else rule("x", DOCKS)
    assert node.look(before, *a_dock("3", 0)) == {"x_D1": "Healthy"}
    node.allocate("x_D1")
    node.look(after)
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    for _ in range(2):
        told = node.look(after, *a_dock("2", 1))
        told.pop("x_D1", None)
        assert [*told.values()] == ["a pod may still hold it as x_D1 of example.com/x"]
    told = node.look(after, *a_dock("2", 1), answer=node.nobody_holds_anything())
    assert [why for id_, why in told.items() if id_ != "x_D1"] == ["Healthy"]


@pytest.mark.parametrize("serial", ["D2", "0001"])
def test_another_dock_does_not_wait(serial: str) -> None:
    """Nor does one that may be any dock of its model: its serial number tells nothing."""
    node = Node()
    (held,) = node.look(rule("x", DOCKS), *a_dock("3", 0, serial="D1" if serial == "D2" else serial))
    node.allocate(held)
    node.look(rule("y", DOCKS))
    assert [*node.look(rule("y", DOCKS), *a_dock("2", 1, serial=serial)).values()] == ["Healthy"]


def test_what_one_pod_has_of_a_dock_stays_when_the_part_of_another_pod_leaves() -> None:
    """Both ids are those of the dock, and both parts have the same place in their units."""
    rules, node = (
        rule("a", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = "*.1" } }') + rule("b", DOCKS),
        Node(),
    )
    assert node.look(rules, *a_dock("3", 0)) == {"a_D1": "Healthy", "b_D1": "Healthy"}
    node.allocate("a_D1")
    node.allocate("b_D1")
    for parts in ("2", "1", "2"):
        told = node.look(rules, *a_dock("3", 0, parts=parts))
        assert sorted(told.values()) == ["Healthy", "it is unplugged"]
        node.memory = load(dump(node.memory))
    told = node.look(rules, *a_dock("4", 1, parts="2"))
    assert told == {"a_D1": "it is unplugged", "b_D1": "Healthy"}
