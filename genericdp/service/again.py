"""What is tried again while the daemon follows events: reading devices, and what nothing expected to fail.

The rules of this file:

* An error of the system that nothing expected does not end the daemon. It is logged and shown, and everything
  is looked at again, as after lost events: what the error interrupted need not be known.
* Any other exception ends it. Nobody knows what is true then, and the service manager starts it again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from genericdp import log
from genericdp.core.status.history import Retried
from genericdp.errors import GenericdpError, what_is_short
from genericdp.inputs import Devices
from genericdp.retry import Retry

_log = log.get(__name__)


class Again:
    """Tries again.

    read      called when the devices have to be read again
    look      called when everything has to be looked at again, within `following`
    on_tried  called with what was tried, and the error or None
    """

    def __init__(
        self,
        *,
        read: Callable[[], None],
        look: Callable[[], None],
        on_tried: Callable[[Retried, GenericdpError | None], None],
    ) -> None:
        self._look = look
        self._on_tried = on_tried
        self._reading = Retry(read)
        self._looking = Retry(self._look_again)
        self._everything = False

    def close(self) -> None:
        """Try nothing again."""
        self._reading.succeeded()
        self._looking.succeeded()

    def see(self, devices: Devices) -> None:
        """Read again later what could not be read, and tell of what udevd has not looked at."""
        self._on_tried(Retried.DEVICES, devices.unread)
        self._on_tried(Retried.COLDPLUG, devices.unseen)
        self._reading.tried(devices.unread is None)

    @contextmanager
    def following(self) -> Iterator[bool]:
        """Outlive what goes wrong in the block. It gets whether everything has to be looked at."""
        everything, self._everything = self._everything, False
        with self.outliving():
            yield everything
            if everything:
                self._looking.succeeded()
                self._on_tried(Retried.EVENTS, None)

    @contextmanager
    def outliving(self) -> Iterator[None]:
        """Outlive what goes wrong in the block: everything is looked at again later."""
        try:
            yield
        except OSError as error:
            _log.bug("an event could not be followed; everything will be looked at again", error)
            self._looking.failed()
            why = f"an event could not be followed: {error}"
            self._on_tried(Retried.EVENTS, GenericdpError(why, hint=what_is_short(error)))

    def _look_again(self) -> None:
        self._everything = True
        self._look()
