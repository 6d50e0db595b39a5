"""Whether threads can be started at all, found out before something depends on it.

The rules of this file:

* gRPC does not say that a thread is missing, and does not recover once there are threads again. So this is
  asked before gRPC is used.
"""

import threading

from genericdp.errors import MORE_THREADS, GenericdpError

#: How long a thread waits for the others at most, in seconds.
_LONGEST_S = 5.0


def require(count: int) -> None:
    """Start so many threads at once, and let them end. Raises GenericdpError if that cannot be done."""
    done = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=done.wait, args=(_LONGEST_S,), daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise GenericdpError(
            f"too few threads: only {len(started)} of {count} can be started", hint=MORE_THREADS
        ) from error
    finally:
        done.set()
        for thread in started:
            thread.join()
