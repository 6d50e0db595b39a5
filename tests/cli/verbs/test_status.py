"""`genericdp status`: what it shows of a report, and its message without one."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from genericdp import VERSION
from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.verbs import status as verb
from genericdp.status import client
from genericdp.status.protocol import SOCKET
from tests.cli.daemons import a_daemon_that_says, config
from tests.scenes.terminal import read_until

WELL: dict[str, Any] = {
    "version": "1.2.3",
    "pid": 1234,
    "since": "2026-11-21T09:00:00Z",
    "time": "2026-11-21T12:00:00Z",
    "state": "serving",
    "standingByFor": "",
    "well": True,
    "complaints": [],
    "kubelet": {
        "there": True,
        "servedByAnother": False,
        "since": "2026-11-21T10:00:00Z",
        "directory": "/var/lib/kubelet/x",
    },
    "udev": {"heard": True, "since": "2026-11-21T09:00:00Z", "reason": ""},
    "podResources": {
        "answers": True,
        "complete": True,
        "socket": "/var/lib/kubelet/pod-resources/kubelet.sock",
    },
    "rules": {
        "lastGood": "2026-11-21T09:00:00Z",
        "files": [
            {
                "path": "/etc/genericdp/rules.d/60-ftdi.toml",
                "digest": "0123456789ab",
                "since": "2026-11-21T09:00:00Z",
                "outdated": False,
                "resources": ["genericdp.io/ftdi"],
            }
        ],
        "problems": [],
    },
    "linkDirectory": "/dev/genericdp",
    "resources": [
        {
            "name": "genericdp.io/ftdi",
            "description": "",
            "replicas": 1,
            "answer": "devices",
            "whyNotCdi": "",
            "registered": True,
            "since": "2026-11-21T10:00:00Z",
            "phase": "registered",
            "error": "",
            "stuck": False,
            "streams": 1,
            "otherClients": [],
            "lists": 3,
            "devices": [
                {
                    "id": "ftdi_A50285BI",
                    "health": "Healthy",
                    "reason": "",
                    "waiting": "",
                    "since": "2026-11-21T11:58:00Z",
                    "numaNode": None,
                    "nodes": [
                        {"path": "/dev/ttyUSB0", "present": True, "link": "/dev/genericdp/ftdi_A50285BI"}
                    ],
                    "links": ["/dev/genericdp/ftdi_A50285BI"],
                    "heldBy": [
                        {"id": "ftdi_A50285BI", "namespace": "plant", "pod": "reader-0", "container": "main"}
                    ],
                }
            ],
        }
    ],
    "notOffered": [],
    "orphans": [],
    "said": [],
}

UNWELL: dict[str, Any] = {
    **WELL,
    "well": False,
    "complaints": [
        "genericdp.io/modem is not registered: no such resource",
        "udev cannot be heard: it is away",
    ],
    "kubelet": {**WELL["kubelet"], "there": False},
    "udev": {"heard": False, "since": "2026-11-21T11:59:30Z", "reason": "it is away"},
    "podResources": {**WELL["podResources"], "answers": False, "complete": False},
    "rules": {
        "lastGood": None,
        "files": [
            {**WELL["rules"]["files"][0], "outdated": True},
            {"path": "/etc/genericdp/rules.d/70-new.toml", "digest": "", "since": None, "outdated": False},
        ],
        "problems": [],
    },
    "resources": [
        {
            **WELL["resources"][0],
            "name": "genericdp.io/modem",
            "registered": False,
            "phase": "waiting for the kubelet",
            "error": "no such resource",
            "whyNotCdi": "containerd 1.6.20: CDI needs 1.7 or newer",
            "otherClients": [
                {"userAgent": "", "streams": 1},
                {"userAgent": "grpcurl/1.9 grpc-go/1.61.0", "streams": 2},
            ],
            "replicas": 4,
            "devices": [
                {
                    "id": "modem_1",
                    "health": "Unhealthy",
                    "reason": "it is unplugged",
                    "since": "2026-11-19T11:58:00Z",
                    "nodes": [
                        {"path": "/dev/ttyUSB2", "present": False, "link": "/dev/genericdp/modem_1@if02"},
                        {"path": "/dev/cdc-wdm0", "present": True, "link": "/dev/genericdp/modem_1@if04"},
                    ],
                    "heldBy": [],
                }
            ],
        },
        {**WELL["resources"][0], "name": "genericdp.io/none", "devices": []},
    ],
    "notOffered": [{"node": "/dev/x", "resource": "genericdp.io/x", "reason": "it has no property Y"}],
    "said": [
        {
            "time": "2026-11-21T11:50:00Z",
            "level": "error",
            "message": "resource is not registered",
            "fields": {"resource": "genericdp.io/modem", "hint": "not shown"},
            "count": 7,
        }
    ],
}


#: Tests that run in the background ignore SIGINT, and so would the processes that they start.
DEAF_TO_NOTHING = ("env", "--default-signal=INT")


def shown(report: Mapping[str, Any], width: int = 80) -> str:
    stream = io.StringIO()
    verb.show(report, Output(stream, width=width))
    return stream.getvalue()


def test_a_healthy_device_for_which_new_pods_have_to_wait_is_shown_with_the_reason() -> None:
    (resource,) = WELL["resources"]
    device = {**resource["devices"][0], "waiting": "a pod may still hold it as ftdi_A50285BI.1"}
    text = shown({**WELL, "resources": [{**resource, "devices": [device]}]})
    assert (
        "  ftdi_A50285BI  Healthy  2 min  /dev/ttyUSB0  plant/reader-0/main\n"
        "    new pods have to wait: a pod may still hold it as ftdi_A50285BI.1\n"
    ) in text


def test_when_all_is_well_the_report_says_so_and_shows_the_holders() -> None:
    assert shown(WELL) == (
        "genericdp 1.2.3 serves this node; up for 3 h as process 1234\n"
        "All is well.\n"
        "\n"
        "  kubelet  up for 2 h\n"
        "  udev     receiving events for 3 h\n"
        "  pods     known from the kubelet\n"
        "\n"
        "  DEVICE         HEALTH   FOR    NODE          HELD BY\n"
        "genericdp.io/ftdi: registered for 2 h; 1 device\n"
        "  ftdi_A50285BI  Healthy  2 min  /dev/ttyUSB0  plant/reader-0/main\n"
        "\n"
        "Stable links: /dev/genericdp/DEVICE.\n"
        "\n"
        "Rule files, each with the version in effect:\n"
        "  /etc/genericdp/rules.d/60-ftdi.toml  0123456789ab  for 3 h\n"
    )


def test_what_is_wrong_comes_first_and_nothing_is_left_out() -> None:
    assert shown(UNWELL) == (
        "genericdp 1.2.3 serves this node; up for 3 h as process 1234\n"
        "- genericdp.io/modem is not registered: no such resource\n"
        "- udev cannot be heard: it is away\n"
        "\n"
        "  kubelet  down for 2 h; waiting for it in /var/lib/kubelet/x\n"
        "  udev     not receiving events for 30 s: it is away\n"
        "  pods     unknown: no answer on /var/lib/kubelet/pod-resources/kubelet.sock\n"
        "\n"
        "  DEVICE   HEALTH     FOR  NODE              LINK   HELD BY\n"
        "genericdp.io/modem: waiting for the kubelet: no such resource; 1 device, 1\n"
        "Unhealthy, for 4 containers each\n"
        '    answer = "auto" falls back to device nodes: containerd 1.6.20: CDI needs 1.7\n'
        "    or newer\n"
        "    also followed by a client without a name (1 stream)\n"
        "    also followed by grpcurl/1.9 grpc-go/1.61.0 (2 streams)\n"
        "  modem_1  Unhealthy  2 d  was /dev/ttyUSB2  @if02  ?\n"
        "                           /dev/cdc-wdm0     @if04\n"
        "    it is unplugged\n"
        "genericdp.io/none: registered for 2 h; no device\n"
        "\n"
        "Stable links: /dev/genericdp/DEVICE, plus the suffix in the LINK column.\n"
        "\n"
        "Rule files, each with the version in effect:\n"
        "  /etc/genericdp/rules.d/60-ftdi.toml  0123456789ab  for 3 h; now has a problem\n"
        "  /etc/genericdp/rules.d/70-new.toml   none          has a problem\n"
        "\n"
        "Matched by a rule but not offered:\n"
        "  /dev/x: genericdp.io/x: it has no property Y\n"
        "\n"
        "Warnings and errors, latest first:\n"
        "  10 min ago  resource is not registered: resource=genericdp.io/modem (7 times)\n"
    )
    assert max(len(line) for line in shown(UNWELL).splitlines()) <= 80


def test_what_fails_is_shown_with_its_age_and_what_to_do() -> None:
    failing = {
        "what": "memory",
        "since": "2026-11-21T11:55:00Z",
        "reason": "cannot save '/var/lib/genericdp/memory.json': No space left on device",
        "hint": "free some space",
    }
    report = {
        **WELL,
        "well": False,
        "complaints": [failing["reason"], "cannot read '/sys/x': Input/output error"],
        "failing": [failing, {**failing, "what": "devices", "hint": ""}],
    }
    assert shown(report).startswith(
        "genericdp 1.2.3 serves this node; up for 3 h as process 1234\n"
        "- cannot save '/var/lib/genericdp/memory.json': No space left on device\n"
        "- cannot read '/sys/x': Input/output error\n"
        "\n"
        "  kubelet  up for 2 h\n"
        "  udev     receiving events for 3 h\n"
        "  pods     known from the kubelet\n"
        "  memory   failing for 5 min, and tried again: free some space\n"
        "  devices  failing for 5 min, and tried again\n"
        "\n"
    )


def test_a_udevd_that_has_not_looked_at_the_devices_is_not_said_to_be_tried_again() -> None:
    unseen = {
        "what": "coldplug",
        "since": "2026-11-21T11:55:00Z",
        "reason": "udevd runs, but has not looked at 90 of 100 device nodes, and none of these is offered",
        "hint": "'udevadm trigger' makes it look at the devices that were there before it",
    }
    report = {**WELL, "well": False, "complaints": [unseen["reason"]], "failing": [unseen]}
    assert (
        "\n  coldplug  udevd has not looked at most devices for 5 min: 'udevadm trigger'\n"
        "            makes it look at the devices that were there before it\n"
    ) in shown(report)


def test_after_a_boot_it_says_what_the_kubelet_waits_for() -> None:
    returning = [
        {"resource": "genericdp.io/ftdi", "id": "ftdi_B", "leftSeconds": 12},
        {"resource": "genericdp.io/lte", "id": "lte_1", "leftSeconds": 57},
    ]
    assert (
        "\n  boot     the kubelet waits up to 57 s more for ftdi_B, lte_1, there before the reboot\n"
    ) in shown({**WELL, "returning": returning}, width=100)


def test_one_that_waits_for_another_at_the_kubelet_says_so() -> None:
    report = {**WELL, "kubelet": {**WELL["kubelet"], "there": False, "servedByAnother": True}}
    assert "\n  kubelet  served by another genericdp; waiting until it ends\n" in shown(report)


def test_one_that_stands_by_says_for_whom() -> None:
    report = {**WELL, "state": "standing by", "standingByFor": "process 1 on a", "resources": []}
    report["rules"] = {**WELL["rules"], "files": []}
    assert shown(report) == (
        "genericdp 1.2.3 stands by while process 1 on a serves this node; up for 3 h as\n"
        "process 1234\n"
        "All is well.\n"
    )


def test_a_kubelet_that_has_only_begun_is_not_believed_that_nobody_holds_anything() -> None:
    report = {**WELL, "podResources": {**WELL["podResources"], "complete": False}}
    assert "\n  pods     the kubelet has just started and may not know all of them yet\n" in shown(report)


def test_missing_rules_are_reported() -> None:
    report = {**WELL, "resources": []}
    assert "\nno resources: no rule file defines one\n" in shown(report)


@pytest.mark.parametrize(("report", "status"), [(WELL, 0), (UNWELL, 1)], ids=["well", "unwell"])
def test_the_exit_status_says_whether_all_is_well(
    short_dir: Path, capsys: pytest.CaptureFixture[str], report: Mapping[str, Any], status: int
) -> None:
    with a_daemon_that_says(short_dir, json.dumps({"status": report}).encode() + b"\n") as asked:
        assert main(["status", "--json", "--config", config(short_dir)]) == status
    assert asked == [b'{"ask": "status"}\n']
    assert json.loads(capsys.readouterr().out) == report


def test_quiet_prints_only_what_is_wrong(short_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with a_daemon_that_says(short_dir, json.dumps({"status": UNWELL}).encode() + b"\n"):
        assert main(["status", "--quiet", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in UNWELL["complaints"])


def test_watching_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--watch"]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: --watch needs a terminal and cannot be combined with --json or --quiet\n"
        "  hint: programs can follow changes with 'genericdp monitor --json'\n"
    )


def test_a_daemon_that_does_not_run_is_reported_with_what_to_do(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: genericdp is not running on this node: '{short_dir}/{SOCKET}' does not exist\n"
        "  hint: 'systemctl status genericdp' says why; 'genericdp list' shows what it would offer\n"
    )


def test_a_daemon_that_no_longer_runs_is_reported(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{short_dir}/{SOCKET}")
    assert main(["status", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        "genericdp: error: genericdp is no longer running on this node: nothing listens on "
        f"'{short_dir}/{SOCKET}'\n"
        "  hint: 'systemctl status genericdp' says why; 'genericdp list' shows what it would offer\n"
    )


def test_a_user_without_permission_gets_an_error(short_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short_dir.chmod(0o755)
    options = ["status", "--config", config(short_dir)]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{short_dir}/{SOCKET}")
        os.chmod(f"{short_dir}/{SOCKET}", 0o600)
        listening.listen()
        os.seteuid(65534)
        try:
            assert main(options) == 1
        finally:
            os.seteuid(0)
    assert capsys.readouterr().err == (
        f"genericdp: error: no permission to ask the daemon on '{short_dir}/{SOCKET}'\n"
        "  hint: ask as root: sudo genericdp status\n"
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it hung up"),
        (b"hello\n", "it hung up"),
        (b"[]\n", "it hung up"),
        (b"[" * 100_000, "it hung up"),
        (b'{"error": "x"}\n', "x"),
    ],
)
def test_an_invalid_answer_is_reported(
    short_dir: Path, capsys: pytest.CaptureFixture[str], answer: bytes, why: str
) -> None:
    with a_daemon_that_says(short_dir, answer):
        assert main(["status", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: no status from the program on '{short_dir}/{SOCKET}': {why}\n"
        "  hint: 'journalctl -u genericdp' says what it is doing\n"
    )


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"]])
@pytest.mark.parametrize(
    "report",
    [{}, {"resources": [{}]}, {"well": True, "complaints": 1, "version": "9.9"}, {"complaints": [1]}],
)
def test_an_answer_of_another_release_that_cannot_be_read_is_reported(
    short_dir: Path, capsys: pytest.CaptureFixture[str], report: Mapping[str, object], options: list[str]
) -> None:
    with a_daemon_that_says(short_dir, json.dumps({"status": report}).encode() + b"\n"):
        is_read = main(["status", *options, "--config", config(short_dir)]) == 0
    assert is_read is (options == ["--json"] and "well" in report)
    if not is_read:
        assert capsys.readouterr().err == (
            f"genericdp: error: the answer of the program on '{short_dir}/{SOCKET}' cannot be read: "
            f"it is not genericdp {VERSION}\n"
            "  hint: if it is the daemon of another release, restart it: systemctl restart genericdp\n"
        )


def test_one_that_does_not_answer_is_not_waited_for(
    short_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_S", 0.05)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{short_dir}/{SOCKET}")
        listening.listen()
        assert main(["status", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: the daemon does not answer on '{short_dir}/{SOCKET}': "
        "it took longer than 0.05 s\n"
        "  hint: 'journalctl -u genericdp' says what it is doing\n"
    )


def test_a_screen_is_filled_from_its_top_and_no_further(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("COLUMNS", "80")
    verb._show_screen("".join(f"{n}\n" for n in range(10)))
    shown = capsys.readouterr().out
    assert shown.replace("\x1b[K", "") == (
        "\x1b[H0\n1\n2\n… and 7 more lines: 'genericdp status' shows all\n\n"
        "Updated every 2 s; Ctrl-C to stop.\x1b[J"
    )
    assert shown.count("\n") + 1 == shown.count("\x1b[K") == 6


def test_watching_goes_on_without_a_daemon_and_shows_it_as_soon_as_it_answers(short_dir: Path) -> None:
    """At a real terminal, of 80 columns and 30 lines."""
    options = ["--config", config(short_dir)]
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (30, 80))
    watching = subprocess.Popen(
        [*DEAF_TO_NOTHING, sys.executable, "-m", "genericdp", "status", "--watch", *options],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )
    os.close(theirs)
    try:
        assert "genericdp is not running on this node" in read_until(ours, "Ctrl-C to stop.")
        with a_daemon_that_says(short_dir, json.dumps({"status": WELL}).encode() + b"\n"):
            shown = read_until(ours, "0123456789ab")
        assert "All is well." in shown
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=20) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)
