"""`genericdp suggest`, as it is read and as programs read it."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.cli.find import find
from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.survey import look, survey_of
from genericdp.cli.verbs.suggest import as_json, show
from genericdp.core.device import UdevDevice
from genericdp.core.explain.survey import Survey
from genericdp.core.rules.settings import Settings
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.reasons import drivers_without_node
from genericdp.core.suggest.suggestion import suggest
from genericdp.core.suggest.units.siblings import subject_of
from genericdp.errors import GenericdpError
from genericdp.udev.sysfs import drivers_below
from tests.scenes.builders import (
    a_device,
    a_fuse,
    a_modem,
    a_usb_device,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.suggestions import assert_takes_exactly


def subject(word: str, machine: Survey) -> UdevDevice:
    return subject_of(find(word, machine.devices, "/dev/genericdp"), word, machine.nodes)


def a_machine(rules: str = "") -> Survey:
    dongle = a_usb_serial(0)
    usb = dongle.usb_device
    assert usb is not None
    devices = by_sys_path(a_fuse(), dongle, usb, *a_modem(), a_usb_device("7", serial="alone", devnum=20))
    return survey_of(Settings(domain="example.com"), resources_of(rules) if rules else (), devices)


@pytest.mark.parametrize(
    ("word", "node"),
    [
        ("/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("ttyUSB0", "/dev/ttyUSB0"),
        ("/dev/bus/usb/001/009", "/dev/bus/usb/001/009"),
        ("1-2", "/dev/ttyUSB0"),
        ("1-4", "/dev/cdc-wdm0"),
        ("1-7", "/dev/bus/usb/001/020"),
    ],
)
def test_a_node_means_itself_and_a_usb_device_what_it_brings(word: str, node: str) -> None:
    assert subject(word, a_machine()).device_node == node


def test_what_is_several_devices_is_not_guessed() -> None:
    with pytest.raises(GenericdpError) as raised:
        subject("usb1", a_machine())

    assert str(raised.value) == "'usb1' is not a device node, and has several devices below it"
    assert raised.value.hint == (
        "name one of them: /dev/bus/usb/001/004, /dev/bus/usb/001/009, /dev/bus/usb/001/020, "
        "/dev/cdc-wdm0, /dev/ttyUSB0, /dev/ttyUSB1, /dev/ttyUSB2, /dev/ttyUSB3"
    )


def test_a_rule_that_already_matches_is_named() -> None:
    machine = a_machine('[[resource]]\nname = "any"\nmatch = { SUBSYSTEM = ["tty", "usbmisc"] }')
    present = Present(machine.devices, "example.com")

    assert suggest(subject("1-4", machine), present).remarks(machine.claims) == (
        (
            "example.com/any already matches /dev/cdc-wdm0, /dev/ttyUSB1, /dev/ttyUSB2, /dev/ttyUSB3; if two "
            "rules match a node, the first in file order gets it"
        ),
    )


def test_the_form_for_programs() -> None:
    machine = a_machine()
    suggestion = suggest(subject("/dev/fuse", machine), Present(machine.devices, "example.com"))

    assert as_json(suggestion, suggestion.remarks(machine.claims)) == {
        "resource": "example.com/fuse",
        "file": "/etc/genericdp/rules.d/50-fuse.toml",
        "text": suggestion.text,
        "nodes": ["/dev/fuse"],
        "groupBy": "node",
        "knownBy": "name",
        "rivals": [],
        "reasons": ["By name: the kernel always gives it the same name."],
        "remarks": [],
        "furtherNodes": [],
        "alternatives": [],
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_comments_are_fainter_than_rules() -> None:
    terminal = Terminal()
    show('# why\n[[resource]]\nname = "x"\n', Output(terminal, environment={}))

    assert terminal.getvalue() == '\x1b[2m# why\x1b[0m\n[[resource]]\nname = "x"\n'


# On this machine


def test_every_device_of_this_machine_has_a_rule_that_matches_it_and_no_other() -> None:
    machine = look(rules=[], config=None, domain="example.com")
    present = Present(machine.devices, "example.com")
    nodes = [node for node in present.nodes if node.initialized]
    assert nodes
    for node in nodes:
        suggestion = suggest(node, present)
        assert_takes_exactly(suggestion.text, machine.devices, suggestion.group.nodes)


def test_what_is_printed_is_a_rule_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, empty = tmp_path / "50-null.toml", tmp_path / "empty"
    empty.mkdir()

    assert main(["suggest", "/dev/null", "--rules", str(empty)]) == 0
    rules.write_text(capsys.readouterr().out)

    assert main(["check", str(rules)]) == 0
    capsys.readouterr()
    assert main(["list", "--json", "--rules", str(rules)]) == 0
    (resource,) = json.loads(capsys.readouterr().out)["resources"]
    assert resource["name"] == "genericdp.io/null"
    assert [node["path"] for device in resource["devices"] for node in device["nodes"]] == ["/dev/null"]


def test_the_starter_file_is_a_rule_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, empty = tmp_path / "90-found.toml", tmp_path / "empty"
    empty.mkdir()

    assert main(["suggest", "--all", "--rules", str(empty)]) == 0
    text = capsys.readouterr().out
    rules.write_text(text)
    assert main(["suggest", "--all", "--json", "--rules", str(empty)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"text"}
    # A console of this machine may have come in between, and changed a number.
    assert re.sub(r"\d+", "N", document["text"]) == re.sub(r"\d+", "N", text)

    assert main(["check", str(rules)]) == 0
    capsys.readouterr()
    assert main(["suggest", "--all", "--rules", str(rules)]) == 0
    assert capsys.readouterr().out.startswith("# No device of this machine needs a rule.\n")


def test_the_file_into_which_the_shell_writes_the_rule_is_no_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "50-null.toml"
    with rules.open("w"):
        assert main(["suggest", "/dev/null", "--rules", str(tmp_path)]) == 0
        assert capsys.readouterr().err == ""

    with rules.open("w") as other:
        print("[[resource]]", file=other, flush=True)
        assert main(["suggest", "/dev/null", "--rules", str(tmp_path)]) == 1
        assert "is open for writing and may be incomplete" in capsys.readouterr().err


def test_one_device_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest"]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: suggest needs a DEVICE or --all\n"
        "  hint: 'genericdp list --all' shows what no rule matches\n"
    )


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "/dev/ttyUSB99"]) == 1
    assert capsys.readouterr().err == (
        "genericdp: error: '/dev/ttyUSB99' does not exist\n"
        "  hint: 'genericdp list --all' shows the device nodes of this machine\n"
    )


def an_interface(folder: Path, number: int, driver: str, *made: str) -> str:
    """An interface in sysfs with its driver, and what that has made of it, such as `net/can0`."""
    path = folder / f"1-2:1.{number}"
    path.mkdir()
    (path / "driver").symlink_to(f"../../../bus/usb/drivers/{driver}")
    for each in made:
        (path / each).mkdir(parents=True)
    return str(path)


def test_a_driver_without_a_device_node_is_named_with_what_it_makes_of_a_usb_device(
    tmp_path: Path,
) -> None:
    an_interface(tmp_path, 0, "btusb", "bluetooth/hci0")
    an_interface(tmp_path, 1, "btusb")
    an_interface(tmp_path, 2, "rndis_host", "net/usb0")
    an_interface(tmp_path, 3, "usbfs")
    port = an_interface(tmp_path, 4, "cdc_acm", "tty/ttyACM0")
    an_interface(tmp_path, 5, "cdc_acm")
    (tmp_path / "ep_00").mkdir()
    usb = replace(a_usb_device(), sys_path=str(tmp_path))
    node = a_device(f"{port}/tty/ttyACM0", subsystem="tty", node="/dev/ttyACM0", number="c 166:0")

    drivers = (("btusb", ("hci0",)), ("rndis_host", ("usb0",)))
    assert drivers_without_node(tuple(drivers_below(usb.sys_path)), (usb, node)) == drivers
    suggestion = suggest(usb, Present(by_sys_path(usb), "example.com"))
    suggestion = replace(suggestion, drivers=(drivers[0], ("peak_usb", ())))
    assert suggestion.reasons[-2:] == (
        (
            "CAUTION: the kernel driver btusb uses it for hci0. A container cannot get that, because it has "
            "no device node. A program that opens the raw USB node takes the device away from that driver."
        ),
        (
            "CAUTION: the kernel driver peak_usb uses it. A program that opens the raw USB node takes the "
            "device away from that driver."
        ),
    )
