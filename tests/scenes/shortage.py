"""A process that lacks descriptors, or room on the disk."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """In the block, this process can open so many descriptors and no more; those that are open stay."""
    # One of the names is that of the descriptor that lists them.
    is_open = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
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


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """In the block, this process can write so many bytes to a file and no more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
