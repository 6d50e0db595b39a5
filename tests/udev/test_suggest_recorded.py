"""`genericdp suggest` on every recorded device: what it prints passes `check`, and `list` shows it."""

import json
from pathlib import Path

import pytest

from genericdp.cli.main import main
from tests.udev import gadgets
from tests.udev.testbed import Testbed


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a verb prints that finds everything in order."""
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.testbed
@pytest.mark.parametrize("node", [[], ["--node"]], ids=["device", "node"])
@pytest.mark.parametrize("name", gadgets.RECORDED)
def test_what_suggest_prints_for_a_recorded_device_takes_that_device_alone(
    name: str, node: list[str], bed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, rules = tmp_path / "rules.d", tmp_path / "50-suggested.toml"
    empty.mkdir()
    bed.plug(gadgets.RECORDED[name])
    nodes = [f"/dev/{entry.node}" for entry in gadgets.RECORDED[name] if entry.node]
    assert nodes
    for path in nodes:
        said = json.loads(printed(capsys, "suggest", path, *node, "--json", "--rules", str(empty)))
        rules.write_text(printed(capsys, "suggest", path, *node, "--rules", str(empty)))

        assert rules.read_text() == said["text"]
        printed(capsys, "check", str(rules))
        listed = json.loads(printed(capsys, "list", "--json", "--rules", str(rules)))
        (resource,) = listed["resources"]
        (device,) = resource["devices"]
        assert resource["name"] == said["resource"]
        assert device["health"] == "Healthy"
        assert sorted(each["path"] for each in device["nodes"]) == sorted(said["nodes"])
        assert path in said["nodes"]
        assert (listed["notOffered"], listed["overlaps"], listed["toldApartByOrder"]) == ([], [], [])


@pytest.mark.testbed
@pytest.mark.parametrize("name", gadgets.RECORDED)
def test_the_starter_file_for_a_recorded_device_leaves_nothing(
    name: str, bed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, rules = tmp_path / "rules.d", tmp_path / "90-found.toml"
    empty.mkdir()
    bed.plug(gadgets.RECORDED[name])
    rules.write_text(printed(capsys, "suggest", "--all", "--rules", str(empty)))

    printed(capsys, "check", str(rules))
    listed = json.loads(printed(capsys, "list", "--all", "--json", "--rules", str(rules)))
    assert all(resource["devices"] for resource in listed["resources"])
    assert {each["subsystem"] for each in listed["notTaken"]} <= {"usb"}
    assert printed(capsys, "suggest", "--all", "--rules", str(rules)).startswith(
        "# There is nothing here that a rule should be written for.\n"
    )
