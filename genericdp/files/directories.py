"""The directories that pods depend on, and which they were before an edit of the settings.

The answers that the kubelet has saved name links in `link_dir`, and only the memory in `state_dir` says which
devices these are. Containers that start again would find links that nobody keeps right.

The rules of this file:

* Each of the two directories has a file that names the other one. So an edit of both at once is not noticed.
* While an edit waits for pods, the directory that it names has such a file, too: a second edit may follow.
* The link directory is empty after a boot. So the directory that the service manager provides names the state
  directory as well.
* A state directory without a memory is not the one of before: the operator has moved it with its files.
* A file that cannot be read may name another directory. That is an error, not the end of it.
* An edit of `cdi_dir` takes effect at once, and no CDI spec file stays where nobody keeps it up to date.
  Runtimes read several directories, and a killed daemon leaves its files. So the directories in which files
  may be are noted before the first one is written there, and until they are cleared.
* Both directories have this note: the disk of one may be full. What either says counts.
* A directory of spec files is noted by its real path, because a symlink may lead elsewhere by then. It stays
  noted until files were removed there: its file system may be mounted later, or not in this pod.
* A real path has any bytes, and each line is one path, in which backslashes and line breaks are escaped.
"""

import errno
import os
import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from genericdp.core.cdi import is_spec_file
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, what_is_short, what_to_do
from genericdp.files.kept_directory import make_for_all
from genericdp.files.state import BrokenStateError, StateFile, this_boot
from genericdp.files.trust import UntrustedError, is_absent
from genericdp.files.whole_file import read_whole, sync, write_whole

#: The file in the link directory that names the state directory. Ids do not begin with a dot.
STATE_DIR = ".state_dir"

#: The file in the state directory that names the link directory.
LINK_DIR = "link_dir"

#: The files in the state and in the link directory that name the directories of the CDI spec files.
CDI_DIR = "cdi_dir"
CDI_DIR_BESIDE_LINKS = ".cdi_dir"

#: The file in the directory of the service manager that names the state directory.
PROVIDED = "state_dir"

#: The names of all these files.
NAMES = frozenset({STATE_DIR, LINK_DIR, CDI_DIR, CDI_DIR_BESIDE_LINKS, PROVIDED})

#: How many edits may wait for pods at the same time, one after the other.
_MOST_EDITS = 8

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP)


def before_edit(settings: Settings) -> Settings:
    """The settings with the directories with which genericdp served last.

    Raises GenericdpError if it cannot be read which these are.
    """
    for _ in range(_MOST_EDITS):
        before = _named(_provided(), PROVIDED) or _named(settings.link_dir, STATE_DIR)
        state_dir = before if before and not is_absent(StateFile(before).path) else settings.state_dir
        found = replace(
            settings, state_dir=state_dir, link_dir=_named(state_dir, LINK_DIR) or settings.link_dir
        )
        if found == settings:
            break
        settings = found
    return settings


def memory_names_holders(settings: Settings) -> bool:
    """Whether the memory says that pods hold devices, or says nothing that can be read."""
    try:
        return bool(StateFile(settings.state_dir, this_boot(), settings.link_dir).load().held)
    except GenericdpError:
        return True


@dataclass(frozen=True, slots=True)
class Note:
    """A file in one of the directories, and its lines."""

    directory: str
    file: str
    lines: tuple[str, ...]

    @property
    def path(self) -> str:
        return os.path.join(self.directory, self.file)

    @property
    def is_beside_links(self) -> bool:
        """Whether it is in a link directory, and not on the disk of a state directory."""
        return self.file in (STATE_DIR, CDI_DIR_BESIDE_LINKS)

    @property
    def is_of_cdi(self) -> bool:
        """Whether it names directories of CDI spec files."""
        return self.file in (CDI_DIR, CDI_DIR_BESIDE_LINKS)

    def stands(self) -> bool | None:
        """Whether the file says so; None if it cannot be read."""
        try:
            return self._says_so()
        except GenericdpError:
            return None

    def write(self) -> bool:
        """Write the file; `sync` waits for the disk. False if it says so already. Raises GenericdpError."""
        try:
            is_due = not self._says_so()
            if is_due:
                if self.is_beside_links:
                    # Everybody may follow the links there.
                    make_for_all(self.directory)
                data = b"".join(os.fsencode(line) + b"\n" for line in self.lines)
                write_whole(self.path, data, sync=False)
        except (UntrustedError, OSError) as error:
            raise self._failure(error) from error
        return is_due

    def sync(self) -> None:
        """Make sure that the file is on the disk, if it is there. Raises GenericdpError."""
        try:
            sync(self.path)
        except FileNotFoundError:
            pass
        except (UntrustedError, OSError) as error:
            raise self._failure(error) from error

    def _says_so(self) -> bool:
        return _lines_in(self.directory, self.file) == [*self.lines]

    def _failure(self, error: UntrustedError | OSError) -> GenericdpError:
        if isinstance(error, UntrustedError):
            return GenericdpError(f"cannot write '{self.path}': {error}", hint=error.hint)
        message = f"cannot write '{self.path}': {error.strerror}"
        return GenericdpError(message, hint=what_to_do(error, self.directory))


def notes_of_each_other(settings: Settings, configured: Settings | None = None) -> tuple[Note, ...]:
    """The files that name each directory in the other one.

    configured  the settings that wait until no pod holds a device
    """
    pair = _pair(settings, settings)
    if _provided():
        return (*pair, Note(_provided(), PROVIDED, (settings.state_dir,)))
    return pair if configured is None else (*pair, *_pair(configured, settings))


def what_frees(key: str, before: Settings, configured: Settings) -> str:
    """What to do about an edit of `link_dir` or `state_dir` that waits for pods."""
    if before.state_dir != configured.state_dir and _is_unreadable(before):
        notes = notes_of_each_other(before, configured)
        paths = sorted({note.path for note in notes if note.lines == (before.state_dir,)})
        remove = shlex.join(["rm", "-f", *paths])
        return f"make the memory there readable; or, if no pod has a device of genericdp: {remove}"
    # Only the link directory names the state directory then, and it is empty after a boot.
    in_time = "" if key == "link_dir" or _provided() else " before its next boot"
    return f"drain the node{in_time}, or set it back; genericdp starts again once no pod holds a device"


def write_all(notes: Iterable[Note]) -> tuple[list[Note], list[GenericdpError]]:
    """Write these files. Returns those that did not say so already, and why others cannot be written."""
    written, failures = list[Note](), list[GenericdpError]()
    for note in notes:
        try:
            if note.write():
                written.append(note)
        except GenericdpError as error:
            unnoticed = "; until then, an edit of 'link_dir' or 'state_dir' is not noticed"
            failures.append(GenericdpError(f"{error}{'' if note.is_of_cdi else unnoticed}", hint=error.hint))
    return written, failures


def sync_all(notes: Collection[Note]) -> None:
    """Make sure that these files are on the disk. Raises GenericdpError."""
    for note in notes:
        note.sync()


def cdi_notes(settings: Settings, directories: Collection[str]) -> tuple[Note, ...]:
    """The files that name the directories in which CDI spec files may be."""
    lines = tuple(map(_escaped, sorted(directories)))
    return tuple(Note(*note, lines) for note in _cdi_files(settings))


def noted_cdi_dirs(settings: Settings) -> frozenset[str]:
    """The directories in which CDI spec files may be. Raises GenericdpError if that cannot be read."""
    return _noted_in(settings) | _noted_in(before_edit(settings))


def clear_cdi_dir(directory: str) -> bool:
    """Remove the CDI spec files from a directory that was `cdi_dir`. Raises GenericdpError.

    Returns whether there were any.
    """
    from genericdp.files.cdi.specs import CdiSpecs  # noqa: PLC0415  (`check` runs without logging)

    try:
        were_there = any(map(is_spec_file, os.listdir(directory)))
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        were_there = False
    try:
        CdiSpecs(directory).withdraw()
    except GenericdpError as error:
        raise GenericdpError(
            f"the CDI spec files stay in '{directory}', which was 'cdi_dir': {error}",
            hint=f"remove {directory}/genericdp_*.json: container runtimes may read them, and they may lead "
            "to other devices by now",
        ) from error
    return were_there


def _is_unreadable(settings: Settings) -> bool:
    """Whether the memory in the state directory cannot be read. One that cannot be understood can."""
    try:
        StateFile(settings.state_dir).load()
    except BrokenStateError:
        return False
    except GenericdpError:
        return True
    return False


def _pair(of: Settings, settings: Settings) -> tuple[Note, Note]:
    """The files in the directories `of` some settings that name those with which genericdp serves."""
    return (
        Note(of.state_dir, LINK_DIR, (settings.link_dir,)),
        Note(of.link_dir, STATE_DIR, (settings.state_dir,)),
    )


def _cdi_files(settings: Settings) -> tuple[tuple[str, str], ...]:
    return (settings.state_dir, CDI_DIR), (settings.link_dir, CDI_DIR_BESIDE_LINKS)


def _noted_in(settings: Settings) -> frozenset[str]:
    lines = (line for file in _cdi_files(settings) for line in _lines_in(*file))
    # No path has a NUL.
    return frozenset(
        os.path.realpath(_unescaped(line)) for line in lines if line.startswith("/") and "\0" not in line
    )


def _escaped(path: str) -> str:
    return path.replace("\\", r"\\").replace("\n", r"\n")


def _unescaped(line: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], line)


def _provided() -> str:
    """The state directory that systemd makes for the unit, see systemd.exec(5); "" without one."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0]


def _named(directory: str, file: str) -> str:
    """The directory that a file names; "" if there is none."""
    lines = _lines_in(directory, file)
    # No setting names a directory that cannot be printed.
    return lines[0] if len(lines) == 1 and lines[0].startswith("/") and lines[0].isprintable() else ""


def _lines_in(directory: str, file: str) -> list[str]:
    """The lines of a file that names a directory in each of them."""
    if not directory:
        return []
    at = os.path.join(directory, file)
    try:
        data, _ = read_whole(at)
        return os.fsdecode(data).removesuffix("\n").split("\n")
    except UntrustedError:
        return []
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise GenericdpError(f"cannot read '{at}': {error.strerror}", hint=what_is_short(error)) from error
