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
  noted until it was seen: its file system may be mounted later, or not in this pod.
"""

import errno
import os
from collections.abc import Collection
from dataclasses import replace

from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, what_is_short
from genericdp.files.state import StateFile, read_whole, write_whole
from genericdp.files.trust import UntrustedError

#: The file in the link directory that names the state directory. Ids do not begin with a dot.
STATE_DIR = ".state_dir"

#: The file in the state directory that names the link directory.
LINK_DIR = "link_dir"

#: The files in the state and in the link directory that name the directories of the CDI spec files.
CDI_DIR = "cdi_dir"
CDI_DIR_BESIDE_LINKS = ".cdi_dir"

#: The file in the directory of the service manager that names the state directory.
PROVIDED = "state_dir"

#: How many edits may wait for pods at the same time, one after the other.
_MOST_EDITS = 8

_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP)


def before_edit(settings: Settings) -> Settings:
    """The settings with the directories with which genericdp served last.

    Raises GenericdpError if it cannot be read which these are.
    """
    for _ in range(_MOST_EDITS):
        before = _named(_provided(), PROVIDED) or _named(settings.link_dir, STATE_DIR)
        state_dir = before if before and StateFile(before).may_exist() else settings.state_dir
        found = replace(
            settings, state_dir=state_dir, link_dir=_named(state_dir, LINK_DIR) or settings.link_dir
        )
        if found == settings:
            break
        settings = found
    return settings


def memory_names_holders(state_dir: str) -> bool:
    """Whether the memory there says that pods hold devices, or says nothing that can be read."""
    try:
        return bool(StateFile(state_dir).load().held)
    except GenericdpError:
        return True


def name_each_other(settings: Settings, configured: Settings | None = None) -> None:
    """Name each directory in the other one. Raises GenericdpError.

    configured  the settings that wait until no pod holds a device
    """
    _name(settings.state_dir, LINK_DIR, settings.link_dir)
    _name(settings.link_dir, STATE_DIR, settings.state_dir)
    if _provided():
        _name(_provided(), PROVIDED, settings.state_dir)
    elif configured is not None:
        _name(configured.state_dir, LINK_DIR, settings.link_dir)
        _name(configured.link_dir, STATE_DIR, settings.state_dir)


def noted_cdi_dirs(settings: Settings) -> frozenset[str]:
    """The directories in which CDI spec files may be. Raises GenericdpError if that cannot be read."""
    return _noted_in(settings) | _noted_in(before_edit(settings))


def note_cdi_dirs(settings: Settings, directories: Collection[str]) -> GenericdpError | None:
    """Note in which directories CDI spec files may be. Returns why one of the notes cannot be written.

    Raises GenericdpError if neither says so.
    """
    failures = []
    for directory, file in _cdi_notes(settings):
        try:
            _write(directory, file, sorted(directories))
        except GenericdpError as error:
            failures.append(error)
    if failures and not _noted_in(settings).issuperset(directories):
        raise failures[0]
    return failures[0] if failures else None


def clear_cdi_dir(directory: str) -> bool:
    """Remove the CDI spec files from a directory that was `cdi_dir`. Raises GenericdpError.

    Returns False if it cannot be seen.
    """
    from genericdp.files.cdi_specs import CdiSpecs  # noqa: PLC0415  (`check` runs without logging)

    if not os.path.isdir(directory):
        return False
    try:
        CdiSpecs(directory).withdraw()
    except GenericdpError as error:
        raise GenericdpError(
            f"the CDI spec files stay in '{directory}', which was 'cdi_dir': {error}",
            hint=f"remove {directory}/genericdp_*.json: container runtimes may read them, and they may lead "
            "to other devices by now",
        ) from error
    return True


def _cdi_notes(settings: Settings) -> tuple[tuple[str, str], ...]:
    return (settings.state_dir, CDI_DIR), (settings.link_dir, CDI_DIR_BESIDE_LINKS)


def _noted_in(settings: Settings) -> frozenset[str]:
    lines = (line for note in _cdi_notes(settings) for line in _lines_in(*note))
    return frozenset(os.path.realpath(line) for line in lines if _is_path(line))


def _provided() -> str:
    """The state directory that systemd makes for the unit, see systemd.exec(5); "" without one."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0]


def _named(directory: str, file: str) -> str:
    """The directory that a file names; "" if there is none."""
    lines = _lines_in(directory, file)
    return lines[0] if len(lines) == 1 and _is_path(lines[0]) else ""


def _is_path(line: str) -> bool:
    return line.startswith("/") and line.isprintable()


def _lines_in(directory: str, file: str) -> list[str]:
    """The lines of a file that names a directory in each of them."""
    if not directory:
        return []
    at = os.path.join(directory, file)
    try:
        data, _ = read_whole(at)
        return data.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    except UntrustedError:
        return []
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise GenericdpError(f"cannot read '{at}': {error.strerror}", hint=what_is_short(error)) from error


def _name(directory: str, file: str, path: str) -> None:
    _write(directory, file, [path])


def _write(directory: str, file: str, paths: list[str]) -> None:
    at = os.path.join(directory, file)
    try:
        if _lines_in(directory, file) != paths:
            write_whole(at, "".join(f"{path}\n" for path in paths).encode())
    except UntrustedError as error:
        raise GenericdpError(f"cannot write '{at}': {error}", hint=error.hint) from error
    except OSError as error:
        raise GenericdpError(f"cannot write '{at}': {error.strerror}", hint=what_is_short(error)) from error
