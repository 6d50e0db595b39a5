"""Laws of rule files and restarts: a restart changes nothing that is in effect, nor do other rules."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from genericdp.files.rulefiles import RuleFiles
from tests.scenes.last_good import save_next

DIRECTORIES = ("usr", "etc")
FILES = ("10-a.toml", "20-b.toml")

_RULE = '[[resource]]\nname = "{}"\nmatch.SUBSYSTEM = "tty"\n'

#: Sets of rules: those of the service, and those of a daemon that somebody runs with `--rules`.
SETS = ("one", "another")

#: What a file says; None: it is removed.
TEXTS = (_RULE.format("x"), _RULE.format("y"), "# nothing yet\n", "[[resource", "x = 1\n", "", None)

edits = st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(FILES), st.sampled_from(TEXTS))


def write(root: Path, place: str, name: str, text: str | None) -> None:
    """An operator saves a file or, without a text, removes it."""
    path = root / place / name
    if text is not None:
        path.write_text(text)
        path.chmod(0o644)
    elif path.exists():
        os.unlink(path)


class Daemon:
    """What a daemon reads and keeps."""

    def __init__(self, root: Path, state: Path) -> None:
        self._files = RuleFiles([str(root / each) for each in DIRECTORIES], "example.com", now=lambda: 0.0)
        self._last_good = self._files.resume(str(state))

    def read(self) -> None:
        self._files.reload()
        while save_next(self._last_good):
            pass

    @property
    def resources(self) -> object:
        return self._files.resources

    @property
    def in_effect(self) -> object:
        files = [(file.path, file.digest, file.outdated) for file in self._files.files]
        return files, self._files.resources


@given(st.lists(st.tuples(st.sampled_from(SETS), edits, st.booleans()), max_size=12))
def test_two_sets_of_rules_with_one_state_directory_do_not_touch_each_other(
    steps: list[tuple[str, tuple[str, str, str | None], bool]],
) -> None:
    with TemporaryDirectory(prefix="gdp-") as directory:
        shared, alone = Path(directory, "shared"), Path(directory, "alone")
        daemons: dict[tuple[Path, str], Daemon] = {}
        for root in (shared, alone):
            for each in SETS:
                for place in DIRECTORIES:
                    (root / each / place).mkdir(parents=True, mode=0o755)
        for set_, edit, restarts in steps:
            found = []
            for root, state in ((shared, shared / "state"), (alone, alone / set_ / "state")):
                write(root / set_, *edit)
                if restarts or (root, set_) not in daemons:
                    daemons[root, set_] = Daemon(root / set_, state)
                daemons[root, set_].read()
                found.append(daemons[root, set_].resources)
            assert found[0] == found[1]


@given(st.lists(st.tuples(edits, st.booleans()), max_size=12))
def test_a_restart_changes_nothing_that_is_in_effect(
    steps: list[tuple[tuple[str, str, str | None], bool]],
) -> None:
    with TemporaryDirectory(prefix="gdp-") as directory:
        root = Path(directory)
        for each in DIRECTORIES:
            (root / each).mkdir(mode=0o755)
        stays = Daemon(root, root / "state")
        for (place, name, text), restarts in steps:
            write(root, place, name, text)
            stays.read()
            restarted = Daemon(root, root / "state")
            restarted.read()
            assert restarted.in_effect == stays.in_effect
            if restarts:
                stays = restarted
