"""The command line as an operator meets it: every mistake, its text and its exit status."""

import argparse
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from genericdp import VERSION
from genericdp.cli.main import VERBS, main
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.errors import ConfigError, GenericdpError, Location, Problem

Act = Callable[[], int]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Act], None]:
    """Makes `genericdp shout [--json] [--rules X] DEVICE` a verb that does what a test wants."""

    def install(act: Act) -> None:
        def add_arguments(parser: argparse.ArgumentParser) -> None:
            parser.description = "Says it loudly."
            parser.epilog = "examples:\n  genericdp shout /dev/null"
            parser.add_argument("device", metavar="DEVICE")
            parser.add_argument("--times", type=int, default=1, help="how often")
            add_json_option(parser)
            add_rule_options(parser)

        module = SimpleNamespace(add_arguments=add_arguments, run=lambda **_: act())
        monkeypatch.setitem(sys.modules, "genericdp.cli.verbs.shout", module)
        monkeypatch.setitem(VERBS, "shout", "say it loudly")

    return install


def raising(error: BaseException) -> Act:
    def act() -> int:
        raise error

    return act


def test_the_help_names_every_verb_and_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in VERBS:
        assert f"\n  {name} " in out
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_every_verb_fits_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_without_a_verb_the_help_is_the_answer_and_the_status_that_of_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: genericdp VERB [OPTION…]\n")


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"genericdp {VERSION}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "unknown verb 'chekc'\n  hint: did you mean 'check'?"),
        (["frobnicate"], "unknown verb 'frobnicate'\n  hint: 'genericdp --help' lists the verbs"),
        (
            ["--json", "shout"],
            (
                "'--json' is not a verb\n"
                "  hint: the verb comes first: genericdp VERB [OPTION…]; 'genericdp --help' lists the verbs"
            ),
        ),
        (["--verison"], "'--verison' is not a verb\n  hint: did you mean '--version'?"),
        (["--hepl"], "'--hepl' is not a verb\n  hint: did you mean '--help'?"),
        (["schema"], "schema takes 'rules' or 'settings'\n  hint: genericdp schema rules"),
        (
            ["list", "50-fuse.toml"],
            "unexpected argument '50-fuse.toml'\n  hint: did you mean --rules 50-fuse.toml?",
        ),
        (
            ["simulate", "x.toml"],
            "unexpected argument 'x.toml'\n  hint: did you mean --rules x.toml?",
        ),
        (
            ["suggest", "--all", "/dev/fuse"],
            "suggest takes only one of DEVICE and --all\n  hint: leave out --all, or '/dev/fuse'",
        ),
        (
            ["suggest", "--all", "--node"],
            "suggest takes only one of --node and --all\n  hint: leave out --node, or --all",
        ),
        (
            ["shout", "/dev/null", "--jsno"],
            "genericdp shout has no option '--jsno'\n  hint: did you mean '--json'?",
        ),
        (
            ["shout", "/dev/null", "--zzz=1"],
            "genericdp shout has no option '--zzz'\n  hint: see 'genericdp shout --help'",
        ),
        (
            ["shout", "/dev/null", "--rul", "x"],
            "genericdp shout has no option '--rul'\n  hint: did you mean '--rules'?",
        ),
        (
            ["shout", "a", "b\x1b"],
            r"unexpected argument 'b\x1b'" + "\n  hint: see 'genericdp shout --help'",
        ),
        (["shout"], "DEVICE is missing\n  hint: see 'genericdp shout --help'"),
        (
            ["shout", "a", "--config"],
            "--config needs a value\n  hint: see 'genericdp shout --help'",
        ),
        (
            ["shout", "a", "--times", "x"],
            "--times: invalid int value: 'x'\n  hint: see 'genericdp shout --help'",
        ),
    ],
)
def test_a_usage_error_says_what_is_wrong_and_what_was_probably_meant(
    verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    verb(lambda: 0)
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", f"genericdp: error: {message}\n")


def test_the_help_of_a_verb_has_its_options_and_examples(
    verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(lambda: 0)
    assert main(["shout", "--help"]) == 0
    first = capsys.readouterr().out
    assert "usage: genericdp shout" in first
    assert "Says it loudly." in first
    assert first.endswith("examples:\n  genericdp shout /dev/null\n")
    assert max(len(line) for line in first.splitlines()) <= 80
    assert main(["help", "shout"]) == 0
    assert capsys.readouterr().out == first


def test_the_status_is_what_the_verb_says(verb: Callable[[Act], None]) -> None:
    verb(lambda: 1)
    assert main(["shout", "x"]) == 1


def test_what_the_operator_can_mend_is_printed_without_a_traceback(
    verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(GenericdpError("'/dev/x' is not a device node", hint="'genericdp list --all' shows them")))
    assert main(["shout", "x"]) == 1
    assert capsys.readouterr() == (
        "",
        "genericdp: error: '/dev/x' is not a device node\n  hint: 'genericdp list --all' shows them\n",
    )


def test_problems_of_rule_files_are_printed_as_compilers_do(
    verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(ConfigError((Problem(Location("a.toml", 3, 1), "unknown key 'matches'"),))))
    assert main(["shout", "x"]) == 1
    assert capsys.readouterr() == ("", "a.toml:3:1: error: unknown key 'matches'\n")


def test_our_bug_keeps_its_traceback_and_says_what_to_report(
    verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(RuntimeError("impossible")))
    assert main(["shout", "x"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert (
        "RuntimeError: impossible\n"
        "\n"
        "genericdp: this is a bug in genericdp, not your mistake; please report it with\n"
        "  - the lines above\n"
        "  - the command: genericdp shout x\n"
        f"  - the versions: genericdp {VERSION}, Python "
    ) in err
    assert err.endswith("  - your rule files\n")


@pytest.mark.parametrize(("path", "where"), [("/run/x", "'/run/x': "), (None, "")])
def test_a_shortage_is_not_our_bug(
    path: str | None, where: str, verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)))
    assert main(["shout", "x"]) == 1
    assert capsys.readouterr().err == (
        f"genericdp: error: {where}Too many open files\n"
        "  hint: raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'\n"
    )


def test_an_interrupt_is_no_error(verb: Callable[[Act], None], capsys: pytest.CaptureFixture[str]) -> None:
    verb(raising(KeyboardInterrupt()))
    assert main(["shout", "x"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_went_away_is_no_error() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "genericdp", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    program.stdout.close()
    _, err = program.communicate(timeout=30)
    assert (program.returncode, err) == (141, "")


@pytest.mark.parametrize("name", VERBS)
def test_asking_about_a_verb_loads_neither_the_kubelets_side_nor_udevs(name: str) -> None:
    """A verb pays for what it uses; `check` runs where neither grpc nor libudev can be loaded."""
    script = (
        "import sys; from genericdp.cli.main import main; status = main([sys.argv[1], '--help']);"
        "heavy = {'asyncio', 'grpc', 'pyudev', 'google.protobuf', 'usb', 'ctypes', 'ssl'};"
        "print(sorted(heavy & {*sys.modules})); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, name], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "typed", [["list"], ["list", "--json"], ["explain", "/dev/null"], ["suggest", "/dev/null"]]
)
def test_an_answer_about_the_machine_needs_neither_an_event_loop_nor_the_kubelets_side(
    typed: list[str], tmp_path: Path
) -> None:
    script = (
        "import sys; from genericdp.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'asyncio', 'grpc', 'google.protobuf', 'usb', 'ssl'};"
        "print(sorted(heavy & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *typed, "--rules", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words", ["check --rules {}", "schema rules", "status", "complete resources --rules {}"]
)
def test_what_is_not_about_devices_loads_nothing_of_udevs_either(words: str, tmp_path: Path) -> None:
    script = (
        "import sys; from genericdp.cli.main import main; main(sys.argv[1:]);"
        "heavy = {'asyncio', 'grpc', 'google.protobuf', 'usb', 'ssl', 'pyudev', 'ctypes', 'logging'};"
        "print(sorted(heavy & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words.format(tmp_path).split()],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_daemon_runs_without_openssl() -> None:
    script = (
        "import sys; sys.argv = ['genericdp', 'run', '--help'];"
        "from genericdp.__main__ import main; main(); import asyncio, hashlib;"
        "print(hashlib.sha256(b'').hexdigest()[:8], [sys.modules.get(n) for n in ('ssl', '_hashlib')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "e3b0c442 [None, None]"


def test_what_the_daemon_never_uses_is_not_loaded_and_works_all_the_same() -> None:
    script = (
        "import sys; from genericdp.__main__ import _SELDOM_USED, _leave_unused_modules_out;"
        "_leave_unused_modules_out();"
        "import genericdp.cli.main, genericdp.cli.verbs.run, genericdp.cli.service;"
        "print([name for name in _SELDOM_USED if sys.modules[name].__spec__], 'pickle' in sys.modules);"
        "import calendar, shutil, tempfile; from asyncio import sslproto;"
        "from google.protobuf.internal import python_message; from typing_extensions import Protocol;"
        "print(calendar.timegm((1970, 1, 1, 0, 0, 9)), shutil.which('sh') is not None,"
        "tempfile.gettempprefix(), sslproto.SSLProtocol.__name__,"
        "python_message.GeneratedProtocolMessageType.__name__);"
        "print([name for name in _SELDOM_USED if not sys.modules[name].__spec__])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-3:] == [
        "[] False",
        "9 True tmp SSLProtocol GeneratedProtocolMessageType",
        "[]",
    ]


def test_the_daemon_runs_without_compressors() -> None:
    script = (
        "import sys; sys.argv = ['genericdp', 'run', '--help'];"
        "from genericdp.__main__ import main; main();"
        "import asyncio, ctypes.util, shutil;"
        "print(sorted({'bz2', 'lzma', '_bz2', '_lzma'} & {n for n, m in sys.modules.items() if m}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["", "unbuffered"])
def test_what_is_wrong_follows_the_answer_in_one_file_as_on_a_terminal(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """`genericdp list 2>&1 | less`, or the journal."""
    (tmp_path / "bad.toml").write_text("[[resources]]\n")
    (tmp_path / "good.toml").write_text('[[resource]]\nname = "zero"\nmatch = { DEVNAME = "/dev/zero" }\n')
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", "genericdp", "list", "--rules", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**inherited, **environment},
        text=True,
        timeout=30,
        check=False,
    )
    lines = done.stdout.splitlines()
    mistake = next(line for line in lines if line.startswith(f"{tmp_path}/bad.toml:1:1: error: "))
    assert lines.index("genericdp.io/zero: 1 device") < lines.index(mistake)
