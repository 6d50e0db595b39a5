"""The event loop of the verbs that keep running.

The rules of this file:

* It waits by poll(2), as gRPC does (`__main__`), not by epoll(7). The kernel counts what all processes of a
  user watch by epoll (fs.epoll.max_user_watches). A container of root counts as root and can use it all up;
  then an event loop can watch nothing new, and gRPC aborts the process. poll(2) has no such limit, and is as
  fast for the descriptors of a daemon.
* A process inherits its signal mask (sigprocmask(2)). SIGTERM, SIGINT and SIGHUP are unblocked here, because
  a daemon started with them blocked could only be killed.
* Without a file descriptor, no client can be answered. The log says so in one line, with a hint. Asyncio
  retries every second and would log a traceback each time.
"""

import asyncio
import selectors
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from genericdp import log
from genericdp.errors import GenericdpError, what_is_short

_Result = TypeVar("_Result")

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_log = log.get(__name__)


def run(main: Coroutine[Any, Any, _Result]) -> _Result:
    """As asyncio.run. Raises GenericdpError if there can be no event loop."""
    runner = asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.PollSelector()))
    try:
        runner.get_loop().set_exception_handler(_report)
    except OSError as error:
        main.close()
        raise GenericdpError(
            f"cannot make an event loop: {error.strerror}", hint=what_is_short(error)
        ) from error
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    with runner:
        return runner.run(main)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio calls for an error of its own, and for an exception that nobody awaits."""
    error, listener = context.get("exception"), context.get("socket")
    if isinstance(error, OSError) and listener is not None:
        _log.warning(
            "cannot accept a connection",
            socket=listener.getsockname(),
            why=error.strerror,
            hint=what_is_short(error),
        )
        return
    loop.default_exception_handler(context)
