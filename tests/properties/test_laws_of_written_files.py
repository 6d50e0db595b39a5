"""Law of rule files that are written piece by piece: in effect is what a file was when it was last closed."""

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from genericdp.files.rulefiles import DIGEST_LENGTH, RuleFiles

FILES = ("10-a.toml", "20-b.toml")

#: With each piece, the file is a valid one, of which the rule takes fewer devices.
PIECES = (
    '[[resource]]\nname = "{letter}"\nmatch.SUBSYSTEM = "tty"\n',
    'match.ID_SERIAL = "A"\n',
    'match.DEVNAME = "/dev/ttyUSB0"\n',
)

#: A program opens a file, which empties it, writes the next piece, or closes it.
steps = st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(["open", "write", "close"])), max_size=20)


@given(steps)
def test_what_is_in_effect_of_a_file_is_what_it_was_when_it_was_last_closed(
    steps: list[tuple[str, str]],
) -> None:
    with TemporaryDirectory(prefix="gdp-") as directory:
        rules = RuleFiles([directory], "example.com", now=lambda: 0.0)
        written: dict[str, str] = {}
        complete: dict[str, str] = {}
        writers: dict[str, int] = {}
        try:
            for name, step in steps:
                if step == "open" and name not in writers:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                    writers[name] = os.open(Path(directory, name), flags, 0o644)
                    written[name] = ""
                elif step == "write" and name in writers:
                    lines = written[name].count("match")
                    piece = PIECES[lines].format(letter=name[3]) if lines < len(PIECES) else ""
                    os.write(writers[name], piece.encode())
                    written[name] += piece
                elif step == "close" and name in writers:
                    os.close(writers.pop(name))
                    complete[name] = written[name]
                rules.reload()
                in_effect = {os.path.basename(each.path): each.digest for each in rules.files if each.digest}
                assert in_effect == {name: _digest(text) for name, text in complete.items() if text}
                assert rules.unread == bool(writers)
                assert not rules.problems
        finally:
            for writer in writers.values():
                os.close(writer)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
