"""Notifies the service manager while all is well; without notifications, it restarts the daemon."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from genericdp import log
from genericdp.core.status import watchdog
from genericdp.kubelet.plugins import Plugins
from genericdp.systemd import Notify

_log = log.get(__name__)


class Watchdog:
    """Watches the plugins for resources that nothing tries to register.

    now  a clock that does not jump, in seconds
    """

    def __init__(self, notify: Notify, plugins: Plugins, *, now: Callable[[], float]) -> None:
        self._notify = notify
        self._plugins = plugins
        self._now = now
        self._seen: dict[str, watchdog.Seen] = {}

    def stuck(self) -> tuple[str, ...]:
        """The resources that nothing tries to register, judged by all calls so far."""
        now = self._now()
        self._seen = watchdog.look(self._seen, self._plugins.signs(), now)
        return watchdog.stuck(self._seen, now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Notify the service manager within the block, if it has a watchdog."""
        feeding = asyncio.create_task(self._run(), name="watchdog")
        try:
            yield
        finally:
            feeding.cancel()
            await asyncio.wait((feeding,))

    async def _run(self) -> None:
        interval = self._notify.watchdog_interval_s
        while interval is not None:
            self._plugins.kubelet.look_again()
            stuck = self.stuck()
            if stuck:
                _log.error("resources are stuck; no longer notifying the watchdog", resources=",".join(stuck))
            else:
                self._notify.watchdog()
            await asyncio.sleep(interval)
