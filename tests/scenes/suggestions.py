"""What is promised of a suggestion: it is a good rule file, and it takes exactly what it says."""

from collections.abc import Iterable, Mapping

from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import NAME_ATTRIBUTES
from genericdp.core.explain.selection import TYPE_ATTRIBUTES
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.offer import Offer
from genericdp.core.reading.parse import parse_rules
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
    inventory = Builder(resources, DOMAIN).build(devices)
    assert inventory.refusals == ()
    assert inventory.overlaps == ()
    return tuple(inventory.offers.values())


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
