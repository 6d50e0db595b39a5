"""`genericdp explain` of what is not there, as it is read and as programs read it."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.survey import survey_of
from genericdp.cli.text import absent
from genericdp.cli.verbs.explain import named
from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent
from genericdp.core.explain.lookup import look_up, with_id
from genericdp.core.explain.query import Query
from genericdp.core.explain.survey import Survey
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, Location, Problem
from genericdp.files.state import StateFile
from tests.scenes.builders import a_fuse, a_modem, a_usb_serial, by_sys_path, resources_of
from tests.scenes.state_file import save

RULES = """
[[resource]]
name = "meter"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001", serial = "A50285BI" } }

[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
"""


def a_machine(*devices: UdevDevice, rules: str = RULES, memory: Memory | None = None) -> Survey:
    resources = resources_of(rules) if rules else ()
    return survey_of(Settings(domain="example.com"), resources, by_sys_path(*devices), memory)


def after_unplugging(device: UdevDevice, *left: UdevDevice, rules: str = RULES) -> Survey:
    """The machine that had this device too, and remembers it."""
    return a_machine(*left, rules=rules, memory=a_machine(device, *left).memory)


def told(found: object, machine: Survey) -> str:
    assert isinstance(found, Absent)
    stream = io.StringIO()
    absent.show(found, machine.settings.link_dir, Output(stream, width=80))
    json.dumps(absent.as_json(found, machine.settings.link_dir))
    return stream.getvalue()


def test_near_misses_come_first_then_what_is_remembered() -> None:
    other = a_usb_serial(3, product="6015", serial="A50285BJ")
    machine = after_unplugging(a_usb_serial(0), other)

    assert (
        told(look_up(Query(serial="A50285BI"), machine), machine)
        == """\
no device with the serial number 'A50285BI' is plugged in
  /dev/ttyUSB3, /dev/bus/usb/001/004: serial A50285BJ

example.com/meter expects this device; close matches:
  50-test.toml:3
  /dev/ttyUSB3 matches all but usb.product: wanted '6001', is '6015'; and
  usb.serial: wanted 'A50285BI', is 'A50285BJ'

The daemon remembers meter_A50285BI of example.com/meter
  health     Unhealthy: it is unplugged
  last port  USB port 2 of /sys/devices/pci0000:00/0000:00:14.0
  there now  /dev/ttyUSB3, /dev/bus/usb/001/004 (usb 0403:6015 serial A50285BJ)
  link       /dev/genericdp/meter_A50285BI, broken on purpose until the device
             is Healthy
"""
    )


@pytest.mark.parametrize("word", ["meter_A50285BI", "/dev/genericdp/meter_A50285BI"])
def test_an_unplugged_device_goes_by_its_id_and_its_link(word: str) -> None:
    machine = after_unplugging(a_usb_serial(0))

    assert (
        told(named(word, machine), machine)
        == """\
meter_A50285BI is Unhealthy: it is unplugged

example.com/meter expects this device; no connected device is a close match
  50-test.toml:3
  wanted: SUBSYSTEM 'tty', usb.vendor '0403', usb.product '6001', usb.serial
  'A50285BI'

The daemon remembers meter_A50285BI of example.com/meter
  health     Unhealthy: it is unplugged
  last port  USB port 2 of /sys/devices/pci0000:00/0000:00:14.0
  there now  nothing
  link       /dev/genericdp/meter_A50285BI, broken on purpose until the device
             is Healthy
"""
    )


def test_a_device_of_a_resource_that_is_gone_is_remembered() -> None:
    machine = after_unplugging(a_usb_serial(0), rules="")

    assert told(named("meter_A50285BI", machine), machine).startswith(
        "meter_A50285BI is Unhealthy: it is unplugged\n\n"
        "The daemon remembers meter_A50285BI of example.com/meter\n"
    )


def test_an_unknown_device_is_reported_as_unknown() -> None:
    machine = a_machine(a_fuse())

    assert told(look_up(Query(vendor="1a86", product="7523"), machine), machine) == (
        "no USB device 1a86:7523 is plugged in\n"
        "no rule matches it, and the daemon remembers no such device\n"
        "'genericdp list --all' shows what is plugged in\n"
    )


def test_a_resource_with_a_device_does_not_say_that_nothing_comes_close() -> None:
    machine = a_machine(a_fuse(), rules='[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\n')
    assert (
        told(named("x", machine), machine)
        == """\
example.com/x offers x_fuse

Nothing else comes close
  50-test.toml:2
  wanted: SUBSYSTEM 'misc'
"""
    )


def test_what_no_rule_matches_may_be_in_a_file_with_a_mistake() -> None:
    mistake = Problem(Location("50-x.toml", 1), "unknown key 'x'")
    machine = replace(a_machine(a_fuse()), problems=(mistake,))

    assert told(look_up(Query(vendor="1a86", product="7523"), machine), machine) == (
        "no USB device 1a86:7523 is plugged in\n"
        "no rule matches it, and the daemon remembers no such device; 1 rule file has a\n"
        "mistake, see below\n"
        "'genericdp list --all' shows what is plugged in\n"
    )


def test_what_is_there_is_found_by_what_it_is_what_is_offered_first() -> None:
    usb, *nodes = a_modem()
    dongle = a_usb_serial(9)
    machine = a_machine(
        usb, *nodes, dongle, rules='[[resource]]\nname="x"\nmatch={ usb = { interface = "02" } }'
    )

    assert look_up(Query(vendor="2c7c"), machine) == [nodes[2], nodes[0], nodes[1], nodes[3], usb]
    assert look_up(Query(serial="A50285BI"), machine) == [dongle, dongle.usb_device]


def test_a_device_that_is_there_goes_by_its_id_too() -> None:
    rules = RULES.replace('name = "meter"', 'name = "meter"\nreplicas = 2')
    dongle = a_usb_serial(0)
    machine = a_machine(dongle, rules=rules)

    for word in ("meter_A50285BI", "meter_A50285BI.1", "/dev/genericdp/meter_A50285BI"):
        assert named(word, machine) is dongle
    assert with_id("meter_A50285BI.2", machine) is None


def test_a_usb_device_means_all_its_nodes_what_is_offered_first() -> None:
    usb, *nodes = a_modem()
    machine = a_machine(usb, *nodes, rules='[[resource]]\nname="x"\nmatch={ usb = { interface = "02" } }')

    for word in ("1-4", usb.sys_path):
        assert named(word, machine) == [nodes[2], nodes[0], nodes[1], nodes[3], usb]
    assert named("/dev/bus/usb/001/009", machine) is usb


@pytest.mark.parametrize("word", ["meter", "example.com/meter"])
def test_a_resource_goes_by_its_name_and_shows_what_it_nearly_takes(word: str) -> None:
    machine = a_machine(a_usb_serial(0, product="6015"))
    found = named(word, machine)

    assert (
        told(found, machine)
        == """\
example.com/meter offers no device

Close matches:
  50-test.toml:3
  /dev/ttyUSB0 matches all but usb.product: wanted '6001', is '6015'
"""
    )
    assert isinstance(found, Absent)
    assert not found.is_offered


def test_a_resource_with_devices_names_them_and_those_that_are_absent() -> None:
    other = a_modem("4", serial="ONE")
    machine = a_machine(*other, memory=a_machine(*a_modem("5", serial="TWO")).memory)
    found = named("modem", machine)

    text = told(found, machine)
    assert text.startswith("example.com/modem offers modem_ONE\n")
    assert "The daemon remembers modem_TWO of example.com/modem\n" in text
    assert isinstance(found, Absent)
    assert found.is_offered


def test_a_node_that_a_resource_matches_but_cannot_offer_is_shown_with_the_reason() -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\ncontainer_path = "/dev/{ID_MODEL}"\n'
    machine = a_machine(a_fuse(), rules=rules)
    found = named("x", machine)

    assert (
        told(found, machine)
        == """\
example.com/x offers no device
matched but not offered: it has no property ID_MODEL, which a template uses
without a default
  /dev/fuse

Nothing else comes close
  50-test.toml:2
  wanted: SUBSYSTEM 'misc'
"""
    )
    assert isinstance(found, Absent)
    assert absent.as_json(found, machine.settings.link_dir)["refused"] == [
        {
            "node": "/dev/fuse",
            "reason": "it has no property ID_MODEL, which a template uses without a default",
        }
    ]


def test_a_word_that_means_nothing_is_an_error() -> None:
    with pytest.raises(GenericdpError) as raised:
        named("ttyUSB7", a_machine(a_fuse()))
    assert str(raised.value) == "no device node, device id or resource is called 'ttyUSB7'"


def test_the_form_for_programs() -> None:
    machine = after_unplugging(a_usb_serial(0), a_usb_serial(3, product="6015", serial="A50285BJ"))
    found = look_up(Query(serial="A50285BI"), machine)
    assert isinstance(found, Absent)

    assert absent.as_json(found, machine.settings.link_dir) == {
        "devices": [],
        "reason": "no device with the serial number 'A50285BI' is plugged in",
        "similar": [
            {"node": "/dev/ttyUSB3", "is": "serial A50285BJ"},
            {"node": "/dev/bus/usb/001/004", "is": "serial A50285BJ"},
        ],
        "waiting": [
            {
                "resource": "example.com/meter",
                "file": "50-test.toml",
                "line": 3,
                "nearMisses": [
                    {
                        "node": "/dev/ttyUSB3",
                        "goesTo": None,
                        "failed": [
                            {"key": "usb.product", "wanted": "'6001'", "actual": "6015"},
                            {"key": "usb.serial", "wanted": "'A50285BI'", "actual": "A50285BJ"},
                        ],
                    }
                ],
            }
        ],
        "refused": [],
        "remembered": [
            {
                "resource": "example.com/meter",
                "id": "meter_A50285BI",
                "health": "Unhealthy",
                "reason": "it is unplugged",
                "port": "/sys/devices/pci0000:00/0000:00:14.0 usb 2",
                "links": ["/dev/genericdp/meter_A50285BI"],
            }
        ],
    }


# The verb


def a_place(tmp_path: Path) -> list[str]:
    """Options: a rule for the dongle, and the memory of a daemon that had it."""
    rules, config = tmp_path / "50-meter.toml", tmp_path / "genericdp.toml"
    rules.write_text(RULES)
    config.write_text(f'domain = "example.com"\nstate_dir = "{tmp_path}"\n')
    save(StateFile(str(tmp_path)), a_machine(a_usb_serial(0)).memory)
    return ["--rules", str(rules), "--config", str(config)]


@pytest.mark.parametrize(
    "asked", [["meter_A50285BI"], ["--serial", "A50285BI"], ["--usb", "0403:6001"], ["meter"]]
)
def test_what_the_daemon_remembers_is_read_from_its_state(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = a_place(tmp_path)

    assert main(["explain", *asked, "--json", *options]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["devices"] == []
    assert [each["resource"] for each in document["waiting"]] == ["example.com/meter"]
    # Of the model nothing is remembered, only who it was.
    remembered = [each["id"] for each in document["remembered"]]
    assert remembered == ([] if "--usb" in asked else ["meter_A50285BI"])
    assert main(["explain", *asked, *options]) == 1
    heading = (
        "No connected device is a close match\n"
        if asked == ["meter"]
        else "example.com/meter expects this device; no connected device is a close match\n"
    )
    assert f"\n\n{heading}" in capsys.readouterr().out


def test_one_way_to_say_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: explain needs exactly one of DEVICE, --serial and --usb\n"
        "  hint: 'genericdp list --all' shows the device nodes of this machine\n"
    )


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--serial", "A"], "--serial"),
        (["--usb", "0403"], "--usb"),
        (["--serial", "A", "--usb", "0403"], "--serial and --usb"),
    ],
)
def test_only_one_way_to_say_what_is_meant(
    options: list[str], names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "/dev/null", *options]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: explain takes only one of DEVICE, --serial and --usb\n"
        f"  hint: leave out {names}, or '/dev/null'\n"
    )


@pytest.mark.parametrize("word", ["xyz", "0403:60011", "0403:6001:", "", ":6001"])
def test_what_is_no_usb_id(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--usb", word]) == 2
    assert capsys.readouterr().err == (
        f"genericdp: error: '{word}' is not a USB id\n  hint: write it as 'lsusb' does: 0403:6001\n"
    )
