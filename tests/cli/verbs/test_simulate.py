"""`genericdp simulate` from the outside: what it prints for this machine's /dev/null."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from genericdp.cli.dry_run import DryRun
from genericdp.cli.output import Output
from genericdp.cli.text.dry_run import Request, show_node, why_nothing
from genericdp.cli.usage import UsageError
from genericdp.cli.verbs.simulate import run
from genericdp.files.rulefiles import RuleFiles
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.service import settings_below
from tests.scenes.udev import a_fake_udev

SIMULATE = [sys.executable, "-m", "genericdp", "simulate"]
RULES = """
[[resource]]
name = "null"
match = { DEVNAME = "/dev/null" }
replicas = 2
env = { SAYS = "hello {id}" }
"""


def simulate(rules: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "genericdp",
        "simulate",
        "--rules",
        str(rules),
        "--for",
        "0.2",
        *arguments,
    ]
    wide = {**os.environ, "COLUMNS": "132"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=wide)


def shown(result: subprocess.CompletedProcess[str]) -> str:
    """What was printed, without what is different each time, and without the log."""
    lines = [line for line in result.stdout.splitlines() if not re.match(r"\d{4}-\d\d-\d\d ", line)]
    return re.sub(r"/tmp/gdp-\w+", "ROOT", "\n".join(lines))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "50-null.toml"
    file.write_text(RULES)
    file.chmod(0o644)
    return file


def test_it_shows_the_node_and_what_a_container_gets(rules: Path) -> None:
    result = simulate(rules, "--allocate", "null=1")
    assert shown(result) == (
        "The node offers:\n"
        "\n"
        "  RESOURCE           CAPACITY  ALLOCATABLE\n"
        "  genericdp.io/null  2         2\n"
        "\n"
        "pod-1 requests genericdp.io/null=1: Running\n"
        "\n"
        "  device  /dev/null  c 1:3 rw\n"
        "    from  ROOT/links/null_null -> /dev/null\n"
        "  env     GENERICDP_GENERICDP_IO_NULL=/dev/null\n"
        "  env     GENERICDP_GENERICDP_IO_NULL_IDS=null_null.0\n"
        "  env     SAYS=hello null_null.0\n"
        "\n"
        "Plug or unplug a device, or edit a rule file. Stops after 0.2 s."
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("answer", ["cdi", "auto"])
def test_by_cdi_a_container_gets_the_node_itself_and_what_its_name_means(answer: str, rules: Path) -> None:
    rules.write_text(f'{RULES}answer = "{answer}"\n')
    result = simulate(rules, "--allocate", "null=1")
    assert shown(result).split("\n\n")[3] == (
        "  device      /dev/null  c 1:3 rw\n"
        "    from      /dev/null\n"
        "  env         GENERICDP_GENERICDP_IO_NULL=/dev/null\n"
        "  env         GENERICDP_GENERICDP_IO_NULL_IDS=null_null.0\n"
        "  env         SAYS=hello null_null.0\n"
        "  CDI device  genericdp.io/null=null_null.0"
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_when_its_terminal_is_closed_as_it_does_at_ctrl_c(
    number: signal.Signals, rules: Path, short_dir: Path
) -> None:
    """And leaves nothing behind. What runs these tests may ignore signals itself."""
    command = ["env", "--default-signal=INT", "--default-signal=HUP", *SIMULATE, "--rules", str(rules)]
    env = {**os.environ, "TMPDIR": str(short_dir)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    ) as it:
        assert it.stdout is not None
        try:
            assert any("Ctrl-C to stop" in line for line in it.stdout)
            assert [*short_dir.iterdir()]
            it.send_signal(number)
            assert it.wait(timeout=30) == 0
        finally:
            it.kill()
    assert [*short_dir.iterdir()] == []


def test_under_nohup_it_goes_on_when_its_terminal_is_closed(rules: Path) -> None:
    command = ["env", "--ignore-signal=HUP", *SIMULATE, "--rules", str(rules)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as it:
        assert it.stdout is not None
        try:
            assert any("Ctrl-C to stop" in line for line in it.stdout)
            it.send_signal(signal.SIGHUP)
            rules.write_text(RULES.replace("replicas = 2", "replicas = 3"))
            assert any("3" in line and "genericdp.io/null" in line for line in it.stdout)
            it.send_signal(signal.SIGTERM)
            assert it.wait(timeout=30) == 0
        finally:
            it.kill()


def test_a_container_that_cannot_have_what_it_asks_for_is_status_1(rules: Path) -> None:
    result = simulate(rules, "--allocate", "null=3")
    assert (
        "pod-1 requests genericdp.io/null=3: Failed, Pod was rejected: Allocate failed due to requested "
        "number of devices unavailable for genericdp.io/null. Requested: 3, Available: 2, which is "
        f"unexpected; see 'genericdp explain --rules {rules} genericdp.io/null' "
    ) in " ".join(shown(result).split())
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("name", "hint"), [("nul", "; did you mean 'genericdp.io/null'?"), ("vendor.example/modem", "")]
)
def test_what_the_node_does_not_offer_keeps_a_pod_pending(rules: Path, name: str, hint: str) -> None:
    result = simulate(rules, "--allocate", name)
    full = name if "/" in name else f"genericdp.io/{name}"
    assert f"pod-1 requests {full}=1: Pending, the node does not offer it{hint}\n\nPlug" in shown(result)
    assert result.returncode == 1


def test_a_bad_rule_file_is_shown_once_and_is_status_1(rules: Path) -> None:
    rules.write_text(RULES.replace("match", "mach"))
    result = simulate(rules)
    assert shown(result) == (
        f"{rules}:4:1: error: unknown key 'mach' in [[resource]]\n"
        '    4 | mach = { DEVNAME = "/dev/null" }\n'
        "      | ^^^^\n"
        "  hint: did you mean 'match'?\n"
        "The node offers:\n"
        "\n"
        "  nothing: the rule files have mistakes (above)\n"
        "\n"
        "Plug or unplug a device, or edit a rule file. Stops after 0.2 s."
    )
    assert result.stdout.count("unknown key") == 1
    assert result.returncode == 1


def test_without_a_rule_file_the_node_offers_nothing_and_the_daemon_is_ready(tmp_path: Path) -> None:
    result = simulate(tmp_path)
    assert shown(result) == (
        "The node offers:\n"
        "\n"
        "  nothing: no rule file defines a resource; 'genericdp suggest' writes one\n"
        "\n"
        "Plug or unplug a device, or edit a rule file. Stops after 0.2 s."
    )
    # At the level "info" the log begins after this, and the daemon was ready before.
    assert " ready " not in result.stdout
    assert result.returncode == 0


def test_resources_that_did_not_register_are_not_taken_for_a_missing_rule(rules: Path) -> None:
    rule_files = RuleFiles([str(rules)], "genericdp.io")
    stream = io.StringIO()
    nothing = why_nothing(rule_files.resources, rule_files.problems)
    show_node({}, ["genericdp.io/null"], nothing, Output(stream))
    assert stream.getvalue() == (
        "not registered: genericdp.io/null\nThe node offers:\n\n  nothing: no resource was registered\n\n"
    )


def test_without_a_temporary_directory_it_says_what_to_do(rules: Path) -> None:
    command = shlex.join([*SIMULATE, "--rules", str(rules), "--for", "0.1"])
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 0; exec {command}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        (
            "genericdp: error: no file can be made in a temporary directory\n"
            "  hint: free some space in /tmp, or set TMPDIR to a directory that can be written\n"
        ),
    )


def test_a_temporary_directory_with_a_long_name_is_an_error(rules: Path, tmp_path: Path) -> None:
    temporary = tmp_path / ("x" * 100)
    temporary.mkdir()
    done = subprocess.run(
        [*SIMULATE, "--rules", str(rules), "--for", "0.1"],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        (
            f"genericdp: error: the temporary directory '{temporary}' has too long a name for sockets\n"
            "  hint: run it with TMPDIR=/tmp\n"
        ),
    )
    assert list(temporary.iterdir()) == []


def test_it_leaves_nothing_behind(rules: Path, short_dir: Path) -> None:
    command = [*SIMULATE, "--rules", str(rules), "--for", "0.1"]
    environment = {**os.environ, "TMPDIR": str(short_dir)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "not registered" not in done.stdout + done.stderr
    assert list(short_dir.iterdir()) == []


def test_it_leaves_the_state_directory_of_the_unit_that_runs_it_alone(rules: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    command = [*SIMULATE, "--rules", str(rules), "--for", "0.1"]
    subprocess.run(command, env={**os.environ, "STATE_DIRECTORY": str(state)}, check=True)
    assert list(state.iterdir()) == []


async def test_a_usb_reset_is_named_and_not_done(rules: Path, short_dir: Path) -> None:
    rules.write_text(f"{FTDI_RULE}prestart = {{ usb_reset = true }}\n")
    stream = io.StringIO()
    with a_fake_udev() as udev:
        udev.plug(a_usb_serial(0))
        dry_run = DryRun(Output(stream), settings_below(short_dir), json=True, devices=udev)
        rule_files = RuleFiles([str(rules)], DOMAIN)
        assert await dry_run.run(rule_files, [Request(FTDI, 1)], "containerd", None)
    assert json.loads(stream.getvalue())["pods"][0]["usbResets"] == ["/dev/bus/usb/001/004"]


@pytest.mark.parametrize("text", ["null=none", "=1", "null=0", f"null={'9' * 5000}"], ids=range(4))
def test_what_is_no_count_is_a_usage_error(rules: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(
            allocate=[text],
            runtime="containerd",
            seconds=0.1,
            json=False,
            rules=[str(rules)],
            config=None,
            domain=None,
        )
    assert str(caught.value) == f"'{text}' is not NAME=COUNT"
    assert caught.value.hint == "for example --allocate ftdi=2"


def test_programs_get_the_node_and_its_pods(rules: Path) -> None:
    command = [*SIMULATE, "--json", "--rules", str(rules), "--allocate", "null", "--allocate", "null=3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    document = json.loads(re.sub(r"/tmp/gdp-\w+", "ROOT", done.stdout))
    failed = document["pods"].pop()
    assert (failed["phase"], failed["container"]) == ("Failed", None)
    assert document == {
        "resources": [{"name": "genericdp.io/null", "capacity": 2, "allocatable": 2}],
        "notRegistered": [],
        "pods": [
            {
                "name": "pod-1",
                "resource": "genericdp.io/null",
                "count": 1,
                "phase": "Running",
                "message": "",
                "usbResets": [],
                "container": {
                    "devices": [
                        {
                            "containerPath": "/dev/null",
                            "hostPath": "ROOT/links/null_null",
                            "node": "/dev/null",
                            "number": "c 1:3",
                            "permissions": "rw",
                        }
                    ],
                    "mounts": [],
                    "envs": {
                        "GENERICDP_GENERICDP_IO_NULL": "/dev/null",
                        "GENERICDP_GENERICDP_IO_NULL_IDS": "null_null.0",
                        "SAYS": "hello null_null.0",
                    },
                    "annotations": {},
                    "cdiDevices": [],
                    "additionalGids": [],
                },
            }
        ],
    }


def test_what_is_wrong_with_the_rules_does_not_break_the_document(rules: Path) -> None:
    rules.write_text(RULES.replace("match", "mach"))
    done = subprocess.run(
        [*SIMULATE, "--json", "--rules", str(rules)], capture_output=True, text=True, timeout=60, check=False
    )
    assert json.loads(done.stdout) == {"resources": [], "notRegistered": [], "pods": []}
    assert "unknown key 'mach' in [[resource]]" in done.stderr
    assert done.returncode == 1


def test_a_document_is_for_programs_a_time_for_people(rules: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(
            allocate=[],
            runtime="cri-o",
            seconds=1.0,
            json=True,
            rules=[str(rules)],
            config=None,
            domain=None,
        )
    assert str(caught.value) == "--json cannot be combined with --for"
    assert caught.value.hint == "it exits as soon as the node is ready"
