"""What a volume that somebody has renamed is not: it is not another one that has its name or its number."""

from dataclasses import replace

import pytest

from genericdp.core.inventory.place import is_of_node
from genericdp.core.memory import saved
from tests.scenes.edits import Node, rule
from tests.scenes.storage import a_volume

BLOCK, A_OR_B = 'SUBSYSTEM = "block"', '"ATTR{dm/name}" = ["a", "b"]'
RULE = rule("x", "allow_dangerous = true", match=f"{{ {BLOCK} }}")
ALL = RULE + 'group_by = "all"\n'


def test_one_that_had_the_name_of_a_volume_in_use_for_a_while_is_not_what_the_pod_got() -> None:
    node = Node()
    (a,) = node.look(RULE, a_volume(0, name="a"))
    node.allocate(a)
    renamed = a_volume(0, name="b")
    told = node.look(RULE, renamed, a_volume(1, name="a"))
    (b,) = told.keys() - {a}
    assert told[b] == f"a pod may still hold it as {a}"
    told = node.look(RULE, renamed, a_volume(1, name="c"))
    (c,) = told.keys() - {a, b}
    assert told == {a: f"its id is now {b}", b: f"a pod may still hold it as {a}", c: "Healthy"}


def test_after_a_boot_its_number_says_nothing() -> None:
    node = Node()
    (a,) = node.look(RULE, a_volume(0, name="a"))
    node.allocate(a)
    node.memory = saved.load(saved.dump(node.memory, "a boot"), "the next boot")
    told = node.look(RULE, a_volume(0, name="b"), a_volume(1, name="a"))
    assert {*told.values()} == {"Healthy"}


def test_a_part_that_has_its_name_again_is_as_before() -> None:
    node = Node()
    parts = a_volume(0, name="a"), a_volume(1, name="b")
    (id_,) = node.look(ALL, *parts)
    node.allocate(id_)
    links = node.inventory.links()
    node.look(ALL, a_volume(0, name="c"), parts[1])
    (link,) = node.inventory.links().keys() - links.keys()
    assert node.look(ALL, *parts) == {id_: "Healthy"}
    assert node.inventory.links() == {**links, link: None}
    # Only that link must not lead anywhere else.
    assert [spot.serial for spot in node.memory.devices[id_].earlier if is_of_node(spot)] == [link]


def test_a_part_that_is_made_again_takes_its_link() -> None:
    node = Node()
    (id_,) = node.look(ALL, a_volume(0, name="a"), a_volume(1, name="b"))
    node.allocate(id_)
    node.look(ALL, a_volume(0, name="c"), a_volume(1, name="b"))
    again = replace(a_volume(2, name="a"), incarnation=900)
    assert node.look(ALL, a_volume(0, name="c"), a_volume(1, name="b"), again)[id_] != "Healthy"
    assert node.look(ALL, a_volume(1, name="b"), again)[id_] == "Healthy"
    assert {*node.inventory.links().values()} == {"/dev/dm-1", "/dev/dm-2", None}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_renamed_part_that_an_edit_takes_waits_for_the_pod_that_got_it_under_the_old_name(
    *, restarts: bool
) -> None:
    """No link that the pod got leads there now."""
    node = Node()
    edited = rule("x", 'allow_dangerous = true\ngroup_by = "all"', match=f"{{ {BLOCK}, {A_OR_B} }}")
    edited += rule("y", "allow_dangerous = true", match=f"{{ {BLOCK} }}")
    (id_,) = node.look(ALL, a_volume(0, name="a"), a_volume(1, name="b"))
    node.allocate(id_)
    parts = a_volume(0, name="c"), a_volume(1, name="b")
    node.look(ALL, *parts)
    if restarts:
        node.memory = saved.load(saved.dump(node.memory, "a boot"), "a boot")
    for _ in range(2):
        told = node.look(edited, *parts)
        assert told.pop(id_) == "Healthy"
        assert [*told.values()] == [f"a pod may still hold it as {id_} of example.com/x"]


def test_a_part_is_the_pods_although_it_got_another_name_while_it_was_not_in_its_device() -> None:
    node = Node()
    (id_,) = node.look(ALL, a_volume(0, name="a"), a_volume(1, name="b"))
    node.allocate(id_)
    without = ALL.replace(BLOCK, f'{BLOCK}, "ATTR{{dm/name}}" = "b"')
    parts = a_volume(0, name="c"), a_volume(1, name="b")
    node.look(without, a_volume(0, name="a"), parts[1])
    node.look(ALL, *parts)
    told = node.look(without + RULE.replace('"x"', '"y"'), *parts)
    assert told.pop(id_) == "Healthy"
    assert [*told.values()] == [f"a pod may still hold it as {id_} of example.com/x"]
