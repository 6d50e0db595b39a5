"""When READY is sent: at once, or after a boot as soon as the devices are back.

The kubelet's unit starts after READY. A kubelet that starts before a device is there rejects its pod for
good.

The rules of this file:

* Everything else goes on meanwhile: devices are followed, and a kubelet that runs already is registered with.
* The service manager hears again and again that the start takes longer, so that only a daemon that hangs is
  killed.
* It happens once in a boot. A daemon that is killed while it waits has not been READY, so the next one waits,
  too.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from genericdp import log
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.returning import Returning, healthy_in, returning
from genericdp.core.rules.settings import Settings
from genericdp.files.state import this_boot
from genericdp.service.presence import Presence
from genericdp.systemd import Notify

#: How often the service manager hears that the start goes on, and how much longer it should wait then.
EXTEND_EVERY_S = 5.0
EXTEND_BY_S = 20.0

_log = log.get(__name__)


class Ready:
    """Sends READY, and before it waits for the devices that were there when the machine went down.

    status_line  the line for `systemctl status`
    now          a clock that does not jump, in seconds
    wake         called when `look` has to be called again
    returning    the devices that READY waits for
    sent         whether READY was sent
    """

    def __init__(
        self,
        settings: Settings,
        notify: Notify,
        status_line: Callable[[], str],
        *,
        now: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self.returning: tuple[Returning, ...] = ()
        self.sent = False
        self._boot_wait_s = settings.boot_wait_s
        self._presence = Presence(settings.state_dir, this_boot())
        self._notify = notify
        self._status_line = status_line
        self._now = now
        self._wake = wake
        self._before: frozenset[str] = frozenset()
        self._began = 0.0
        self._waited = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start to wait; `look` says for what."""
        self._before = self._presence.load()
        self._began = self._now()

    def look(self, inventory: Inventory) -> None:
        """Send READY once nothing has to be waited for any more."""
        if self.sent:
            return
        waited_s = self._now() - self._began
        self.returning = returning(self._before, inventory, self._boot_wait_s, waited_s)
        self._cancel()
        if self.returning:
            self._wait()
            return
        self.sent = True
        self._notify.ready(self._status_line())
        devices = sum(len(offer.devices) for offer in inventory.offers.values())
        _log.info("ready", resources=len(inventory.offers), devices=devices)
        if self._waited:
            self._report(returning(self._before, inventory, self._boot_wait_s, 0.0), waited_s)
        # The next start is none after a boot, however this process ends.
        self.see(inventory)
        self._presence.save()

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """The service manager knows that the block reloads, unless it still waits for READY."""
        if self.sent:
            self._notify.reloading()
        yield
        if self.sent:
            self._notify.ready(self._status_line())

    def see(self, inventory: Inventory) -> None:
        """What is there now, for the next boot. While READY waits, what was there before counts."""
        if self.sent:
            self._presence.see(healthy_in(inventory))

    def close(self) -> None:
        """Save what is there now, before the daemon ends."""
        self._cancel()
        self._presence.close()

    def _wait(self) -> None:
        left_s = [each.left_s for each in self.returning]
        if not self._waited:
            self._waited = True
            _log.info(
                "waiting for devices that were there before the reboot",
                devices=_ids(self.returning),
                at_most=f"{max(left_s):.0f}s",
            )
        self._notify.extend(EXTEND_BY_S)
        self._notify.status(self._status_line())
        self._timer = asyncio.get_running_loop().call_later(min(EXTEND_EVERY_S, *left_s), self._wake)

    def _report(self, missing: tuple[Returning, ...], waited_s: float) -> None:
        waited = f"{waited_s:.1f}s"
        if missing:
            _log.warning(
                "devices that were there before the reboot are not back",
                devices=_ids(missing),
                waited=waited,
                hint="the kubelet rejects their pods; if one is only slow, raise 'boot_wait' of its resource",
            )
        else:
            _log.info("all devices that were there before the reboot are back", waited=waited)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _ids(devices: tuple[Returning, ...]) -> str:
    return ",".join(each.id for each in devices)
