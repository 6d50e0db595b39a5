"""Siblings: which number each has, when nobody can tell, and which numbers are remembered."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import Known, Past, Seen, Value
from genericdp.core.inventory.place import UNKNOWN, Spot, locate
from genericdp.core.inventory.plugged import Alike, Plugged
from genericdp.core.inventory.siblings.groups import plugged_of
from tests.core.memory.test_renewal import SERIAL_CARD
from tests.scenes.builders import a_device, a_usb_device, a_usb_node
from tests.scenes.wireless import LINK, a_hid


def a_sibling(minor: int) -> UdevDevice:
    """A node that nothing but its order tells from the others."""
    return a_usb_node(
        SERIAL_CARD, "tty", f"ttyACM{minor}", number=f"c 166:{minor}", properties={"N": f"{minor}"}
    )


A, B, C, D = map(a_sibling, range(4))
SPOT, MODEL = locate(A).spot, locate(A).model


def after(before: Plugged, *held: int) -> Past:
    """What is remembered of the siblings of a moment ago, of which pods hold those with these numbers."""
    numbers = before.siblings[SPOT]
    known = {
        number: Known(seen.order, "", frozenset({"held"} if number in held else ()))
        for number, seen in numbers.items()
    }
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


def alike(id_: str) -> Alike:
    """What a rule says with `identity = ["N"]` of one that has this id."""
    return Alike((id_,), Value("property N", id_))


def as_told(past: Past, *ids: str) -> Past:
    """The same, and which ids the devices with these numbers have; "" if they are forgotten."""
    known = past.known_at(SPOT)
    told = {
        n: known[n]._replace(ids={id_: alike(id_).value for id_ in each.split()})
        for n, each in enumerate(ids)
        if each
    }
    return replace(past, known_at=lambda spot: told if spot == SPOT else {})


def test_a_property_says_which_of_those_that_are_missing_has_come() -> None:
    past = as_told(after(plugged_of([A, B, C]), 0, 1, 2), "a", "b", "c")
    one = plugged_of([D], past, {D.sys_path: alike("c")})
    assert numbers(one) == {"ttyACM3": 2}
    assert one.in_doubt == {}
    assert one.unsettled == {D.sys_path}


def test_a_number_that_is_remembered_of_several_values_is_that_of_none() -> None:
    past = as_told(after(plugged_of([A, B]), 0), "c d", "b")
    both = plugged_of([C, D], past, {C.sys_path: alike("c"), D.sys_path: alike("d")})
    assert both.in_doubt == {SPOT: [C, D]}


def test_a_property_says_nothing_if_one_that_is_forgotten_may_have_had_it() -> None:
    past = as_told(after(plugged_of([A, B]), 0), "a")
    assert plugged_of([C], past, {C.sys_path: alike("a")}).in_doubt == {SPOT: [C]}
    both = plugged_of([C, D], past, {C.sys_path: alike("a"), D.sys_path: alike("b")})
    assert (both.in_doubt, numbers(both)) == ({}, {"ttyACM2": 0, "ttyACM3": 1})


def test_the_order_counts_in_which_they_got_their_numbers_and_not_where_they_are_now() -> None:
    """One that a driver has bound again has another path."""
    bound_again = plugged_of([B, C], after(plugged_of([A, B])))
    assert numbers(bound_again) == {"ttyACM2": 0, "ttyACM1": 1}
    back = plugged_of([A, B], after(plugged_of([], after(bound_again)), 0, 1))
    assert numbers(back) == {"ttyACM0": 0, "ttyACM1": 1}


@pytest.mark.parametrize("is_held", [False, True])
def test_if_they_did_not_come_in_their_order_they_are_in_doubt_when_they_come_together(is_held: bool) -> None:
    one_by_one = plugged_of([A, B], after(plugged_of([B, C])))
    assert numbers(one_by_one) == {"ttyACM1": 0, "ttyACM0": 1}
    gone = plugged_of([], after(plugged_of([A, B], after(one_by_one))))
    assert [seen.is_late for seen in gone.siblings[SPOT].values()] == [False, False]
    late = plugged_of([A, B, C], after(plugged_of([B, C])))
    assert [seen.is_late for seen in late.siblings[SPOT].values()] == [False, False, True]
    back = plugged_of([A, B, C], after(plugged_of([], after(late)), *range(is_held)))
    assert bool(back.in_doubt) is is_held
    if not is_held:
        assert numbers(back) == {"ttyACM0": 0, "ttyACM1": 1, "ttyACM2": 2}


def test_of_those_that_no_pod_holds_only_their_count_is_known_after_others_have_come() -> None:
    """Nobody knows which ones they are. After a guess, a pod could get one under the number of another."""
    one = plugged_of([B], after(plugged_of([], after(plugged_of([A, B])))))
    assert numbers(one) == {"ttyACM1": 0}
    assert one.siblings[SPOT] == {
        0: Seen(B.sys_path, 1, model=MODEL),
        1: Seen(is_late=True, model=MODEL),
    }
    both = plugged_of([A, B], after(plugged_of([], after(one)), 0))
    assert both.in_doubt == {SPOT: [A, B]}
    assert plugged_of([A], after(plugged_of([], after(one)), 0)).in_doubt == {SPOT: [A]}
    # They come one by one, as udev announces them.
    first = plugged_of([A], after(plugged_of([], after(plugged_of([A, B])))))
    second = plugged_of([A, B], after(first, 0))
    assert [seen.is_late for seen in second.siblings[SPOT].values()] == [False, False]


def test_all_begin_anew_once_no_pod_holds_any() -> None:
    late = plugged_of([A, B, C], after(plugged_of([B, C])))
    anew = plugged_of([A, B, C], after(plugged_of([], after(late))))
    assert numbers(anew) == {"ttyACM0": 0, "ttyACM1": 1, "ttyACM2": 2}
    assert not any(seen.is_late for seen in anew.siblings[SPOT].values())


#: Where the second unit with the serial number was.
OTHER = SPOT._replace(port="/sys/devices/pci0000:00/0000:00:14.0 usb 8")


def moved(past: Past, *minors: int) -> Plugged:
    """The siblings of the unit with these minor numbers after it has come at another port."""
    unit = a_usb_device("9", serial="A")
    nodes = [a_usb_node(unit, "tty", f"ttyACM{each}", number=f"c 166:{each}") for each in minors]
    alike = {("serial", SPOT.serial, SPOT.within): tuple(past.siblings)}
    return plugged_of(nodes, replace(past, alike=lambda *key: alike.get(key, ())))


def test_siblings_have_the_numbers_at_another_port_that_they_had() -> None:
    past = after(plugged_of([B, C, D], after(plugged_of([A, B, C]))), 0)
    assert numbers(moved(past, 0, 1, 2)) == {"ttyACM0": 0, "ttyACM1": 1, "ttyACM2": 2}
    assert [*moved(past, 0, 1).in_doubt.values()] != [], "one of them is missing"


def test_a_twin_does_not_come_from_where_the_other_one_still_is() -> None:
    """It has more siblings, so it would be in doubt."""
    past = after(plugged_of([A, B]), 0, 1)
    unit = a_usb_device("9", serial="A")
    twin = [a_usb_node(unit, "tty", f"ttyACM{each}", number=f"c 166:{each}") for each in (4, 5, 6)]
    here = plugged_of([A, B, *twin], replace(past, alike=lambda *_: (SPOT,)))
    assert (here.in_doubt, numbers(here)["ttyACM6"]) == ({}, 2)


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("others", [[0, 1], [1, 2]])
def test_siblings_of_one_of_two_units_are_in_doubt_if_the_numbers_of_the_two_differ(
    others: list[int], is_held: bool
) -> None:
    past = after(plugged_of([A, B]), *range(2 * is_held))
    theirs = dict(zip(others, past.siblings[SPOT].values(), strict=True))
    here = moved(replace(past, siblings={OTHER: theirs, **past.siblings}), 0, 1)
    assert bool(here.in_doubt) is (is_held and others == [1, 2])


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("others", [[0, 1], [1, 2]])
def test_siblings_without_a_serial_number_are_in_doubt_if_the_numbers_of_two_units_at_their_port_differ(
    others: list[int], is_held: bool
) -> None:
    past = after(plugged_of([A, B]), *range(2 * is_held))
    theirs = dict(zip(others, past.siblings[SPOT].values(), strict=True))
    two = [SPOT._replace(serial="B"), SPOT._replace(serial="C")]
    known = {n: one._replace(models=frozenset({""})) for n, one in past.known_at(SPOT).items()}
    past = replace(
        past,
        siblings={two[0]: past.siblings[SPOT], two[1]: theirs},
        known_at=lambda spot: known if spot in two else {},
        alike=lambda by, *_: two if by == "port" else (),
    )
    unit = a_usb_device("2", serial=None)
    nodes = [a_usb_node(unit, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in range(2)]
    here = plugged_of(nodes, past)
    assert locate(nodes[0]).spot == SPOT._replace(serial="")
    assert bool(here.in_doubt) is (is_held and others == [1, 2])


def test_what_is_still_there_is_not_what_comes_to_its_socket_without_a_serial_number() -> None:
    known = {n: Known("", "", frozenset({"held"}), models=frozenset({""})) for n in range(2)}
    past = replace(
        after(plugged_of([A, B])),
        known_at=lambda spot: known if spot == SPOT else {},
        alike=lambda by, *_: (SPOT,) if by == "port" else (),
    )
    unit = a_usb_device("2", serial=None)
    nodes = [a_usb_node(unit, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in (4, 5, 6)]
    assert plugged_of([A, B, *nodes], past).in_doubt == {}


def test_a_number_of_an_earlier_release_may_be_that_of_any_sibling() -> None:
    assert [*plugged_of([A, B]).nodes_at(at(UNKNOWN))] == [A, B]


def test_how_many_siblings_there_are() -> None:
    assert plugged_of([A, B]).count_at(at(1)) == 2
    assert plugged_of([]).count_at(at(1)) == 0


def test_all_numbers_of_a_unit_on_usb_are_kept_as_long_as_one_of_its_devices_is_remembered() -> None:
    here = plugged_of([A], after(plugged_of([A, B, C])))
    assert {*here.remembered([at(0)])[SPOT]} == {0, 1, 2}


SOFTWARE = [a_device(f"/sys/devices/virtual/x/x{number}", node=f"/dev/x{number}") for number in range(3)]
WIRELESS = [a_hid(LINK, number + 1, None, number) for number in range(3)]


@pytest.mark.parametrize("units", [SOFTWARE, WIRELESS], ids=["software", "wireless"])
def test_a_missing_number_of_what_comes_one_by_one_is_free_again_unless_a_remembered_device_has_it(
    units: list[UdevDevice],
) -> None:
    spot = locate(units[0]).spot
    here = plugged_of(units[:1], Past(siblings=plugged_of(units).siblings))
    assert {*here.remembered([spot, spot._replace(number=2)])[spot]} == {0, 2}
    assert {*here.remembered([spot._replace(number=1)])[spot]} == {0, 1}


def test_all_numbers_are_kept_while_none_of_the_siblings_is_there() -> None:
    nobody = plugged_of([], after(plugged_of([A, B])))
    assert nobody.remembered([at(1)]) == {
        SPOT: {0: Seen(A.sys_path, model=MODEL), 1: Seen(B.sys_path, model=MODEL)}
    }


@pytest.mark.parametrize(
    "models", [{}, {SPOT: [""]}, {SPOT: ["2341:0042", "0403:6001"]}, {SPOT: ["2341:0042"]}]
)
@pytest.mark.parametrize("are_there", [False, True])
def test_numbers_are_kept_where_the_siblings_may_come_unless_they_are_there_or_of_another_model(
    models: Mapping[Spot, list[str]], *, are_there: bool
) -> None:
    here = plugged_of([A, B] if are_there else [], after(plugged_of([A, B])))
    kept = here.remembered([], [(OTHER, "0403:6001")], models=models)
    is_kept = not are_there and models.get(SPOT) != ["2341:0042"]
    assert kept == (
        {OTHER: {0: Seen(A.sys_path, model=MODEL), 1: Seen(B.sys_path, model=MODEL)}} if is_kept else {}
    )


def test_nothing_is_remembered_of_siblings_that_no_remembered_device_has() -> None:
    both = plugged_of([A, B])
    assert both.remembered([]) == {}
    assert both.remembered([Spot("elsewhere", "", "if00")]) == {}


def test_one_that_has_always_been_alone_needs_no_memory_of_siblings() -> None:
    assert plugged_of([A]).remembered([at(0)]) == {}
