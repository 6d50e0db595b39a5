"""Tries again what a temporary shortage prevented: of descriptors, disk space or a free address.

The rules of this file:

* Nothing is polled while all is well: a timer runs only after a failure.
* The pause doubles with each failure in a row, so a shortage that lasts costs next to nothing.
"""

import asyncio
from collections.abc import Callable

#: The first pause and the longest one, in seconds.
FIRST_S = 1.0
LONGEST_S = 30.0


class Retry:
    """Calls `again` from the event loop some time after each failure.

    again      tries it again, and reports by `failed` or `succeeded` how it went
    longest_s  the longest pause, in seconds
    """

    def __init__(self, again: Callable[[], None], *, longest_s: float = LONGEST_S) -> None:
        self._again = again
        self._longest_s = longest_s
        self._pause_s = FIRST_S
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        """Whether it failed and will be tried again."""
        return self._timer is not None

    def tried(self, succeeded: bool) -> None:
        """It was tried, and went like this."""
        if succeeded:
            self.succeeded()
        else:
            self.failed()

    def failed(self) -> None:
        """It failed: try again later. A further failure does not delay a try that is pending."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._try)
            self._pause_s = min(2 * self._pause_s, self._longest_s)

    def succeeded(self) -> None:
        """It works, or is no longer wanted: the next failure counts as the first."""
        self._pause_s = FIRST_S
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self) -> None:
        self._timer = None
        self._again()
