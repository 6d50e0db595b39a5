"""Whatever an operator types, and whatever the shell leaves us for output: a message, never a traceback."""

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from genericdp.cli.main import VERBS, main, parser_of

RULES = '[[resource]]\nname = "null"\ndescription = "…"\nmatch = { DEVNAME = "/dev/null" }\n'


@pytest.fixture
def rules(tmp_path: Path) -> str:
    tmp_path.chmod(0o755)
    path = tmp_path / "null.toml"
    path.write_text(RULES, encoding="utf-8")
    path.chmod(0o644)
    return str(path)


def typed(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A line of a shell in which `genericdp` is ours."""
    return subprocess.run(
        ["sh", "-c", f'genericdp() {{ "{sys.executable}" -m genericdp "$@"; }}; {command}'],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "check {rules}", "list --rules {rules}", "schema rules"])
def test_a_full_disk_is_named(words: str, rules: str, unbuffered: str) -> None:
    done = typed(f"genericdp {words.format(rules=rules)} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.stderr == "genericdp: error: cannot write the output: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_is_full_elsewhere_is_not_the_output(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event loop, say, of the watches of epoll; a file that a broken disk does not read."""

    def fail(_arguments: Sequence[str]) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("genericdp.cli.main._dispatch", fail)
    assert main(["list"]) == 3
    said = capsys.readouterr().err
    assert f"OSError: [Errno {number}] {os.strerror(number)}\n\ngenericdp: this is a bug" in said
    assert "cannot write the output" not in said


def test_without_an_output_the_status_is_the_answer(rules: str) -> None:
    done = typed(f"genericdp check {rules} >&-; echo $?; genericdp check {rules} --frob >&- 2>&-; echo $?")
    assert (done.stdout, done.stderr) == ("0\n2\n", "")


def test_a_character_that_the_output_has_not_is_spelt_out() -> None:
    done = typed("genericdp --help", PYTHONIOENCODING="ascii")
    assert done.stdout.startswith("usage: genericdp VERB [OPTION\\u2026]\n")
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["check", "README"],
            (
                "'README' is neither a directory nor a *.toml file\n"
                "  hint: give a directory of *.toml files, or one such file"
            ),
        ),
        (
            ["list", "--rules", "no\x1bwhere"],
            "'no\\x1bwhere' does not exist\n  hint: give a directory of *.toml files, or one such file",
        ),
        (
            ["check", "gone.toml"],
            "'gone.toml' is a dangling link\n  hint: give a directory of *.toml files, or one such file",
        ),
    ],
)
def test_what_holds_no_rules_is_named(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "README").write_text("")
    (tmp_path / "gone.toml").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    assert capsys.readouterr() == ("", f"genericdp: error: {message}\n")


def test_a_domain_on_the_command_line_is_looked_at(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--rules", rules, "--domain", "a b"]) == 2
    assert capsys.readouterr().err == (
        "genericdp: error: --domain: 'a b' cannot be the domain of resources: "
        "'a b' is not a domain: use lower-case letters, digits and '-', labels joined by '.'\n"
    )


@pytest.mark.parametrize("word", ["-1", "nan", "inf", "soon"])
def test_a_number_of_seconds_is_one(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", f"--for={word}"]) == 2
    assert capsys.readouterr().err == (
        f"genericdp: error: --for: '{word}' is not a number of seconds\n"
        "  hint: see 'genericdp simulate --help'\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--for", "\x1b[2J"], "--for: '\\x1b[2J' is not a number of seconds"),
        (["--for", "a\nb"], "--for: 'a\\nb' is not a number of seconds"),
        (["--allocate", "a\n\x1b[2J=x"], "'a\\n\\x1b[2J=x' is not NAME=COUNT"),
    ],
)
def test_what_is_typed_says_nothing_to_the_terminal(
    words: list[str], message: str, rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--rules", rules, *words]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"genericdp: error: {message}"


#: Words that are wrong in many ways, for whatever may stand behind a verb.
WRONG = [
    "",
    "x",
    "/",
    "/dev",
    "/dev/zero",
    "/sys",
    "/proc/self/mem",
    "a b\n\x1b[31m",
    "--",
    "-",
    "é\udcff",
    "0",
    "=1",
    ":",
]


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_no_words_end_in_a_traceback(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # Those that would go on for ever get no further than to the settings.
    lasting = verb in ("run", "simulate", "monitor", "status")
    config = ["--config", "/nowhere/genericdp.toml" if lasting else "/dev/null"] if verb != "schema" else []
    for action in parser_of(verb)._actions:
        for word in WRONG if action.nargs != 0 else []:
            words = [f"{action.option_strings[0]}={word}"] if action.option_strings else [word]
            status = main([verb, *config, *words])
            out, err = capsys.readouterr()
            assert status in (0, 1, 2), (words, err)
            assert "\x1b" not in out + err
