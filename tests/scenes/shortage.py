"""A process that has no descriptors left."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """In the block, this process can open so many descriptors and no more; those that are open stay."""
    is_open = {int(name) for name in os.listdir("/proc/self/fd")}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 0
    while count or limit in is_open:
        count -= limit not in is_open
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
