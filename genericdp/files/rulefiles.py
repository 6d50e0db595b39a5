"""Rule files on disk, each with the version that is in effect.

The rules of this file:

* Of several directories the later one wins: a file replaces the whole file of that name in earlier
  directories; an empty file, or a symlink to /dev/null, disables it. Files are read in the order of
  their names, whatever their directory (like those of udev and sysctl.d).
* A file with a mistake, or one that cannot be read, is not used. What was in effect under its name stays in
  effect, be it its previous version or the file that it replaces, and the problem is reported until the file
  is right again. For the daemon this includes what was in effect before it started.
* The same goes for a file that is still being written, but that is not worth a word before it takes seconds.
* A file that defines a resource of another file has a mistake, if the other one was in effect before.
* While a directory cannot be read, everything stays in effect. A symlink that leads to nothing does not count
  as an empty directory: its target may be mounted later.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from genericdp.core.reading.parse import RulesText, parse_rules, settled
from genericdp.core.rules.resource import Resource
from genericdp.errors import ConfigError, Location, Problem
from genericdp.files.last_good import LastGood
from genericdp.files.trust import BeingWrittenError, UnreadableError, is_absent, read_text, unreadable

#: Where rules come from unless the operator names other places; later directories win.
RULE_DIRECTORIES = (
    "/usr/lib/genericdp/rules.d",
    "/run/genericdp/rules.d",
    "/etc/genericdp/rules.d",
)

#: This many characters of a digest distinguish the versions of a file.
DIGEST_LENGTH = 12

#: How long a file may be open for writing before that is a problem, in seconds.
PATIENCE_S = 2.5


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One rule file that counts.

    text        what is on disk
    resources   those in effect: of this text, or what was in effect before when this one has a mistake
    problems    those of this text
    outdated    the resources are those that were in effect before
    digest      of the version in effect, the beginning of what sha256sum(1) prints (without a byte order
                mark); "" when no version is in effect
    is_open     it is open for writing, so its text is not known yet
    clashes     it defines what another file does, and should be judged again when that one has changed
    unread      the system could not read it, or it is open, and it should be read again
    """

    path: str
    text: str
    resources: tuple[Resource, ...] = ()
    problems: tuple[Problem, ...] = ()
    outdated: bool = False
    digest: str = ""
    is_open: bool = False
    clashes: bool = False
    unread: bool = False

    @property
    def is_good(self) -> bool:
        """Whether its text is in effect."""
        return all(problem.severity != "error" for problem in self.problems)


def find(places: Iterable[str]) -> tuple[str, ...]:
    """The rule files that count, in the order in which they are read.

    places are directories, of which later ones win, and files. A directory that is absent is empty, and so is
    /dev/null. Raises UnreadableError for a directory that cannot be read.
    """
    by_name: dict[str, str] = {}
    for place in places:
        names = _names_in(place)
        if names is None:
            by_name[os.path.basename(place)] = place
        for name in names or ():
            if name.endswith(".toml") and not name.startswith("."):
                by_name[name] = os.path.join(place, name)
    return tuple(by_name[name] for name in sorted(by_name))


def _names_in(place: str) -> list[str] | None:
    """The names in a directory; None for a file."""
    try:
        return sorted(os.listdir(place))
    except OSError as error:
        if place.endswith(".toml") and isinstance(error, FileNotFoundError | NotADirectoryError):
            return None
        if is_absent(place) or os.path.realpath(place) == os.devnull:
            return []
        raise unreadable(place, error) from error


def read(path: str, domain: str, previous: RuleFile | None = None) -> RuleFile | None:
    """Read one rule file; None for one that is empty. Never raises: mistakes are problems of the file.

    previous is what was in effect under its name: this file, or one that it replaces.
    """
    known = previous.text if previous is not None and previous.path == path else ""
    try:
        text = read_text(path, known)
    except ConfigError as error:
        is_open = isinstance(error, BeingWrittenError)
        unread = is_open or isinstance(error, UnreadableError)
        return _keep(RuleFile(path, "", (), error.problems, is_open=is_open, unread=unread), previous)
    if text is None:
        return None
    if previous is not None and (path, text) == (previous.path, previous.text) and not previous.clashes:
        return previous
    fresh = _parsed(path, text, domain)
    return fresh if fresh.is_good else _keep(fresh, previous)


def _parsed(path: str, text: str, domain: str) -> RuleFile:
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
    return RuleFile(path, text, *parse_rules(path, text, domain), digest=digest)


def _keep(fresh: RuleFile, previous: RuleFile | None) -> RuleFile:
    """What was in effect, with the problems of the new text."""
    resources = previous.resources if previous is not None else ()
    digest = previous.digest if previous is not None else ""
    return replace(fresh, resources=resources, outdated=bool(resources), digest=digest)


def _lost(file: RuleFile, problem: Problem) -> Problem:
    """That what was kept of a file has this problem."""
    message = f"the last good version cannot be used: {problem.summary}"
    return Problem(Location(file.path, 0), message, problem.hint)


class RuleFiles:
    """All rule files of some places, with the version of each that is in effect.

    now     the clock that says how long a file has been open, in seconds
    unread  the system could not read something, or a file is open for writing, and it should be read again
    """

    def __init__(
        self, places: Sequence[str], domain: str, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Read everything. Mistakes in files raise nothing: they are in `problems`.

        A file that is open for writing is a problem at once: nothing is in effect instead of it.
        """
        self._now = now
        self._open_since: dict[str, float] | None = None
        self._last_good: LastGood | None = None
        self._resumes = False
        self.places = tuple(places)
        self.domain = domain
        self.files: tuple[RuleFile, ...] = ()
        self.resources: tuple[Resource, ...] = ()
        self.problems: tuple[Problem, ...] = ()
        self.unread = False
        self.reload()

    def resume(self, state_dir: str) -> LastGood:
        """With the next `reload`, let what was last in effect in a daemon be in effect, instead of a mistake.

        Returns where the texts of good files are to be kept from then on: what a daemon with this state
        directory keeps of the rules in the same places.
        """
        # Symlinks are not resolved: a place stays the same when git-sync replaces what one of them points to.
        own = tuple(str(Path(place).absolute()) for place in self.places)
        self._last_good = LastGood(state_dir, () if own == RULE_DIRECTORIES else own)
        self._resumes = True
        return self._last_good

    def reload(self) -> None:
        """Read what changed. Good files apply; of one with a mistake, what was in effect stays.

        While a directory cannot be read, every file keeps its version.
        """
        before = {os.path.basename(file.path): file for file in self.files}
        try:
            paths = find(self.places)
        except UnreadableError as error:
            self._keep_all(error.problems)
            return
        found = (read(path, self.domain, before.get(os.path.basename(path))) for path in paths)
        files = [file for file in found if file is not None]
        self.unread = any(file.unread for file in files)
        lost: list[Problem] = []
        if self._last_good is not None:
            files = [self._resumed(file, self._last_good, lost) for file in files]
        files = self._without_clashes(files, before, lost)
        if self._last_good is not None:
            texts = {os.path.basename(file.path): file.text if file.is_good else "" for file in files}
            self._last_good.see(texts)
            self._resumes = False
        self._use(files)
        waits = self._open_for_moments()
        problems = (problem for file in self.files if file.path not in waits for problem in file.problems)
        self.problems = (*problems, *lost)

    def _use(self, files: Iterable[RuleFile]) -> None:
        self.files = tuple(files)
        self.resources = tuple(resource for file in self.files for resource in file.resources)

    def _keep_all(self, problems: tuple[Problem, ...]) -> None:
        """Keep what is in effect or was before the start, because the rule files have these problems."""
        self.unread = True
        self.problems = problems
        if self._last_good is None or not self._resumes:
            return
        lost: list[Problem] = []
        kept = (RuleFile(path, "", (), problems) for path in self._last_good.paths())
        files = [self._resumed(file, self._last_good, lost) for file in kept]
        self._use(self._without_clashes([file for file in files if file.digest], {}, lost))
        self.problems += (*lost,)

    def _resumed(self, file: RuleFile, last_good: LastGood, lost: list[Problem]) -> RuleFile:
        """The file, with the version that was kept before the start if it has a mistake and no other one.

        lost  the reason is added why such a version cannot be used
        """
        if file.is_good or (file.digest and not self._resumes):
            return file
        try:
            known = self._kept(file, last_good)
        except ConfigError as error:
            self.unread |= isinstance(error, UnreadableError)
            lost.append(_lost(file, error.problems[0]))
            return file
        # What this process read before it began to serve may have been undone since.
        return _keep(file, known) if known or (self._resumes and not file.unread) else file

    def _kept(self, file: RuleFile, last_good: LastGood) -> RuleFile | None:
        """The version that was kept before the start. Raises ConfigError if it cannot be used."""
        name = os.path.basename(file.path)
        text = last_good.text(name)
        if text is None:
            return None
        known = _parsed(file.path, text, self.domain)
        if not known.is_good:
            place = replace(known.problems[0].location, file=last_good.path(name))
            raise ConfigError((replace(known.problems[0], location=place, hint=f"correct '{file.path}'"),))
        return known

    def _without_clashes(
        self, files: list[RuleFile], before: Mapping[str, RuleFile], lost: list[Problem]
    ) -> list[RuleFile]:
        """The files; what was in effect before replaces those that define what another file defines."""
        if not any(problems for _, problems in settled([RulesText("", file.resources) for file in files])):
            return files
        earlier = [self._earlier(file, before.get(os.path.basename(file.path)), lost) for file in files]
        texts = [
            RulesText(file.text, file.resources, known is file, known.resources if known else ())
            for file, known in zip(files, earlier, strict=True)
        ]
        for at, (resources, problems) in enumerate(settled(texts)):
            if problems:
                fresh = replace(files[at], problems=(*files[at].problems, *problems), clashes=True)
                files[at] = _keep(fresh, earlier[at] if resources else None)
        return files

    def _earlier(self, file: RuleFile, previous: RuleFile | None, lost: list[Problem]) -> RuleFile | None:
        """What was in effect under the name of a file; the file itself if that has not changed."""
        is_same = previous is not None and previous.digest == file.digest
        if not file.is_good or (is_same and not self._resumes):
            return file
        if self._last_good is None or (previous and previous.digest and not self._resumes):
            return previous
        try:
            known = self._kept(file, self._last_good)
        except ConfigError as error:
            self.unread |= isinstance(error, UnreadableError)
            lost.append(_lost(file, error.problems[0]))
            return None
        return file if known and known.text == file.text else known

    def _open_for_moments(self) -> frozenset[str]:
        """The files that are being written and have not taken long yet."""
        now, before = self._now(), self._open_since
        first = float("-inf") if before is None else now
        self._open_since = {
            file.path: (before or {}).get(file.path, first) for file in self.files if file.is_open
        }
        return frozenset(path for path, since in self._open_since.items() if now - since < PATIENCE_S)

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` when a rule file may have changed; returns the function that ends it.

        Needs a running event loop.
        """
        from genericdp.files.rulewatch import watch  # noqa: PLC0415  (`check` runs without asyncio)

        return watch(self.places, on_change, lambda: self._open_since or ())
