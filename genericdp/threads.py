"""Whether threads can be started at all, found out before something depends on it.

The rules of this file:

* gRPC and the search for libudev do not say that a thread or a process is missing: the one never gets well
  again, even with threads; the other takes the library for missing. So this is asked beside them.
"""

import threading

from genericdp.errors import GenericdpError

_HINT = (
    "raise the limit: TasksMax= of the unit, the limit of process ids of the pod, "
    "or the sysctls kernel.pid_max and kernel.threads-max; or free some memory"
)

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
            f"too few threads: only {len(started)} of {count} can be started", hint=_HINT
        ) from error
    finally:
        done.set()
        for thread in started:
            thread.join()
