"""`genericdp monitor`: what is shown of each event, and whom it asks."""

import io
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from genericdp import VERSION
from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.verbs.monitor import WORDS, Show, words_of
from genericdp.status.protocol import SOCKET
from tests.cli.daemons import a_daemon_that_says, config

NOON = "2026-11-21T12:00:00.123Z"
BEGIN: dict[str, Any] = {"event": "begin", "from": "daemon", "version": "1.2.3", "state": "serving"}
TOUCHED = [{"resource": "x/ftdi", "device": "ftdi_A"}]
UEVENT: dict[str, Any] = {
    "event": "uevent",
    "action": "add",
    "subsystem": "tty",
    "sysPath": "/sys/devices/x/ttyUSB0",
    "node": "/dev/ttyUSB0",
    "source": "udev",
    "touched": TOUCHED,
}
CHANGE: dict[str, Any] = {
    "event": "change",
    "message": "device is unhealthy",
    "level": "warning",
    "resource": "x/ftdi",
    "device": "ftdi_A",
    "fields": {"resource": "x/ftdi", "id": "ftdi_A", "why": "it is unplugged"},
}
LIST: dict[str, Any] = {
    "event": "list",
    "sent": True,
    "resource": "x/ftdi",
    "ids": 3,
    "healthy": 2,
    "changes": [{"device": "ftdi_A", "health": "Unhealthy"}, {"device": "ftdi_B", "health": None}],
    "moreChanges": 0,
}
REGISTRATION: dict[str, Any] = {
    "event": "registration",
    "resource": "x/ftdi",
    "registered": False,
    "phase": "registering",
    "error": "",
}
ALLOCATION: dict[str, Any] = {"event": "allocation", "resource": "x/ftdi", "ids": ["a", "b"], "error": ""}
STOP: dict[str, Any] = {
    "event": "stop",
    "resource": "x/ftdi",
    "device": "ftdi_A",
    "namespace": "lab",
    "pod": "app",
    "container": "main",
    "cause": "unplug",
    "error": "",
}
RULES: dict[str, Any] = {"event": "rules", "files": 2, "problems": 0}


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def lines(*events: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps({"time": NOON, **event}).encode() + b"\n" for event in events)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (BEGIN, "begin    genericdp 1.2.3 serves this node; Ctrl-C to stop"),
        ({**BEGIN, "state": "standing by"}, "begin    genericdp 1.2.3 stands by; Ctrl-C to stop"),
        (
            {**BEGIN, "from": "rules"},
            "begin    without the daemon: what the rules would do on this machine; Ctrl-C to stop",
        ),
        (UEVENT, "uevent   add tty /dev/ttyUSB0 -> x/ftdi ftdi_A"),
        ({**UEVENT, "touched": []}, "uevent   add tty /dev/ttyUSB0"),
        (
            {**UEVENT, "node": "", "source": "kernel", "touched": []},
            "uevent   add tty ttyUSB0 (from the kernel)",
        ),
        (
            {**UEVENT, "touched": [*TOUCHED, {"resource": "x/modem", "device": "m"}]},
            "uevent   add tty /dev/ttyUSB0 -> 2 devices of x/ftdi, x/modem",
        ),
        (CHANGE, "change   x/ftdi ftdi_A: device is unhealthy; why=it is unplugged"),
        (
            {**CHANGE, "message": "a thing", "resource": None, "device": None, "fields": {}, "level": "info"},
            "change   a thing",
        ),
        (LIST, "kubelet  x/ftdi: 2 of 3 Healthy; ftdi_A Unhealthy, ftdi_B gone"),
        (
            {**LIST, "sent": False, "moreChanges": 7, "changes": []},
            "kubelet  would be told x/ftdi: 2 of 3 Healthy; 7 more",
        ),
        ({**LIST, "changes": []}, "kubelet  x/ftdi: 2 of 3 Healthy"),
        (REGISTRATION, "kubelet  x/ftdi: registering"),
        ({**REGISTRATION, "error": "no"}, "kubelet  x/ftdi: registering: no"),
        ({**REGISTRATION, "registered": True}, "kubelet  x/ftdi: registered"),
        ({"event": "kubelet", "there": True}, "kubelet  is up"),
        ({"event": "kubelet", "there": False}, "kubelet  is down"),
        (ALLOCATION, "allocate x/ftdi a, b"),
        ({**ALLOCATION, "moreIds": 18}, "allocate x/ftdi a, b, 18 more"),
        ({**ALLOCATION, "error": "no"}, "allocate x/ftdi a, b: no"),
        (STOP, "stop     x/ftdi ftdi_A: container lab/app main is stopped: the device is unplugged"),
        (
            {**STOP, "cause": "replug"},
            "stop     x/ftdi ftdi_A: container lab/app main is stopped: the device has other nodes now",
        ),
        ({**STOP, "error": "no"}, "stop     x/ftdi ftdi_A: container lab/app main: no"),
        (RULES, "rules    reloaded: 2 files"),
        ({**RULES, "problems": 1}, "rules    reloaded: 2 files, 1 problem: see 'genericdp check'"),
        ({"event": "udev", "heard": True, "reason": ""}, "udev     events arrive again"),
        ({"event": "udev", "heard": False, "reason": "no udev"}, "udev     no events: no udev"),
        ({"event": "resync", "reason": "rescan"}, "udev     reading all devices again: rescan"),
        ({"event": "lost", "count": 3}, "lost     3 events were dropped: they came too fast to show"),
        ({"event": "of a newer daemon"}, ""),
    ],
)
def test_an_event_is_one_line(event: Mapping[str, Any], text: str) -> None:
    kind, words = words_of(event)
    assert (f"{kind:<8} {words.text}" if words.text else "") == text


def test_a_daemon_that_refuses_to_tell_events_says_why(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, lines({"error": "16 clients are connected already"})):
        assert main(["monitor", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: no events from the program on '{short_dir}/{SOCKET}': "
        "16 clients are connected already\n"
        "  hint: 'journalctl -u genericdp' says what it is doing\n"
    )


def test_an_event_of_another_release_that_cannot_be_read_is_reported(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, lines(BEGIN, {"event": "uevent"})):
        assert main(["monitor", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: the answer of the program on '{short_dir}/{SOCKET}' cannot be read: "
        f"it is not genericdp {VERSION}\n"
        "  hint: if it is the daemon of another release, restart it: systemctl restart genericdp\n"
    )


def test_events_of_the_daemon_are_shown_with_their_time(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = lines(BEGIN, UEVENT, {**UEVENT, "touched": []}, {"event": "of a newer daemon"})
    with a_daemon_that_says(short_dir, events) as asked:
        assert main(["monitor", "--config", config(short_dir)]) == 1
    assert asked == [b'{"ask": "events"}\n']
    assert capsys.readouterr() == (
        (
            "12:00:00.123 begin    genericdp 1.2.3 serves this node; Ctrl-C to stop\n"
            "12:00:00.123 uevent   add tty /dev/ttyUSB0 -> x/ftdi ftdi_A\n"
            "12:00:00.123 uevent   add tty /dev/ttyUSB0\n"
        ),
        (
            "genericdp: error: the daemon has ended the connection\n"
            "  hint: 'genericdp status' shows whether it runs, 'journalctl -u genericdp' why it stopped; "
            "then run 'genericdp monitor' again\n"
        ),
    )


def test_on_a_screen_what_does_not_fit_goes_on_below() -> None:
    stream = io.StringIO()
    show = Show(Output(stream, width=60), json=False, touched=False, folded=True)
    show.event({"time": NOON, **CHANGE})
    assert stream.getvalue() == (
        "12:00:00.123 change   x/ftdi ftdi_A: device is unhealthy;\n"
        "                      why=it is unplugged\n"
    )


def test_json_is_one_event_a_line_as_it_came(short_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [BEGIN, UEVENT, {"event": "of a newer daemon"}]
    with a_daemon_that_says(short_dir, lines(*events)):
        assert main(["monitor", "--json", "--config", config(short_dir)]) == 1
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == [{"time": NOON, **event} for event in events]


def test_uevents_that_touch_nothing_can_be_left_out(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, lines({**UEVENT, "touched": []}, UEVENT, RULES)):
        assert main(["monitor", "--touched", "--config", config(short_dir)]) == 1
    assert capsys.readouterr().out == (
        "12:00:00.123 uevent   add tty /dev/ttyUSB0 -> x/ftdi ftdi_A\n"
        "12:00:00.123 rules    reloaded: 2 files\n"
    )


def test_a_mistake_in_a_rule_file_is_shown_instead_of_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "r.toml"
    rules.write_text('[[resource]]\nname = "a"\n')
    assert main(["monitor", "--rules", str(rules)]) == 1
    assert capsys.readouterr().err.startswith(f"{rules}:1:")


def test_every_event_has_its_words() -> None:
    assert {
        event["event"] for event in (BEGIN, UEVENT, CHANGE, LIST, REGISTRATION, ALLOCATION, STOP, RULES)
    } | {
        "kubelet",
        "udev",
        "resync",
        "lost",
    } == set(WORDS)


def test_a_missing_daemon_is_reported(
    short_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.cli.verbs.monitor.watch_alone", lambda *_, **__: 0)
    assert main(["monitor", "--config", config(short_dir)]) == 0
    assert capsys.readouterr().err == (
        f"genericdp: genericdp is not running on this node: '{short_dir}/{SOCKET}' does not exist; "
        "watching without it\n"
    )
