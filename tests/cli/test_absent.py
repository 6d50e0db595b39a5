"""`genericdp explain` of what is not there, as it is read and as programs read it."""

import io
import json
from pathlib import Path

import pytest

from genericdp.cli import absent
from genericdp.cli.absent import Absent
from genericdp.cli.machine import Machine, machine_of
from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.verbs.explain import described, device_of, named
from genericdp.core.device import UdevDevice
from genericdp.core.explain.query import Sought
from genericdp.core.inventory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.state import StateFile
from tests.scenes.builders import a_fuse, a_modem, a_usb_serial, by_sys_path, resources_of

RULES = """
[[resource]]
name = "meter"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001", serial = "A50285BI" } }

[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
"""


def a_machine(*devices: UdevDevice, rules: str = RULES, memory: Memory | None = None) -> Machine:
    resources = resources_of(rules) if rules else ()
    return machine_of(Settings(domain="example.com"), resources, by_sys_path(*devices), memory)


def after_unplugging(device: UdevDevice, *left: UdevDevice, rules: str = RULES) -> Machine:
    """The machine that had this device too, and remembers it."""
    return a_machine(*left, rules=rules, memory=a_machine(device, *left).memory)


def told(found: object, machine: Machine) -> str:
    assert isinstance(found, Absent)
    stream = io.StringIO()
    absent.show(found, machine, Output(stream, width=80))
    json.dumps(absent.as_json(found, machine))
    return stream.getvalue()


def test_near_misses_come_first_then_what_is_remembered() -> None:
    other = a_usb_serial(3, product="6015", serial="A50285BJ")
    machine = after_unplugging(a_usb_serial(0), other)

    assert (
        told(described(Sought(serial="A50285BI"), machine), machine)
        == """\
no device with the serial number 'A50285BI' is plugged in
  /dev/ttyUSB3, /dev/bus/usb/001/004: serial A50285BJ

example.com/meter wants this; what comes nearest:
  50-test.toml:3
  /dev/ttyUSB3 matches all but usb.product: wanted '6001', is '6015'; and
  usb.serial: wanted 'A50285BI', is 'A50285BJ'

example.com/meter remembers it as meter_A50285BI
  health     Unhealthy: it is unplugged
  last port  USB port 2 of /sys/devices/pci0000:00/0000:00:14.0
  there now  /dev/ttyUSB3, /dev/bus/usb/001/004 (usb 0403:6015 serial A50285BJ)
  link       /dev/genericdp/meter_A50285BI, dead until it is back
"""
    )


@pytest.mark.parametrize("word", ["meter_A50285BI", "/dev/genericdp/meter_A50285BI"])
def test_an_unplugged_device_goes_by_its_id_and_its_link(word: str) -> None:
    machine = after_unplugging(a_usb_serial(0))

    assert (
        told(named(word, machine), machine)
        == """\
meter_A50285BI is not there: it is unplugged

example.com/meter wants this; nothing that is there comes near
  50-test.toml:3
  it wants SUBSYSTEM 'tty', usb.vendor '0403', usb.product '6001', usb.serial
  'A50285BI'

example.com/meter remembers it as meter_A50285BI
  health     Unhealthy: it is unplugged
  last port  USB port 2 of /sys/devices/pci0000:00/0000:00:14.0
  there now  nothing
  link       /dev/genericdp/meter_A50285BI, dead until it is back
"""
    )


def test_a_device_of_a_resource_that_is_gone_is_remembered() -> None:
    machine = after_unplugging(a_usb_serial(0), rules="")

    assert told(named("meter_A50285BI", machine), machine).startswith(
        "meter_A50285BI is not there: it is unplugged\n\nexample.com/meter remembers it"
    )


def test_what_nothing_is_known_of_is_said_to_be_unknown() -> None:
    machine = a_machine(a_fuse())

    assert told(described(Sought(vendor="1a86", product="7523"), machine), machine) == (
        "no USB device 1a86:7523 is plugged in\nno rule asks for it, and nothing like it is remembered\n"
    )


def test_what_is_there_is_found_by_what_it_is_what_is_offered_first() -> None:
    usb, *nodes = a_modem()
    dongle = a_usb_serial(9)
    machine = a_machine(
        usb, *nodes, dongle, rules='[[resource]]\nname="x"\nmatch={ usb = { interface = "02" } }'
    )

    assert described(Sought(vendor="2c7c"), machine) == [nodes[2], nodes[0], nodes[1], nodes[3], usb]
    assert described(Sought(serial="A50285BI"), machine) == [dongle, dongle.usb_device]


def test_a_device_that_is_there_goes_by_its_id_too() -> None:
    rules = RULES.replace('name = "meter"', 'name = "meter"\nreplicas = 2')
    dongle = a_usb_serial(0)
    machine = a_machine(dongle, rules=rules)

    for word in ("meter_A50285BI", "meter_A50285BI.1", "/dev/genericdp/meter_A50285BI"):
        assert named(word, machine) is dongle
    assert device_of("meter_A50285BI.2", machine) is None


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

example.com/meter wants this; what comes nearest:
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
    assert "example.com/modem remembers it as modem_TWO\n" in text
    assert isinstance(found, Absent)
    assert found.is_offered


def test_what_a_resource_takes_and_cannot_offer_is_said_with_the_reason() -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\ncontainer_path = "/dev/{ID_MODEL}"\n'
    machine = a_machine(a_fuse(), rules=rules)
    found = named("x", machine)

    assert (
        told(found, machine)
        == """\
example.com/x offers no device
/dev/fuse is taken, but not offered: it has no property ID_MODEL, which a
template names without a default

example.com/x wants this; nothing that is there comes near
  50-test.toml:2
  it wants SUBSYSTEM 'misc'
"""
    )
    assert isinstance(found, Absent)
    assert absent.as_json(found, machine)["refused"] == [
        {
            "node": "/dev/fuse",
            "reason": "it has no property ID_MODEL, which a template names without a default",
        }
    ]


def test_a_word_that_means_nothing_is_an_error() -> None:
    with pytest.raises(GenericdpError) as raised:
        named("ttyUSB7", a_machine(a_fuse()))
    assert str(raised.value) == "there is no 'ttyUSB7'"


def test_the_form_for_programs() -> None:
    machine = after_unplugging(a_usb_serial(0), a_usb_serial(3, product="6015", serial="A50285BJ"))
    found = described(Sought(serial="A50285BI"), machine)
    assert isinstance(found, Absent)

    assert absent.as_json(found, machine) == {
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
    StateFile(str(tmp_path)).save(a_machine(a_usb_serial(0)).memory)
    return ["--rules", str(rules), "--config", str(config)]


@pytest.mark.parametrize(
    "asked", [["meter_A50285BI"], ["--serial", "A50285BI"], ["--usb", "0403:6001"], ["meter"]]
)
def test_what_the_daemon_remembers_is_read_from_its_state(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = a_place(tmp_path)

    assert main(["explain", *asked, "--json", *options]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["devices"] == []
    assert [each["resource"] for each in said["waiting"]] == ["example.com/meter"]
    # Of the model nothing is remembered, only who it was.
    remembered = [each["id"] for each in said["remembered"]]
    assert remembered == ([] if "--usb" in asked else ["meter_A50285BI"])
    assert main(["explain", *asked, *options]) == 1
    assert "example.com/meter wants this; nothing that is there comes near\n" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["/dev/null", "--serial", "A"]])
def test_one_way_to_say_what_is_meant(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: explain takes one of DEVICE, --serial and --usb\n"
        "  hint: 'genericdp list --all' shows the device nodes of this machine\n"
    )


@pytest.mark.parametrize("word", ["xyz", "0403:60011", "0403:6001:", "", ":6001"])
def test_what_is_no_usb_id(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--usb", word]) == 2
    assert capsys.readouterr().err == (
        f"genericdp: error: '{word}' is no USB id\n  hint: write it as 'lsusb' does: 0403:6001\n"
    )
