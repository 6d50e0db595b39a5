"""Answers questions about the running daemon: `genericdp status`, `monitor` and `probe`, Prometheus.

The rules of this file:

* What only an answer needs (`pages`) is loaded for the first one.
* A crowd of clients costs hardly more than one: what takes a while is made seldom, and once for all of them.
* A socket that cannot be opened is tried again every few seconds. One that was removed is opened again.
  Neither stops the plugin.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from genericdp import VERSION, log
from genericdp.core.status.events import Event, of_begin
from genericdp.core.status.history import Retried
from genericdp.core.status.holdings import Holdings
from genericdp.core.status.status_line import status_line
from genericdp.errors import GenericdpError
from genericdp.kubelet import podresources
from genericdp.retry import Retry
from genericdp.status.control import Control
from genericdp.status.lasting import Lasting
from genericdp.status.subject import Subject
from genericdp.watch.directory import DirectoryWatch

if TYPE_CHECKING:
    from genericdp.status.exporter import Page
    from genericdp.status.pages import Pages

#: For how long metrics may reuse the last list of holders, in seconds: the kubelet answers 100 requests
#: a second, for all clients on the node together.
HOLDINGS_LAST_S = 10.0

#: For how long the page of the metrics is the same, in seconds. With thousands of devices it takes a while.
METRICS_LAST_S = 1.0

#: The longest pause before a socket is tried again, in seconds.
LISTEN_AGAIN_S = 8.0

_log = log.get(__name__)


class Answers:
    """Answers while `running` runs and after `listen`.

    now       the clock of the recorder's history, in seconds
    on_tried  called when a socket was tried, with the error or None
    """

    def __init__(
        self,
        subject: Subject,
        *,
        now: Callable[[], float],
        on_tried: Callable[[Retried, GenericdpError | None], None],
    ) -> None:
        self._subject = subject
        self._now = now
        self._recent = log.Recent(now)
        settings, events = subject.settings, subject.recorder.events
        control = Control(
            settings.run_dir,
            status=self._status,
            verdicts={"health": self._why_not_healthy, "readiness": self._why_not_ready},
            begin=self._begin,
            events=events,
        )
        self._listeners = {Retried.CONTROL: control.listener}
        self._holders = Lasting(lambda: podresources.ask(settings.pod_resources_socket), now)
        self._metrics = Lasting(self._make_metrics, now)
        if settings.metrics:
            exporter = self.pages.exporter(settings.metrics, lambda: self._metrics.get(METRICS_LAST_S))
            self._listeners[Retried.METRICS] = exporter
        self._on_tried = on_tried
        self._retry = Retry(self._listen_again, longest_s=LISTEN_AGAIN_S)
        self._listening: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    @cached_property
    def pages(self) -> "Pages":
        """What makes the answers."""
        from genericdp.status.pages import Pages  # noqa: PLC0415  (see the rules of this file)

        return Pages(self._subject, self._recent, self._now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Collect warnings and errors, restore removed sockets, and close every connection at the end."""
        paths = (listener.path for listener in self._listeners.values())
        directories = sorted({os.path.dirname(path) for path in paths if path})
        with self._recent.listening():
            watches = [DirectoryWatch(directory, self._hear) for directory in directories]
            try:
                yield
            finally:
                for watch in watches:
                    watch.close()
                self._retry.succeeded()
                if self._listening is not None:
                    self._listening.cancel()
                    await asyncio.wait((self._listening,))
                await self._metrics.close()
                await self._holders.close()
                for listener in self._listeners.values():
                    await listener.close()

    async def listen(self, *, persist: bool = True) -> None:
        """Open every socket that is not open yet; try again later what fails, if `persist`."""
        async with self._one_at_a_time:
            failed = False
            for what, listener in self._listeners.items():
                why = None
                try:
                    await listener.open()
                except GenericdpError as error:
                    why = error
                if persist:
                    failed |= why is not None
                    self._on_tried(what, why)
            # One may have been removed while the others were opened.
            failed |= persist and any(each.was_removed for each in self._listeners.values())
            self._retry.tried(not failed)

    def _hear(self, names: frozenset[str]) -> None:
        # Changes by this process arrive here, too.
        removed = [
            each.address
            for each in self._listeners.values()
            if (not names or os.path.basename(each.path) in names) and each.was_removed
        ]
        if removed:
            if not self._retry.waits:
                _log.warning("a socket was removed, opening it again", address=", ".join(removed))
            self._retry.failed()

    def _listen_again(self) -> None:
        self._listening = asyncio.get_running_loop().create_task(self.listen())

    def status_line(self) -> str:
        """One line for `systemctl status`."""
        subject, kubelet = self._subject, self._subject.plugins.kubelet
        return status_line(
            subject.inventory,
            None if kubelet.incarnation is None else subject.plugins.registered,
            len(subject.rules.problems),
            subject.recorder.history.failing.values(),
            rival=kubelet.rival,
            returning=subject.ready.returning,
        )

    async def _status(self) -> Mapping[str, object]:
        return self.pages.status(await self._holdings(0.0))

    def _why_not_healthy(self) -> str:
        return self.pages.why_not_healthy()

    def _why_not_ready(self) -> str:
        return self.pages.why_not_ready()

    def _begin(self) -> Event:
        return of_begin(VERSION, "standing by" if self._subject.standing_by else "serving", "daemon")

    async def _make_metrics(self) -> "Page":
        return await self.pages.metrics(await self._holdings(HOLDINGS_LAST_S))

    async def _holdings(self, max_age_s: float) -> Holdings | None:
        """The current holders, at most `max_age_s` old."""
        return None if self._subject.standing_by else await self._holders.get(max_age_s)
