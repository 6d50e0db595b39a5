"""Turns events into hints, in the event loop, without threads and without polling.

The rules of this file:

* It subscribes to both sources. udev's events count: they mean that the device is ready. The kernel's
  show whether udev's arrive; while they do not, the kernel's stand in for them, backed by a slow rescan
  because they come before udev (if it runs) has processed the device.
* A removed device is gone whatever udev says, so the kernel's `remove` is always forwarded. So is each event
  that udev has skipped: nothing else would ever tell of that device.
* Lost events are not recovered one by one: any failure of a socket ends in a Resync.
* Nothing is polled and no timer runs while udev's events arrive and nothing happens.
"""

import asyncio
import errno
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pyudev

from genericdp.core.hint import (
    Deafness,
    Hint,
    RescanCause,
    Resync,
    Silence,
    SilenceCause,
    Uevent,
)
from genericdp.udev import snapshot
from genericdp.udev.database import RUN
from genericdp.udev.hearing import Hearing
from genericdp.udev.subscription import FAILURES, Subscription, hears_no_uevents

#: 128 MiB, as udevd itself uses: 400,000 events.
RECEIVE_BUFFER = 128 << 20

_SOURCES = ("kernel", "udev")

# How long (seconds) to read events before the event loop gets its turn.
_TURN_S = 0.005

# After this many errors in a row, without an event in between, a socket is replaced.
_GIVE_UP_AFTER = 3

# When to read the device of a kernel event again (seconds after the event, and after each read): a udev
# whose events do not arrive may still be processing it. The rescan finds what takes longer.
_LOOK_AGAIN_S = (0.05, 0.2, 0.75, 3.0)
_LOOK_AGAIN_LIMIT = 1000

_USER_NAMESPACE = Silence(SilenceCause.USER_NAMESPACE)


class Monitor:
    """Calls `sink` with a hint whenever a device may have changed; `start` it before the first resync.

    sink            called from the event loop (and from `start`), must not block
    rescan_s        seconds between two Resyncs while udev's events do not arrive
    patience_s      how long udev may take to answer an event of the kernel
    receive_buffer  bytes for each socket, if permitted
    run             the directory of udev's control socket (a constant of udev; only tests use another one)

    silence         why udev's events do not arrive, None if they do; each change is a Deafness hint
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
        self.silence: Silence | None = None
        self._is_open = False
        self._sink = sink
        self._rescan_s = rescan_s
        self._receive_buffer = receive_buffer
        self._control = f"{run}/control"
        self._loop = asyncio.get_running_loop()
        self._subscriptions: dict[str, Subscription] = {}
        self._errors = dict.fromkeys(_SOURCES, 0)
        self._broken: dict[str, Silence] = {}
        self._hearing = Hearing(patience_s)
        self._is_heard = False
        self._unheard: Silence | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._rescan: asyncio.TimerHandle | None = None
        self._look_again: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Subscribe. Everything that happens from now on becomes a hint; read every device after this."""
        self._is_open = True
        for source in _SOURCES:
            self._open(source)
        if hears_no_uevents():
            self._unheard = _USER_NAMESPACE
        self._judge()

    def close(self) -> None:
        """Stop: the sink is no longer called. May be called twice, and from the sink."""
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
            self._broken[source] = Silence(SilenceCause.NO_SOCKET, source, str(error))
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
            # None also when the sink has closed this monitor.
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
        # The lost events will not be answered, or the answers were lost.
        self._hearing.forget()
        if number == errno.ENOBUFS:
            self._tell(Resync(RescanCause.OVERFLOW, source))
        else:
            detail = os.strerror(number) if number else str(error)
            self._tell(Resync(RescanCause.TROUBLE, source, detail))
        self._judge()

    # The events

    def _hear_udev(self, uevent: Uevent) -> None:
        self._hearing.udev(uevent.seqnum, self._loop.time())
        self._is_heard, self._unheard = True, None
        self._tell(uevent)
        self._judge()

    def _hear_kernel(self, uevent: Uevent) -> None:
        if self.silence is not None:
            self._tell(uevent)
            self._look_again_at(uevent)
            return
        self._hearing.kernel(uevent, self._loop.time())
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
                _LOOK_AGAIN_S[times], self._repeat_look, uevent, times
            )

    def _repeat_look(self, uevent: Uevent, times: int) -> None:
        self._tell(uevent)
        self._look_again_at(uevent, times + 1)

    def _tell(self, hint: Hint) -> None:
        # The sink may have closed this monitor before the last hint.
        if self._is_open:
            self._sink(hint)

    # Deafness

    def _wait_for_udev(self) -> None:
        if self._patience is None and self._is_open and (deadline := self._hearing.deadline) is not None:
            self._patience = self._loop.call_at(deadline, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patience = None
        for uevent in self._hearing.skipped(self._loop.time()):
            self._tell(uevent)
        if not self._hearing.is_deaf(self._loop.time()):
            self._wait_for_udev()
            return
        self._is_heard = False
        awaited = self._hearing.awaited
        waits_for = Silence(SilenceCause.UNANSWERED, detail="" if awaited is None else awaited.sys_path)
        self._unheard = waits_for if self._is_running() else None
        self._judge()

    def _is_running(self) -> bool:
        return os.path.exists(self._control)

    def _judge(self) -> None:
        if not self._is_open:
            return
        broken = next(iter(self._broken.values()), None)
        no_udev = Silence(SilenceCause.NO_UDEV, detail=self._control)
        missing = None if self._is_heard or self._is_running() else no_udev
        silence = broken or missing or self._unheard
        if silence == self.silence:
            return
        before, self.silence = self.silence, silence
        self._hearing.forget()
        if silence is None:
            self._stop_looking()
        elif self._rescan is None:
            self._rescan = self._loop.call_later(self._rescan_s, self._look_at_everything)
        self._tell(Deafness(silence))
        # Events may have been missed during the patience, or during the silence.
        if silence is None:
            self._tell(Resync(RescanCause.HEARD_AGAIN, silence=before))
        else:
            self._tell(Resync(RescanCause.TROUBLE, silence=silence))

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
        if self.silence is not None:
            self._tell(Resync(RescanCause.DEAF))


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
        # The name is not UTF-8, so no rule can match the device.
        return None
