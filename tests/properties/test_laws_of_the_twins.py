"""Laws of twins that rules take apart by port: no edit and no plug gives a pod the twin of its unit.

A driver may let go of their nodes, and make them again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.properties.test_laws_of_the_undone_edits import APART, GRACE, Bench, Step, steps
from tests.scenes.edits import rule

AT_PORT = '{{ SUBSYSTEM = "tty", usb = {{ port = "{}" }} }}'
BY_PROPERTY = 'identity = ["ID_SERIAL_SHORT"]'


def texts(*keys: str) -> Mapping[str, str]:
    """Rules that take twins together, apart, or only one of them."""
    every, renamed = rule("x", GRACE, *keys), rule("y", GRACE, *keys)
    first, second = (rule("x", GRACE, *keys, match=AT_PORT.format(port)) for port in "12")
    other_first, other_second = (rule("y", GRACE, *keys, match=AT_PORT.format(port)) for port in "12")
    return {
        "all": every,
        "renamed": renamed,
        "the first": first,
        "the second": second,
        "the second renamed": other_second,
        "the first apart": other_first + every,
        "the second apart": other_second + every,
        "the first in the other one": first + renamed,
        "the second in the other one": second + renamed,
        "nothing": "",
    }


RULES = texts()
#: With each way to tell a unit. An edit may change from one to the other and back.
IN_ANY_WAY = {
    f"{name} {keys}": text
    for keys in ("", BY_PROPERTY, 'identity = ["ID_SERIAL_SHORT", "ID_VENDOR_ID"]')
    for name, text in texts(keys).items()
}
UNITS = {"P": "A", "Q": "A"}

plugging = st.tuples(st.just("plug"), st.sampled_from(sorted(UNITS)))


@dataclass
class Twins(Bench):
    """Twins, each at its own port.

    One that has never been beside the other one passes for it, so neither comes before it has seen the other.
    """

    units: Mapping[str, str] = field(default_factory=lambda: UNITS)
    nodes: tuple[tuple[str, str], ...] = APART[:1]
    are_known: bool = False

    def turn(self, unit: str) -> None:
        """Plug it in or out."""
        other = "Q" if unit == "P" else "P"
        if self.are_known or unit in self.plugged or other in self.plugged:
            self.plug(unit, self.ports[unit])
            if self.plugged == {"P", "Q"}:
                if self.unbound and not self.are_known:
                    self.node.now += TWO_AFTER_S
                    self.look()
                self.are_known = True


def check(rules: Mapping[str, str], plugged: set[str], first: int, history: list[Step]) -> None:
    bench, names = Twins(texts=rules, plugged={*plugged}), [*rules]
    bench.are_known = plugged == {"P", "Q"}
    bench.edit(names[first % len(names)])
    # Only what was Healthy before is given out.
    bench.look()
    bench.admit(0)
    for name, *arguments in history:
        if name == "edit":
            bench.edit(names[arguments[0] % len(names)])
        elif name == "plug":
            bench.turn(*arguments)
        elif name == "bind":
            bench.bind(arguments[0], 0)
        else:
            getattr(bench, name)(*arguments)
        bench.check()


edits = st.tuples(st.just("edit"), st.integers(0, len(IN_ANY_WAY) - 1))
binding = st.tuples(st.just("bind"), st.sampled_from(sorted(UNITS)))
histories = st.lists(st.one_of(steps, edits, plugging, binding), max_size=14)
beginnings = st.sampled_from([{"P", "Q"}, {"P"}, {"Q"}])


@pytest.mark.parametrize("rules", [RULES, IN_ANY_WAY], ids=["serial", "in any way"])
@example({"P", "Q"}, 8, [("plug", "Q"), ("edit", 0), ("plug", "Q")])
@example({"Q"}, 0, [("edit", 9), ("plug", "P"), ("plug", "Q"), ("edit", 0), ("plug", "Q")])
@example({"Q"}, 13, [("edit", 3), ("plug", "P"), ("plug", "Q"), ("edit", 10), ("plug", "Q")])
@example({"P"}, 0, [("bind", "P"), ("plug", "Q"), ("plug", "P"), ("bind", "P")])
@example({"P"}, 0, [("bind", "Q"), ("plug", "Q"), ("plug", "P"), ("bind", "Q")])
@example({"P"}, 0, [("edit", 1), ("plug", "Q"), ("admit", 0), ("plug", "P")])
@given(beginnings, st.integers(0, len(IN_ANY_WAY) - 1), histories)
def test_no_pod_ever_has_the_twin_of_its_unit(
    rules: Mapping[str, str], plugged: set[str], first: int, history: list[Step]
) -> None:
    check(rules, plugged, first, history)
