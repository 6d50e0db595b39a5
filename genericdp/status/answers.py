"""Answers questions about the running daemon: `genericdp status`, `genericdp monitor`, Prometheus.

The rules of this file:

* What only an answer needs (`pages`) is loaded for the first one.
* A socket that cannot be opened is logged and tried again at the next reload. It never stops the plugin.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from genericdp import VERSION, log
from genericdp.core.status.events import Event, of_begin
from genericdp.core.status.holdings import Holdings
from genericdp.errors import GenericdpError
from genericdp.kubelet import podresources
from genericdp.status.control import Control
from genericdp.status.subject import Subject

if TYPE_CHECKING:
    from genericdp.status.pages import Pages

#: For how long metrics may reuse the last list of holders, in seconds: the kubelet answers 100 requests
#: a second, for all clients on the node together.
HOLDINGS_LAST_S = 10.0

_log = log.get(__name__)


class Answers:
    """Answers while `running` runs and after `listen`.

    now  the clock of the recorder's history, in seconds
    """

    def __init__(self, subject: Subject, *, now: Callable[[], float]) -> None:
        self._subject = subject
        self._now = now
        self._recent = log.Recent()
        settings, events = subject.settings, subject.recorder.events
        control = Control(settings.run_dir, status=self._status, begin=self._begin, events=events)
        self._listeners = [control.listener]
        if settings.metrics:
            self._listeners.append(self.pages.exporter(settings.metrics, self._recent_holdings))
        self._asking: asyncio.Task[Holdings | None] | None = None
        self._answer: tuple[float, Holdings | None] = (float("-inf"), None)

    @cached_property
    def pages(self) -> "Pages":
        """What makes the answers."""
        from genericdp.status.pages import Pages  # noqa: PLC0415  (see the rules of this file)

        return Pages(self._subject, self._recent, self._now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Collect warnings and errors, and close every connection at the end."""
        with self._recent.listening():
            try:
                yield
            finally:
                for listener in self._listeners:
                    await listener.close()
                if self._asking is not None:
                    self._asking.cancel()
                    await asyncio.wait((self._asking,))

    async def listen(self, *, complain: bool = True) -> None:
        """Open every socket that is not open yet; log those that cannot be opened, if `complain`."""
        for listener in self._listeners:
            try:
                await listener.open()
            except GenericdpError as error:
                if complain:
                    _log.warning(str(error), hint=error.hint or "genericdp tries again at the next reload")

    async def _status(self) -> Mapping[str, object]:
        return self.pages.status(await self._holdings(0.0))

    def _begin(self) -> Event:
        return of_begin(VERSION, "standing by" if self._subject.standing_by else "serving", "daemon")

    async def _recent_holdings(self) -> Holdings | None:
        return await self._holdings(HOLDINGS_LAST_S)

    async def _holdings(self, max_age_s: float) -> Holdings | None:
        """The current holders, at most `max_age_s` old; concurrent callers share one request."""
        if self._subject.standing_by:
            return None
        asked_at, answer = self._answer
        if self._now() - asked_at <= max_age_s:
            return answer
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_kubelet())
        return await asyncio.shield(self._asking)

    async def _ask_kubelet(self) -> Holdings | None:
        answer = await podresources.ask(self._subject.settings.pod_resources_socket)
        self._answer = (self._now(), answer)
        return answer
