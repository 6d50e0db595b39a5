"""Law of siblings that share a property value, which is all that tells their unit at another port.

The unit has no serial number. A pod that got one of them has another one no sooner than if the unit had one:
without one, the value says at which port they were before.

The law does not cover siblings that were bound one by one, in another order than that of their ports. If as
many come together as were missing, they are taken for the same ones in order, with a serial number, too.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_siblings_at_other_ports import Pods
from tests.properties.test_laws_of_the_kept_builder import operations

RULES = ("by a property", "by a property that several have")


@pytest.mark.parametrize("rules", RULES)
@for_each_of_many
@example([("plug", "1", frozenset({0, 1, 2, 3})), ("admit", 3), ("plug", "2", frozenset({0, 3}))])
@example([("plug", "2", frozenset({0, 1})), ("admit", 1), ("plug", "1", frozenset({1}))])
@example(
    [
        ("plug", "1", frozenset({0, 1})),
        ("plug", "2", frozenset({3})),
        ("admit", 0),
        ("plug", "1", frozenset({0, 2})),
    ]
)
@example(
    [
        ("plug", "2", frozenset({1})),
        ("admit", 0),
        ("plug", "1", frozenset({2, 3})),
        ("plug", "1", frozenset({0, 1})),
    ]
)
@example(
    [
        ("plug", "1", frozenset({0, 2, 3})),
        ("plug", "2", frozenset({0, 1, 2})),
        ("admit", 2),
        ("plug", "1", frozenset({0, 1, 2, 3})),
    ]
)
@example(
    [
        ("plug", "2", frozenset({0, 1, 2, 3})),
        ("plug", "3", frozenset({0, 1, 2, 3})),
        ("plug", "1", frozenset({0, 1})),
        ("plug", "2", frozenset({1, 2})),
        ("admit", 2),
        ("plug", "1", frozenset({0, 1, 2, 3})),
    ]
)
@example(
    [
        ("plug", "1", frozenset({0, 1})),
        ("plug", "3", frozenset({0, 1})),
        ("plug", "2", frozenset({2, 3})),
        ("plug", "3", frozenset({1})),
        ("admit", 0),
        ("plug", "2", frozenset({1})),
        ("plug", "2", frozenset({0, 1, 2, 3})),
        ("plug", "1", frozenset({0, 1, 2, 3})),
    ]
)
@example(
    [
        ("admit", 3),
        ("plug", "2", frozenset({0, 1})),
        ("plug", "3", frozenset({0, 1, 2})),
        ("plug", "3", frozenset({1})),
        ("admit", 0),
        ("plug", "3", frozenset({0, 1, 2, 3})),
        ("admit", 0),
        ("plug", "2", frozenset({0, 1})),
    ]
)
@given(st.lists(operations, max_size=8))
def test_a_pod_gets_no_other_sibling_where_a_serial_number_would_prevent_it(
    rules: str, history: list[tuple[object, ...]]
) -> None:
    without, pods = (Pods(rules, serial) for serial in (None, "CARD"))
    are_in_order = True
    for name, *arguments in history:
        without.follow(str(name), *arguments)
        pods.follow(str(name), *arguments)
        are_in_order = are_in_order and without.card.are_in_order
        if without.got != pods.got or pods.with_another_part():
            break
        assert without.with_another_part() == set() or not are_in_order
