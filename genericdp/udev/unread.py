"""Devices that could not be read.

The rules of this file:

* What could not be read is not gone: it is kept here until it can be read again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.errors import GenericdpError, what_is_short


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a path of sysfs could not be read, and what udev said about it meanwhile."""

    why: OSError
    message: UdevDevice | None = None


def complaint(unread: Mapping[str, Unread]) -> GenericdpError | None:
    """What could not be read, for people: sys path -> why. None if there is nothing."""
    if not unread:
        return None
    path, first = next(iter(unread.items()))
    what = f"'{path}'" if len(unread) == 1 else f"{len(unread)} devices, such as '{path}'"
    return GenericdpError(f"cannot read {what}: {first.why.strerror}", hint=what_is_short(first.why))


def plain(error: OSError) -> OSError:
    """The error without its traceback, which would keep everything that led to it."""
    return OSError(error.errno, error.strerror)
