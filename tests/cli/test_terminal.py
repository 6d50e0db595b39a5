"""The verbs at a real terminal: its width, its colour, and what NO_COLOR and a pipe change."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.scenes.terminal import PATIENCE_S, read_to_the_end

RULES = """
[[resource]]
name = "null-and-zero-which-every-machine-has"
match = { DEVNAME = ["/dev/null", "/dev/zero"] }
replicas = 2

[[resource]]
name = "missing"
match = { DEVNAME = "/dev/there-is-no-such-node", SUBSYSTEM = "mem", ID_MODEL = { not = { regex = "a.*" } } }
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def rules(tmp_path: Path) -> str:
    tmp_path.chmod(0o755)
    for name, text in {"10-good.toml": RULES, "20-bad.toml": f"x = 1\n# {'long ' * 40}\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644)
    return str(tmp_path)


def at_a_terminal(words: list[str], columns: int, **environment: str) -> str:
    """What the program prints at a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    program = subprocess.Popen(
        [sys.executable, "-m", "genericdp", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**inherited, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
        start_new_session=True,
    )
    os.close(slave)
    try:
        shown = read_to_the_end(master)
        program.wait(timeout=PATIENCE_S)
    finally:
        program.kill()
        program.wait()
        os.close(master)
    assert "Traceback" not in shown, shown
    return shown.replace("\r\n", "\n")


VERBS = {
    "list": ["list", "--rules"],
    "list --all": ["list", "--all", "--rules"],
    "explain": ["explain", "/dev/zero", "--rules"],
    "check": ["check"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("columns", [80, 100])
def test_it_fits_and_is_coloured(verb: str, columns: int, rules: str) -> None:
    shown = at_a_terminal([*VERBS[verb], rules], columns)
    assert COLOUR.search(shown)
    lines = COLOUR.sub("", shown).splitlines()
    # What compilers print stays on a line of its own, for editors and grep.
    assert [line for line in lines if len(line) > columns and ": error: " not in line] == []


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_declined(environment: dict[str, str], rules: str) -> None:
    assert "\x1b" not in at_a_terminal(["list", "--rules", rules], 80, **environment)


def test_an_empty_no_color_declines_nothing(rules: str) -> None:
    assert COLOUR.search(at_a_terminal(["list", "--rules", rules], 80, NO_COLOR=""))


def test_a_pipe_gets_no_colour_and_80_columns(rules: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "genericdp", "list", "--rules", rules],
        env={**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_json_is_the_same_bytes_at_a_terminal_and_in_a_pipe(rules: str) -> None:
    words = ["list", "--json", "--rules", f"{rules}/10-good.toml"]
    piped = subprocess.run(
        [sys.executable, "-m", "genericdp", *words], capture_output=True, text=True, check=True
    ).stdout
    assert at_a_terminal(words, 40) == piped


def test_an_error_is_broken_between_its_words(tmp_path: Path) -> None:
    settings = tmp_path / "genericdp.toml"
    settings.write_text(f'run_dir = "{tmp_path}"\n')
    settings.chmod(0o644)
    shown = at_a_terminal(["status", "--config", str(settings)], 80)
    words = (
        f"genericdp: error: genericdp is not running on this node: '{tmp_path}/control.sock' does not exist "
        "hint: 'systemctl status genericdp' says why; 'genericdp list' shows what it would offer"
    )
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "".join(shown.split()) == "".join(words.split())
