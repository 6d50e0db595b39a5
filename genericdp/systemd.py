"""Notifies the service manager without a library: sd_notify(3) is one datagram.

The rules of this file:

* Without a service manager nothing here has an effect: the daemon need not know who started it.
* The status costs the same however often it changes: it is made once for all changes of a moment.
* A notification never stops the daemon or makes it wait, even if the service manager does not read it. One
  that does not get through is dropped; the latest state is sent again until it does.
"""

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Mapping

from genericdp import log
from genericdp.core.hostile import for_terminal
from genericdp.errors import SHORTAGES
from genericdp.retry import Retry

#: How long changes of the status may wait for more of them, in seconds.
_STATUS_WITHIN_S = 0.1

#: How often to send the state again to a service manager that does not read, in seconds.
_AGAIN_S = 1.0

#: What the service manager may allow for the watchdog, in microseconds: 1 ms to what 64 bits can hold.
_SENSIBLE_USEC = range(1_000, 1 << 64)
_MOST_DIGITS = 20

#: Errors after which it is sent again: the service manager does not read, or there is a shortage.
_TEMPORARY = SHORTAGES | {errno.EAGAIN, errno.ENOBUFS}

_log = log.get(__name__)


class Notify:
    """The service manager that is notified. `address` "": there is none."""

    def __init__(
        self,
        address: str = "",
        *,
        watchdog_interval_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # An abstract socket is written with '@' and lives behind a NUL byte.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._clock = clock
        self._status = ""
        self._soon: asyncio.TimerHandle | None = None
        self._state: tuple[str, ...] = ()
        self._retry = Retry(self._send_state, longest_s=_AGAIN_S)
        #: How often to call `watchdog`, in seconds; None if the service manager does not expect it.
        self.watchdog_interval_s = watchdog_interval_s

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Notify":
        """Configured by NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, see sd_watchdog_enabled(3)."""
        return cls(environment.get("NOTIFY_SOCKET", ""), watchdog_interval_s=_interval(environment))

    def ready(self, status: str = "") -> None:
        """Started, or finished reloading."""
        self._status = status or self._status
        self._change("READY=1", *_status(status))

    def extend(self, seconds: float) -> None:
        """The start goes on: the service manager should wait so much longer."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def reloading(self) -> None:
        """Reloading; `ready` must follow. Type=notify-reload requires CLOCK_MONOTONIC."""
        now = f"MONOTONIC_USEC={int(self._clock() * 1_000_000)}"
        self._change("RELOADING=1", now)

    def stopping(self, status: str = "") -> None:
        """About to stop."""
        if self._soon is not None:
            self._soon.cancel()
        self._change("STOPPING=1", *_status(status))

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows."""
        if text != self._status:
            self._status = text
            self._send(*_status(text))

    def status_soon(self, line: Callable[[], str]) -> None:
        """The same, once for all changes until then. The line may take a while to make."""
        if self._address and self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_STATUS_WITHIN_S, self._send_status, line)

    def watchdog(self) -> None:
        """Still alive."""
        self._send("WATCHDOG=1")

    def _send_status(self, line: Callable[[], str]) -> None:
        self._soon = None
        self.status(line())

    def _change(self, *assignments: str) -> None:
        # A state that follows another one makes it obsolete, whether it was heard or not.
        self._state = assignments
        self._send_state()

    def _send_state(self) -> None:
        if self._send(*self._state):
            self._retry.succeeded()
        else:
            self._retry.failed()

    def _send(self, *assignments: str) -> bool:
        """Whether there is no use in sending it again."""
        if not self._address or not assignments:
            return True
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.connect(self._address)
                sock.send("\n".join(assignments).encode())
        except OSError as error:
            return error.errno not in _TEMPORARY
        return True


def _status(text: str) -> tuple[str, ...]:
    """The assignment of a status; sanitized, because a line break would start another assignment."""
    return (f"STATUS={for_terminal(text)}",) if text else ()


def _interval(environment: Mapping[str, str]) -> float | None:
    """Half of the time that the service manager allows, as sd_watchdog_enabled(3) recommends."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environment.get("WATCHDOG_USEC", "0")
    # int() refuses very long numbers.
    allowed = int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else -1
    if allowed in _SENSIBLE_USEC:
        return allowed / 2 / 1_000_000
    if allowed != 0:
        _log.warning("WATCHDOG_USEC is ignored: it is no sensible number of microseconds", value=text)
    return None
