"""The directories that pods depend on, as the daemon serves with them (`genericdp.files.directories`).

An edit of `link_dir` or `state_dir` takes effect once no pod can hold a device; one of `cdi_dir`, at once.

The rules of this file:

* A memory that names no holder proves nothing: its disk may have been full. The kubelet's checkpoint has what
  the kubelet answers again for a pod. Other directories take effect only if neither of them names a holder.
* While the daemon serves, the kubelet has to say so, too.
* No CDI spec file is written into a directory that is not noted: after a kill and another edit, nobody would
  remove it. A former directory is watched until there were files to remove: it may be mounted later.
* A note counts after a kill as soon as it is written, and after a power cut as soon as the disk has it. Only
  the end of the daemon waits for the disk of the state directory, and a directory of CDI spec files that
  cannot be noted beside the links.
* What this process serves with decides. A note that somebody removed or changed, or whose directory is
  another one by now, is written again at once: the next start may follow an edit.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from functools import partial

from genericdp import log
from genericdp.core.cdi import is_spec_file
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import Held
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import (
    CDI_DIR,
    NAMES,
    Note,
    before_edit,
    cdi_notes,
    clear_cdi_dir,
    memory_names_holders,
    noted_cdi_dirs,
    notes_of_each_other,
    sync_all,
    what_frees,
    write_all,
)
from genericdp.kubelet import checkpoint
from genericdp.kubelet.checkpoint import Checkpoint
from genericdp.retry import Retry
from genericdp.service.mounts import is_in_a_pod
from genericdp.watch import DirectoryWatch
from genericdp.watch.disk import Disk

#: How long a note waits that is removed or changed again and again, in seconds.
AGAIN_S = 1.0

#: With more former directories of CDI spec files than this, those in which nothing was found are forgotten.
MOST_FORMER = 8

_log = log.get(__name__)


class Directories:
    """Which settings are in force. Raises GenericdpError if it cannot be read which were in force before.

    served    the settings with the directories of before while pods may hold devices
    waits     whether other directories are configured, and wait for the pods
    on_free   called when these can take effect: with the next start
    on_tried  called after each try to note directories and to clear former ones, with the error or None
    """

    def __init__(
        self,
        configured: Settings,
        on_free: Callable[[], None],
        on_tried: Callable[[GenericdpError | None], None] = lambda _: None,
    ) -> None:
        self.served = in_force(configured)
        self.waits = self.served != configured
        self._configured = configured
        self._on_free = on_free
        self._on_tried = on_tried
        self._naming = Retry(self._name)
        # Why notes beside the links could not be written, or directories not be cleared.
        self._failures = list[GenericdpError]()
        self._has_failed = False
        self._watches: list[DirectoryWatch] = []
        self._former: dict[str, DirectoryWatch] = {}
        self._restored = float("-inf")
        self._disk = Disk(self.served.state_dir, again=self._save)
        # Notes that were written, and that the disk has not been asked to keep.
        self._unsynced: dict[Note, None] = {}
        # In which directories there may be CDI spec files, whether a note says so, and which were not seen.
        self._cdi_dirs = {os.path.realpath(configured.cdi_dir)}
        self._are_noted = False
        self._unseen: set[str] = set()
        # Whether the kubelet's checkpoint may name one of our links or CDI devices.
        self._are_saved = True

    def confirm(self) -> None:
        """Say which settings are not in force, now that the locks are held.

        Raises GenericdpError if other directories are in force by now.
        """
        if in_force(self._configured) != self.served:
            raise GenericdpError(
                "genericdp has served with other directories while this one stood by",
                hint="start it again",
            )
        for key in ("link_dir", "state_dir"):
            if (mine := getattr(self.served, key)) != getattr(self._configured, key):
                _log.warning(
                    f"'{key}' stays as it was, because pods may hold devices",
                    directory=mine,
                    hint=what_frees(key, self.served, self._configured),
                )

    def begin(self) -> None:
        """Note the directories for the next start.

        The memory can be read: what cannot be served with is not noted. Raises GenericdpError if it cannot be
        read which directories are noted.
        """
        self._cdi_dirs |= noted_cdi_dirs(self._configured)
        for directory in sorted({note.directory for note in self._notes()}):
            self._watches.append(DirectoryWatch(directory, self._hear))
        self._name()

    def see_saved(self, found: Checkpoint | None) -> None:
        """Take into account what the kubelet's checkpoint says; None: nobody knows."""
        self._are_saved = found is None or found.names_ours

    def see(self, answer: Answer | None, held: Held) -> None:
        """Take into account what pods hold, after an answer of PodResources."""
        if not self.waits or answer is None or not answer.complete or held or self._are_saved:
            return
        if not memory_names_holders(self.served):
            self.waits = False
            _log.info("no pod holds a device any more: starting again, with other directories")
            self._on_free()

    def see_room(self) -> None:
        """Take into account that the memory was saved: note the directories, if there was no room before."""
        if self._has_failed:
            self._name()

    def note_cdi_dir(self) -> None:
        """Make sure that `cdi_dir` is noted before a file is written there. Raises GenericdpError."""
        real = os.path.realpath(self.served.cdi_dir)
        if real not in self._cdi_dirs:
            self._cdi_dirs.add(real)
            self._are_noted = False
        if not self._are_noted:
            self._note_cdi_dirs()
            self._save()

    def close(self) -> None:
        """Write now or never what `begin` has noted and is not there any more."""
        if self._watches and (self._unsynced or self._lost() is not None):
            self._name()
        self._disk.finish()
        for watch in (*self._watches, *self._former.values()):
            watch.close()
        self._watches, self._former = [], {}
        self._naming.succeeded()

    def _notes(self) -> tuple[Note, ...]:
        of_cdi = cdi_notes(self.served, self._cdi_dirs)
        return (*dict.fromkeys((*of_cdi, *notes_of_each_other(self.served, self._configured))),)

    def _lost(self) -> Note | None:
        """A note that is not there any more, or may not be."""
        return next((note for note in self._notes() if not note.stands()), None)

    def _hear(self, names: frozenset[str]) -> None:
        # Changes by this process arrive here, too.
        if (names and names.isdisjoint(NAMES)) or (note := self._lost()) is None:
            return
        now = asyncio.get_running_loop().time()
        if now - self._restored < AGAIN_S:
            self._naming.failed()
            return
        self._restored = now
        if not self._naming.waits and note.stands() is False:
            _log.warning("a note for the next start was removed or changed, writing it again", file=note.path)
        self._name()

    def _hear_former(self, names: frozenset[str]) -> None:
        if not names or any(map(is_spec_file, names)):
            self._name()

    def _name(self) -> None:
        # Before another link directory is named: the note in the one before would be lost.
        self._failures = self._settle_cdi_dirs()
        if self._are_noted:
            beside_links = (note for note in self._notes() if note.is_beside_links)
            self._failures += self._write(note for note in beside_links if not note.is_of_cdi)
        self._save()

    def _write(self, notes: Iterable[Note]) -> list[GenericdpError]:
        written, failures = write_all(notes)
        self._unsynced |= dict.fromkeys(written)
        return failures

    def _save(self) -> None:
        """Write the notes in the state directory, and wait for the disk, in a thread."""
        if self._disk.queue():
            return
        notes = [note for note in self._notes() if self._are_noted and not note.is_beside_links]
        unsynced, self._unsynced = self._unsynced, {}
        self._disk.do(partial(_saved, notes, unsynced), self._see_saved)

    def _see_saved(self, future: Future[tuple[Collection[Note], list[GenericdpError]]]) -> None:
        unsynced, failures = future.result()
        self._unsynced |= dict.fromkeys(unsynced)
        failures = [*self._failures, *failures]
        self._has_failed = bool(failures)
        if failures:
            hints = dict.fromkeys(failure.hint for failure in failures if failure.hint)
            self._naming.failed()
            self._on_tried(GenericdpError("; ".join(map(str, failures)), hint="; ".join(hints)))
        else:
            self._naming.succeeded()
            self._on_tried(None)

    def _settle_cdi_dirs(self) -> list[GenericdpError]:
        """Clear the directories of the CDI spec files of before, and note those that are left."""
        failures = []
        former = sorted(self._cdi_dirs - {os.path.realpath(self.served.cdi_dir)})
        for each in self._former.keys() - {*former}:
            self._former.pop(each).close()
        for each in former:
            # Watched before it is looked at: its file system may be mounted in between.
            if each not in self._former:
                self._former[each] = DirectoryWatch(each, self._hear_former)
            try:
                is_done = clear_cdi_dir(each)
            except GenericdpError as error:
                failures.append(error)
                continue
            if is_done or (len(former) > MOST_FORMER and os.path.isdir(each)):
                self._cdi_dirs.discard(each)
                self._former.pop(each).close()
            elif each not in self._unseen and not os.path.isdir(each):
                self._unseen.add(each)
                self._say_unseen(each)
        try:
            return failures + self._note_cdi_dirs()
        except GenericdpError as error:
            return [*failures, error]

    def _note_cdi_dirs(self) -> list[GenericdpError]:
        """Note the directories. Returns why one of the notes cannot be written; raises it for both."""
        in_state_dir, beside_links = cdi_notes(self.served, self._cdi_dirs)
        failures = self._write([beside_links])
        # What is written next may lead a container to a device: only then does that wait for the disk.
        others = self._write([in_state_dir]) if failures else []
        self._are_noted = not others or noted_cdi_dirs(self.served).issuperset(self._cdi_dirs)
        if not self._are_noted:
            unusable = f"cannot use the CDI directory '{self.served.cdi_dir}' before it is noted"
            raise GenericdpError(f"{unusable}: {others[0]}", hint=others[0].hint)
        return failures

    def _say_unseen(self, directory: str) -> None:
        # On a host, it has usually been removed.
        if is_in_a_pod():
            _log.warning(
                "CDI spec files may be left in a directory that is not mounted here",
                directory=directory,
                hint="mount it, or remove genericdp_*.json there and its line in "
                f"{self.served.state_dir}/{CDI_DIR}",
            )


def _saved(notes: Iterable[Note], unsynced: Iterable[Note]) -> tuple[Collection[Note], list[GenericdpError]]:
    """Write notes. Returns those that the disk may not have, and why."""
    written, failures = write_all(notes)
    due = dict.fromkeys((*unsynced, *written))
    try:
        sync_all(due)
    except GenericdpError as error:
        return due, [*failures, error]
    return (), failures


def in_force(configured: Settings) -> Settings:
    """The settings with the directories of before while pods may hold devices. Raises GenericdpError."""
    before = before_edit(configured)
    if memory_names_holders(before) or checkpoint.names_holders(before):
        return before
    return configured
