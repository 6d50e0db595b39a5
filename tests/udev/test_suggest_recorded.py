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
def test_what_suggest_prints_for_a_recorded_device_matches_that_device_alone(
    name: str, node: list[str], bed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, rules = tmp_path / "rules.d", tmp_path / "50-suggested.toml"
    empty.mkdir()
    bed.plug(gadgets.RECORDED[name])
    nodes = [f"/dev/{entry.node}" for entry in gadgets.RECORDED[name] if entry.node]
    assert nodes
    for path in nodes:
        document = json.loads(printed(capsys, "suggest", path, *node, "--json", "--rules", str(empty)))
        rules.write_text(printed(capsys, "suggest", path, *node, "--rules", str(empty)))

        assert rules.read_text() == document["text"]
        printed(capsys, "check", str(rules))
        listed = json.loads(printed(capsys, "list", "--json", "--rules", str(rules)))
        (resource,) = listed["resources"]
        (device,) = resource["devices"]
        assert resource["name"] == document["resource"]
        assert device["health"] == "Healthy"
        assert sorted(each["path"] for each in device["nodes"]) == sorted(document["nodes"])
        assert path in document["nodes"]
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
    # Raw nodes of what has others, and the other streams of a camera, are named in the file.
    assert {each["subsystem"] for each in listed["notTaken"]} <= {"usb", "video4linux", "media"}
    assert printed(capsys, "suggest", "--all", "--rules", str(rules)).startswith(
        "# No device of this machine needs a rule.\n"
    )


#: What an attacker with a programmable stick would try on a rule file, a shell, a terminal, a glob.
HOSTILE = (
    '"\n[[resource]]\nname = "evil"\nmatch = { DEVNAME = "*" }\n#',
    "*",
    "a|b|[!a]*?\\",
    "$(reboot)`reboot`;reboot",
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "\u202e\u2028\u2029\x85",
    "\udcff\udcfe",
    "'''\"\"\"{{}}{ID_MODEL}",
)


@pytest.mark.testbed
@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_no_device_can_write_more_into_its_rule_than_what_it_is(
    word: str, bed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, rules = tmp_path / "rules.d", tmp_path / "50-suggested.toml"
    empty.mkdir()
    usb = gadgets.Usb("2", 5, "0403", "6001", word, word, word)
    hostile = (*usb.entries(), *usb.serial_port(0, 0, "ftdi_sio"))
    bed.plug(hostile, gadgets.serial_dongle("3", tty=1, serial="harmless", devnum=6)[2:])
    text = printed(capsys, "suggest", "/dev/ttyUSB0", "--rules", str(empty))
    rules.write_text(text)

    assert text.replace("\n", "").isprintable()
    printed(capsys, "check", str(rules))
    listed = json.loads(printed(capsys, "list", "--json", "--rules", str(rules)))
    (resource,) = listed["resources"]
    (device,) = resource["devices"]
    assert [node["path"] for node in device["nodes"]] == ["/dev/ttyUSB0"]
    for verb in (["explain", "/dev/ttyUSB0"], ["explain", "--usb", "0403:6001"], ["suggest", "--all"]):
        assert printed(capsys, *verb, "--rules", str(rules)).replace("\n", "").isprintable()
