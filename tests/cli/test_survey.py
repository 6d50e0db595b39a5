"""What the operator's verbs take from the daemon."""

from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.cli import options
from genericdp.cli.main import main
from genericdp.cli.survey import remembered
from genericdp.core.inventory.offer import Device
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.settings import DEFAULT_DOMAIN, LAST_GOOD
from genericdp.files.directories import notes_of_each_other, write_all
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.state import StateFile, this_boot
from tests.scenes.last_good import save_next
from tests.scenes.rules import FTDI
from tests.scenes.service import settings_below
from tests.scenes.state_file import save
from tests.watch.test_directory import as_nobody

NULL = '[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n'


def test_after_an_edit_of_state_dir_they_read_the_memory_that_the_daemon_goes_on_with(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    save(StateFile(before.state_dir, this_boot()), Memory({"ftdi_A": Remembered(FTDI, Device("ftdi_A"))}))
    write_all(notes_of_each_other(before))
    memory, remarks = remembered(replace(before, state_dir=f"{tmp_path}/other"))
    assert (list(memory.devices), remarks) == (["ftdi_A"], ())


def test_without_root_they_say_that_the_daemon_may_still_use_the_last_good_version(
    short_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short_dir.chmod(0o755)
    rules, state, config = short_dir / "rules.d", short_dir / "state", short_dir / "genericdp.toml"
    rules.mkdir(mode=0o755)
    state.mkdir(mode=0o700)
    for path, text in (
        (rules / "10-null.toml", NULL.replace("match", "macth")),
        (config, f'state_dir = "{state}"\nlink_dir = "{short_dir}/links"\n'),
    ):
        path.write_text(text)
        path.chmod(0o644)
    monkeypatch.setattr(options, "RULE_DIRECTORIES", (str(rules),))
    monkeypatch.setenv("COLUMNS", "1000")
    # Root sees that nothing is kept. And nobody may be unable to read the modules of Python.
    assert main(["list", "--config", str(config)]) == 1
    without = capsys.readouterr()
    with as_nobody():
        assert main(["list", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert out == without.out == "no rule file can be used: 1 rule file has a mistake, see below\n"
    assert "last good version" not in without.err
    why = f"cannot read '{state}/link_dir': Permission denied"
    note = f"note: {why}; the daemon may still use the last good version of a rule file with mistakes"
    assert err.splitlines()[-1] == note


def test_of_a_rule_file_with_a_mistake_they_use_what_the_daemon_keeps_in_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, state, config = tmp_path / "rules.d", tmp_path / "state", tmp_path / "genericdp.toml"
    rules.mkdir(mode=0o755)
    file = rules / "10-null.toml"
    for path, text in ((file, NULL), (config, f'state_dir = "{state}"\nlink_dir = "{tmp_path}/links"\n')):
        path.write_text(text)
        path.chmod(0o644)
    daemon = RuleFiles([str(rules)], DEFAULT_DOMAIN)
    last_good = daemon.resume(str(state))
    daemon.reload()
    while save_next(last_good):
        pass
    file.write_text(NULL.replace("match", "macth"))
    monkeypatch.setattr(options, "RULE_DIRECTORIES", (str(rules),))
    monkeypatch.setenv("COLUMNS", "1000")

    assert main(["list", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "genericdp.io/null: 1 device"
    assert err == (
        f"{file}:3:1: error: unknown key 'macth' in [[resource]]\n"
        '    3 | macth = { DEVNAME = "/dev/null" }\n'
        "      | ^^^^^\n"
        "  hint: did you mean 'match'?\n"
        f"note: the last good version of {file} is shown: the daemon keeps it in effect\n"
    )
    # So it is with all files of a directory that cannot be read.
    rules.rename(tmp_path / "away")
    rules.symlink_to("not_mounted")
    kept = last_good.path(file.name)
    assert main(["list", "--config", str(config)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == "genericdp.io/null: 1 device"
    assert err == (
        f"{rules}: error: cannot be read: No such file or directory\n"
        "  hint: check the spelling; a symlink on the way may lead to nothing\n"
        f"note: the last good version of {kept} is shown: the daemon keeps it in effect\n"
    )
    rules.unlink()
    (tmp_path / "away").rename(rules)
    # Files that are named are tried as they are.
    assert main(["list", "--config", str(config), "--rules", str(rules)]) == 1
    out, err = capsys.readouterr()
    assert "null" not in out
    assert "note" not in err
    assert [each.name for each in (state / LAST_GOOD).rglob("*.toml")] == ["10-null.toml"]


@pytest.mark.parametrize(
    ("places", "are_all"),
    [([], True), (["/a", "/b"], True), (["/b", "/c", "/a"], True), (["/a"], False), (["/c"], False)],
)
def test_rules_are_all_if_those_of_every_system_directory_are_read(
    monkeypatch: pytest.MonkeyPatch, places: list[str], are_all: bool
) -> None:
    monkeypatch.setattr(options, "RULE_DIRECTORIES", ("/a", "/b"))
    assert options.are_all_rules(places) is are_all
