"""Law of siblings: a port where only another model has been is as good as a port where nothing has been.

Two models may have one serial number, as the parts of a dock may.
"""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from tests.core.memory.test_siblings_of_other_models import KEYBOARD, KEYBOARDS, SCANNER, SCANNERS, hid
from tests.core.memory.test_siblings_on_boards import Booting
from tests.properties.searching import for_each_of_many
from tests.scenes.edits import rule

SERIAL = "S"


class Desk:
    """A node with a keyboard that has several device nodes, and a scanner that may visit other ports."""

    def __init__(self, keys: str, *, has_visits: bool, are_matched: bool) -> None:
        scanners = rule("scanners", keys, match=SCANNERS) if are_matched else ""
        self.node, self.rules = Booting(), rule("keyboards", keys, match=KEYBOARDS) + scanners
        self.has_visits = has_visits
        self.plugged = 0
        self.keyboard: Sequence[UdevDevice] = ()
        self.ports: set[str] = set()
        self.told: Mapping[str, str] = {}

    def plug(self, port: str, parts: frozenset[int]) -> None:
        """Unplug the keyboard, and plug it in with these parts bound."""
        self.look()
        self.plugged += 10
        self.ports.add(port)
        usb, *nodes = hid(KEYBOARD, self.plugged, 3, SERIAL, port=port)
        self.keyboard = (usb, *(nodes[part] for part in sorted(parts))) if parts else ()
        self.look(*self.keyboard)

    def visit(self, port: str, count: int) -> None:
        """Plug in the scanner where the keyboard has not been yet, and unplug it again."""
        self.plugged += 10
        if self.has_visits and port not in self.ports:
            self.look(*self.keyboard, *hid(SCANNER, self.plugged, count, SERIAL, port=port, first=5))
        self.look(*self.keyboard)

    def admit(self, which: int) -> None:
        free = [id_ for id_ in sorted(self.healthy()) if id_ not in self.node.memory.held]
        if free:
            self.node.allocate(free[which % len(free)])
            self.look(*self.keyboard)

    def restart(self) -> None:
        self.node.restart()

    def look(self, *devices: UdevDevice) -> None:
        self.told = self.node.look(self.rules, *devices)

    def healthy(self) -> set[str]:
        return {id_ for id_, health in self.told.items() if health == "Healthy" and "keyboards" in id_}

    def links(self) -> Mapping[str, str | None]:
        """Where the links to the keyboard lead. One to a node that is not there may have been forgotten."""
        return {
            link: path for link, path in self.node.links().items() if "keyboards" in link and path is not None
        }


ports, parts = st.sampled_from("1234"), st.frozensets(st.integers(0, 2))
operations = st.one_of(
    st.tuples(st.just("plug"), ports, parts),
    st.tuples(st.just("visit"), ports, st.integers(1, 4)),
    st.tuples(st.just("admit"), st.integers(0, 2)),
    st.tuples(st.just("restart")),
)


@pytest.mark.parametrize("are_matched", [False, True])
@pytest.mark.parametrize("keys", ["", 'group_by = "usb_device"'])
@for_each_of_many
@given(history=st.lists(operations, max_size=12))
def test_a_port_where_only_another_model_has_been_is_as_good_as_one_where_nothing_has_been(
    keys: str, *, are_matched: bool, history: list[tuple[object, ...]]
) -> None:
    desks = [Desk(keys, has_visits=has_visits, are_matched=are_matched) for has_visits in (False, True)]
    for name, *arguments in history:
        for desk in desks:
            getattr(desk, str(name))(*arguments)
        alone, visited = desks
        assert visited.healthy() == alone.healthy()
        assert visited.links() == alone.links()
