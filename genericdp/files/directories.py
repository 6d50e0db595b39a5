"""The directories that pods depend on. An edit of the settings takes effect once no pod holds a device.

The answers that the kubelet has saved name links in `link_dir`, and only the memory in `state_dir` says which
devices these are. Containers that start again would find links that nobody keeps right.

The rules of this file:

* While pods hold devices, a daemon with other settings serves with the directories of before.
* Each of the two directories has a file that names the other one. So an edit of both at once is not noticed.
* The link directory is empty after a boot. So the directory that the service manager provides names the state
  directory as well.
"""

import os
from contextlib import suppress
from dataclasses import replace

from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.state import StateFile, read_whole, write_whole
from genericdp.files.trust import UntrustedError

#: The file in the link directory that names the state directory. Ids do not begin with a dot.
STATE_DIR = ".state_dir"

#: The file in the state directory that names the link directory.
LINK_DIR = "link_dir"

#: The file in the directory of the service manager that names the state directory.
PROVIDED = "state_dir"


def in_force(settings: Settings) -> Settings:
    """The settings with the directories of before while pods hold devices."""
    before = _named(settings.link_dir, STATE_DIR) or _named(_provided(), PROVIDED)
    if before not in ("", settings.state_dir) and _pods_hold_something(before):
        settings = replace(settings, state_dir=before)
    before = _named(settings.state_dir, LINK_DIR)
    if before not in ("", settings.link_dir) and _pods_hold_something(settings.state_dir):
        settings = replace(settings, link_dir=before)
    return settings


def name_each_other(settings: Settings) -> None:
    """Name each directory in the other one."""
    _name(settings.state_dir, LINK_DIR, settings.link_dir)
    _name(settings.link_dir, STATE_DIR, settings.state_dir)
    if _provided():
        _name(_provided(), PROVIDED, settings.state_dir)


def _provided() -> str:
    """The state directory that systemd makes for the unit, see systemd.exec(5); "" without one."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0]


def _pods_hold_something(state_dir: str) -> bool:
    """Whether a memory says so, or says nothing that can be read."""
    try:
        return bool(StateFile(state_dir).load().held)
    except GenericdpError:
        return True


def _named(directory: str, file: str) -> str:
    """The directory that a file names; "" if there is none."""
    try:
        data, _ = read_whole(os.path.join(directory, file))
        path = data.decode().strip()
    except (OSError, UntrustedError, ValueError):
        return ""
    return path if path.startswith("/") and path.isprintable() else ""


def _name(directory: str, file: str, path: str) -> None:
    if _named(directory, file) != path:
        # If nothing can be written here, the memory and the links report it.
        with suppress(OSError, UntrustedError):
            write_whole(os.path.join(directory, file), f"{path}\n".encode())
