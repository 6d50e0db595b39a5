"""Law of siblings that share a property value, which is all that tells their unit at another port.

The unit has no serial number. A pod that got one of them has another one no sooner than if the unit had one:
without it, the value says at which port they were before.
"""

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_the_kept_builder import Card, operations

RULES = ("by a property", "by a property that several have")


class Pods:
    """The pods on a node with a card: link -> the part that was there when the pod got it."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self.got: dict[str, str | None] = {}

    def follow(self, name: str, *arguments: object) -> None:
        getattr(self._card, name)(*arguments)
        now = self._parts()
        self.got |= {link: now[link] for link in self._card.memory.held.keys() - self.got.keys()}

    def with_another_part(self) -> set[str]:
        now = self._parts()
        return {link for link, part in self.got.items() if now[link] not in (None, part)}

    def _parts(self) -> Mapping[str, str | None]:
        nodes = {each.device_node: each for each in self._card.devices.values() if each.device_node}
        return {
            link: None if path is None else nodes[path].properties["PART"]
            for link, path in self._card.inventory.links().items()
        }


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
@given(st.lists(operations, max_size=8))
def test_a_pod_gets_no_other_sibling_where_a_serial_number_would_prevent_it(
    rules: str, history: list[tuple[object, ...]]
) -> None:
    without, pods = (Pods(Card(rules, serial)) for serial in (None, "CARD"))
    for name, *arguments in history:
        without.follow(str(name), *arguments)
        pods.follow(str(name), *arguments)
        if without.got != pods.got or pods.with_another_part():
            break
        assert without.with_another_part() == set()
