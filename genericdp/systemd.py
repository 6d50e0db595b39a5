"""Notifies the service manager without a library: sd_notify(3) is one datagram.

The rules of this file:

* Without a service manager nothing here has an effect: the daemon need not know who started it.
* A notification never stops the daemon, even if the service manager does not read it.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping

from genericdp.core.hostile import for_terminal

#: How long to wait for a full socket when the state changes, in seconds. Frequent notifications are
#: dropped instead.
_PATIENCE_S = 1.0


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
        #: How often to call `watchdog`, in seconds; None if the service manager does not expect it.
        self.watchdog_interval_s = watchdog_interval_s

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Notify":
        """Configured by NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, see sd_watchdog_enabled(3)."""
        return cls(environment.get("NOTIFY_SOCKET", ""), watchdog_interval_s=_interval(environment))

    def ready(self, status: str = "") -> None:
        """Started, or finished reloading."""
        self._send("READY=1", *_status(status), patience_s=_PATIENCE_S)

    def extend(self, seconds: float) -> None:
        """The start goes on: the service manager should wait at least so much longer for READY."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}", patience_s=_PATIENCE_S)

    def reloading(self) -> None:
        """Reloading; `ready` must follow. Type=notify-reload requires CLOCK_MONOTONIC."""
        now = f"MONOTONIC_USEC={int(self._clock() * 1_000_000)}"
        self._send("RELOADING=1", now, patience_s=_PATIENCE_S)

    def stopping(self, status: str = "") -> None:
        """About to stop."""
        self._send("STOPPING=1", *_status(status), patience_s=_PATIENCE_S)

    def status(self, text: str) -> None:
        """The line that `systemctl status` shows."""
        if text != self._status:
            self._status = text
            self._send(*_status(text))

    def watchdog(self) -> None:
        """Still alive."""
        self._send("WATCHDOG=1")

    def _send(self, *assignments: str, patience_s: float = 0.0) -> None:
        if not self._address or not assignments:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(patience_s)
                # A socket that is not connected counts as writable even if the receiver's queue is full:
                # waiting for it would take all processor time.
                sock.connect(self._address)
                sock.send("\n".join(assignments).encode())
        except OSError:
            return


def _status(text: str) -> tuple[str, ...]:
    """The assignment of a status; sanitized, because a line break would start another assignment."""
    return (f"STATUS={for_terminal(text)}",) if text else ()


def _interval(environment: Mapping[str, str]) -> float | None:
    """Half of the time that the service manager allows, as sd_watchdog_enabled(3) recommends."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    allowed = environment.get("WATCHDOG_USEC", "")
    if not allowed.isascii() or not allowed.isdigit() or int(allowed) == 0:
        return None
    return int(allowed) / 2 / 1_000_000
