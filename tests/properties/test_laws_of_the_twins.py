"""Laws of twins that rules take apart by port: no edit and no plug gives a pod the twin of its unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
RULES_BY_PROPERTY = texts(BY_PROPERTY)
UNITS = {"P": "A", "Q": "A"}

plugging = st.tuples(st.just("plug"), st.sampled_from(sorted(UNITS)))


@dataclass
class Twins(Bench):
    """Twins, each at its own port. All of them are plugged in when the first rule takes one of them."""

    units: Mapping[str, str] = field(default_factory=lambda: UNITS)
    nodes: tuple[tuple[str, str], ...] = APART[:1]


@pytest.mark.parametrize("rules", [RULES, RULES_BY_PROPERTY], ids=["serial", "property"])
@example(8, [0], [("plug", "Q"), ("edit", 0), ("plug", "Q")])
@given(
    st.integers(0, len(RULES) - 2),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
    st.lists(st.one_of(steps, plugging), max_size=14),
)
def test_no_pod_ever_has_the_twin_of_its_unit(
    rules: Mapping[str, str], first: int, admitted: list[int], history: list[Step]
) -> None:
    bench, names = Twins(texts=rules), [*rules]
    bench.edit(names[first])
    # Only what was Healthy before is given out.
    bench.look()
    for number in admitted:
        bench.admit(number)
    for name, *arguments in history:
        if name == "edit":
            bench.edit(names[arguments[0] % len(names)])
        elif name == "plug":
            bench.plug(arguments[0], bench.ports[arguments[0]])
        else:
            getattr(bench, name)(*arguments)
        bench.check()
