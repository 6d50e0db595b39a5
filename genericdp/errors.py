"""What can go wrong, as values: where it is, what it is, what to do next.

The rules of this file:

* A `Problem` is a value. Its text is made in one place (`Problem.render`), in the form that compilers
  use, so that editors and grep understand it and tests can compare it whole.
* `GenericdpError` is for errors that an operator can act on: it is printed without a traceback. Any
  other exception is a bug and keeps its traceback.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass

#: At least this many columns of a source line are shown, however narrow the screen.
_LEAST_ROOM = 20
#: More of a source line nobody reads, and a file of one line would be shown once for each mistake in it.
_MOST_ROOM = 1000

#: Errors of a process that lacks descriptors or memory. They pass, and say nothing about what was asked for.
SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

#: What an operator can do if there are too few descriptors.
MORE_DESCRIPTORS = "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"

#: What an operator can do about a shortage.
_CURES = {
    errno.EMFILE: MORE_DESCRIPTORS,
    errno.ENFILE: "raise the sysctl fs.file-max",
    errno.ENOMEM: "free some memory, or raise MemoryMax= of the unit",
    errno.ENOSPC: "free some space on that file system",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.EIO: "the kernel's log may say more: journalctl --dmesg",
    errno.EROFS: "mount that file system read-write; the unit may permit only some paths",
}

#: What is wrong with a path that has no directory where it needs one.
LEADS_NOWHERE = "a symlink in this path leads to nothing, or a part of it is not a directory"

#: What an operator can do if no thread or process can be started.
MORE_THREADS = (
    "raise the limit: TasksMax= of the unit, the limit of process ids of the pod, "
    "or the sysctls kernel.pid_max and kernel.threads-max; or free some memory"
)


def what_is_short(error: OSError) -> str:
    """What to do about an error that a shortage can explain; "" for any other error."""
    return _CURES.get(error.errno or 0, "")


def what_to_do(error: OSError, directory: str) -> str:
    """What to do if a file could not be replaced or removed, with paths relative to this directory; or ""."""
    if isinstance(error, IsADirectoryError):
        return f"remove '{directory}/{error.filename2 or error.filename}'"
    # os.makedirs says so; a file is made with a relative path.
    no_directory = isinstance(error, FileExistsError) and error.filename.startswith("/")
    if no_directory or isinstance(error, NotADirectoryError):
        return LEADS_NOWHERE
    return what_is_short(error)


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a text file. Lines and columns count from 1; `length` is the width to underline.

    Line 0 is the file as a whole: it cannot be read, for example.
    """

    file: str
    line: int
    column: int = 1
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: where, what, what next.

    `source` is the whole source line of the location, or "" if there is none to show (the file cannot
    be read, say). `hint` is "" if the message says it all.
    """

    location: Location
    message: str
    hint: str = ""
    source: str = ""
    severity: str = "error"

    @property
    def summary(self) -> str:
        """Where and what, in one line."""
        return f"{self.location}: {self.message}"

    def render(self, width: int | None = None) -> str:
        """The problem as text: `file:line:col: error: …`, the source line, a caret, a hint.

        With a width (columns), a longer source line is cut to the part around the location; without one, only
        a very long line is.
        """
        lines = [f"{self.location}: {self.severity}: {self.message}"]
        if self.source:
            number = f"{self.location.line:5d}"
            # A tab before the caret must stay a tab, or the caret drifts off its column.
            room = _MOST_ROOM if width is None else max(_LEAST_ROOM, width - len(number) - len(" | "))
            source, column = self._around(room)
            before = source[:column]
            pad = "".join("\t" if char == "\t" else " " for char in before)
            length = max(1, min(self.location.length, len(source) - len(before)))
            lines.append(f"{number} | {source}")
            lines.append(f"{' ' * len(number)} | {pad}{'^' * length}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def _around(self, room: int) -> tuple[str, int]:
        """The source line, or the part around the location that fits; and the location's column in it."""
        column = self.location.column - 1
        if len(self.source) <= room:
            return self.source, column
        # A third of the room before the location: what follows says more.
        start = max(0, min(column - room // 3, len(self.source) - room))
        cut = self.source[start : start + room]
        if start:
            cut = f"…{cut[1:]}"
        if start + room < len(self.source):
            cut = f"{cut[:-1]}…"
        return cut, column - start


class GenericdpError(Exception):
    """Something the operator can act on. `hint` says what to do next, or is ""."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UnreadError(GenericdpError):
    """Some devices cannot be read, and may be there all the same.

    paths  where, in sysfs or below /dev -> the sys path that the unit would have at the other port of its
           socket of USB 3, or ""
    """

    def __init__(self, message: str, *, hint: str = "", paths: Mapping[str, str]) -> None:
        super().__init__(message, hint=hint)
        self.paths = paths


class ConfigError(GenericdpError):
    """Rule files or settings that cannot be used; carries every problem found, in file order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(problem.render() for problem in problems))
        self.problems = problems
