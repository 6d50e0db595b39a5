"""Law of siblings that move: a card with a serial number is at several ports as it is at one.

Only their order tells its siblings. A property could contradict ids that were left behind at other ports.
"""

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_the_kept_builder import Card, operations


class Pods:
    """The pods on a node with a card: link -> the part that was there when the pod got it."""

    def __init__(self, rules: str, serial: str | None) -> None:
        self.card = Card(rules, serial)
        self.got: dict[str, str | None] = {}

    def follow(self, name: str, *arguments: object) -> None:
        getattr(self.card, name)(*arguments)
        now = self._parts()
        held = (link for link in now if link.partition("@")[0] in self.card.memory.held)
        self.got |= {link: now[link] for link in held if link not in self.got}

    def have(self) -> dict[str, str | None]:
        """The part that is behind each link now."""
        now = self._parts()
        return {link: now[link] for link in self.got}

    def with_another_part(self) -> set[str]:
        return {link for link, part in self.have().items() if part not in (None, self.got[link])}

    def _parts(self) -> Mapping[str, str | None]:
        nodes = {each.device_node: each for each in self.card.devices.values() if each.device_node}
        return {
            link: None if path is None else nodes[path].properties["PART"]
            for link, path in self.card.inventory.links().items()
        }


@pytest.mark.parametrize("rules", ["each", "all of the card"])
@for_each_of_many
@example(
    history=[
        ("plug", "1", frozenset({0, 1})),
        ("plug", "2", frozenset({1})),
        ("admit", 0),
        ("plug", "1", frozenset({0, 1})),
    ]
)
@example(
    history=[
        ("plug", "1", frozenset({0, 1})),
        ("plug", "3", frozenset({0, 1})),
        ("plug", "2", frozenset({1})),
        ("admit", 0),
        ("plug", "3", frozenset({0, 1})),
    ]
)
@example(
    history=[
        ("bind", frozenset({0, 1, 2})),
        ("plug", "2", frozenset({1, 2, 3})),
        ("admit", 0),
        ("plug", "1", frozenset({0, 1, 2, 3})),
    ]
)
@example(
    history=[
        ("plug", "1", frozenset({0, 1, 2, 3})),
        ("admit", 0),
        ("plug", "1", frozenset({1})),
        ("bind", frozenset({0, 1, 2})),
        ("plug", "2", frozenset({0, 1, 2, 3})),
    ]
)
@example(
    history=[
        ("bind", frozenset({0, 1, 2})),
        ("admit", 0),
        ("plug", "2", frozenset({0})),
        ("bind", frozenset({0, 1})),
        ("bind", frozenset({0, 1, 2})),
        ("plug", "1", frozenset({0, 1, 2})),
    ]
)
@given(history=st.lists(operations, max_size=10))
def test_a_card_is_at_several_ports_as_it_is_at_one(rules: str, history: list[tuple[object, ...]]) -> None:
    moves, stays = Pods(rules, "CARD"), Pods(rules, "CARD")
    for name, *arguments in history:
        moves.follow(str(name), *arguments)
        stays.follow(str(name), *(("1", *arguments[1:]) if name == "plug" else arguments))
        if [*moves.got.values()] != [*stays.got.values()] or stays.with_another_part():
            break
        assert moves.have() == stays.have()
