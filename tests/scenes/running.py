"""The watchdog of the tests: a test that hangs, or leaves something behind, fails.

The rules of this file:

* An async test that leaves a task, a thread or a file descriptor behind fails, whatever else it showed.
* A test that hangs fails where it hangs, and the next one runs.
* A test that fails does not make a later one hang, either.
"""

import asyncio
import ctypes
import functools
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc.aio

T = TypeVar("T")

#: How long an async test may take, in seconds: far longer than any does, because machines are slow at times.
HANGS_S = 60.0

#: How long a test without an event loop may take, in seconds: some build packages, others try many examples.
BLOCKS_S = 240.0

#: How long an async test may take to end once its time is over, in seconds.
ENDING_S = 60.0

#: How long grpc may take to end, in tasks and threads of its own, what a test has ended: milliseconds, unless
#: the machine is busy. Shorter than `ENDING_S`, so that a test that leaves something behind says what.
_CLOSING_S = 30.0


class HangError(BaseException):
    """A test hangs. It is not an Exception, so that nothing that a test calls takes it for one of its own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise HangError if the block takes longer, wherever it is then. For the main thread."""

    def end(*_: object) -> None:
        raise HangError(f"the test took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s)
        signal.signal(signal.SIGALRM, before)


def run(coroutine: Coroutine[Any, Any, T], timeout_s: float = HANGS_S) -> T:
    """Run a coroutine to its end. Raises TimeoutError when it hangs, AssertionError when it leaks."""
    threads = set(threading.enumerate())
    before = _open_files()
    try:
        result, tasks = asyncio.run(_watched(coroutine, timeout_s))
    finally:
        _keep_servers()
    assert not tasks, f"tasks left behind: {', '.join(tasks)}"
    left = [thread.name for thread in threading.enumerate() if thread not in threads and not thread.daemon]
    assert not left, f"threads left behind: {', '.join(left)}"
    leaked = _leaked_files(before)
    assert not leaked, f"file descriptors left behind: {leaked}"
    return result


def as_sync(test: Callable[..., Coroutine[Any, Any, T]], timeout_s: float = HANGS_S) -> Callable[..., T]:
    """The same test as a plain function, which runs it by `run`."""

    @functools.wraps(test)
    def runs(*args: Any, **kwargs: Any) -> T:
        with limited(timeout_s + ENDING_S):
            return run(test(*args, **kwargs), timeout_s)

    return runs


def as_limited(test: Callable[..., T], timeout_s: float = BLOCKS_S) -> Callable[..., T]:
    """The same test, which fails if it takes longer."""

    @functools.wraps(test)
    def runs(*args: Any, **kwargs: Any) -> T:
        with limited(timeout_s):
            return test(*args, **kwargs)

    return runs


async def _watched(coroutine: Coroutine[Any, Any, T], timeout_s: float) -> tuple[T, list[str]]:
    async with asyncio.timeout(timeout_s):
        result = await coroutine
    # A task that was just cancelled, or the end of a call inside grpc, needs a few rounds to end.
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=_CLOSING_S)
    return result, sorted(repr(task.get_coro()) for task in left)


def _keep_servers() -> None:
    """Keep grpc's servers that run although their event loop has ended from the garbage collector, forever.

    Such a server can never end. Freeing it would wait for that, in whatever the collector interrupts then.
    """
    if not any(thread.name.endswith("(_poll_wrapper)") for thread in threading.enumerate()):
        return  # of grpc, nothing is left
    servers: list[Any] = [each for each in gc.get_objects() if issubclass(type(each), grpc.aio.Server)]
    for server in servers:
        if server._loop.is_closed() and server._server.is_running():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))


def _open_files() -> dict[int, str]:
    """Descriptor -> what it is, of this process."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor that lists the directory
            continue
    return found


def _leaked_files(before: dict[int, str]) -> dict[int, str]:
    """Descriptors that are open now and were not before, once grpc's threads have had their time."""
    deadline = time.monotonic() + _CLOSING_S
    while True:
        leaked = {fd: what for fd, what in _open_files().items() if before.get(fd) != what}
        if not leaked or time.monotonic() > deadline:
            return leaked
        gc.collect()
        threading.Event().wait(0.01)
