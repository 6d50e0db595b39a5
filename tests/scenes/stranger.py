"""A real user of this machine who has nothing, and tries what the kernel lets them try."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STRANGER = 4242


@contextmanager
def as_stranger() -> Iterator[None]:
    """What is done here is done by a user who has nothing."""
    groups_before = os.getgroups()
    os.setgroups([])
    os.setegid(STRANGER)
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups_before)
