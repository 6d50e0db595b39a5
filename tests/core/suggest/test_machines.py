"""What is promised of every suggestion, on whole machines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.explain.unfound import unfound
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.place import unit_of
from genericdp.core.rules.match import Match, PropertyCondition
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.fixed_names import has_a_fixed_name
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Suggestion, suggest
from tests.scenes.builders import resources_of
from tests.scenes.machines import MACHINES, after_reboot, machine
from tests.scenes.suggestions import (
    ATTRIBUTES,
    DOMAIN,
    assert_takes_exactly,
    offers_of,
    uncommented,
    with_alternative,
)

#: Terminals and the like, but for the first one of each kind.
ONE_OF_HUNDREDS = re.compile(r"(?:[pt]ty[a-z]?|vcs[au]?|loop|ram)[0-9a-f]*[1-9a-f]")


@cache
def present(name: str) -> Present:
    return Present(machine(name, *ATTRIBUTES), DOMAIN)


@cache
def suggestions(name: str) -> tuple[Suggestion, ...]:
    """The suggestions for a machine: one for each device, but only one of hundreds of terminals."""
    found: dict[frozenset[str], Suggestion] = {}
    for node in present(name).nodes:
        if ONE_OF_HUNDREDS.fullmatch(node.devname) and has_a_fixed_name(node):
            continue
        suggestion = suggest(node, present(name))
        found.setdefault(suggestion.group.sys_paths, suggestion)
    return tuple(found.values())


@pytest.mark.parametrize("name", MACHINES)
def test_each_suggestion_takes_exactly_what_it_says(name: str) -> None:
    devices = machine(name, *ATTRIBUTES)
    for suggestion in suggestions(name):
        for text in {suggestion.text, uncommented(suggestion.text)}:
            assert_takes_exactly(text, devices, suggestion.group.nodes)
        for each in suggestion.instead:
            nodes = [node for node in present(name).nodes if node.device_node in each.paths]
            assert_takes_exactly(with_alternative(suggestion, each), devices, nodes)


@pytest.mark.parametrize("name", MACHINES)
def test_each_node_alone_has_a_rule_that_takes_it_alone(name: str) -> None:
    for suggestion in suggestions(name):
        for node in suggestion.group.nodes if len(suggestion.group.nodes) > 1 else ():
            by_itself = suggest(node, present(name), by_itself=True)
            assert by_itself.group.nodes == (node,)
            assert_takes_exactly(by_itself.text, machine(name, *ATTRIBUTES), (node,))


#: What a rule may take on another machine. Every such kind of clue says so in its comment.
def is_meant(suggestion: Suggestion, other: UdevDevice) -> bool:
    mine = suggestion.group.nodes[0]
    match suggestion.by:
        case By.NAME | By.PATH | By.ARRIVAL:
            # The name is what the rule says: "always the same name", or CAUTION.
            return other.device_node in suggestion.group.paths
        case By.MODEL:
            # Another unit of the model.
            return same_model(mine, other)
        case By.PORT:
            return same_model(mine, other)
        case By.PLACE:
            # "Any device of this kind in that place matches": a place on another machine of the same kind.
            return other.subsystem in {node.subsystem for node in suggestion.group.nodes}
        case By.KIND:
            return other.subsystem == mine.subsystem
        case By.LABEL:
            return (other.subsystem, other.attributes.get("name")) == (
                mine.subsystem,
                mine.attributes.get("name"),
            )
        case _:
            return False


def label(node: UdevDevice) -> str:
    return node.attributes.get("name", "")


def same_model(one: UdevDevice, other: UdevDevice) -> bool:
    return model(one) == model(other) != ()


def model(node: UdevDevice) -> tuple[str, ...]:
    hid = [each.properties.get("HID_NAME", "") for each in node.ancestors() if each.subsystem == "hid"]
    unit = unit_of(node)
    numbers = (
        unit.attributes.get("idVendor"),
        unit.attributes.get("idProduct"),
        unit.properties.get("PCI_ID"),
    )
    return tuple(filter(None, numbers)) or tuple(hid)


@cache
def everywhere(name: str) -> Mapping[str | None, Sequence[tuple[str, UdevDevice]]]:
    """The device nodes of all machines, each with its machine, by their values of a property."""
    found: dict[str | None, list[tuple[str, UdevDevice]]] = {}
    for machine_ in MACHINES:
        for node in present(machine_).nodes:
            found.setdefault(node.property(name), []).append((machine_, node))
    return found


def taken_by(match: Match) -> Iterator[tuple[str, UdevDevice]]:
    """The device nodes of all machines that a match holds for, each with its machine.

    It begins with a condition on a property, which mostly rules out all but a few of thousands of nodes.
    """
    ((first, *_),) = match.alternatives
    assert isinstance(first, PropertyCondition)
    for value, nodes in everywhere(first.name).items():
        if first.pattern.holds(value):
            yield from (each for each in nodes if match.matches(each[1]))


@pytest.mark.parametrize("name", MACHINES)
def test_no_suggestion_takes_anything_on_another_machine_by_accident(name: str) -> None:
    accidents = [
        f"{suggestion.by} {suggestion.table}: {node.device_node} of {other}"
        for suggestion in suggestions(name)
        for resource in resources_of(suggestion.text)
        for other, node in taken_by(resource.match)
        if other != name and not is_meant(suggestion, node)
    ]
    assert accidents == []


@pytest.mark.parametrize("name", MACHINES)
def test_every_suggestion_without_a_caution_outlasts_a_reboot_that_finds_everything_later(name: str) -> None:
    later = after_reboot(name, *ATTRIBUTES)
    same = dict(zip(machine(name), later, strict=True))
    lost = [
        f"{suggestion.by} {suggestion.table}"
        for suggestion in suggestions(name)
        if suggestion.by not in (By.ARRIVAL, By.NAME)
        for resource in resources_of(suggestion.text)
        if {path for path, each in later.items() if each.device_node and resource.match.matches(each)}
        != {same[path] for path in suggestion.group.sys_paths}
    ]
    assert lost == []


@pytest.mark.parametrize("name", MACHINES)
def test_no_suggestion_renames_what_libraries_look_for(name: str) -> None:
    for suggestion in suggestions(name):
        text = suggestion.text.replace("# container_path", "container_path")
        assert [*map(str, unfound(*resources_of(text)))] == []


@pytest.mark.parametrize("name", MACHINES)
def test_a_draft_offers_each_device_once_or_says_why_not(name: str) -> None:
    draft = starter(present(name), (), Claims(()))
    offers = offers_of(draft.text, machine(name, *ATTRIBUTES))
    offered = [node.path for offer in offers for device in offer.devices for node in device.nodes]
    left_out = list(chain.from_iterable(paths for _, paths in draft.left_out))
    assert sorted(offered + left_out) == sorted(present(name).paths)


@pytest.mark.parametrize("name", [name for name in MACHINES if name.startswith("raspberry")])
def test_the_draft_for_a_board_fits_on_a_screen(name: str) -> None:
    text = starter(present(name), (), Claims(())).text
    assert len(text.splitlines()) <= 50
    assert max(map(len, text.splitlines())) <= 80
