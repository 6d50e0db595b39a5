"""What each rule file said when it was last without a mistake, in the state directory, for the next start.

The rules of this file:

* Each set of rules has its own directory, so a daemon with other rules changes nothing in it. The system's
  own is LAST_GOOD itself, where an operator looks. Any other one says in a file which rules they are.
* A text is kept under the name of its file, whatever the directory: what is in effect under a name stays so.
  If the name is too long, a digest replaces its end.
* Nothing is kept under a name that no file has any more, or whose file was emptied.
* A text is written when it is not what is kept already, one at a time: the events of devices go on meanwhile.
* If a text cannot be saved, the older one is removed, which needs no room: it may offer what has been taken
  back since.
* A text that somebody removed or changed, or whose directory is another one by now, is written again. That
  includes a text that this process has only read, for a file with a mistake.
* Nothing is read or written where others can write.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from genericdp.core.rules.settings import LAST_GOOD
from genericdp.errors import GenericdpError, what_to_do
from genericdp.files.trust import UntrustedError, open_trusted, read_text
from genericdp.files.whole_file import FileIdentity, read_whole, write_whole

#: What is kept, and what `write_whole` leaves when it is killed.
_TEXT = ".toml"
_KEPT = (_TEXT, f"{_TEXT}.new")

#: The file that says which rules the texts beside it are of. It is not named like a rule file.
PLACES = "places"

#: The longest name of a file, in bytes (NAME_MAX), and how much of a longer one is kept.
_LONGEST_NAME = 255
_READABLE = 150

#: This many characters of a digest distinguish sets of rules, and names.
_DIGEST_LENGTH = 32

_UNTIL_THEN = (
    "until the rule file is saved there, a mistake in it would end its resources with the next start"
)


@dataclass(frozen=True, slots=True)
class Due:
    """A text that is to be kept under a name; "" if the one that is kept is to be removed."""

    name: str
    text: str


class LastGood:
    """The texts of one set of rules, in the directory LAST_GOOD in the state directory.

    places  the absolute paths where these rules are; empty: the system's
    """

    def __init__(self, state_dir: str, places: Sequence[str] = ()) -> None:
        self._state_dir = state_dir
        self._places = b"".join(os.fsencode(place) + b"\n" for place in places)
        self._directory = os.path.join(state_dir, LAST_GOOD)
        if places:
            # No path contains a NUL, but one may contain a line break.
            self._directory = os.path.join(self._directory, _digest(b"\0".join(map(os.fsencode, places))))
        self._texts: dict[str, str] = {}
        self._has_seen = False
        self._ended: set[str] = set()
        self._written: dict[str, tuple[str, FileIdentity]] = {}
        self._due: list[str] = []
        self._is_listed = True

    @property
    def directory(self) -> str:
        """Where the texts are kept."""
        return self._directory

    def path(self, name: str) -> str:
        """Where the text of the rule file with this name is kept."""
        return os.path.join(self._directory, _short(name))

    def paths(self) -> list[str]:
        """Where texts are kept, in the order of their files; none if the directory cannot be read."""
        names: list[str] = []
        with suppress(OSError):
            names = [name for name in os.listdir(self._directory) if name.endswith(_TEXT)]
        # What is left of a long name begins with a dot.
        return [
            os.path.join(self._directory, name) for name in sorted(names, key=lambda each: each.lstrip("."))
        ]

    def text(self, name: str) -> str | None:
        """The text that is kept under a name, None without one.

        Raises ConfigError if it cannot be read or is refused, see `read_text`.
        """
        if self._has_seen and name not in self._texts:
            # The file is a new one. What is kept may be there because it could not be removed yet.
            self._ended.add(name)
        if name in self._ended:
            return None
        try:
            os.lstat(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            pass  # `read_text` says why
        text = read_text(self.path(name))
        if text and not self._wanted(name):
            self._texts[name] = text
        return text

    def see(self, texts: Mapping[str, str]) -> None:
        """These are all rule files now: name -> text, "" for a file with a mistake.

        Of such a file, the text that was seen before is still to be kept.
        """
        self._ended.difference_update(name for name, text in texts.items() if text)
        self._texts = {name: text or self._wanted(name) for name, text in texts.items()}
        self._has_seen = True
        self._due = self._lost()
        self._is_listed = False

    def look(self) -> bool:
        """Whether something is due now that was not: somebody removed or changed what is kept."""
        lost = [name for name in self._lost() if name not in self._due]
        self._due += lost
        # What is not to be kept may be there as well.
        self._is_listed = self._is_listed and not lost
        return bool(lost)

    def next(self) -> Due | None:
        """What is to be carried out next, if anything. Raises GenericdpError.

        Then call `carry_out`, which may run in a thread, and after it `see_done` or `see_failed`.
        """
        if not self._is_listed:
            self._due += self._superfluous()
            self._is_listed = True
        if not self._due:
            return None
        name = self._due.pop()
        return Due(name, self._wanted(name))

    def carry_out(self, due: Due) -> FileIdentity | None:
        """Save a text or remove it. Returns which file it is now. Raises GenericdpError."""
        try:
            if due.text:
                return self._save(due.name, due.text)
            self._remove(due.name)
        except (OSError, UntrustedError) as error:
            verb, until_then = ("save", _UNTIL_THEN) if due.text else ("remove", "")
            raise self._failure(f"cannot {verb} '{self.path(due.name)}'", error, until_then) from error
        return None

    def see_done(self, due: Due, identity: FileIdentity | None) -> None:
        """Take into account what `carry_out` returned."""
        if identity is not None:
            self._written[due.name] = due.text, identity

    def see_failed(self, due: Due) -> None:
        """Take into account that `carry_out` failed: it is still due, and the others come first."""
        self._written.pop(due.name, None)
        self._due.insert(0, due.name)

    def _wanted(self, name: str) -> str:
        return self._texts.get(name, "")

    def _lost(self) -> list[str]:
        return [name for name, text in self._texts.items() if text and not self._is_written(name, text)]

    def _is_written(self, name: str, text: str) -> bool:
        """Whether this text was written, and the file is still the one that was written."""
        before, identity = self._written.get(name, ("", None))
        return before == text and identity == self._identity(name)

    def _identity(self, name: str) -> FileIdentity | None:
        try:
            found = os.lstat(self.path(name))
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _superfluous(self) -> list[str]:
        """What is kept, and is not to be."""
        try:
            names = os.listdir(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure(f"cannot read '{self._directory}'", error) from error
        there = {_short(name) for name in self._texts.keys() - self._ended}
        return [name for name in names if name.endswith(_KEPT) and name not in there]

    def _save(self, name: str, text: str) -> FileIdentity:
        data = text.encode()
        identity = self._kept_already(name, data)
        if identity is None:
            # makedirs gives only the last directory this mode.
            for each in (self._state_dir, os.path.join(self._state_dir, LAST_GOOD)):
                os.makedirs(each, mode=0o700, exist_ok=True)
            try:
                self._save_places()
                identity = write_whole(self.path(name), data, mode=0o600)
            except (OSError, UntrustedError):
                if self._kept_already(name, data) is None:
                    with suppress(OSError, UntrustedError):
                        self._remove(name)
                raise
        return identity

    def _save_places(self) -> None:
        path = os.path.join(self._directory, PLACES)
        if self._places and not os.path.lexists(path):
            write_whole(path, self._places, mode=0o600)

    def _kept_already(self, name: str, data: bytes) -> FileIdentity | None:
        """Which file it is, if that is what is kept; None if it has to be written."""
        with suppress(OSError, UntrustedError):
            if os.lstat(self.path(name)).st_size == len(data):
                kept, identity = read_whole(self.path(name))
                if kept == data:
                    return identity
        return None

    def _remove(self, name: str) -> None:
        at = open_trusted(self._directory)
        try:
            with suppress(FileNotFoundError):
                os.unlink(_short(name), dir_fd=at)
            os.fsync(at)
        finally:
            os.close(at)

    def _failure(self, what: str, error: OSError | UntrustedError, until_then: str = "") -> GenericdpError:
        if isinstance(error, UntrustedError):
            cure, why = error.hint, str(error)
        else:
            cure, why = what_to_do(error, self._directory), str(error.strerror)
        return GenericdpError(f"{what}: {why}", hint="; ".join(filter(None, (cure, until_then))))


def _short(name: str) -> str:
    """The name under which the text of a rule file is kept: its own, unless `write_whole` has no room for it.

    No rule file has a name that begins with a dot, so no other one has this name.
    """
    data = os.fsencode(name)
    if len(data) <= _LONGEST_NAME - len(".new"):
        return name
    return f".{data[:_READABLE].decode(errors='ignore')}-{_digest(data)}.toml"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]
