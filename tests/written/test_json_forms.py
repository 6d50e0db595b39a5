"""The forms that programs read: what `docs/json.md` lists is what is printed, and the other way round."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.cli.main import VERBS, parser_of
from genericdp.cli.options import open_rules
from genericdp.cli.survey import Affected, BareNode, survey_of
from genericdp.cli.text import absent, explanation, inventory
from genericdp.cli.verbs import check, suggest
from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent
from genericdp.core.explain.access import Access
from genericdp.core.explain.explanation import explain
from genericdp.core.explain.lookup import look_up
from genericdp.core.explain.query import Query
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.inventory import Orphan, Refusal
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.suggestion import suggest as suggested
from tests.scenes.builders import (
    a_bare_node,
    a_device,
    a_fuse,
    a_modem,
    a_usb_serial,
    by_sys_path,
    resources_of,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "json.md").read_text(encoding="utf-8")

#: Tables of names that somebody else chooses.
BY_NAMES = ("envs", "annotations")

RULES = """
[[resource]]
name = "fuse"
match = { DEVNAME = "/dev/fuse" }
mounts = [{ host_path = "/run/a", container_path = "/run/a" }]
cdi = "vendor.example/class=x"
container_path = "/dev/other"

[[resource]]
name = "meter"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001", serial = "A50285BI" } }

[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
env = { MODEM = "{BUSNUM}" }
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }

[[resource]]
name = "tty"
match = { SUBSYSTEM = "tty" }

[[resource]]
name = "disk"
match = { SUBSYSTEM = "block" }

[[resource]]
name = "same"
match = { SUBSYSTEM = "same" }
identity = ["ID_SAME"]
[[resource.node]]
match = { DEVNAME = "/dev/fuse" }
shared = true

[[resource]]
name = "acme"
match = { DEVNAME = "/dev/acme0" }
"""


def documented(heading: str) -> set[str]:
    """The keys below a heading."""
    (below,) = re.findall(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL
    )
    return set(re.findall(r"^\| `(\S+)` \|", below, flags=re.MULTILINE))


def keys(value: object, path: str = "") -> Iterator[str]:
    """The keys of a document as they are documented; those of a table in a table stand for it."""
    if isinstance(value, list):
        if not value:
            yield f"{path}[]"
        for each in value:
            yield from keys(each, f"{path}[]")
    elif isinstance(value, dict) and path.rpartition(".")[2] not in BY_NAMES:
        for name, each in value.items():
            yield from keys(each, f"{path}.{name}" if path else name)
    else:
        yield path


def all_keys(*documents: object) -> set[str]:
    """The keys of several documents of one form; what is empty or null in one may be filled in another."""
    found = {key for document in documents for key in keys(document)}
    return {key for key in found if not any(other.startswith((f"{key}.", f"{key}[")) for other in found)}


def a_machine(*devices: UdevDevice, memory: Memory | None = None) -> Survey:
    return survey_of(Settings(domain="example.com"), resources_of(RULES), by_sys_path(*devices), memory)


def same(number: int) -> UdevDevice:
    path = f"/sys/devices/virtual/same/same{number}"
    return a_device(path, subsystem="same", node=f"/dev/same{number}", properties={"ID_SAME": "x"})


def disk() -> UdevDevice:
    return a_device("/sys/devices/virtual/block/loop0", subsystem="block", node="/dev/loop0", number="b 7:0")


def test_check(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for name, text in {"good": RULES, "bad": "x = 1"}.items():
        (tmp_path / f"{name}.toml").write_text(text)
        (tmp_path / f"{name}.toml").chmod(0o644)
    _, files = open_rules([str(tmp_path)], "/dev/null", None)
    waits = [Affected("example.com/ftdi", "ftdi_A", "a pod may still hold it as x")]
    bare = [BareNode("/dev/acme0", "example.com/acme", "")]
    lost = [Affected("example.com/modem", "modem_B", "the rules no longer match it")]
    found = check.as_json(files, files.problems, waits, bare, lost)
    assert all_keys(found) == documented("`genericdp check --json`")


def test_list() -> None:
    machine = a_machine(
        a_fuse(),
        a_usb_serial(0),
        *a_modem(),
        disk(),
        same(1),
        same(2),
        a_device("/sys/x", node="/dev/x"),
        a_bare_node(),
    )
    orphans = (Orphan("example.com/x", "x_A"),)
    machine = replace(machine, inventory=replace(machine.inventory, orphans=orphans))
    document = inventory.as_json(machine, everything=True)
    assert all_keys(document) == documented("`genericdp list --json`")


def test_explain() -> None:
    machine = a_machine(a_fuse(), a_usb_serial(0), *a_modem(), disk())
    nodes = [device for device in machine.devices.values() if device.device_node]
    documents = [
        explanation.as_json(
            explain(node, machine),
            machine.settings,
            lambda _: Access(0o20660, 0, "root", 20, "x"),
        )
        for node in nodes
    ]
    unfilled = {"access", "container"}  # which are null where there is nothing to say
    assert all_keys(*documents) | unfilled == documented("`genericdp explain --json DEVICE`")


def test_explain_of_what_is_absent() -> None:
    other = a_usb_serial(3, product="6015", serial="A50285BJ")
    before = a_machine(a_usb_serial(0), other)
    machine = a_machine(other, memory=before.memory)
    found = look_up(Query(serial="A50285BI"), machine)
    assert isinstance(found, Absent)
    found = replace(found, refused=(Refusal("example.com/x", "/dev/x", "it is dangerous"),))
    printed = {
        key.removesuffix("[]") if key == "devices[]" else key
        for key in all_keys(absent.as_json(found, machine.settings.link_dir))
    }
    assert printed == documented("`genericdp explain --json` of an absent device or a resource")


def test_suggest() -> None:
    machine = a_machine(a_usb_serial(0), *a_modem())
    (node,) = [device for device in machine.devices.values() if device.device_node == "/dev/cdc-wdm0"]
    suggestion = suggested(node, Present(machine.devices, "example.com"))
    assert all_keys(suggest.as_json(suggestion, suggestion.remarks(machine.claims))) == documented(
        "`genericdp suggest --json DEVICE`"
    )


def test_simulate(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    rules = tmp_path / "null.toml"
    rules.write_text(
        '[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n'
        'mounts = [{ host_path = "/run", container_path = "/run/host" }]\n'
    )
    rules.chmod(0o644)
    words = ["simulate", "--json", "--rules", str(rules), "--allocate", "null", "--allocate", "other"]
    done = subprocess.run(
        [sys.executable, "-m", "genericdp", *words], capture_output=True, text=True, check=False, timeout=60
    )
    found = all_keys(json.loads(done.stdout)) | {"pods[].container"}
    assert found == documented("`genericdp simulate --json`")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_prints_json_has_its_form_documented(verb: str) -> None:
    if any("--json" in action.option_strings for action in parser_of(verb)._actions):
        assert f"genericdp {verb} --json" in TEXT


def test_the_pages_that_are_referred_to_are_there() -> None:
    for name in re.findall(r"\]\((\w+\.md)\)", TEXT):
        assert (DOCS / name).is_file()
