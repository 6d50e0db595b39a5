"""How a test waits for something to become true.

The rules of this file:

* A wait is woken by what happens. Of what tells nobody, each round of the event loop may bring it.
* A wait does not spin: other threads, such as those of gRPC, and other processes need the processor.
* That nothing happens is known once the event loop is idle, not after some rounds.
* A wait in vain ends before the watchdog of the test does, and says what it waited for.
"""

import asyncio
import linecache
import select
from collections.abc import Callable

from genericdp.simulator.changes import Changes

#: How long to wait for what takes milliseconds, in seconds.
PATIENCE_S = 30.0

#: How long an event loop without work may sleep, in seconds: what another thread brings wakes nobody.
NAP_S = 0.002


async def until(
    condition: Callable[[], object],
    changes: Changes | None = None,
    *,
    timeout_s: float = PATIENCE_S,
    describe: Callable[[], str] = str,
) -> None:
    """Return once `condition()` is true; it is asked at once and after each change.

    Without `changes`, it is asked in each round of the event loop. Raises TimeoutError with the line
    of the condition and what `describe()` says.
    """

    def describe_it() -> str:
        return " ".join((_line_of(condition), describe())).rstrip()

    wait = _wait_in_rounds if changes is None else changes.wait_until
    await wait(condition, timeout_s=timeout_s, describe=describe_it)


async def idle() -> None:
    """Return once the event loop has nothing to do before a timer or somebody outside wakes it.

    Outside are other threads, such as those of gRPC, and other processes. Raises TimeoutError if it
    always has something to do.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            # The loop looks at its timers and descriptors between the first round and the second.
            for _ in range(2):
                await asyncio.sleep(0)
            if not loop._ready:  # type: ignore[attr-defined]
                return


async def _wait_in_rounds(
    condition: Callable[[], object], *, timeout_s: float, describe: Callable[[], str]
) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(0)
                _nap(asyncio.get_running_loop())
    except TimeoutError:
        raise TimeoutError(f"not true after {timeout_s:g} s; {describe()}") from None


def _nap(loop: asyncio.AbstractEventLoop) -> None:
    """Sleep as the loop itself would, but not for long: until a descriptor or a timer of it is ready.

    The loop would not: who waits in rounds always has something to do in the next one.
    """
    if loop._ready:  # type: ignore[attr-defined]
        return
    timers = loop._scheduled  # type: ignore[attr-defined]
    nap_s = min(NAP_S, timers[0].when() - loop.time()) if timers else NAP_S
    if nap_s > 0:
        selector = loop._selector  # type: ignore[attr-defined]
        # Only epoll has a descriptor to wait for.
        select.select([selector] if hasattr(selector, "fileno") else [], [], [], nap_s)


def _line_of(condition: Callable[[], object]) -> str:
    """Where a condition is written, and its line."""
    code = getattr(condition, "__code__", None)
    if code is None:
        return repr(condition)
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{code.co_filename}:{code.co_firstlineno}: {line}"
