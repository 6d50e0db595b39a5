"""`genericdp check`: what it prints, and its status."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.cli import options
from genericdp.cli.main import main
from genericdp.cli.survey import Affected
from genericdp.cli.verbs import check as verb
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.files.state import StateFile
from genericdp.udev import UdevDevices
from tests.scenes.builders import a_terminal, a_usb_serial, by_sys_path, resources_of
from tests.scenes.state_file import save

GOOD = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
MATCH = 'match = { SUBSYSTEM = "vc" }\n'
BAD = '[[resource]]\nname = "fuse"\nmatches = { DEVNAME = "/dev/fuse" }\n'


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A directory in which only its owner may write: what rule files need."""
    tmp_path.chmod(0o755)
    return tmp_path


def write(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o644)
    return str(path)


def test_files_without_a_mistake_are_counted(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(rules / "50-a.toml", GOOD)
    assert main(["check", str(rules)]) == 0
    assert capsys.readouterr() == ("1 rule file, 1 resource: no mistakes\n", "")


def test_every_mistake_of_every_file_is_printed(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(rules / "50-a.toml", GOOD)
    first = write(rules / "60-b.toml", BAD)
    second = write(rules / "70-c.toml", '[[resource]]\n\tname = 7\nmatch = { ID_X = "a" }\n')
    assert main(["check", str(rules)]) == 1
    assert capsys.readouterr().out == (
        f"{first}:3:1: error: unknown key 'matches' in [[resource]]\n"
        '    3 | matches = { DEVNAME = "/dev/fuse" }\n'
        "      | ^^^^^^^\n"
        "  hint: did you mean 'match'?\n"
        "\n"
        f"{second}:2:9: error: 'name' must be a string, not the number 7\n"
        "    2 | \tname = 7\n"
        "      | \t       ^\n"
        '  hint: write "7"\n'
        "\n"
        "2 mistakes in 2 files\n"
    )


def test_a_mistake_in_the_settings_does_not_hide_those_in_the_rules(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = write(rules / "genericdp.conf", 'domian = "example.com"\n')
    bad = write(rules / "60-b.toml", BAD)
    assert main(["check", "--config", settings, bad]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{settings}:1:1: error: unknown key 'domian' in the settings\n")
    assert f"{bad}:3:1: error: unknown key 'matches' in [[resource]]\n" in out
    assert out.endswith("\n2 mistakes in 2 files\n")


def test_no_rule_files_are_no_mistake(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert main(["check", str(rules)]) == 0
    assert capsys.readouterr().out == f"no rule files in {rules}\n"


def test_files_that_define_nothing_are_noted(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rules)
    (rules / "rd2").mkdir()
    write(rules / "rd2" / "60.TOML", GOOD)
    write(rules / "rd2" / "README", "")
    write(rules / "empty.toml", "")
    assert main(["check", "rd2", "empty.toml"]) == 0
    assert capsys.readouterr() == (
        (
            "note: rd2/60.TOML is not read: the name of a rule file ends in .toml\n"
            "note: empty.toml is empty: it defines no resource\n"
            "no rule files in rd2, empty.toml\n"
        ),
        "",
    )


def test_a_place_that_is_not_there_is_an_error(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{rules}/nothing"]) == 1
    assert capsys.readouterr().err.startswith(f"genericdp: error: '{rules}/nothing' does not exist\n")


def test_json_has_every_mistake_with_its_place(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write(rules / "60-b.toml", BAD)
    assert main(["check", "--json", bad]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "files": [bad],
        "resources": [],
        "problems": [
            {
                "file": bad,
                "line": 3,
                "column": 1,
                "length": 7,
                "severity": "error",
                "message": "unknown key 'matches' in [[resource]]",
                "hint": "did you mean 'match'?",
            }
        ],
        "waiting": [],
        "lost": [],
        "bareNodes": [],
        "pitfalls": [],
    }


def test_json_is_valid_whatever_the_bytes_of_a_path(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python reads a byte that is not UTF-8 as a lone surrogate, which strict readers of JSON refuse."""
    write(rules / "50-\udcff\udc80é.toml", BAD)
    assert main(["check", "--format=json", str(rules)]) == 1
    printed = capsys.readouterr().out
    found = json.loads(printed)
    path = f"{rules}/50-\\xff\\x80é.toml"
    assert (found["files"], found["problems"][0]["file"]) == ([path], path)
    printed.encode("ascii")
    json.dumps(found, ensure_ascii=False).encode("utf-8")


def test_in_a_github_workflow_each_mistake_is_a_note_beside_its_line(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(rules / "50-a.toml", GOOD)
    bad = write(rules / "60,b:100%.toml", BAD)
    assert main(["check", "--format=github", good, bad]) == 1
    name = bad.replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    assert capsys.readouterr().out == (
        f"::error file={name},line=3,col=1,endColumn=7,title=genericdp check"
        "::unknown key 'matches' in [[resource]]%0Ahint: did you mean 'match'?\n"
        "1 mistake in 1 file\n"
    )


def test_a_key_cannot_give_a_github_workflow_a_command(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write(rules / "60-b.toml", '"a\\n::stop-commands::x\\u001b[31m" = 1\n')
    assert main(["check", "--format", "github", bad]) == 1
    assert capsys.readouterr().out == (
        f"::error file={bad},line=1,col=1,endColumn=33,title=genericdp check"
        "::unknown key 'a%0A::stop-commands::x\\x1b[31m'%0Ahint: a rule file contains [[resource]] tables\n"
        "1 mistake in 1 file\n"
    )


def test_a_github_workflow_without_a_mistake_has_one_line(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--format=github", write(rules / "50-a.toml", GOOD)]) == 0
    assert capsys.readouterr().out == "1 rule file, 1 resource: no mistakes\n"


def test_what_would_have_to_wait_is_said_before_an_edit_takes_effect(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = write(rules / "genericdp.conf", f'state_dir = "{rules}"\ndomain = "example.com"\n')
    machine = by_sys_path(*(a_terminal(number) for number in range(1, 13)))
    monkeypatch.setattr(UdevDevices, "devices", machine)
    old = resources_of(f'[[resource]]\nname = "vcs"\n{MATCH}')
    offers, memory = take_inventory(Builder(old, "example.com"), machine, Memory(), 0.0)
    (offer,) = offers.offers.values()
    save(StateFile(str(rules)), replace(memory, held=give({}, offer, offer.ids, 0.0)))
    edited = write(rules / "50-console.toml", f'[[resource]]\nname = "example.com/console"\n{MATCH}')

    assert main(["check", "--config", settings, edited]) == 0
    *notes, last = capsys.readouterr().out.replace("\n", " ").split("note: ")[1:]
    assert notes[0] == (
        "console_vcs1 of example.com/console would have to wait: a pod may still hold it as vcs_vcs1 of "
        "example.com/vcs "
    )
    assert len(notes) == 10
    assert last == "2 more devices would have to wait 1 rule file, 1 resource: no mistakes "

    assert main(["check", "--json", "--config", settings, edited]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"][0] == {
        "id": "console_vcs1",
        "resource": "example.com/console",
        "reason": "a pod may still hold it as vcs_vcs1 of example.com/vcs",
    }


def test_a_device_that_keeps_its_id_in_another_resource_would_have_to_wait(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = by_sys_path(a_terminal(1))
    monkeypatch.setattr(UdevDevices, "devices", machine)
    rule = f'[[resource]]\nname = "vcs"\n{MATCH}'
    offers, memory = take_inventory(Builder(resources_of(rule), "example.com"), machine, Memory(), 0.0)
    (offer,) = offers.offers.values()
    save(StateFile(str(rules)), replace(memory, held=give({}, offer, offer.ids, 0.0)))
    settings = write(rules / "genericdp.conf", f'state_dir = "{rules}"\ndomain = "example.org"\n')

    assert main(["check", "--config", settings, write(rules / "50-vcs.toml", rule)]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        "note: vcs_vcs1 of example.org/vcs would have to wait: a pod may still hold it as vcs_vcs1 of "
        "example.com/vcs 1 rule file, 1 resource: no mistakes"
    )


def test_what_pods_would_lose_is_said_before_an_edit_takes_effect(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = by_sys_path(a_terminal(1), a_terminal(2))
    monkeypatch.setattr(UdevDevices, "devices", machine)
    rule = f'[[resource]]\nname = "vcs"\n{MATCH}'
    offers, memory = take_inventory(Builder(resources_of(rule), "example.com"), machine, Memory(), 0.0)
    (offer,) = offers.offers.values()
    save(StateFile(str(rules)), replace(memory, held=give({}, offer, ["vcs_vcs1"], 0.0)))
    settings = write(rules / "genericdp.conf", f'state_dir = "{rules}"\ndomain = "example.com"\n')
    why = "a container that has vcs_vcs1 of example.com/vcs could not start again"

    narrowed = rule.replace("{", '{ DEVNAME = "/dev/tty9", ', 1)
    edited = write(rules / "50-vcs.toml", narrowed)
    assert main(["check", "--config", settings, edited]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        f"note: {why}: the rules no longer match it 1 rule file, 1 resource: no mistakes"
    )
    renamed = write(rules / "50-vcs.toml", '[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/tty9" }\n')
    assert main(["check", "--config", settings, renamed]) == 0
    assert capsys.readouterr().out == "1 rule file, 1 resource: no mistakes\n", "these rules are not all"
    monkeypatch.setattr(options, "RULE_DIRECTORIES", (renamed,))
    assert main(["check", "--json", "--config", settings, renamed]) == 0
    assert json.loads(capsys.readouterr().out)["lost"] == [
        {"id": "vcs_vcs1", "resource": "example.com/vcs", "reason": "no rule would define the resource"}
    ]


def test_what_was_moved_is_lost_if_no_rule_would_match_it_where_it_is(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = '[[resource]]\nname = "stick"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }\n'
    plugged = by_sys_path(a_usb_serial(0, port="2", serial="A5"))
    offers, memory = take_inventory(Builder(resources_of(rule), "example.com"), plugged, Memory(), 0.0)
    (offer,) = offers.offers.values()
    save(StateFile(str(rules)), replace(memory, held=give({}, offer, ["stick_A5"], 0.0)))
    settings = write(rules / "genericdp.conf", f'state_dir = "{rules}"\ndomain = "example.com"\n')
    monkeypatch.setattr(UdevDevices, "devices", by_sys_path(a_usb_serial(1, port="5", serial="A5")))
    edited = write(rules / "50-stick.toml", rule.replace("0403", "10c4"))
    assert main(["check", "--config", settings, edited]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        "note: a container that has stick_A5 of example.com/stick could not start again: it is unplugged at "
        "its port, and no rule matches it where it is now 1 rule file, 1 resource: no mistakes"
    )


def test_of_many_that_pods_would_lose_only_some_are_named() -> None:
    lost = [Affected("example.com/x", f"x_{n}", "the rules no longer match it") for n in range(12)]
    first, *_, last = found = verb.in_words((), lost)
    assert first == (
        "a container that has x_0 of example.com/x could not start again: the rules no longer match it"
    )
    assert (len(found), last) == (11, "containers with 2 more devices could not start again either")


def test_where_no_pod_holds_anything_nothing_is_said(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = write(rules / "genericdp.conf", f'state_dir = "{rules}"\n')
    save(StateFile(str(rules)), Memory())
    assert main(["check", "--config", settings, write(rules / "50-a.toml", GOOD)]) == 0
    assert capsys.readouterr() == ("1 rule file, 1 resource: no mistakes\n", "")


def test_what_libraries_will_not_find_in_the_container_is_noted(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = write(
        rules / "50-gpu.toml",
        '[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "drm" }\ncontainer_path = "/dev/gpu{index}"\n',
    )
    settings = write(rules / "genericdp.conf", "")
    assert main(["check", "--config", settings, gpu]) == 0
    assert " ".join(capsys.readouterr().out.split()) == (
        "note: genericdp.io/gpu: libdrm looks for the kernel's name, such as /dev/dri/renderD128, not for "
        "/dev/gpu{index} 1 rule file, 1 resource: no mistakes"
    )
    assert main(["check", "--json", "--config", settings, gpu]) == 0
    (pitfall,) = json.loads(capsys.readouterr().out)["pitfalls"]
    assert pitfall.startswith("genericdp.io/gpu: libdrm looks for the kernel's name")


def test_rules_that_need_the_container_runtime_are_noted_where_there_is_none(
    rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    write(rules / "50-a.toml", GOOD + 'on_replug = "restart"\n')
    config = write(rules / "genericdp.conf", f'runtime_socket = "{rules}/none.sock"\n')
    assert main(["check", "--config", config, str(rules / "50-a.toml")]) == 0
    shown = capsys.readouterr().out.replace("\n", " ")
    assert " ".join(shown.split()) == (
        "note: genericdp.io/fuse: containers cannot be stopped: the container runtime's socket "
        f"'{rules}/none.sock' does not exist; set 'runtime_socket' in genericdp.toml to the kubelet's "
        "--container-runtime-endpoint; in a pod, also mount the socket's directory"
        " 1 rule file, 1 resource: no mistakes"
    )
    (rules / "none.sock").touch()
    assert main(["check", "--config", config, str(rules / "50-a.toml")]) == 0
    assert capsys.readouterr().out == "1 rule file, 1 resource: no mistakes\n"


def test_what_a_rule_hardly_means_is_noted(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shares = '[[resource.node]]\nmatch = { DEVNAME = ["/dev/acmectl", "/dev/acme-uvm"] }\nshared = true\n'
    write(rules / "50-a.toml", GOOD + shares)
    assert main(["check", "--config", "/dev/null", str(rules)]) == 0
    assert capsys.readouterr().out == (
        "note: genericdp.io/fuse: one of '/dev/acme-uvm' and '/dev/acmectl' is enough;\n"
        "write a [[resource.node]] for each node that must be there\n"
        "1 rule file, 1 resource: no mistakes\n"
    )
    assert main(["check", "--json", "--config", "/dev/null", str(rules)]) == 0
    (pitfall,) = json.loads(capsys.readouterr().out)["pitfalls"]
    assert pitfall == (
        "genericdp.io/fuse: one of '/dev/acme-uvm' and '/dev/acmectl' is enough; "
        "write a [[resource.node]] for each node that must be there"
    )
