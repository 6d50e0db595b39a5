"""Law of what is trusted: a stranger changes nothing that is read, and adds nothing.

The stranger is a real user of this machine, who tries what the kernel lets them try.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from genericdp.errors import ConfigError
from genericdp.files.trust import read_text
from tests.scenes.stranger import STRANGER, as_stranger

#: What is there: directories, files with their text, and symlinks with their target.
DIRECTORIES = ("a", "a/b", "a/b/c", "z")
FILES = {"a/b/c/rules": "right", "a/b/rules": "another one of root", "z/rules": "a third one of root"}
LINKS = {
    "a/file": "b/c/rules",
    "a/b/folder": "c",
    "a/chain": "b/folder/rules",
    "z/up": "../a/b/../b/folder",
    "z/deep": "up/rules",
}
PATHS = ("a/b/c/rules", "a/file", "a/b/folder/rules", "a/chain", "z/up/rules", "z/deep", "z/../a/file")

#: A name that only the stranger gives.
PLANTED = "planted"

owners = st.sampled_from([0, 0, 0, 0, 0, STRANGER])
groups = st.sampled_from([0, 0, 0, STRANGER])
directory_modes = st.sampled_from([0o755, 0o755, 0o755, 0o775, 0o777, 0o1777, 0o1755, 0o757])
file_modes = st.sampled_from([0o644, 0o644, 0o644, 0o664, 0o666, 0o646])


def attacks(room: Path) -> Iterator[Callable[[], object]]:
    """Whatever may change what is read under a path."""
    own = room / "of-the-stranger"
    names = [*DIRECTORIES, *FILES, *LINKS]
    sources = [own / "rules", own / "link", own / "folder", room / "z/rules", room / "a/chain", room / "a/b"]
    for name in names:
        victim = room / name
        yield lambda victim=victim: victim.write_text("evil")  # type: ignore[misc]
        yield lambda victim=victim: victim.chmod(0o777)  # type: ignore[misc]
        yield lambda victim=victim: victim.rename(victim.with_name("elsewhere"))  # type: ignore[misc]
        for source in sources:
            if name in DIRECTORIES:
                yield lambda victim=victim, source=source: replace(victim / PLANTED, source)  # type: ignore[misc]
            yield lambda victim=victim, source=source: replace(victim, source)  # type: ignore[misc]
            yield lambda victim=victim, source=source: source.rename(victim)  # type: ignore[misc]


def replace(victim: Path, source: Path) -> None:
    """Put another name of something, or a symlink to it, in the place of something.

    Raises OSError if the kernel allows no part of it.
    """
    parts: tuple[Callable[[], None], ...] = (
        victim.unlink,
        lambda: os.link(source, victim, follow_symlinks=False),
        lambda: victim.symlink_to(source),
    )
    refused = []
    for part in parts:
        try:
            part()
        except OSError as error:
            refused.append(error)
    if len(refused) == len(parts):
        raise refused[0]


def read(path: Path) -> str | None:
    try:
        return read_text(str(path))
    except ConfigError:
        return None


@given(st.data())
def test_no_stranger_changes_what_is_read(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        room = Path(directory)
        room.chmod(0o755)
        own = room / "of-the-stranger"
        own.mkdir()
        (own / "rules").write_text("evil")
        (own / "link").symlink_to("rules")
        (own / "folder").mkdir()
        (own / "folder" / "rules").write_text("evil")
        for each in (own, *own.rglob("*")):
            os.chown(each, STRANGER, STRANGER, follow_symlinks=False)
        for name in DIRECTORIES:
            (room / name).mkdir()
        for name, text in FILES.items():
            (room / name).write_text(text)
            (room / name).chmod(data.draw(file_modes))
        for name, target in LINKS.items():
            (room / name).symlink_to(target)
        for name in (*FILES, *LINKS, *DIRECTORIES):
            os.chown(room / name, data.draw(owners), data.draw(groups), follow_symlinks=False)
        for name in DIRECTORIES:
            (room / name).chmod(data.draw(directory_modes))
        before = {path: found for path in PATHS if (found := read(room / path)) is not None}
        for attack in attacks(room):
            try:
                with as_stranger():
                    attack()
            except OSError:
                continue  # what the kernel refuses changes nothing
            for path, right in before.items():
                assert read(room / path) in (right, None)
            for name in DIRECTORIES:
                assert read(room / name / PLANTED) is None
