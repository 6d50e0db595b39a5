"""Law of rule files and restarts: a restart changes nothing that is in effect."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from genericdp.files.last_good import LastGood
from genericdp.files.rulefiles import RuleFiles

DIRECTORIES = ("usr", "etc")
FILES = ("10-a.toml", "20-b.toml")

_RULE = '[[resource]]\nname = "{}"\nmatch.SUBSYSTEM = "tty"\n'

#: What a file says; None: it is removed.
TEXTS = (_RULE.format("x"), _RULE.format("y"), "# nothing yet\n", "[[resource", "x = 1\n", "", None)

edits = st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(FILES), st.sampled_from(TEXTS))


class Daemon:
    """What a daemon reads and keeps."""

    def __init__(self, root: Path) -> None:
        self._files = RuleFiles([str(root / each) for each in DIRECTORIES], "example.com", now=lambda: 0.0)
        self._last_good = LastGood(str(root / "state"))
        self._files.resume(self._last_good)

    def read(self) -> None:
        self._files.reload()
        while self._last_good.save_next():
            pass

    @property
    def in_effect(self) -> object:
        files = [(file.path, file.digest, file.outdated) for file in self._files.files]
        return files, self._files.resources


@given(st.lists(st.tuples(edits, st.booleans()), max_size=12))
def test_a_restart_changes_nothing_that_is_in_effect(
    steps: list[tuple[tuple[str, str, str | None], bool]],
) -> None:
    with TemporaryDirectory(prefix="gdp-") as directory:
        root = Path(directory)
        for each in DIRECTORIES:
            (root / each).mkdir(mode=0o755)
        stays = Daemon(root)
        for (place, name, text), restarts in steps:
            path = root / place / name
            if text is not None:
                path.write_text(text)
                path.chmod(0o644)
            elif path.exists():
                os.unlink(path)
            stays.read()
            restarted = Daemon(root)
            restarted.read()
            assert restarted.in_effect == stays.in_effect
            if restarts:
                stays = restarted
