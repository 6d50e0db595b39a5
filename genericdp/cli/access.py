"""The access to a device node, as it is on this machine now."""

import grp
import os
import pwd
from collections.abc import Callable

from genericdp.core.explain.access import Access


def access_of(path: str) -> Access | None:
    """Who may open a device node; None when there is none at this path."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Access(
        status.st_mode,
        status.st_uid,
        _name(lambda: pwd.getpwuid(status.st_uid).pw_name),
        status.st_gid,
        _name(lambda: grp.getgrgid(status.st_gid).gr_name),
    )


def _name(look_up: Callable[[], str]) -> str:
    try:
        return look_up()
    except KeyError:
        return "without a name"
