"""Tells when something may have changed, in the event loop, without threads and without polling.

The rules of this file:

* It subscribes to both sources. udev's events are what counts: then the device is ready. The
  kernel's show whether udev can be heard; while it cannot, they stand in for it, with a slow rescan
  behind them because they come before udev (if any) has dealt with the device.
* A removed device is gone whatever udev says, so the kernel's `remove` is always passed on.
* Lost events are never mourned one by one: whatever goes wrong with a socket ends in a Resync.
* Nothing is polled and no timer runs while udev is heard and nothing happens.
"""

import asyncio
import errno
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyudev

from genericdp.udev import snapshot
from genericdp.udev.devices import RUN
from genericdp.udev.hearing import Hearing
from genericdp.udev.hint import Deafness, Hint, Resync, Uevent
from genericdp.udev.namespace import hears_no_uevents
from genericdp.udev.subscription import FAILURES, Subscription

#: 128 MiB, what libudev takes for udevd itself: 400,000 events.
RECEIVE_BUFFER = 128 << 20

_SOURCES = ("kernel", "udev")

# How long events are read (seconds) before the loop gets its turn again.
_TURN_S = 0.005

# Errors in a row, with no event between them, after which a socket is given up for a new one.
_GIVE_UP_AFTER = 3

# When a device of a kernel event is looked at again (seconds after it, and after each look): udev,
# unheard, may be busy with it. What takes longer is found by the rescan.
_LOOK_AGAIN_S = (0.05, 0.2, 0.75, 3.0)
_LOOK_AGAIN_LIMIT = 1000

_UNANSWERED = (
    "the kernel's events are not followed by udev's: this is another network namespace than udev's,"
    " or systemd-udevd hangs"
)
_NO_KERNEL_EITHER = "the kernel sends no events into the network namespace of a user namespace"


class Monitor:
    """Calls `sink` with a hint whenever a device may have changed; `start` it before the first resync.

    sink            called from the event loop (and from `start`), must not block
    rescan_s        how often, in seconds, a Resync is due while udev cannot be heard
    patience_s      how long udev may be silent about an event of the kernel
    receive_buffer  bytes for each socket, where permitted
    run             where udev has its control socket (a constant of udev, elsewhere only in tests)

    deaf            why udev cannot be heard, "" when all is well; each change is a Deafness hint
    """

    def __init__(
        self,
        sink: Callable[[Hint], None],
        *,
        rescan_s: float = 10.0,
        patience_s: float = 5.0,
        receive_buffer: int = RECEIVE_BUFFER,
        run: str = RUN,
    ) -> None:
        self.deaf = ""
        self._is_open = False
        self._sink = sink
        self._rescan_s = rescan_s
        self._receive_buffer = receive_buffer
        self._control = f"{run}/control"
        self._loop = asyncio.get_running_loop()
        self._subscriptions: dict[str, Subscription] = {}
        self._errors = dict.fromkeys(_SOURCES, 0)
        self._broken: dict[str, str] = {}
        self._hearing = Hearing(patience_s)
        self._is_heard = False
        self._unheard = ""
        self._patience: asyncio.TimerHandle | None = None
        self._rescan: asyncio.TimerHandle | None = None
        self._look_again: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Subscribe. Whatever happens from now on becomes a hint; look at everything after it."""
        self._is_open = True
        for source in _SOURCES:
            self._open(source)
        if hears_no_uevents():
            self._unheard = _NO_KERNEL_EITHER
        self._judge()

    def close(self) -> None:
        """Stop: the sink is not called any more. May be called twice, and from the sink."""
        self._is_open = False
        for source in tuple(self._subscriptions):
            self._shut(source)
        for timer in (self._patience, self._rescan, *self._look_again.values()):
            if timer is not None:
                timer.cancel()
        self._patience = self._rescan = None
        self._look_again.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The sockets

    def _open(self, source: str) -> None:
        try:
            subscription = Subscription(source, self._receive_buffer)
        except FAILURES as error:
            self._broken[source] = f"no socket for the events of {source}: {error}"
            return
        self._broken.pop(source, None)
        self._subscriptions[source] = subscription
        self._errors[source] = 0
        self._loop.add_reader(subscription.fileno, self._read, subscription)

    def _shut(self, source: str) -> None:
        subscription = self._subscriptions.pop(source, None)
        if subscription is not None:
            self._loop.remove_reader(subscription.fileno)
            subscription.close()

    def _read(self, subscription: Subscription) -> None:
        until = self._loop.time() + _TURN_S
        while self._loop.time() < until:
            try:
                device = subscription.receive()
            except FAILURES as error:
                self._recover(subscription, error)
                return
            # None, too, when the sink has closed us.
            if device is None:
                return
            self._errors[subscription.source] = 0
            uevent = _uevent(device, subscription.source)
            if uevent is not None and uevent.source == "udev":
                self._hear_udev(uevent)
            elif uevent is not None:
                self._hear_kernel(uevent)

    def _recover(self, subscription: Subscription, error: Exception) -> None:
        source = subscription.source
        self._errors[source] += 1
        try:
            number = subscription.take_error()
        except OSError as other:
            number, self._errors[source] = other.errno or 0, _GIVE_UP_AFTER
        if self._errors[source] >= _GIVE_UP_AFTER:
            self._shut(source)
            self._open(source)
        # The numbers that were lost will not be answered, or not be heard to be.
        self._hearing.forget()
        what = os.strerror(number) if number else str(error)
        lost = "overflowed" if number == errno.ENOBUFS else f"failed: {what}"
        self._tell(Resync(f"the socket for the events of {source} {lost}"))
        self._judge()

    # The events

    def _hear_udev(self, uevent: Uevent) -> None:
        self._hearing.udev(uevent.seqnum, self._loop.time())
        self._is_heard, self._unheard = True, ""
        self._tell(uevent)
        self._judge()

    def _hear_kernel(self, uevent: Uevent) -> None:
        if self.deaf:
            self._tell(uevent)
            self._look_again_at(uevent)
            return
        self._hearing.kernel(uevent.seqnum, self._loop.time())
        self._wait_for_udev()
        if uevent.action == "remove":
            self._tell(uevent)

    def _look_again_at(self, uevent: Uevent, times: int = 0) -> None:
        pending = self._look_again.pop(uevent.sys_path, None)
        if pending is not None:
            pending.cancel()
        if uevent.action == "remove" or times == len(_LOOK_AGAIN_S) or not self._is_open:
            return
        if len(self._look_again) < _LOOK_AGAIN_LIMIT:
            self._look_again[uevent.sys_path] = self._loop.call_later(
                _LOOK_AGAIN_S[times], self._look_once_more, uevent, times
            )

    def _look_once_more(self, uevent: Uevent, times: int) -> None:
        self._tell(uevent)
        self._look_again_at(uevent, times + 1)

    def _tell(self, hint: Hint) -> None:
        # The sink may have closed us while we had more to tell.
        if self._is_open:
            self._sink(hint)

    # Deafness

    def _wait_for_udev(self) -> None:
        deadline = self._hearing.deadline
        if self._patience is None and deadline is not None:
            self._patience = self._loop.call_at(deadline, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        if not self._hearing.is_deaf(self._loop.time()):
            self._wait_for_udev()
            return
        self._is_heard = False
        self._unheard = _UNANSWERED if self._is_running() else ""
        self._judge()

    def _is_running(self) -> bool:
        return os.path.exists(self._control)

    def _judge(self) -> None:
        if not self._is_open:
            return
        broken = next(iter(self._broken.values()), "")
        no_udev = f"no udev is running ('{self._control}' is absent)"
        missing = "" if self._is_heard or self._is_running() else no_udev
        reason = broken or missing or self._unheard
        if reason == self.deaf:
            return
        before, self.deaf = self.deaf, reason
        self._hearing.forget()
        if not reason:
            self._stop_looking()
        elif self._rescan is None:
            self._rescan = self._loop.call_later(self._rescan_s, self._look_at_everything)
        self._tell(Deafness(reason))
        # What happened meanwhile: while patience lasted, or unheard.
        self._tell(Resync(reason or f"heard again after: {before}"))

    def _stop_looking(self) -> None:
        for timer in (self._rescan, *self._look_again.values()):
            if timer is not None:
                timer.cancel()
        self._rescan = None
        self._look_again.clear()

    def _look_at_everything(self) -> None:
        self._rescan = self._loop.call_later(self._rescan_s, self._look_at_everything)
        udev = self._subscriptions.get("udev")
        if udev is not None and udev.hears_nobody and self._is_running():
            self._shut("udev")
        for source in _SOURCES:
            if source not in self._subscriptions:
                self._open(source)
        self._judge()
        if self.deaf:
            self._tell(Resync("rescan"))


def _uevent(device: pyudev.Device, source: str) -> Uevent | None:
    try:
        action = device.action or ""
        old = device.properties.get("DEVPATH_OLD") if action == "move" else None
        return Uevent(
            action=action,
            sys_path=device.sys_path,
            subsystem=device.subsystem or "",
            source=source,
            seqnum=device.sequence_number,
            device=snapshot.message(device) if source == "udev" else None,
            old_sys_path=f"/sys{old}" if old else "",
        )
    except UnicodeDecodeError:
        # The name is no UTF-8, so nobody could ask for the device.
        return None
