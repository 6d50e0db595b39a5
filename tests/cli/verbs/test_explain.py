"""`genericdp explain`, as it is read."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.survey import survey_of
from genericdp.cli.text.explanation import as_json, show, show_all
from genericdp.cli.verbs.explain import named
from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent
from genericdp.core.explain.access import Access
from genericdp.core.explain.explanation import explain
from genericdp.core.explain.survey import Survey
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from tests.scenes.builders import (
    CONTROLLER,
    GPU_RULE,
    a_device,
    a_function,
    a_fuse,
    a_gpu,
    a_kfd,
    a_modem,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    a_vfio_group,
    by_sys_path,
    resources_of,
)
from tests.scenes.edits import Node, rule
from tests.scenes.rules import MODEM_RULE

DIALOUT = Access(0o20660, 0, "root", 20, "dialout")

OTHER_RULES = """
[[resource]]
name = "serial"
match = { SUBSYSTEM = "tty", usb = { vendor = ["0403", "1a86"] } }
container_path = "/dev/serial{index}"
devlinks = ["/dev/serial/by-id/*"]
replicas = 2
env = { SERIAL = "{ID_SERIAL_SHORT|none}" }
mounts = [{ host_path = "/run/lock", container_path = "/run/lock", read_only = false }]
annotations = { "example.com/port" = "{ID_PATH}" }

[[resource]]
name = "any-tty"
match = [{ SUBSYSTEM = "tty" }, { SUBSYSTEM = "usbmisc", parent = { DRIVER = "qmi_wwan" } }]
"""
RULES = MODEM_RULE + OTHER_RULES


def a_machine(*devices: UdevDevice, rules: str = RULES) -> Survey:
    return survey_of(Settings(domain="example.com"), resources_of(rules), by_sys_path(*devices))


def explained(subject: UdevDevice, machine: Survey, access: Access | None = None) -> str:
    stream = io.StringIO()
    explanation = explain(subject, machine)
    show(explanation, machine.settings, Output(stream, width=80), lambda _: access)
    return stream.getvalue()


def test_the_answer_the_facts_what_a_container_gets_and_the_reasons_of_every_resource() -> None:
    dongle = a_usb_serial(0)
    assert (
        explained(dongle, a_machine(dongle), DIALOUT)
        == """\
/dev/ttyUSB0 goes to example.com/serial as device serial_A50285BI
Healthy

  device node  /dev/ttyUSB0 (c 188:0)
  access       crw-rw----, owner root (0), group dialout (20)
  sys path     /sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/tty/ttyUSB0
  subsystem    tty
  model        usb 0403:6001 serial A50285BI
  devlink      /dev/serial/by-id/usb-0403_A50285BI-if00-port0

A container that is allocated serial_A50285BI.0 gets
  device      /dev/serial0 (rw) from /dev/genericdp/serial_A50285BI, now
              /dev/ttyUSB0
  device      /dev/serial/by-id/usb-0403_A50285BI-if00-port0 (rw) from
              /dev/genericdp/serial_A50285BI, now /dev/ttyUSB0
  mount       /run/lock (writable) from /run/lock
  env         GENERICDP_EXAMPLE_COM_SERIAL=/dev/serial0
  env         GENERICDP_EXAMPLE_COM_SERIAL_IDS=serial_A50285BI.0
  env         SERIAL=A50285BI
  annotation  example.com/port=pci-0000:00:14.0-usb-0:2:1.0
  access      a non-root process needs supplementalGroups: [20]
  caution     in a pod with hostUsers: false, runc looks for /dev/serial0 on the
              host; container_path = "{link}" works in every pod

example.com/serial matches
  50-test.toml:14
  yes  SUBSYSTEM   is 'tty'   wanted: 'tty'
  yes  usb.vendor  is '0403'  wanted: '0403' or '1a86'

example.com/any-tty matches, but example.com/serial comes first
  50-test.toml:24
  either
  yes  SUBSYSTEM  is 'tty'  wanted: 'tty'
  or
  no  SUBSYSTEM      is 'tty'  wanted: 'usbmisc'
  no  parent.DRIVER  is 'usb'  wanted: 'qmi_wwan'

example.com/modem does not match
  50-test.toml:3
  no  usb.vendor  is '0403'  wanted: '2c7c'
"""
    )


def test_an_iommu_group_is_explained_with_all_its_functions() -> None:
    rule = '[[resource]]\nname = "t4"\nmatch = { SUBSYSTEM = "vfio", parent = { PCI_ID = "10DE:1EB8" } }\n'
    audio = a_function("0000:81:00.1", driver="snd_hda_intel", pci_id="10DE:10F8")
    group = a_vfio_group(51, audio, a_function(), a_function("0000:80:01.0", driver="", kind="0x060400"))
    shown = explained(group, a_machine(group, rules=rule))
    assert shown.partition("\nA container")[0] == (
        "/dev/vfio/51 goes to example.com/t4 as device\n"
        "t4_port-0000-81-00-1-vfio_ymqz4rn5jq\n"
        "Unhealthy: 0000:81:00.1 of its IOMMU group is bound to snd_hda_intel, not to a\n"
        "vfio driver\n"
        "\n"
        "  device node  /dev/vfio/51 (c 243:51)\n"
        "  sys path     /sys/devices/virtual/vfio/51\n"
        "  subsystem    vfio\n"
        "  IOMMU group  0000:81:00.1 (snd_hda_intel), 0000:81:00.0 (vfio-pci),\n"
        "               0000:80:01.0 (no driver)\n"
        "  model        pci 10de:10f8\n"
    )
    assert shown.endswith("  yes  parent.PCI_ID  is '10DE:1EB8'  wanted: '10DE:1EB8'\n")


def test_a_part_of_a_device_is_explained_with_the_whole_device() -> None:
    modem = a_modem()
    assert (
        explained(modem[3], a_machine(*modem))
        == """\
/dev/ttyUSB3 goes to example.com/modem as part of device modem_EC25-17
Healthy

  device node  /dev/ttyUSB3 (c 188:3)
  sys path     /sys/devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.2/tty/ttyUSB3
  subsystem    tty
  model        usb 2c7c:0125 serial EC25-17
  grouped by   1-4 (usb)

A container that is allocated modem_EC25-17 gets
  device   /dev/modem-at (rw) from /dev/genericdp/modem_EC25-17@if02, now
           /dev/ttyUSB3
  device   /dev/modem-qmi (rw) from /dev/genericdp/modem_EC25-17@if04-cdc-wdm,
           now /dev/cdc-wdm0
  env      GENERICDP_EXAMPLE_COM_MODEM=/dev/modem-at,/dev/modem-qmi
  env      GENERICDP_EXAMPLE_COM_MODEM_IDS=modem_EC25-17
  caution  in a pod with hostUsers: false, runc looks for /dev/modem-at,
           /dev/modem-qmi on the host; container_path = "{link}" works in every
           pod

example.com/modem matches
  50-test.toml:3
  yes  usb.vendor  is '2c7c'  wanted: '2c7c'
  [[resource.node]] 1, /dev/modem-at:
    yes  SUBSYSTEM      is 'tty'  wanted: 'tty'
    yes  usb.interface  is '02'   wanted: '02'
  [[resource.node]] 2, /dev/modem-qmi:
    no  SUBSYSTEM  is 'tty'  wanted: 'usbmisc'

example.com/any-tty matches, but example.com/modem comes first
  50-test.toml:24
  either
  yes  SUBSYSTEM  is 'tty'  wanted: 'tty'
  or
  no  SUBSYSTEM      is 'tty'  wanted: 'usbmisc'
  no  parent.DRIVER  is 'usb'  wanted: 'qmi_wwan'

example.com/serial does not match
  50-test.toml:14
  yes  SUBSYSTEM   is 'tty'   wanted: 'tty'
  no   usb.vendor  is '2c7c'  wanted: '0403' or '1a86'
"""
    )


def test_a_node_that_no_node_table_matches_shows_where_each_table_fails() -> None:
    modem = a_modem()
    assert (
        explained(modem[0], a_machine(*modem))
        == """\
/dev/bus/usb/001/009 is not offered
no rule matches it; for example.com/modem it matches all but SUBSYSTEM: wanted
'usbmisc', is 'usb'

  device node  /dev/bus/usb/001/009 (c 189:8)
  sys path     /sys/devices/pci0000:00/0000:00:14.0/usb1/1-4
  subsystem    usb
  model        usb 2c7c:0125 serial EC25-17

example.com/modem does not match
  50-test.toml:3
  yes  usb.vendor  is '2c7c'  wanted: '2c7c'
  [[resource.node]] 1, /dev/modem-at:
    no  SUBSYSTEM      is 'usb'    wanted: 'tty'
    no  usb.interface  is missing  wanted: '02'
  [[resource.node]] 2, /dev/modem-qmi:
    no  SUBSYSTEM  is 'usb'  wanted: 'usbmisc'

example.com/any-tty does not match
  50-test.toml:24
  either
  no  SUBSYSTEM  is 'usb'  wanted: 'tty'
  or
  no  SUBSYSTEM      is 'usb'       wanted: 'usbmisc'
  no  parent.DRIVER  is 'xhci_hcd'  wanted: 'qmi_wwan'

example.com/serial does not match
  50-test.toml:14
  no  SUBSYSTEM   is 'usb'   wanted: 'tty'
  no  usb.vendor  is '2c7c'  wanted: '0403' or '1a86'

To write a rule for it: genericdp suggest /dev/bus/usb/001/009
"""
    )


def beginning(text: str) -> str:
    """The answer: what stands before the first empty line."""
    return text.partition("\n\n")[0]


def test_an_unhealthy_device_says_why() -> None:
    usb = a_usb_device(authorized=False)
    machine = a_machine(usb, rules='[[resource]]\nname = "any"\nmatch = { SUBSYSTEM = "usb" }\n')
    assert beginning(explained(usb, machine)) == (
        "/dev/bus/usb/001/004 goes to example.com/any as device any_A50285BI\n"
        "Unhealthy: the USB device is not authorized"
    )


def test_a_device_that_is_matched_but_refused_has_a_reason() -> None:
    disk = a_device("/sys/devices/virtual/block/sda", subsystem="block", node="/dev/sda", number="b 8:0")
    machine = a_machine(disk, rules='[[resource]]\nname = "any"\nmatch = { SUBSYSTEM = "block" }\n')
    assert beginning(explained(disk, machine)) == (
        "/dev/sda is not offered\n"
        "example.com/any matches, but it gives control of the host; the rule lacks\n"
        "'allow_dangerous = true'"
    )


def test_what_has_no_device_node_names_the_nodes_below_it() -> None:
    modem = a_modem()
    interface = modem[1].parent
    assert interface is not None
    assert beginning(explained(interface, a_machine(*modem))) == (
        f"{interface.sys_path} is not offered\n"
        "it has no device node, and only device nodes can be offered; below it are\n"
        "/dev/ttyUSB1"
    )


def test_what_udev_has_not_finished_with_is_not_offered_yet() -> None:
    young = a_device(node="/dev/fuse", number="c 10:229", initialized=False)
    machine = a_machine(young, rules='[[resource]]\nname = "any"\nmatch = { SUBSYSTEM = "misc" }\n')
    assert beginning(explained(young, machine)) == (
        "/dev/fuse is not offered\nudev has not finished with it yet"
    )


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ('[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\n', "no rule matches it"),
        ("", "no rule file defines a resource"),
    ],
)
def test_a_node_that_no_resource_matches_goes_nowhere(rules: str, reason: str) -> None:
    machine = a_machine(a_fuse(), rules=rules)
    assert beginning(explained(a_fuse(), machine)) == f"/dev/fuse is not offered\n{reason}"


def write_bad_rules(folder: Path) -> tuple[str, str]:
    """A rule file with a mistake, and what is printed about it."""
    rules = folder / "50-null.toml"
    rules.write_text('[[resource]]\nname = "nothing"\nmach = { DEVNAME = "/dev/null" }\n')
    rules.chmod(0o644)
    mistake = (
        f"{rules}:3:1: error: unknown key 'mach' in [[resource]]\n"
        '    3 | mach = { DEVNAME = "/dev/null" }\n'
        "      | ^^^^\n"
        "  hint: did you mean 'match'?\n"
    )
    return str(rules), mistake


def test_a_rule_with_a_mistake_is_not_said_to_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, mistake = write_bad_rules(tmp_path)

    assert main(["explain", "--rules", rules, "/dev/null"]) == 1
    out, err = capsys.readouterr()
    assert beginning(out) == (
        "/dev/null is not offered\nno rule file can be used: 1 rule file has a mistake, see below"
    )
    assert "To write a rule" not in out
    assert err == mistake


def test_a_resource_of_a_file_with_a_mistake_is_not_found_and_the_mistake_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, mistake = write_bad_rules(tmp_path)

    assert main(["explain", "--rules", rules, "nothing"]) == 1
    assert capsys.readouterr() == (
        "",
        mistake + "genericdp: error: no device node, device id or resource is called 'nothing'\n"
        "  hint: 'genericdp list --all' shows the device nodes of this machine\n",
    )


def test_beside_good_rules_a_mistake_in_another_file_is_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, mistake = write_bad_rules(tmp_path)
    other = tmp_path / "60-zero.toml"
    other.write_text('[[resource]]\nname = "zero"\nmatch = { DEVNAME = "/dev/zero" }\n')
    other.chmod(0o644)

    assert main(["explain", "--rules", rules, "--rules", str(other), "/dev/null"]) == 1
    out, err = capsys.readouterr()
    assert beginning(out) == (
        "/dev/null is not offered\nno rule matches it; 1 rule file has a mistake, see below"
    )
    assert "To write a rule" not in out
    assert err == mistake


def test_a_typing_error_in_a_short_rule_is_named_even_beside_a_long_rule_that_misses_more() -> None:
    dongle = a_usb_serial(0)
    rules = """
[[resource]]
name = "many"
match.usb = { vendor = "0403", product = "6001", serial = "B", port = "9" }
match.SUBSYSTEM = "tty"
match.DEVNAME = "/dev/tty*"
match.ID_BUS = "usb"
match."ATTR{speed}" = "9600"
[[resource]]
name = "one"
match = { usb = { vendor = "0403", product = "6010" } }
"""
    assert beginning(explained(dongle, a_machine(dongle, rules=rules))) == (
        "/dev/ttyUSB0 is not offered\n"
        "no rule matches it; for example.com/one it matches all but usb.product: wanted\n"
        "'6010', is '6001'"
    )


def test_the_hint_of_the_verb_names_the_condition_with_the_typing_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "50-null.toml"
    rules.write_text("""
[[resource]]
name = "many"
match.SUBSYSTEM = "mem"
match.DEVNAME = "/dev/null"
match.DEVPATH = "*/null"
match.MAJOR = "1"
match.MINOR = "3"
match.ID_A = "a"
match.ID_B = "b"
match.ID_C = "c"
[[resource]]
name = "one"
match = { SUBSYSTEM = "mem", DEVNAME = "/dev/nul" }
""")
    rules.chmod(0o644)

    assert main(["explain", "--rules", str(rules), "/dev/null"]) == 1
    assert beginning(capsys.readouterr().out) == (
        "/dev/null is not offered\n"
        "no rule matches it; for genericdp.io/one it matches all but DEVNAME: wanted\n"
        "'/dev/nul', is '/dev/null'"
    )


def test_a_table_without_conditions_and_a_cdi_device_are_shown_as_what_they_are() -> None:
    usb, *_, control = a_modem()
    rules = """
[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
cdi = ["vendor.example/modem={ID_SERIAL_SHORT}"]
[[resource.node]]
match = { SUBSYSTEM = "tty" }
optional = true
[[resource.node]]
"""
    text = explained(control, a_machine(usb, control, rules=rules))
    assert "  CDI device  vendor.example/modem=EC25-17\n" in text
    assert text.endswith("""
  [[resource.node]] 1, /dev/{devname}:
    no  SUBSYSTEM  is 'usbmisc'  wanted: 'tty'
  [[resource.node]] 2, /dev/{devname}:
    yes  no conditions
""")


def gets(subject: UdevDevice, machine: Survey, access: Access | None = None) -> str:
    """What a container gets, as it is explained."""
    _, _, after = explained(subject, machine, access).partition("\n\nA container that is allocated ")
    return after.partition("\n\n")[0]


def test_by_cdi_a_container_gets_names_and_what_they_mean_now() -> None:
    dongle = replace(a_usb_serial(0), gid=20)
    machine = a_machine(dongle, rules=OTHER_RULES.replace("replicas = 2", 'answer = "cdi"'))
    assert (
        gets(dongle, machine, DIALOUT)
        == """\
serial_A50285BI gets
  CDI device  example.com/serial=serial_A50285BI
  device      /dev/serial0 (rw) from /dev/ttyUSB0 now
  device      /dev/serial/by-id/usb-0403_A50285BI-if00-port0 (rw) from
              /dev/ttyUSB0 now
  group       20, for its process
  mount       /run/lock (writable) from /run/lock
  env         GENERICDP_EXAMPLE_COM_SERIAL=/dev/serial0
  env         GENERICDP_EXAMPLE_COM_SERIAL_IDS=serial_A50285BI
  env         SERIAL=A50285BI
  annotation  example.com/port=pci-0000:00:14.0-usb-0:2:1.0
  caution     in a pod with hostUsers: false, runc looks for /dev/serial0 on the
              host; container_path = "{link}" works in every pod"""
    )
    container: Any = as_json(explain(dongle, machine), machine.settings, lambda _: DIALOUT)["container"]
    assert container["answer"] == "cdi"
    assert container["cdiDevices"] == ["example.com/serial=serial_A50285BI"]
    assert container["additionalGids"] == [20]
    assert container["staleAfterReplug"] == []


def test_what_only_cdi_keeps_right_after_a_replug_is_said() -> None:
    usb = a_usb_device("2", serial="A")
    rules = (
        '[[resource]]\nname = "usb"\nmatch = { SUBSYSTEM = "usb", DEVTYPE = "usb_device" }\nkubevirt = true\n'
        'env = { NODE = "{DEVNAME|none}", SERIAL = "{ID_SERIAL_SHORT}" }\n'
    )
    machine = a_machine(usb, rules=rules)
    assert (
        'caution  after a re-plug, only answer = "cdi" keeps this right:\n'
        "           /dev/bus/usb/001/004, USB_RESOURCE_EXAMPLE_COM_USB, NODE" in gets(usb, machine)
    )
    assert "caution" not in gets(usb, a_machine(usb, rules=rules + 'answer = "cdi"'))
    assert "by CDI  example.com/usb=usb_A, if the container runtime reads CDI" in gets(
        usb, a_machine(usb, rules=rules + 'answer = "auto"')
    )


def test_the_parents_that_decide_what_a_container_gets_are_named() -> None:
    controller = a_device(CONTROLLER, subsystem="pci", properties={"PCI_SLOT_NAME": "0000:00:14.0"})
    usb = replace(a_usb_device("2", serial="A"), parent=controller)
    tty = a_usb_node(usb, "tty", "ttyUSB0", properties={"ID_MODEL": "Own\x1b[2J"})
    rules = """
[[resource]]
name = "serial"
match = { SUBSYSTEM = "tty" }
group_by = { SUBSYSTEM = "usb", DEVTYPE = "usb_interface" }
env = { PCI = "{PCI_SLOT_NAME}", "BUS-{ID_MODEL}" = "{BUSNUM}", NONE = "{NOT_THERE|}" }
container_path = "/dev/serial-{DRIVER|none}-{PCI_SLOT_NAME}"
"""
    machine = a_machine(tty, rules=rules)
    assert """\
  grouped by   1-2:1.0 (usb)
  property     PCI_SLOT_NAME=0000:00:14.0, of 0000:00:14.0 (pci)
  property     BUSNUM=001, of 1-2 (usb)
  property     DRIVER=usb, of 1-2 (usb)

A container""" in explained(tty, machine)
    document: Any = as_json(explain(tty, machine), machine.settings, lambda _: None)
    assert document["groupedBy"] == f"{usb.sys_path}/1-2:1.0"
    assert [(each["name"], each["sysPath"]) for each in document["properties"]] == [
        ("PCI_SLOT_NAME", CONTROLLER),
        ("ID_MODEL", tty.sys_path),
        ("BUSNUM", usb.sys_path),
        ("DRIVER", usb.sys_path),
    ]


def test_json_has_the_answer_the_verdicts_and_the_container() -> None:
    dongle = a_usb_serial(0)
    machine = a_machine(dongle)
    explanation = explain(dongle, machine)
    document = json.loads(json.dumps(as_json(explanation, machine.settings, lambda _: DIALOUT)))
    opinions = document.pop("opinions")
    assert document == {
        "sysPath": dongle.sys_path,
        "node": "/dev/ttyUSB0",
        "number": "c 188:0",
        "subsystem": "tty",
        "model": "usb 0403:6001 serial A50285BI",
        "access": {"mode": "0660", "uid": 0, "owner": "root", "gid": 20, "group": "dialout"},
        "devlinks": ["/dev/serial/by-id/usb-0403_A50285BI-if00-port0"],
        "resource": "example.com/serial",
        "id": "serial_A50285BI",
        "health": "Healthy",
        "reason": "",
        "sharedBy": [],
        "groupedBy": None,
        "properties": [
            {"name": "ID_SERIAL_SHORT", "value": "A50285BI", "sysPath": dongle.sys_path},
            {"name": "ID_PATH", "value": "pci-0000:00:14.0-usb-0:2:1.0", "sysPath": dongle.sys_path},
        ],
        "container": {
            "devices": [
                {
                    "containerPath": path,
                    "hostPath": "/dev/genericdp/serial_A50285BI",
                    "permissions": "rw",
                }
                for path in ("/dev/serial0", "/dev/serial/by-id/usb-0403_A50285BI-if00-port0")
            ],
            "mounts": [{"containerPath": "/run/lock", "hostPath": "/run/lock", "readOnly": False}],
            "envs": {
                "GENERICDP_EXAMPLE_COM_SERIAL": "/dev/serial0",
                "GENERICDP_EXAMPLE_COM_SERIAL_IDS": "serial_A50285BI.0",
                "SERIAL": "A50285BI",
            },
            "annotations": {"example.com/port": "pci-0000:00:14.0-usb-0:2:1.0"},
            "answer": "devices",
            "cdiDevices": [],
            "additionalGids": [],
            "staleAfterReplug": [],
            "supplementalGroups": [20],
            "onlyForRoot": [],
            "notWithUserNamespaces": ["/dev/serial0"],
            "notFoundByLibraries": [],
        },
    }
    assert [(opinion["resource"], opinion["takes"]) for opinion in opinions] == [
        ("example.com/serial", True),
        ("example.com/any-tty", True),
        ("example.com/modem", False),
    ]
    assert opinions[2]["match"] == {
        "holds": False,
        "alternatives": [
            [{"key": "usb.vendor", "wanted": "'2c7c'", "actual": "0403", "holds": False}],
        ],
    }


def test_a_node_that_goes_along_with_devices_is_explained_by_the_table_that_shares_it() -> None:
    kfd = a_kfd()
    machine = a_machine(*a_gpu(), kfd, rules=GPU_RULE)
    assert (
        explained(kfd, machine)
        == """\
/dev/kfd goes along with every device of example.com/gpu

  device node  /dev/kfd (c 510:0)
  sys path     /sys/devices/virtual/kfd/kfd
  subsystem    kfd

example.com/gpu shares it
  50-test.toml:3
  [[resource.node]] with shared = true, /dev/{devname}:
    yes  DEVNAME  is '/dev/kfd'  wanted: '/dev/kfd'
"""
    )
    document: Any = as_json(explain(kfd, machine), machine.settings, lambda _: None)
    assert document["sharedBy"] == ["example.com/gpu"]
    assert document["reason"] == ""
    assert [opinion["shares"] for opinion in document["opinions"]] == [True]
    assert named("shared+kfd", machine) is kfd


def test_a_shared_node_that_a_resource_owns_is_explained_as_both() -> None:
    owner = '[[resource]]\nname = "kfd"\nmatch = { DEVNAME = "/dev/kfd" }\n'
    answer = beginning(explained(a_kfd(), a_machine(*a_gpu(), a_kfd(), rules=GPU_RULE + owner)))
    assert answer == (
        "/dev/kfd goes to example.com/kfd as device kfd_kfd, and goes along with every\n"
        "device of example.com/gpu\nHealthy"
    )


def test_what_a_container_gets_includes_the_shared_nodes() -> None:
    card, render = a_gpu()
    rules = GPU_RULE.replace("drm", 'drm", DEVNAME = "/dev/dri/card*')
    assert (
        gets(card, a_machine(card, render, a_kfd(), rules=rules), replace(DIALOUT, gid=44))
        == """\
gpu_port-0000-03-00-0_64xszgat5n gets
  device  /dev/kfd (rw) from /dev/genericdp/shared+kfd, now /dev/kfd
  device  /dev/dri/card0 (rw) from
          /dev/genericdp/gpu_port-0000-03-00-0_64xszgat5n@card, now
          /dev/dri/card0
  env     GENERICDP_EXAMPLE_COM_GPU=/dev/dri/card0
  env     GENERICDP_EXAMPLE_COM_GPU_IDS=gpu_port-0000-03-00-0_64xszgat5n
  access  a non-root process needs supplementalGroups: [44]"""
    )


def test_without_a_shared_node_a_container_would_get_nothing() -> None:
    gpu = a_gpu()
    machine = a_machine(*gpu, rules=GPU_RULE)
    text = explained(gpu[0], machine)
    assert "Unhealthy: the shared node for DEVNAME '/dev/kfd' is missing" in text
    assert "A container" not in text
    found = named("example.com/gpu", machine)
    assert isinstance(found, Absent)
    assert found.answer == (
        "example.com/gpu offers no device; 1 device is Unhealthy: "
        "the shared node for DEVNAME '/dev/kfd' is missing"
    )


def test_a_shared_node_that_is_refused_is_explained_like_any_other() -> None:
    mem = a_device("/sys/devices/virtual/mem/mem", subsystem="mem", node="/dev/mem", number="c 1:1")
    text = explained(mem, a_machine(*a_gpu(), mem, rules=GPU_RULE.replace("kfd", "mem")))
    assert beginning(text) == (
        "/dev/mem is not offered\nexample.com/gpu matches, but it gives control of the host; the rule lacks\n"
        "'allow_dangerous = true'"
    )
    assert "suggest" not in text


def test_this_machines_null_device_can_be_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the real udev, and by any name that leads to it."""
    rules = tmp_path / "50-null.toml"
    rules.write_text('[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n')
    rules.chmod(0o644)
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for name in ("/dev/null", "null", "/sys/class/mem/null", str(link)):
        assert main(["explain", "--rules", str(rules), name]) == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert first == "/dev/null goes to genericdp.io/null as device null_null"


def test_a_device_that_no_rule_of_this_machine_matches_has_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--json", "--rules", str(tmp_path), "/dev/null"]) == 1
    assert json.loads(capsys.readouterr().out)["reason"] == "no rule file defines a resource"
    assert main(["explain", "--rules", str(tmp_path), "/dev/null"]) == 1
    assert beginning(capsys.readouterr().out) == "/dev/null is not offered\nno rule file defines a resource"


def test_of_several_nodes_each_has_a_line_and_the_first_is_explained() -> None:
    usb, *nodes = a_modem()
    machine = a_machine(usb, *nodes)
    found = named("1-4", machine)
    assert not isinstance(found, UdevDevice | Absent)
    stream = io.StringIO()
    show_all(
        [explain(each, machine) for each in found],
        machine.settings,
        Output(stream, width=80),
        lambda _: None,
    )

    assert stream.getvalue().startswith("""\
/dev/ttyUSB1 goes to example.com/any-tty as device any-tty_EC25-17
/dev/ttyUSB2 goes to example.com/any-tty as device any-tty_EC25-17.if01
/dev/ttyUSB3 goes to example.com/modem as part of device modem_EC25-17
/dev/cdc-wdm0 goes to example.com/modem as part of device modem_EC25-17
/dev/bus/usb/001/009 is not offered: no rule matches it; for example.com/modem
it matches all but SUBSYSTEM: wanted 'usbmisc', is 'usb'

/dev/ttyUSB1 goes to example.com/any-tty as device any-tty_EC25-17
Healthy
""")


@pytest.mark.parametrize(("word", "rule"), [("/dev/acme-ctl", "shares"), ("acme0", "takes")])
def test_a_missing_node_that_a_rule_names_is_explained_by_the_rule(word: str, rule: str) -> None:
    rules = """
[[resource]]
name = "acme"
match = { DEVNAME = "/dev/acme0" }

[[resource.node]]
match = { DEVNAME = "/dev/acme-ctl" }
shared = true
"""
    machine = a_machine(a_usb_serial(0), rules=rules)
    with pytest.raises(GenericdpError) as raised:
        named(word, machine)
    (location,) = [each.location for each in machine.resources]
    path = f"/dev/{word.removeprefix('/dev/')}"
    assert (str(raised.value), raised.value.hint) == (
        f"'{path}' is missing",
        f"example.com/acme {rule} it ({location.file}:{location.line})",
    )


def test_the_kubelet_does_not_allocate_an_unhealthy_device() -> None:
    rules = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\nhealth = { "ATTR{ready}" = "1" }\n'
    tty = a_usb_serial(0)
    assert "\nA container that is allocated ftdi_A50285BI would get\n" in explained(
        tty, a_machine(tty, rules=rules)
    )


@pytest.mark.parametrize(("before", "after"), [("", "replicas = 3"), ("replicas = 3", "")])
def test_a_device_whose_ids_all_wait_is_explained(before: str, after: str) -> None:
    tty, node = a_usb_serial(0), Node()
    held = next(iter(node.look(rule("ftdi", before), tty)))
    node.allocate(held)
    resources = resources_of(rule("ftdi", after))
    survey = survey_of(Settings(domain="example.com"), resources, by_sys_path(tty), node.memory)
    shown = explained(tty, survey)
    assert shown.startswith(
        "/dev/ttyUSB0 goes to example.com/ftdi as device ftdi_A50285BI\nHealthy\n"
        f"New pods have to wait: a pod may still hold it as {held}\n"
    )
    assert "would get" not in shown
