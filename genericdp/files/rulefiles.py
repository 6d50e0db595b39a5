"""Rule files and settings on disk: find them, order them, read them, notice when they change.

The rules of this file:

* Of several directories the later one wins: a file replaces the whole file of that name in earlier
  ones; an empty file or a link to /dev/null takes it away. Files are read in the order of their
  names, whatever their directory (as udev, sysctl.d and others do).
* A file with a mistake is not used. The version of it that was in force stays in force, and the
  problem is reported until the file is right again.
* A file that others may write is refused: whoever can write a rule can hand out any device.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genericdp.core.reading.parse import distinct, parse_rules, parse_settings
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.errors import ConfigError, Location, Problem

if TYPE_CHECKING:
    import asyncio

#: Where the rules come from when nobody says otherwise; later ones win.
RULE_DIRECTORIES = (
    "/usr/lib/genericdp/rules.d",
    "/run/genericdp/rules.d",
    "/etc/genericdp/rules.d",
)

SETTINGS_FILE = "/etc/genericdp/genericdp.toml"

#: A rule file is written by people; a larger one is something else.
SIZE_LIMIT = 1 << 20

#: So much of a digest tells the versions of a file apart.
DIGEST_LENGTH = 12

#: How long a change waits for the next one, in seconds, and how long in all.
SETTLE_S = 0.1
SETTLE_AT_MOST_S = 1.0


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One rule file that counts, as it was read.

    resources are in force; problems are those of the text on disk. With an error among them the
    resources are those of the last good version (`outdated`), or none. digest is that of the version
    in force, the beginning of what sha256sum(1) prints (a byte order mark left aside), "" without one.
    """

    path: str
    text: str
    resources: tuple[Resource, ...] = ()
    problems: tuple[Problem, ...] = ()
    outdated: bool = False
    digest: str = ""


def find(places: Iterable[str]) -> tuple[str, ...]:
    """The rule files that count, in the order in which they are read.

    places are directories, later ones winning, and files. A directory need not be there. Raises
    ConfigError for one that cannot be read.
    """
    by_name: dict[str, str] = {}
    for place in places:
        names = _names_in(place)
        if names is not None:
            for name in names:
                if name.endswith(".toml") and not name.startswith("."):
                    by_name[name] = os.path.join(place, name)
        elif place.endswith(".toml"):
            by_name[os.path.basename(place)] = place
    return tuple(by_name[name] for name in sorted(by_name))


def _names_in(place: str) -> list[str] | None:
    """What is in a directory; None for what is none (any more)."""
    try:
        return sorted(os.listdir(place))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(place, error) from error


def read(path: str, domain: str, previous: RuleFile | None = None) -> RuleFile | None:
    """Read one rule file; None for one that masks. Never raises: what is wrong is a problem."""
    try:
        text = _read_text(path)
    except ConfigError as error:
        return _keep(RuleFile(path, "", (), error.problems), previous)
    if text is None:
        return None
    if previous is not None and text == previous.text:
        return previous
    resources, problems = parse_rules(path, text, domain)
    fresh = RuleFile(path, text, resources, problems, digest=_digest(text))
    if any(problem.severity == "error" for problem in problems):
        return _keep(fresh, previous)
    return fresh


def _keep(fresh: RuleFile, previous: RuleFile | None) -> RuleFile:
    """The version that was in force, under the problems of the new text."""
    resources = previous.resources if previous is not None else ()
    digest = previous.digest if previous is not None else ""
    return RuleFile(fresh.path, fresh.text, resources, fresh.problems, bool(resources), digest)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def _read_text(path: str) -> str | None:
    """The text of a file that may be trusted; None for an empty one. Raises ConfigError."""
    try:
        data = _read_trusted(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return data.decode("utf-8-sig") or None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError((Problem(Location(path, line), "not UTF-8", "save the file as UTF-8"),)) from error


def _read_trusted(path: str) -> bytes:
    """The content of a file that may be trusted; that of /dev/null. Raises ConfigError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISCHR(status.st_mode) and os.path.realpath(path) == "/dev/null":
            return b""
        if not stat.S_ISREG(status.st_mode):
            raise _problem(path, "is no regular file")
        _check_trust(path, status)
        if status.st_size > SIZE_LIMIT:
            raise _problem(path, f"is larger than {SIZE_LIMIT >> 20} MiB")
        return os.read(descriptor, SIZE_LIMIT + 1)
    finally:
        os.close(descriptor)


def _check_trust(path: str, status: os.stat_result) -> None:
    directory = os.path.dirname(os.path.realpath(path))
    for what, found in ((path, status), (directory, os.stat(directory))):
        writers = found.st_mode & 0o022
        if found.st_gid == found.st_uid:
            writers &= ~0o020  # a group of the owner alone, as user accounts have them
        if writers and not (found.st_mode & stat.S_ISVTX and stat.S_ISDIR(found.st_mode)):
            raise _problem(path, f"refused: others may write '{what}'", f"chmod go-w '{what}'")
        if found.st_uid not in (0, os.geteuid()):
            raise _problem(path, f"refused: '{what}' belongs to user {found.st_uid}", f"chown root '{what}'")


def _unreadable(path: str, error: OSError) -> ConfigError:
    return _problem(path, f"cannot be read: {error.strerror}")


def _problem(path: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError((Problem(Location(path, 1), message, hint),))


class RuleFiles:
    """All rule files of the given places, with the version of each that is in force."""

    def __init__(self, places: Sequence[str], domain: str) -> None:
        """Read everything. Raises nothing for bad files: see `problems`."""
        self.places = tuple(places)
        self.domain = domain
        self.files: tuple[RuleFile, ...] = ()
        self.resources: tuple[Resource, ...] = ()
        self.problems: tuple[Problem, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Read what changed. Good files apply; a bad one keeps its version that was in force.

        So do all of them while a directory cannot be read.
        """
        before = {file.path: file for file in self.files}
        try:
            paths = find(self.places)
        except ConfigError as error:
            self.problems = error.problems
            return
        found = (read(path, self.domain, before.get(path)) for path in paths)
        self.files = tuple(file for file in found if file is not None)
        self.resources, clashes = distinct([(file.text, file.resources) for file in self.files])
        self.problems = (*(problem for file in self.files for problem in file.problems), *clashes)

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` when a rule file may have changed; returns what ends it.

        Needs a running event loop.
        """
        from genericdp.watch import DirectoryWatch  # noqa: PLC0415  (`check` runs without asyncio)

        directories = {place if os.path.isdir(place) else os.path.dirname(place) for place in self.places}
        directories |= {place for place in self.places if not place.endswith(".toml")}

        settled = _Settled(on_change)

        def hear(names: frozenset[str]) -> None:
            # `..data` is what Kubernetes exchanges when a mounted ConfigMap changes.
            if not names or any(name.endswith(".toml") or name == "..data" for name in names):
                settled.hear()

        watches = [DirectoryWatch(directory or ".", hear) for directory in sorted(directories)]

        def close() -> None:
            for each in watches:
                each.close()
            settled.close()

        return close


class _Settled:
    """Calls `on_change` once it is quiet: copying over a file empties it first, and that would mask it."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._timer: asyncio.TimerHandle | None = None
        self._first = 0.0

    def hear(self) -> None:
        import asyncio  # noqa: PLC0415  (as above)

        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._first = loop.time()
        else:
            self._timer.cancel()
        due = min(loop.time() + SETTLE_S, self._first + SETTLE_AT_MOST_S)
        self._timer = loop.call_at(due, self._fire)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = None
        self._on_change()


def read_settings(path: str | None) -> Settings:
    """The settings in a file; the defaults without one. Raises ConfigError."""
    if path is None and not os.path.exists(SETTINGS_FILE):
        return Settings()
    text = _read_text(path or SETTINGS_FILE)
    if text is None:
        return Settings()
    settings, problems = parse_settings(path or SETTINGS_FILE, text)
    if problems:
        raise ConfigError(problems)
    return settings
