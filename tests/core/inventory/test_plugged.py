"""Siblings: which number each has, when nobody can tell, and which numbers are remembered."""

from collections.abc import Mapping
from dataclasses import replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import Known, Past, Seen
from genericdp.core.inventory.place import UNKNOWN, Spot, locate
from genericdp.core.inventory.plugged import Plugged, plugged_of
from tests.core.memory.test_renewal import SERIAL_CARD
from tests.scenes.builders import a_usb_node


def a_sibling(minor: int) -> UdevDevice:
    """A node that nothing but its order tells from the others."""
    return a_usb_node(
        SERIAL_CARD, "tty", f"ttyACM{minor}", number=f"c 166:{minor}", properties={"N": f"{minor}"}
    )


A, B, C, D = map(a_sibling, range(4))
SPOT = locate(A).spot


def after(before: Plugged, *held: int) -> Past:
    """What is remembered of the siblings of a moment ago, of which pods hold those with these numbers."""
    numbers = before.siblings[SPOT]
    known = {number: Known(seen.order, number in held) for number, seen in numbers.items()}
    return Past(siblings=before.siblings, known_at=lambda spot: known if spot == SPOT else {})


def numbers(plugged: Plugged) -> Mapping[str, int]:
    """Number of each sibling by the kernel's name."""
    return {path.rpartition("/")[2]: number for path, number in plugged.numbers.items()}


def at(number: int) -> Spot:
    return SPOT._replace(number=number)


def test_siblings_are_numbered_in_the_order_of_their_paths_however_they_are_listed() -> None:
    assert numbers(plugged_of([C, A, B])) == {"ttyACM0": 0, "ttyACM1": 1, "ttyACM2": 2}


def test_a_sibling_keeps_its_number_whoever_comes_or_leaves() -> None:
    both = plugged_of([B, C])
    assert numbers(plugged_of([A, B, C], after(both))) == {"ttyACM1": 0, "ttyACM2": 1, "ttyACM0": 2}
    assert numbers(plugged_of([C], after(both))) == {"ttyACM2": 1}


def test_what_comes_while_one_is_missing_is_the_one_that_was_missing() -> None:
    without = plugged_of([A], after(plugged_of([A, B]), 1))
    back = plugged_of([A, C], after(without, 1))
    assert numbers(back) == {"ttyACM0": 0, "ttyACM2": 1}
    assert back.nodes_at(at(1)) == [C]
    assert not back.is_in_doubt(at(1))


def test_what_comes_while_several_are_missing_is_in_doubt_if_a_pod_holds_one_of_them() -> None:
    one = plugged_of([A, D], after(plugged_of([A, B, C]), 2))
    assert numbers(one) == {"ttyACM0": 0, "ttyACM3": 3}
    assert one.in_doubt == {SPOT: [D]}
    assert one.is_in_doubt(at(3))
    assert not one.is_in_doubt(at(0))
    assert one.nodes_at(at(1)) == one.nodes_at(at(2)) == [D], "it may be either of them"
    assert one.nodes_at(at(0)) == [A]
    assert {number: seen.is_there for number, seen in one.siblings[SPOT].items()} == {
        0: True,
        1: False,
        2: False,
    }, "the one in doubt is not remembered under a number"


def test_it_is_the_first_that_was_missing_if_no_pod_holds_any() -> None:
    one = plugged_of([A, D], after(plugged_of([A, B, C])))
    assert numbers(one) == {"ttyACM0": 0, "ttyACM3": 1}
    assert one.in_doubt == {}


def test_a_property_says_which_of_those_that_are_missing_has_come() -> None:
    past = replace(after(plugged_of([A, B, C]), 0, 1, 2), spots_of=lambda id_: [at({"a": 0, "c": 2}[id_])])
    one = plugged_of([D], past, {D.sys_path: ("c",)})
    assert numbers(one) == {"ttyACM3": 2}
    assert one.in_doubt == {}
    assert one.unsettled == {D.sys_path}


def test_a_number_that_is_remembered_of_several_values_is_that_of_none() -> None:
    past = replace(after(plugged_of([A, B]), 0), spots_of=lambda _: [at(0)])
    both = plugged_of([C, D], past, {C.sys_path: ("c",), D.sys_path: ("d",)})
    assert both.in_doubt == {SPOT: [C, D]}


def test_a_number_of_an_earlier_release_may_be_that_of_any_sibling() -> None:
    assert [*plugged_of([A, B]).nodes_at(at(UNKNOWN))] == [A, B]


def test_how_many_siblings_there_are() -> None:
    assert plugged_of([A, B]).count_at(at(1)) == 2
    assert plugged_of([]).count_at(at(1)) == 0


def test_a_missing_number_is_free_again_unless_a_remembered_device_has_it() -> None:
    here = plugged_of([A], after(plugged_of([A, B, C])))
    assert {*here.remembered([at(0), at(2)])[SPOT]} == {0, 2}
    assert {*here.remembered([at(1)])[SPOT]} == {0, 1}


def test_all_numbers_are_kept_while_none_of_the_siblings_is_there() -> None:
    nobody = plugged_of([], after(plugged_of([A, B])))
    assert nobody.remembered([at(1)]) == {SPOT: {0: Seen(A.sys_path), 1: Seen(B.sys_path)}}


def test_nothing_is_remembered_of_siblings_that_no_remembered_device_has() -> None:
    both = plugged_of([A, B])
    assert both.remembered([]) == {}
    assert both.remembered([Spot("elsewhere", "", "if00")]) == {}


def test_one_that_is_alone_needs_no_memory_of_siblings() -> None:
    one = plugged_of([A], after(plugged_of([A, B])))
    assert one.remembered([at(0)]) == {}
