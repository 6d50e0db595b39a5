"""What is promised of a suggestion: it is a good rule file, and it takes exactly what it says."""

from collections.abc import Iterable, Mapping, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import NAME_ATTRIBUTES
from genericdp.core.explain.selection import TYPE_ATTRIBUTES
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.offer import Offer
from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.resource import Resource
from genericdp.core.suggest.alternatives import Alternative
from genericdp.core.suggest.clues import CLUE_ATTRIBUTES
from genericdp.core.suggest.suggestion import Suggestion

DOMAIN = "example.com"

#: What the verb reads of a machine beside what identity needs.
ATTRIBUTES = NAME_ATTRIBUTES | TYPE_ATTRIBUTES | CLUE_ATTRIBUTES

#: How the lines with keys begin that a suggestion offers in comments.
_OFFERED = ("# answer = ", "# container_path = ", "# replicas = ")


def offers_of(text: str, devices: Mapping[str, UdevDevice]) -> tuple[Offer, ...]:
    """What a rule file without a mistake offers of these devices, all of it and to nobody twice."""
    resources, problems = parse_rules("suggested.toml", text, DOMAIN)
    assert [problem.render() for problem in problems] == []
    # A machine has hundreds of others, which change nothing (tests/properties/test_laws_of_the_inventory.py).
    inventory = Builder(resources, DOMAIN).build(matched(resources, devices))
    assert inventory.refusals == ()
    assert inventory.overlaps == ()
    return tuple(inventory.offers.values())


def matched(resources: Sequence[Resource], devices: Mapping[str, UdevDevice]) -> dict[str, UdevDevice]:
    """The devices that the match of a resource holds for, or that of a node table that is shared."""
    matches = [each.match for each in resources]
    matches += [table.match for each in resources for table in each.nodes if table.shared]
    return {path: each for path, each in devices.items() if any(match.matches(each) for match in matches)}


def assert_takes_exactly(text: str, devices: Mapping[str, UdevDevice], nodes: Iterable[UdevDevice]) -> None:
    """The rule makes one device of these nodes (those that udev has finished with), and no other."""
    (offer,) = offers_of(text, devices)
    (device,) = offer.devices
    assert {node.sys_path for node in device.nodes} == {node.sys_path for node in nodes if node.initialized}


def uncommented(text: str) -> str:
    """The rule file with the keys that it offers in comments."""
    return "".join(
        line.removeprefix("# ") if line.startswith(_OFFERED) else line
        for line in text.splitlines(keepends=True)
    )


def with_alternative(suggestion: Suggestion, alternative: Alternative) -> str:
    """The rule with an alternative in place of its match, as its comment tells an operator."""
    own = (*suggestion.table, "").index("")
    mine = [line for line in suggestion.table[:own] if not line.startswith("match")]
    after_name = next(number for number, line in enumerate(mine) if line.startswith("name = ")) + 1
    mine[after_name:after_name] = alternative.lines
    return "\n".join([*mine, *suggestion.table[own:]])
