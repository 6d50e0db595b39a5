"""The rule files of `examples/families` give what the plugins give that they replace, but for what they say.

The machine of a family is a file, too (`machine.py`), and so is what its plugin answers (`answer.py`).
"""

import shutil
from pathlib import Path

import pytest

from generate.families import FAMILIES, Family
from genericdp.cli.survey import look
from genericdp.core.allocate import allocate
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.offer import Offer
from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.match import PropertyCondition
from genericdp.machine.devices import MachineDevices
from tests.families import answer
from tests.families.answer import LINKS, Answer, Case, Original, answer_of, differences, original
from tests.families.machine import FOLDER as MACHINES
from tests.families.machine import machine
from tests.udev.testbed import Testbed

NAMES = [family.name for family in FAMILIES]


def test_every_family_has_a_machine_and_the_answers_of_its_plugin() -> None:
    assert {path.stem for path in MACHINES.iterdir()} == {*NAMES}
    assert {path.stem for path in answer.FOLDER.iterdir()} == {*NAMES}


@pytest.mark.testbed
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_answers_as_its_plugin_but_for_what_its_head_says(
    family: Family, bed: Testbed, tmp_path: Path
) -> None:
    rules = tmp_path / family.path.name
    shutil.copyfile(family.path, rules)
    machine(family.name).plug_into(bed)

    survey = look(rules=[str(rules)], config="/dev/null", domain=None)

    offers = survey.inventory.offers
    assert survey.problems == ()
    assert [device for offer in offers.values() for device in offer.devices if not device.healthy] == []
    assert survey.inventory.unsure == ()
    for case in original(family.name).cases:
        given = Answer()
        if case.resource in offers:
            offer = offers[case.resource]
            ids = chosen(case, offer)
            given = answer_of(allocate(offer, ids, LINKS), offer, ids, survey.inventory)
        assert differences(case.answer, given) == case.differs, case.resource


def chosen(case: Case, offer: Offer) -> list[str]:
    """The ids that the container of a case gets."""
    if not case.of:
        return [*offer.ids][: case.count]
    ids = [id_ for id_, device in offer.ids.items() if {node.path for node in device.nodes} & {*case.of}]
    assert len(ids) == case.count
    return ids


@pytest.mark.testbed
def test_a_tpu_that_has_got_too_hot_is_unhealthy_when_health_is_read_again(bed: Testbed) -> None:
    (coral,) = [family for family in FAMILIES if family.name == "coral-pcie"]
    resources, _ = parse_rules("coral-pcie.toml", coral.path.read_text(encoding="utf-8"), "genericdp.io")
    tpu = machine("coral-pcie")
    tpu.plug_into(bed)
    devices = MachineDevices(resources)
    devices.resync()
    builder = Builder(resources, "genericdp.io")
    reasons = []
    for temperature in (84999, 85000):
        bed.set_attribute(tpu.node("apex_0"), "temp", str(temperature))
        devices.resync()
        (device,) = builder.build(devices.devices).offers["coral.ai/tpu"].devices
        reasons.append(device.reason)
    assert reasons == ["", "ATTR{temp} is '85000', wanted at most 84999"]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_shared_node_that_is_required_has_a_table_of_its_own(family: Family) -> None:
    # One node satisfies a table, so the others of a list could be missing unnoticed.
    resources, _ = parse_rules(family.path.name, family.path.read_text(encoding="utf-8"), "genericdp.io")
    required = [table for each in resources for table in each.shared_nodes if not table.optional]
    lists = [
        sorted(condition.pattern.literals or ())
        for table in required
        for alternative in table.match.alternatives
        for condition in alternative
        if isinstance(condition, PropertyCondition) and len(condition.pattern.literals or ()) > 1
    ]
    assert lists == []


@pytest.mark.testbed
def test_a_gpu_without_one_of_the_nodes_of_its_driver_is_unhealthy(bed: Testbed, tmp_path: Path) -> None:
    (nvidia,) = [family for family in FAMILIES if family.name == "nvidia"]
    rules = tmp_path / "nvidia.toml"
    shutil.copyfile(nvidia.path, rules)
    for node, number in (("nvidia0", "195:0"), ("nvidiactl", "195:255")):
        bed.add_bare_node(node, number)

    survey = look(rules=[str(rules)], config="/dev/null", domain=None)

    (device,) = survey.inventory.offers["nvidia.com/gpu"].devices
    assert device.reason == "the shared node for DEVNAME '/dev/nvidia-uvm' is missing"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_head_of_a_family_names_each_difference(family: Family) -> None:
    theirs = original(family.name)
    named = {part for case in theirs.cases for part in case.differs}
    missing = [part for part in named if words_of(part, theirs) not in family.differs]
    assert missing == []


def words_of(part: str, theirs: Original) -> str:
    """How the head names a part of the answer: by its name, unless the answers say otherwise."""
    return theirs.words.get(part, part.rpartition(" ")[2])
