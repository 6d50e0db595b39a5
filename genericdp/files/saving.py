"""Saves the memory in time. `core.memory.saved.delay` decides how long a change may wait.

The rules of this file:

* A failed save is tried again until it succeeds, even without a further change.
* A memory that cannot be read is never replaced by an empty one, and a file that appears later is never
  replaced by this memory. The daemon goes on with its own. If it started with the other one, it could point
  the link of a pod at the unit that had the id before, while the pod has another unit.
* A memory of the boot before is saved again at the start, before anything is given. Where that fails, nobody
  knows whether a daemon of this boot gave something and could not save it.
* A file that somebody removed, or whose directory was replaced, is written again at once, not with the next
  change, which may be days away. If that fails, it is known before the daemon ends and the memory with it.
  The same goes for what is kept beside the links.
* While the daemon serves, a slow disk delays only answers to Allocate, by LONGEST_S at most. Changes in the
  meantime are saved together. The memory is kept beside the links before that: it survives a kill, but not a
  power cut.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future

from genericdp import log
from genericdp.core.memory.memory import Memory, of_any_boot
from genericdp.core.memory.saved import save_within_s
from genericdp.errors import GenericdpError
from genericdp.files.state import SPARE, BrokenStateError, StateFile, this_boot
from genericdp.retry import Retry
from genericdp.watch import DirectoryWatch
from genericdp.watch.disk import Disk

#: How often the file is written again at most while somebody removes it again and again, in seconds.
AGAIN_S = 1.0

#: How long a disk may take before the memory counts as not saved, and how long an answer to the kubelet waits
#: for it, in seconds. The kubelet sets no deadline, and admits no other pod meanwhile.
LONGEST_S = 10.0

_TO_USE_IT = (
    "the pods of this node got their devices without it; to use it, drain the node, stop genericdp, "
    "{}rename the file to 'memory.json' and start genericdp"
)

_IF_LATER = "it may have been the later one: if the disk was full or slow before, drain the node"

_log = log.get(__name__)


class Saving:
    """The memory on its way to the state directory.

    link_dir  see `StateFile`
    on_tried  called after each try to save, with the error or None
    """

    def __init__(
        self,
        state_dir: str,
        on_tried: Callable[[GenericdpError | None], None] = lambda _: None,
        *,
        link_dir: str = "",
    ) -> None:
        self._state = StateFile(state_dir, this_boot(), link_dir)
        self._memory = Memory()
        self._timer: asyncio.TimerHandle | None = None
        self._retry = Retry(self.save)
        self._on_tried = on_tried
        self._watches: list[DirectoryWatch] = []
        self._restored = float("-inf")
        self._disk = Disk(self._state.path, again=self.save)
        # The last memory as it is written.
        self._data = b""
        # How often it was tried to save one; the event is set at the next end of a try, and replaced.
        self._tries, self._tried = 0, asyncio.Event()
        # Whether the last try succeeded.
        self._is_saved = False
        # While the disk is slow: when that is reported, whether it was, and whether the watch has reported.
        self._late: asyncio.TimerHandle | None = None
        self._is_late = self._heard = False

    def begin(self) -> Memory:
        """What `load` returns; from now on until `close`, notice when the file is removed."""
        self.load()
        if not all(known.is_of_this_boot for known in self._memory.devices.values()):
            self.save()
            self._disk.finish()
            if not self._is_saved:
                self._memory = of_any_boot(self._memory)
        elif self._state.is_spare:
            self.save()
        else:
            self._state.keep(self._state.writer.dump(self._memory))
            self._see_kept()
        self._watches.append(DirectoryWatch(os.path.dirname(self._state.path), self._hear))
        self._hear(frozenset())
        if self._state.spare:
            self._watches.append(DirectoryWatch(os.path.dirname(self._state.spare), self._hear_links))
            self._hear_links(frozenset())
        return self._memory

    def load(self) -> Memory:
        """The saved memory, an empty one if it is broken. Raises GenericdpError if it cannot be read."""
        try:
            self._memory = self._state.load()
        except BrokenStateError as error:
            _log.warning(str(error), hint=error.hint)
        else:
            if self._state.broken:
                _log.warning(
                    "the saved memory cannot be understood, using the one kept beside the links",
                    file=self._state.path,
                    hint=f"the daemon keeps the file as '{self._state.broken}'",
                )
        if self._state.damaged:
            _log.warning(self._state.damaged, hint=_IF_LATER)
        return self._memory

    def keep(self, memory: Memory) -> Memory:
        """Save a new memory in the time that its difference to the one before may wait. Returns it."""
        seconds = save_within_s(self._memory, memory)
        if seconds is not None:
            self.save_within(seconds, memory)
        return memory

    def save_within(self, seconds: float, memory: Memory) -> None:
        """Save a new memory at once (0) or within so many seconds, together with later ones."""
        self._memory = memory
        if seconds <= 0:
            self.save()
            return
        # Allocate may come before that, and waits for the save.
        self._state.writer.prepare(memory)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.save)

    def save(self) -> None:
        """Save the last memory now, or as soon as the disk allows, or later if that fails."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._data = self._state.writer.dump(self._memory)
        self._state.keep(self._data)
        waits = self._disk.queue() or not self._disk.do(self._state.job(self._data), self._see_tried)
        if waits and self._late is None:
            self._late = asyncio.get_running_loop().call_later(LONGEST_S, self._see_late)

    async def settled(self) -> None:
        """Wait until the last memory is saved, or cannot be saved now; for LONGEST_S at most."""
        until = self._tries + self._disk.left
        try:
            async with asyncio.timeout(LONGEST_S):
                while self._tries < until and not self._is_late:
                    await self._tried.wait()
        except TimeoutError:
            self._see_late()

    def close(self) -> None:
        """Save the last memory now or never."""
        for watch in self._watches:
            watch.close()
        self.save()
        self._disk.finish()
        self._retry.succeeded()

    def _see_tried(self, future: Future[str]) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late, self._is_late = None, False
        self._tries += 1
        self._wake_up()
        try:
            self._report(future)
        finally:
            if self._heard:
                self._heard = False
                self._hear(frozenset())

    def _report(self, future: Future[str]) -> None:
        self._is_saved = False
        try:
            aside = future.result()
        except GenericdpError as error:
            self._retry.failed()
            is_kept = self._state.keep(self._data)
            self._on_tried(self._state.failure(error, is_kept=is_kept))
            return
        except BaseException:
            self._retry.failed()
            raise
        self._is_saved = True
        if self._state.unkept is None:
            self._retry.succeeded()
            self._on_tried(None)
        self._see_kept()
        if aside:
            _log.warning(
                "another saved memory took the place of this daemon's, and is kept aside",
                file=aside,
                hint=_TO_USE_IT.format(f"remove '{self._state.spare}', " if self._state.spare else ""),
            )

    def _see_kept(self) -> None:
        if self._state.unkept is not None:
            self._on_tried(self._state.unkept)
            self._retry.failed()

    def _see_late(self) -> None:
        self._is_late = True
        self._on_tried(self._state.no_answer(LONGEST_S, is_kept=self._state.keep(self._data)))
        self._wake_up()

    def _wake_up(self) -> None:
        event, self._tried = self._tried, asyncio.Event()
        event.set()

    def _hear(self, names: frozenset[str]) -> None:
        # Changes by this process arrive here, too.
        if names and os.path.basename(self._state.path) not in names:
            return
        if self._disk.is_busy:
            self._heard = True
            return
        was_removed = self._state.was_removed()
        if not (was_removed or self._state.was_replaced()):
            return
        self._save_again(self._state.path if was_removed else "")

    def _hear_links(self, names: frozenset[str]) -> None:
        if (not names or SPARE in names) and self._state.unkept is None and self._state.was_unkept():
            self._save_again(self._state.spare if self._state.has_kept else "")

    def _save_again(self, removed: str) -> None:
        """Save at once what was removed (a path), but not more often than each AGAIN_S."""
        now = asyncio.get_running_loop().time()
        if now - self._restored < AGAIN_S:
            self.save_within(AGAIN_S, self._memory)
            return
        self._restored = now
        if removed:
            _log.warning("the saved memory was removed, saving it again", file=removed)
        self.save()
