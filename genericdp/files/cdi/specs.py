"""The CDI spec files in a directory that the container runtime reads.

The rules of this file:

* A file changes by rename within the directory. The CDI library in the runtimes reads its directories again
  at a rename from there; a file that is moved in from elsewhere, it overlooks.
* A file that cannot be written is removed: what it said may lead to another device by now. For this, the
  directory stays open after the first time: without a descriptor, nothing else would open it.
* Of the other files in the directory, only those with a name of ours are touched. They are of an earlier
  process. A directory that was mounted, or that a symlink leads to by now, may have some, too. The program of
  the udev rule takes lines out of a file, and may put it back although it was removed meanwhile. A name that
  cannot be removed does not hold up the other files.
* Only the genericdp that holds the lock writes and removes files, so no other one that runs has written
  them. The lock of the udev rule has another name.
* Everybody may read the files, whatever the umask is: a runtime need not run as root.
"""

import os
import re
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress

from genericdp import log
from genericdp.core.cdi import is_spec_file
from genericdp.errors import GenericdpError, what_is_short
from genericdp.files.kept_directory import KeptDirectory, is_abandoned, make_for_all
from genericdp.files.trust import UntrustedError
from genericdp.lock import DirectoryLock

#: The lock's directory.
LOCK = ".genericdp-daemon"

#: The name of a file before it is renamed. CDI reads what ends in .json or .yaml.
_NEW = re.compile(r"\.genericdp-[0-9a-f]{16}")

#: The same of the program that udev's rule runs, with its process id.
_NEW_OF_UDEV = re.compile(r"\.genericdp-gone-[0-9]+")

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_MODE = 0o644

_REMOVE_IT = "remove it: it has the name of a CDI spec file of genericdp, and container runtimes may read it"

UNTIL_THEN = "until then, the container runtime refuses containers with these devices"

_log = log.get(__name__)


class CdiSpecs:
    """The spec files of genericdp in a directory. Without any, the directory is neither made nor needed.

    Only one genericdp has files there, until it no longer wants any, or calls `withdraw`.

    waits  whether another genericdp had files there when this one was to write its own
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.waits = False
        self._is_left_alone = False
        self._written: dict[str, tuple[str, os.stat_result]] = {}
        self._is_cleared = False
        self._kept = KeptDirectory(directory)
        self._lock = DirectoryLock(directory, name=LOCK)

    def withdraw(self) -> bool:
        """Remove all files, and let another genericdp write. The next `apply` begins anew.

        Returns False if another genericdp has files there, which stay. Raises GenericdpError if a file cannot
        be removed.
        """
        try:
            self.apply({})
            return not self._is_left_alone
        finally:
            self._written, self._is_cleared, self.waits = {}, False, False
            self._lock.close()
            self._kept.close()

    def apply(self, wanted: Mapping[str, str]) -> bool:
        """Make the files: name -> content. Returns whether any may have changed.

        Raises GenericdpError if one cannot be written or removed, or if another genericdp has files there.
        """
        has_lock = self._lock.is_held()
        self._is_cleared = self._is_cleared and not self._kept.is_elsewhere()
        if self._is_cleared and has_lock is bool(wanted) and self.intact() and self._texts() == dict(wanted):
            return False
        self._is_left_alone = False
        self._clear_left()
        if not wanted and not os.path.isdir(self.directory):
            self._written, self._is_cleared = {}, True
            self._lock.close()
            self._kept.close()
            return False
        directory = self._open()
        if not (wanted or self._written or self._left(directory)):
            self._is_cleared = True
            return False
        is_free = self._takes_lock()
        self._is_left_alone = not is_free
        self.waits = bool(wanted) and not is_free
        if not is_free:
            # The files belong to the other one, which keeps them up to date.
            self._written, self._is_cleared = {}, not wanted
            if wanted:
                raise GenericdpError(
                    f"cannot use the CDI directory '{self.directory}': another genericdp writes to it",
                    hint="remove one of the two; if each serves its own kubelet, give each its own 'cdi_dir' "
                    "in genericdp.toml",
                )
            return False
        failures = [] if has_lock and self._is_cleared else self._clear(directory, wanted)
        failures += self._change(directory, wanted)
        if not (wanted or self._written):
            self._lock.close()
        if failures:
            raise failures[0]
        return True

    def _clear_left(self) -> None:
        """Remove the files from where the path led before, if it is a symlink that leads elsewhere by now."""
        left = self._kept.left()
        if left is not None:
            for name in [*self._written]:
                with suppress(OSError):
                    self._remove(left, name)
            self._is_cleared = False

    def leads_elsewhere(self) -> bool:
        """Whether the path leads to another directory than the one that was cleared of earlier files."""
        return self._is_cleared and self._kept.is_elsewhere()

    def keeps_lock(self) -> bool:
        """Whether no other genericdp has taken the lock from this one, which makes it again if need be."""
        try:
            return not self._written or self._takes_lock()
        except GenericdpError:  # nobody can tell
            return True

    def _takes_lock(self) -> bool:
        """Whether no other genericdp holds the lock. Raises GenericdpError if nobody can tell."""
        try:
            return self._lock.is_held() or self._lock.taken()
        except OSError as error:
            raise _unusable(self.directory, error) from error

    def remove(self, names: Collection[str]) -> None:
        """Remove some of the files, until the next `apply`. Raises GenericdpError if it cannot try."""
        for name in [name for name in names if name in self._written]:
            self._remove_stale(self._open(), name)

    def _change(self, directory: int, wanted: Mapping[str, str]) -> list[GenericdpError]:
        """Write what is wanted, and remove what was written before. Returns an error for each that fails."""
        failures: list[GenericdpError] = []
        for name in sorted({*wanted, *self._written}):
            try:
                if name in wanted:
                    self._write(directory, name, wanted[name])
                else:
                    self._remove(directory, name)
            except OSError as error:
                verb = "write" if name in wanted else "remove"
                cure = "remove it; " if isinstance(error, IsADirectoryError) else ""
                failures.append(self._failed(verb, name, error, cure + UNTIL_THEN))
        return failures

    def intact(self, names: Collection[str] = ()) -> bool:
        """Whether the files that were written still exist: those of these names, or all of them."""
        files = {name: self._written[name] for name in names or self._written if name in self._written}
        return all(_is_same(f"{self.directory}/{name}", before) for name, (_, before) in files.items())

    def notice_foreign(self, names: Collection[str] = ()) -> bool:
        """Whether the directory has spec files of genericdp that this process has not written.

        The next `apply` removes them. While another genericdp holds the lock, they are its own and stay.

        names  the only files to look at, by name; without any, all of them
        """
        if self._is_left_alone:
            return False
        if not names:
            with suppress(OSError):
                names = os.listdir(self.directory)
        foreign = (name for name in names if is_spec_file(name) and name not in self._written)
        found = any(os.path.lexists(f"{self.directory}/{name}") for name in foreign)
        self._is_cleared = self._is_cleared and not found
        return found

    def says(self, name: str, text: str) -> bool:
        """Whether a file was written with this content and still exists. Needs no descriptor."""
        return self._texts().get(name) == text and self.intact((name,))

    def _texts(self) -> dict[str, str]:
        return {name: text for name, (text, _) in self._written.items()}

    def _write(self, directory: int, name: str, text: str) -> None:
        if self.says(name, text):
            return
        new = f".genericdp-{os.urandom(8).hex()}"
        try:
            with open(os.open(new, _NEW_FILE, _MODE, dir_fd=directory), "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), _MODE)
                status = os.fstat(file.fileno())
            os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            # Half a file would take the space that the next try needs.
            with suppress(OSError):
                os.unlink(new, dir_fd=directory)
            self._remove_stale(directory, name)
            raise
        self._written[name] = text, status

    def _remove_stale(self, directory: int, name: str) -> None:
        try:
            self._remove(directory, name)
        except IsADirectoryError:
            pass  # no runtime reads it
        except OSError as error:
            _log.warning(
                "a CDI spec file cannot be changed and may lead to other devices",
                file=f"{self.directory}/{name}",
                why=error.strerror,
            )

    def _remove(self, directory: int, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        self._written.pop(name, None)

    def _clear(self, directory: int, wanted: Collection[str]) -> list[GenericdpError]:
        """Remove the files that earlier processes left. Returns an error for each that cannot be removed."""
        failures: list[GenericdpError] = []
        try:
            for name in sorted({*self._left(directory)} - {*wanted}):
                try:
                    self._remove(directory, name)
                except OSError as error:
                    failures.append(self._failed("remove", name, error, _REMOVE_IT))
        except GenericdpError as error:
            failures.append(error)
        self._is_cleared = not failures
        return failures

    def _left(self, directory: int) -> list[str]:
        """The files that earlier processes left or another genericdp has written. Raises GenericdpError."""
        try:
            return [
                name
                for name in os.listdir(directory)
                if is_spec_file(name)
                or _NEW.fullmatch(name)
                or (_NEW_OF_UDEV.fullmatch(name) and is_abandoned(directory, name))
            ]
        except OSError as error:
            raise _unusable(self.directory, error) from error

    def _open(self) -> int:
        """The directory as a file descriptor, so that nobody can replace it meanwhile."""
        try:
            if not os.path.isdir(self.directory):
                make_for_all(self.directory)
            return self._kept.descriptor()
        except UntrustedError as error:
            message = f"cannot use the CDI directory '{self.directory}': {error}"
            raise GenericdpError(message, hint=error.hint) from error
        except OSError as error:
            raise _unusable(self.directory, error) from error

    def _failed(self, verb: str, name: str, error: OSError, what_to_do: str) -> GenericdpError:
        hint = "; ".join(filter(None, (what_is_short(error), what_to_do)))
        return GenericdpError(f"cannot {verb} '{self.directory}/{name}': {error.strerror}", hint=hint)


def _unusable(directory: str, error: OSError) -> GenericdpError:
    short = what_is_short(error)
    hint = short or "it must be a directory that genericdp can write to; see 'cdi_dir' in genericdp.toml"
    if os.path.islink(directory) and not os.path.exists(directory):
        hint = f"it is a symlink that leads to nothing: make the directory '{os.path.realpath(directory)}'"
    failure = GenericdpError(f"cannot use the CDI directory '{directory}': {error.strerror}", hint=hint)
    failure.__cause__ = error
    return failure


def _is_same(path: str, before: os.stat_result) -> bool:
    """Whether a file is the one that was written, and unchanged."""
    try:
        now = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISREG(now.st_mode)
        and (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino)
        and (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    )
