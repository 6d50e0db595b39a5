"""`list --all` and `suggest` on whole machines: each looks at every device node, and none is too much."""

import io

import pytest

from genericdp.cli.output import Output
from genericdp.cli.survey import survey_of
from genericdp.cli.verbs.list import show
from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.settings import Settings
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import suggest
from tests.scenes.machines import MACHINES, machine


@pytest.mark.parametrize("attributes", [True, False], ids=["", "without-attributes"])
@pytest.mark.parametrize("name", MACHINES)
def test_every_device_node_of_a_machine_is_listed_in_lines_that_fit(name: str, attributes: bool) -> None:
    survey = survey_of(Settings(), (), machine(name, attributes=attributes))
    stream = io.StringIO()
    show(survey, Output(stream, width=80), everything=True, selected=True)

    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.startswith("  /dev/")} == {
        node.device_node for node in survey.nodes
    }


@pytest.mark.parametrize("name", MACHINES)
def test_every_device_of_a_machine_has_a_suggestion_that_can_be_read(name: str) -> None:
    devices = machine(name)
    present = Present(devices, "example.com")
    for device in present.nodes:
        suggestion = suggest(device, present)
        _, problems = parse_rules("suggested.toml", suggestion.text, "example.com")
        assert [problem.render() for problem in problems] == [], device.device_node


@pytest.mark.parametrize("name", MACHINES)
def test_the_starter_file_of_a_machine_can_be_read(name: str) -> None:
    devices = machine(name)
    survey = survey_of(Settings(), (), devices)
    text = starter(Present(devices, "example.com"), (), survey.claims).text

    _, problems = parse_rules("90-found.toml", text, "example.com")
    assert [problem.render() for problem in problems] == []
