"""When the rule files are read: at the start, after an edit, when asked for, and again after a failure.

The rules of this file:

* A watch that reports a change does not read: the event loop does, once for all changes until then.
* At each reading the files are watched afresh: something may have been mounted over their directory.
"""

import contextlib
from collections.abc import Callable, Iterator

from genericdp import log
from genericdp.inputs import Rules
from genericdp.retry import Retry
from genericdp.service.ready import Ready

_log = log.get(__name__)


class Reloading:
    """Reads the rule files for the daemon.

    wake     called when `take` has to be called
    on_read  called after each reading; returns whether the rules changed
    due      whether the files have to be read again
    """

    def __init__(
        self,
        rules: Callable[[], Rules],
        ready: Ready,
        *,
        wake: Callable[[], None],
        on_read: Callable[[], bool],
    ) -> None:
        self.due = False
        self._rules = rules
        self._ready = ready
        self._wake = wake
        self._on_read = on_read
        self._retry = Retry(self.request)
        self._watching = contextlib.ExitStack()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the rule files while open."""
        self._watch()
        try:
            yield
        finally:
            self._watching.close()
            self._retry.succeeded()

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
            _log.info("rules reloaded", resources=len(self._rules().resources), changed=changed)
        return changed

    def read(self) -> bool:
        """Read the rule files; True if the rules changed."""
        rules = self._rules()
        rules.reload()
        self._retry.tried(not rules.unread)
        return self._on_read()

    def _watch(self) -> None:
        self._watching.close()
        self._watching.callback(self._rules().watch(self.request))
