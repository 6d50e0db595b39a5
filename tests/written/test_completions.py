"""What bash, zsh and fish offer when the tab key is pressed: run at a real terminal, asked in real lines."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from generate.kinds import KINDS
from genericdp.cli.main import VERBS, parser_of
from tests.scenes.shells import COMPLETIONS, offered_by_bash, offered_by_fish, offered_by_zsh

Shell = Callable[[Sequence[str], Path], list[set[str]]]
SHELLS: Mapping[str, Shell] = {"bash": offered_by_bash, "zsh": offered_by_zsh, "fish": offered_by_fish}

RULES = '[[resource]]\nname = "{}"\ndescription = "a: b\\tc"\nmatch = {{ DEVNAME = "/dev/fuse" }}\n'


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A directory with rule files, and with others."""
    tmp_path.chmod(0o755)
    rules = tmp_path / "rules"
    (rules / "more").mkdir(parents=True)
    for name in ("fuse", "fan", "vendor.example/fridge"):
        (rules / f"{name.rpartition('/')[2]}.toml").write_text(RULES.format(name))
    (rules / "README").write_text("")
    (rules / "more" / "it's a file.toml").write_text(RULES.format("fuse"))
    (tmp_path / "links").mkdir()
    for link in ("fuse_fuse", "modem_EC25@if02", "modem_EC25@usb"):
        (tmp_path / "links" / link).symlink_to(link)
    (tmp_path / "settings.toml").write_text(f'link_dir = "{tmp_path}/links"')
    (tmp_path / "settings.toml").chmod(0o644)
    for path in (rules, *rules.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return tmp_path


def offered(shell: str, room: Path, lines: Sequence[str]) -> dict[str, set[str]]:
    """By each line its candidates; of paths the last component."""
    return {
        line: {each.rstrip("/").rpartition("/")[2] if each[:1] in "/~" else each for each in found}
        for line, found in zip(lines, SHELLS[shell](lines, room), strict=True)
    }


def test_the_tab_key_completes_verbs_options_values_resources_files_and_nodes(shell: str, room: Path) -> None:
    rules = room / "rules"
    expected: dict[str, set[str]] = {
        "genericdp ch": {"check"},
        "cd /; A=b genericdp ch": {"check"},
        "genericdp list --json | genericdp che": {"check"},
        "genericdp help sch": {"schema"},
        "genericdp frobnicate ": set(),
        "genericdp check --fo": {"--format"},
        "genericdp check --format ": {"human", "json", "github"},
        "genericdp check --format=g": {"github"},
        "genericdp schema s": {"settings"},
        "genericdp list --domain ": set(),
        f"genericdp check {rules}/": {"fan.toml", "fridge.toml", "fuse.toml", "more"},
        f"genericdp list --json --rules={rules}/fu": {"fuse.toml"},
        f"genericdp check {rules}/more/it\\'s\\ a": {"it's a file.toml"},
        f"genericdp simulate --rules {rules}/more/it\\'s\\ a\\ file.toml --allocate ": {"fuse="},
        f"genericdp simulate --rules '{rules}'\"/fan.toml\" --allocate=f": {"fan="},
        "genericdp simulate --rules ~/rules --allocate fa": {"fan="},
        "genericdp check ~/ru": {"rules"},
        f"genericdp list --config {rules}/R": {"README"},
        f"genericdp simulate --rules {rules} --allocate f": {"fan=", "fuse="},
        f"genericdp simulate --rules={rules}/fuse.toml --allocate=": {"fuse="},
        f"genericdp simulate --rules {rules} --domain vendor.example --allocate fr": {"fridge="},
        f"genericdp simulate --rules {rules}/nothing --allocate ": set(),
        f"genericdp explain --rules {rules} /dev/nul": {"null"},
        f"genericdp explain --config {room}/settings.toml --rules {rules} fus": {"fuse", "fuse_fuse"},
        f"genericdp explain --config={room}/settings.toml fuse_": {"fuse_fuse"},
        "genericdp suggest /dev/nul": {"null"},
        "genericdp suggest nul": {"null"},
    }
    assert offered(shell, room, [*expected]) == expected


def test_every_verb_and_every_option_of_it_is_offered_and_nothing_else(shell: str, room: Path) -> None:
    lines = ["genericdp ", *(f"genericdp {verb} --" for verb in VERBS)]
    found = offered(shell, room, lines)
    assert found.pop("genericdp ") - {"--help", "--version"} == {*VERBS, "help"}
    for verb in VERBS:
        flags = {flag for action in parser_of(verb)._actions for flag in action.option_strings}
        assert found[f"genericdp {verb} --"] - {"--help"} == flags - {"-h", "--help"}


def test_no_shell_runs_what_a_name_says(shell: str, room: Path) -> None:
    """The program offers no such name; if it did, it would stay a name."""
    names = ["$(touch pwned)", "`touch pwned`", "a;touch pwned", "a b", "*"]
    (room / "bin").mkdir()
    program = room / "bin" / "genericdp"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "".join(f"{name}\tsaid\n" for name in names) + "END\n")
    program.chmod(0o755)
    line = f"genericdp simulate --rules '$(touch {room}/pwned)' --allocate "
    found = offered(shell, room, [line])[line]
    assert found == {f"{name}=" for name in names}
    assert [*room.rglob("pwned*"), *Path().glob("pwned*")] == []


@pytest.mark.parametrize("check", ["bash -n", "zsh -n", "fish --no-execute"])
def test_a_script_is_sound(check: str) -> None:
    command = check.split()
    subprocess.run([*command, COMPLETIONS / f"genericdp.{command[0]}"], check=True)


def test_every_value_has_a_kind() -> None:
    named = {
        str(action.metavar or action.dest.upper())
        for verb in VERBS
        for action in parser_of(verb)._actions
        if action.nargs != 0 and action.choices is None
    }
    assert named <= {*KINDS}
