"""`genericdp list`, as it is read."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.cli.main import main
from genericdp.cli.options import as_typed
from genericdp.cli.output import Output
from genericdp.cli.survey import survey_of
from genericdp.cli.text.inventory import as_json
from genericdp.cli.verbs.list import has_any, show
from genericdp.core.device import UdevDevice
from genericdp.core.explain.selection import Selection, narrowed
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.settings import Settings
from genericdp.errors import Location, Problem
from genericdp.files.state import StateFile
from tests.scenes.builders import (
    GPU_RULE,
    a_device,
    a_fuse,
    a_gpu,
    a_kfd,
    a_modem,
    a_terminal,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.edits import Node
from tests.scenes.machines import machine
from tests.scenes.state_file import save

RULES = """
[[resource]]
name = "fuse"
match = { DEVNAME = "/dev/fuse" }
replicas = 100

[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }

[[resource]]
name = "lte-modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"

[[resource]]
name = "tty"
match = { SUBSYSTEM = "tty" }

[[resource]]
name = "disk"
match = { SUBSYSTEM = "block" }
"""


def a_machine(*devices: UdevDevice, memory: Memory | None = None, rules: str = RULES) -> Survey:
    settings = Settings(domain="example.com")
    return survey_of(settings, resources_of(rules), by_sys_path(*devices), memory)


def listed(
    survey: Survey,
    *,
    width: int = 80,
    everything: bool = False,
    selected: bool = False,
    are_all: bool = True,
) -> str:
    stream = io.StringIO()
    output = Output(stream, width=width)
    show(survey, output, everything=everything, selected=selected, are_all=are_all)
    return stream.getvalue()


def test_every_device_stands_under_its_resource_with_its_nodes_and_links() -> None:
    spot = Spot("a port", "B7", "if00")
    unplugged = Remembered("example.com/ftdi", Device("ftdi_B7", links=("ftdi_B7",), spots=(spot,)))
    machine = a_machine(
        a_fuse(),
        a_usb_serial(0),
        a_usb_serial(7, port="3.1", serial=None, devnum=5),
        *a_modem(),
        memory=Memory({"ftdi_B7": unplugged}),
    )
    assert (
        listed(machine)
        == """\
  DEVICE                    HEALTH     NODE                  LINK
example.com/fuse: 1 device, for 100 containers each
  fuse_fuse                 Healthy    /dev/fuse
example.com/ftdi: 3 devices, 1 Unhealthy
  ftdi_A50285BI             Healthy    /dev/ttyUSB0
  ftdi_B7                   Unhealthy  -
    it is unplugged
  ftdi_port-3-1_go2q7mdnrh  Healthy    /dev/ttyUSB7
example.com/lte-modem: 1 device
  lte-modem_EC25-17         Healthy    /dev/ttyUSB1          @if00
                                       /dev/ttyUSB2          @if01
                                       /dev/ttyUSB3          @if02
                                       /dev/cdc-wdm0         @if04-cdc-wdm
                                       /dev/bus/usb/001/009  @usb
example.com/tty: no device
example.com/disk: no device
    no device matches; 'genericdp explain disk' shows close matches

Stable links: /dev/genericdp/DEVICE, plus the suffix in the LINK column.

Matched by several rules; the first in file order gets them:
  example.com/ftdi, not example.com/tty
    /dev/ttyUSB0, /dev/ttyUSB7
  example.com/lte-modem, not example.com/tty
    /dev/ttyUSB1, /dev/ttyUSB2, /dev/ttyUSB3
"""
    )


def test_ids_by_order_are_listed_with_what_may_replace_the_order() -> None:
    # A rule by the path in sysfs tells the ports of a serial card apart. Their ids do not.
    rules = '[[resource]]\nname = "port"\nmatch = { SUBSYSTEM = "tty", parent = { PCI_ID = "1393:1181" } }\n'
    answer = listed(a_machine(*machine("industrial-pc").values(), rules=rules))
    assert (
        """
Only the order of the device nodes decides which has which id:
  set an 'identity' that distinguishes them, or write a resource for each:
  'genericdp suggest --node NODE' finds what else does, if anything
    port_port-0000-02-00-0_
"""[:-1]
        in answer
    )


def test_a_healthy_device_for_which_new_pods_have_to_wait_is_shown_with_the_reason() -> None:
    rules = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
    shared = a_machine(a_fuse(), rules=rules + "replicas = 3\n")
    held = give({}, shared.inventory.offers["example.com/fuse"], ["fuse_fuse.1"], 0.0)
    machine = a_machine(a_fuse(), rules=rules, memory=replace(shared.memory, held=held))
    assert (
        listed(machine)
        == """\
  DEVICE     HEALTH   NODE       LINK
example.com/fuse: 1 device
  fuse_fuse  Healthy  /dev/fuse
    new pods have to wait: a pod may still hold it as fuse_fuse.1

Stable links: /dev/genericdp/DEVICE.
"""
    )


def test_links_without_suffixes_are_their_devices() -> None:
    rules = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
    machine = a_machine(a_fuse(), rules=rules)
    assert listed(machine).endswith("\n\nStable links: /dev/genericdp/DEVICE.\n")


def test_a_resource_named_like_a_device_is_explained_by_its_full_name() -> None:
    machine = a_machine(a_fuse(), rules='[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/kvm" }\n')
    assert (
        listed(machine)
        == """\
example.com/fuse: no device
    no device matches; 'genericdp explain example.com/fuse' shows close matches
"""
    )


def test_nodes_that_are_matched_but_not_offered_are_shown_once_with_the_reason() -> None:
    disks = [
        a_device(f"/sys/devices/virtual/block/loop{n}", subsystem="block", node=f"/dev/loop{n}")
        for n in (10, 9)
    ]
    machine = a_machine(*disks, rules='[[resource]]\nname = "disk"\nmatch = { SUBSYSTEM = "block" }\n')
    assert (
        listed(machine, width=60)
        == """\
example.com/disk: no device

Matched by a rule but not offered:
  example.com/disk: it gives control of the host; the rule
  lacks 'allow_dangerous = true'
    /dev/loop9, /dev/loop10
"""
    )


def test_what_pods_hold_of_resources_that_no_installed_rule_defines_is_shown() -> None:
    node = Node()
    (id_,) = node.look(RULES, a_usb_serial(0))
    node.allocate(id_)
    survey = survey_of(Settings(), (), by_sys_path(a_usb_serial(0)), node.memory)
    heading = "Held by pods, but no rule defines the resource any more."
    shown = listed(survey)
    assert shown.endswith(
        f"{heading} A container with such a\n"
        "device cannot start again: put the rule back, or delete the pod.\n"
        f"  example.com/ftdi\n    {id_}\n"
    )
    assert heading not in listed(survey, are_all=False), "these rules are not all"
    assert as_json(survey)["orphans"] == [{"resource": "example.com/ftdi", "id": id_}]
    for word in (id_, "example.com/ftdi"):
        selected = narrowed(survey, Selection((word,), ()))
        assert listed(selected, selected=True).lstrip() == shown.partition("\n\n")[2]
        assert has_any(selected, everything=False, are_all=True)
        assert not has_any(selected, everything=False, are_all=False)
    assert "ftdi" not in listed(narrowed(survey, Selection(("nothing",), ())), selected=True)


def test_all_shows_what_no_rule_matches_and_what_it_is() -> None:
    machine = a_machine(
        a_terminal(10),
        a_terminal(9),
        a_fuse(),
        a_usb_serial(10),
        a_usb_serial(9, port="3", devnum=5),
        rules='[[resource]]\nname = "x"\nmatch = { DRIVER = "x" }\n',
    )
    assert (
        listed(machine, everything=True).partition("\n\n")[2]
        == """\
Not matched by any rule:
  /dev/bus/usb/001/004  usb   usb 0403:6001 serial A50285BI
  /dev/bus/usb/001/005  usb   usb 0403:6001 serial A50285BI
  /dev/fuse             misc
  /dev/ttyUSB9          tty   usb 0403:6001 serial A50285BI
  /dev/ttyUSB10         tty   usb 0403:6001 serial A50285BI

Left out: virtual consoles (2). 'genericdp list --all /dev' shows them.
"""
    )


def test_a_list_of_what_words_describe_leaves_out_nothing_of_it() -> None:
    survey = survey_of(Settings(), (), machine("server"))
    shown = narrowed(survey, Selection(("loop",)))

    assert listed(shown, everything=True, selected=True).splitlines()[:3] == [
        "Not matched by any rule:",
        "  /dev/loop0         block",
        "  /dev/loop1         block",
    ]


def test_what_is_offered_is_narrowed_to_what_words_describe() -> None:
    survey = a_machine(a_fuse(), a_usb_serial(0), *a_modem())
    shown = narrowed(survey, Selection(("a5028",)))

    assert (
        listed(shown, everything=True, selected=True)
        == """\
  DEVICE         HEALTH   NODE          LINK
example.com/ftdi: 1 device
  ftdi_A50285BI  Healthy  /dev/ttyUSB0

Stable links: /dev/genericdp/DEVICE.

Matched by several rules; the first in file order gets them:
  example.com/ftdi, not example.com/tty
    /dev/ttyUSB0

Not matched by any rule:
  /dev/bus/usb/001/004  usb  usb 0403:6001 serial A50285BI
"""
    )


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (
            ["zzz"],
            "no device that a rule matches is found by 'zzz'; --all looks at the other device nodes, too\n",
        ),
        (
            ["--all", "--subsystem", "zzz", "lo"],
            "'lo' is a network interface; a device plugin gives containers device nodes and nothing else\n",
        ),
        (["--all", "zzz", "null"], "no device node of this machine matches 'zzz' and 'null'\n"),
        (
            ["--all", "--subsystem", "zzz", "--subsystem", "yyy", "null"],
            "no device node of this machine matches 'null' and subsystem zzz or yyy\n",
        ),
    ],
)
def test_words_that_nothing_matches_are_said_so(
    arguments: list[str], answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--rules", str(tmp_path), *arguments]) == 0
    assert " ".join(capsys.readouterr().out.split()) == answer.strip()


def test_this_machine_can_be_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--rules", str(tmp_path), "--all", "--subsystem", "mem", "NULL"]) == 0
    assert capsys.readouterr().out == "Not matched by any rule:\n  /dev/null  mem\n"


def test_a_hostile_serial_number_cannot_speak_to_the_terminal() -> None:
    machine = a_machine(a_usb_serial(serial="\x1b[2J\nroot"))
    assert "\x1b" not in listed(machine, everything=True)
    assert r"serial \x1b[2J\nroot" in listed(machine, everything=True)


def test_without_resources_there_is_one_line() -> None:
    assert listed(a_machine(a_fuse(), rules="")) == (
        "no resources: no rule file defines one; 'genericdp suggest' writes rules\n"
    )


def test_rules_with_mistakes_are_not_said_to_be_missing() -> None:
    mistakes = tuple(Problem(Location(f"{n}.toml", 1), "unknown key 'x'") for n in (1, 1, 2))
    assert listed(replace(a_machine(a_fuse(), rules=""), problems=mistakes[:2])) == (
        "no rule file can be used: 1 rule file has a mistake, see below\n"
    )
    assert listed(replace(a_machine(a_fuse(), rules=""), problems=mistakes)) == (
        "no rule file can be used: 2 rule files have mistakes, see below\n"
    )


SHARING = (
    GPU_RULE
    + """
[[resource]]
name = "kfd"
match = { DEVNAME = "/dev/kfd" }
"""
)


def test_shared_nodes_stand_once_below_the_devices_of_a_resource() -> None:
    assert listed(a_machine(*a_gpu(0), *a_gpu(1), a_kfd(), a_fuse(), rules=SHARING), everything=True) == (
        """\
  DEVICE                            HEALTH   NODE                 LINK
example.com/gpu: 2 devices
  gpu_port-0000-03-00-0_64xszgat5n  Healthy  /dev/dri/card0       @card
                                             /dev/dri/renderD128  @renderD
  gpu_port-0000-04-00-0_zigo6ig4zx  Healthy  /dev/dri/card1       @card
                                             /dev/dri/renderD129  @renderD
  shared                                     /dev/kfd             +kfd
example.com/kfd: 1 device
  kfd_kfd                           Healthy  /dev/kfd

Stable links: /dev/genericdp/DEVICE, plus the suffix in the LINK column.

For one container at a time, and yet shared:
  owned by example.com/kfd, shared by example.com/gpu
    /dev/kfd

Not matched by any rule:
  /dev/fuse  misc
"""
    )


def test_a_node_that_is_only_shared_is_matched_by_a_rule() -> None:
    machine = a_machine(*a_gpu(0), a_kfd(), rules=SHARING.partition('[[resource]]\nname = "kfd"')[0])
    document: Any = json.loads(json.dumps(as_json(machine, everything=True)))
    assert document["notTaken"] == []
    assert document["conflicts"] == []
    assert document["resources"][0]["shared"] == [
        {
            "path": "/dev/kfd",
            "number": "c 510:0",
            "link": "/dev/genericdp/shared+kfd",
            "permissions": "rw",
            "sysPath": a_kfd().sys_path,
        }
    ]


def test_json_has_everything_that_the_list_has() -> None:
    machine = a_machine(a_usb_serial(0), rules=RULES)
    document = json.loads(json.dumps(as_json(machine, everything=True)))
    ftdi = document["resources"][1]
    assert ftdi == {
        "name": "example.com/ftdi",
        "description": "",
        "replicas": 1,
        "file": "50-test.toml",
        "line": ftdi["line"],
        "devices": [
            {
                "id": "ftdi_A50285BI",
                "health": "Healthy",
                "reason": "",
                "waiting": "",
                "numaNode": None,
                "nodes": [
                    {
                        "path": "/dev/ttyUSB0",
                        "number": "c 188:0",
                        "link": "/dev/genericdp/ftdi_A50285BI",
                        "permissions": "rw",
                        "sysPath": a_usb_serial(0).sys_path,
                    }
                ],
                "links": ["/dev/genericdp/ftdi_A50285BI"],
            }
        ],
        "shared": [],
    }
    assert document["overlaps"] == [
        {"node": "/dev/ttyUSB0", "goesTo": "example.com/ftdi", "notTo": ["example.com/tty"]}
    ]
    assert document["conflicts"] == []
    assert document["notOffered"] == []
    assert document["toldApartByOrder"] == []
    assert [entry["node"] for entry in document["notTaken"]] == ["/dev/bus/usb/001/004"]


def test_this_machine_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """/dev/null is there on every machine; the list finds it through the real udev."""
    assert main(["list", "--json", "--all"]) == 0
    document = json.loads(capsys.readouterr().out)
    null = {
        "node": "/dev/null",
        "subsystem": "mem",
        "sysPath": "/sys/devices/virtual/mem/null",
        "name": "",
        "reason": "",
        "leftOut": "nodes that every container has",
    }
    assert null in document["notTaken"]


def test_mistakes_in_rule_files_are_printed_beside_the_devices_of_the_good_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "50-good.toml", tmp_path / "60-bad.toml"
    good.write_text('[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n')
    bad.write_text('[[resource]]\nnmae = "x"\nmatch = { DEVNAME = "/dev/null" }\n')
    for path in (tmp_path, good, bad):
        path.chmod(0o755)
    assert main(["list", "--rules", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == (
        "  DEVICE     HEALTH   NODE       LINK\n"
        "genericdp.io/null: 1 device\n"
        "  null_null  Healthy  /dev/null\n"
        "\n"
        "Stable links would be /dev/genericdp/DEVICE.\n"
    )
    assert err.startswith(f"{bad}:2:1: error: unknown key 'nmae' in [[resource]]\n")


def test_the_consequences_of_an_unreadable_memory_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    settings = tmp_path / "genericdp.toml"
    settings.write_text(f'state_dir = "{tmp_path}"\n')
    (tmp_path / "memory.json").mkdir()
    rules = tmp_path / "rules.d"
    rules.mkdir()
    for path in (tmp_path, settings, rules):
        path.chmod(0o755)
    assert main(["list", "--config", str(settings), "--rules", str(rules)]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert err == (
        f"note: cannot read '{tmp_path}/memory.json': Is a directory; "
        "unplugged devices are not shown, and ids of twins may differ"
    )


ONLY_FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }\n'


@pytest.mark.parametrize(
    ("rules", "stick", "reason"),
    [
        (
            ONLY_FTDI + 'identity = ["NOT_THERE"]\n',
            a_usb_serial(0),
            "it has no property NOT_THERE, which 'identity' uses",
        ),
        (ONLY_FTDI.replace("0403", "1a86"), a_usb_serial(0), "the rules no longer match it"),
        (ONLY_FTDI, replace(a_usb_serial(0), initialized=False), "udev has not finished with it"),
    ],
)
def test_a_device_that_is_there_and_not_offered_is_not_called_unplugged(
    rules: str, stick: UdevDevice, reason: str, tmp_path: Path
) -> None:
    offered = a_machine(a_usb_serial(0), rules=ONLY_FTDI)
    daemon = a_machine(stick, rules=rules, memory=offered.memory)
    save(StateFile(str(tmp_path)), daemon.memory)
    read = a_machine(stick, rules=rules, memory=StateFile(str(tmp_path)).load())
    for survey in (daemon, read):
        (device,) = survey.inventory.offers["example.com/ftdi"].devices
        assert (device.id, device.reason) == ("ftdi_A50285BI", reason)


def test_the_hint_repeats_the_options_so_that_it_can_be_typed() -> None:
    assert (
        as_typed(["my rules.toml", "b"], None, "x.org") == " --rules 'my rules.toml' --rules b --domain x.org"
    )
    machine = a_machine(rules='[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/x" }\n')
    stream = io.StringIO()
    show(machine, Output(stream, width=132), options=as_typed(["x.toml"], None, None))
    assert (
        "    no device matches; 'genericdp explain --rules x.toml x' shows close matches\n"
        in stream.getvalue()
    )
