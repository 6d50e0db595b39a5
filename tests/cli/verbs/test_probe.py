"""`genericdp probe`: its exit status, the reason, and that it is quick and cheap."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from genericdp.cli.main import main
from genericdp.cli.verbs import probe
from genericdp.core.rules.settings import Settings
from genericdp.status.protocol import SOCKET, socket_path
from tests.cli.daemons import a_daemon_that_says


def asked(run_dir: Path, what: str = "health") -> int:
    """The exit status of the verb."""
    return main(["probe", what, "--socket", f"{run_dir}/{SOCKET}"])


@pytest.mark.parametrize("what", ["health", "readiness"])
def test_a_daemon_that_is_fine_needs_no_words(
    what: str, short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, json.dumps({what: ""}).encode() + b"\n") as questions:
        assert asked(short_dir, what) == 0
    assert capsys.readouterr() == ("", "")
    assert questions == [json.dumps({"ask": what}).encode() + b"\n"]


def test_why_not_is_printed_line_by_line_and_harmless(
    short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    why_not = "example.com/a is not registered: \x1b[31mno\nexample.com/b is not registered\n"
    with a_daemon_that_says(short_dir, json.dumps({"readiness": why_not}).encode() + b"\n"):
        assert asked(short_dir, "readiness") == 1
    shown = "example.com/a is not registered: \\x1b[31mno\nexample.com/b is not registered\n"
    assert capsys.readouterr() == (shown, "")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it hung up"),
        (b'{"health": ', "it hung up"),
        (b"[]\n", "it hung up"),
        (b'{"health": 1}\n', "it hung up"),
        (b'{"readiness": ""}\n', "it hung up"),
        (b"[" * 5000 + b"\n", "it hung up"),
        (b'{"error": "16 clients are connected already"}\n', "16 clients are connected already"),
    ],
)
def test_another_answer_is_none(
    answer: bytes, why: str, short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, answer):
        assert asked(short_dir) == 1
    assert capsys.readouterr() == (f"no answer from the daemon on '{short_dir}/{SOCKET}': {why}\n", "")


@pytest.mark.parametrize("answer", [b'{"health": "a \\ud800"}\n', b'{"health": "a \xed\xa0\x80"}\n'])
def test_an_answer_may_hold_what_no_text_can(
    answer: bytes, short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_daemon_that_says(short_dir, answer):
        assert asked(short_dir) == 1
    assert capsys.readouterr() == ("a \\ud800\n", "")


@pytest.mark.parametrize("char", ["\ud800", chr(0xDCFF), "\0"])
@pytest.mark.parametrize("where", ["verb", "what", "socket", "option"])
def test_an_argument_may_hold_what_no_text_can(
    char: str, where: str, short_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "verb": [f"probe{char}"],
        "what": ["probe", f"health{char}"],
        "socket": ["probe", "health", "--socket", f"{short_dir}/{char}"],
        "option": ["probe", "health", f"--socke{char}"],
    }
    assert main(arguments[where]) == (1 if where == "socket" else 2)
    out, err = capsys.readouterr()
    assert "bug" not in err
    assert f"{out}{err}".replace("\n", "").isprintable()


def test_a_path_that_no_file_can_have_is_called_that(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "health", "--socket", "\ud800"]) == 1
    assert capsys.readouterr() == (
        "no answer from the daemon on '\\ud800': no file can have this name\n",
        "",
    )


def test_without_a_daemon_it_says_so_at_once(short_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = f"no answer from the daemon on '{short_dir}/{SOCKET}': "
    assert asked(short_dir) == 1
    assert capsys.readouterr() == (f"{said}No such file or directory\n", "")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(f"{short_dir}/{SOCKET}")
    assert asked(short_dir) == 1
    assert capsys.readouterr() == (f"{said}Connection refused\n", "")


@pytest.mark.parametrize("some", [b"", b'{"health": "'])
def test_a_daemon_that_hangs_is_given_up_in_time(
    some: bytes, short_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PATIENCE_S", 0.2)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(f"{short_dir}/{SOCKET}")
        hanging.listen()
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(f"{short_dir}/{SOCKET}")
            taken, _ = hanging.accept()
            with taken:
                started = time.monotonic()
                assert asked(short_dir) == 1
                assert time.monotonic() - started < 5.0
    assert capsys.readouterr() == (
        f"no answer from the daemon on '{short_dir}/{SOCKET}': it took longer than 0.2 s\n",
        "",
    )


def test_it_asks_where_the_daemon_listens_by_default_and_ends_before_a_kubelet_ends_it() -> None:
    assert socket_path(Settings().run_dir) == probe.SOCKET
    assert probe.PATIENCE_S < 5.0


def test_it_loads_little(short_dir: Path) -> None:
    """A kubelet starts it every few seconds."""
    script = (
        "import sys; before = {*sys.modules};"
        "from genericdp.__main__ import main; sys.argv[0] = 'genericdp'; status = main();"
        "print(status, *sorted(name for name in {*sys.modules} - before if name.startswith('genericdp')));"
        "heavy = {'asyncio', 'dataclasses', 'difflib', 'inspect', 'logging', 'subprocess', 'tomllib'};"
        "print(sorted(heavy & {*sys.modules} - before))"
    )
    with a_daemon_that_says(short_dir, b'{"health": ""}\n'):
        done = subprocess.run(
            [sys.executable, "-c", script, "probe", "health", "--socket", f"{short_dir}/{SOCKET}"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    first, second = done.stdout.splitlines()
    assert first.split() == [
        "0",
        "genericdp",
        "genericdp.__main__",
        "genericdp.cli",
        "genericdp.cli.exit_status",
        "genericdp.cli.main",
        "genericdp.cli.streams",
        "genericdp.cli.usage",
        "genericdp.cli.verbs",
        "genericdp.cli.verbs.probe",
        "genericdp.core",
        "genericdp.core.hostile",
        "genericdp.core.words",
        "genericdp.status",
        "genericdp.status.protocol",
    ]
    assert second == "[]"
