"""When the rule files are read: at the start, after an edit, when asked for, and again after a failure.

What they say is kept for the next start (`genericdp.files.last_good`).

The rules of this file:

* A watch that reports a change does not read: the event loop does, once for all changes until then.
* At each reading the files are watched afresh: what was no directory may be one by now.
* Only the daemon that serves keeps anything. One that stands by may have read what has been replaced since.
* A disk may be slow: the first inventory comes first, one text is kept at a time, and the end does not wait
  for all of them. What fails is tried again.
* What somebody removed or changed of it is kept again, at most once in KEEP_AFTER_S.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial

from genericdp import log
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.errors import GenericdpError
from genericdp.files.last_good import Due, LastGood
from genericdp.files.whole_file import FileIdentity
from genericdp.inputs import Rules
from genericdp.retry import Retry
from genericdp.service.ready import Ready
from genericdp.watch import DirectoryWatch
from genericdp.watch.disk import Disk

#: How long what was read waits until it is kept, in seconds.
KEEP_AFTER_S = 2.0

#: How long everything else has its turn between two texts: a disk may be slow.
_BETWEEN_S = 0.05

#: How long a daemon that ends goes on keeping texts. What is left is kept after the next start.
END_S = 1.0

_log = log.get(__name__)


class Reloading:
    """Reads the rule files for the daemon.

    wake      called when `take` has to be called
    on_read   called after each reading; returns whether the rules changed
    on_tried  called with what was tried, and the error or None
    due       whether the files have to be read again
    """

    def __init__(
        self,
        rules: Rules,
        settings: Settings,
        ready: Ready,
        wake: Callable[[], None],
        *,
        on_read: Callable[[], bool],
        on_tried: Callable[[Retried, GenericdpError | None], None],
    ) -> None:
        self.due = False
        self._rules = rules
        self._ready = ready
        self._wake = wake
        self._on_read = on_read
        self._on_tried = on_tried
        self._state_dir = settings.state_dir
        self._last_good: LastGood | None = None
        self._retry = Retry(self.request)
        self._keeping = Retry(self._keep)
        self._turn: asyncio.Handle | None = None
        self._kept_again = float("-inf")
        self._disk = Disk(settings.state_dir)
        self._heard = False
        self._watching = contextlib.ExitStack()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the rule files while open, and keep what they say."""
        last_good = self._last_good = self._rules.resume(self._state_dir)
        self._watch()
        kept = DirectoryWatch(last_good.directory, self._hear)
        try:
            yield
        finally:
            kept.close()
            self._watching.close()
            self._retry.succeeded()
            self._disk.finish()
            if last_good.look() or self._keeping.waits:
                self._keep()
            end = time.monotonic() + END_S
            while (self._turn is not None or self._disk.is_busy) and time.monotonic() < end:
                self._disk.finish()
                self._keep()
            self._disk.finish()
            if self._turn is not None:
                self._turn.cancel()
            self._keeping.succeeded()

    def request(self) -> None:
        """Have the rule files read again."""
        self.due = True
        self._wake()

    def take(self) -> bool:
        """Read the rule files again if that is due; True if the rules changed."""
        if not self.due:
            return False
        self.due = False
        with self._ready.reloading():
            self._watch()
            changed = self.read()
            _log.info("rules reloaded", resources=len(self._rules.resources), changed=changed)
        return changed

    def read(self) -> bool:
        """Read the rule files; True if the rules changed."""
        self._rules.reload()
        self._retry.tried(not self._rules.unread)
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_later(KEEP_AFTER_S, self._keep)
        return self._on_read()

    def _hear(self, _: frozenset[str]) -> None:
        # What this process keeps arrives here, too.
        if self._disk.is_busy:
            self._heard = True
            return
        if self._last_good is not None and self._last_good.look() and self._turn is None:
            loop = asyncio.get_running_loop()
            self._kept_again = max(loop.time(), self._kept_again + KEEP_AFTER_S)
            _log.warning("what is kept of the rule files was removed or changed, keeping it again")
            self._turn = loop.call_at(self._kept_again, self._keep)

    def _keep(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._last_good is None or self._disk.is_busy:
            return
        try:
            due = self._last_good.next()
        except GenericdpError as error:
            self._see_failed(error)
            return
        if due is None:
            self._keeping.succeeded()
            self._on_tried(Retried.RULES, None)
        else:
            work = partial(self._last_good.carry_out, due)
            self._disk.do(work, partial(self._see_tried, self._last_good, due))

    def _see_tried(self, last_good: LastGood, due: Due, future: Future[FileIdentity | None]) -> None:
        try:
            identity = future.result()
        except GenericdpError as error:
            last_good.see_failed(due)
            self._see_failed(error)
        except BaseException:
            last_good.see_failed(due)
            self._keeping.failed()
            raise
        else:
            last_good.see_done(due, identity)
            if self._turn is None:
                self._turn = asyncio.get_running_loop().call_later(_BETWEEN_S, self._keep)
        if self._heard:
            self._heard = False
            self._hear(frozenset())

    def _see_failed(self, error: GenericdpError) -> None:
        self._keeping.failed()
        self._on_tried(Retried.RULES, error)

    def _watch(self) -> None:
        self._watching.close()
        self._watching.callback(self._rules.watch(self.request))
