"""A mount of the kubelet's directory that is dead: the directory was deleted on the host.

A mount leads to a directory, not to a path. If somebody deletes the directory and the kubelet makes it again,
the mount of a pod still leads to the deleted one, where no kubelet will ever listen. Only a new container
mounts the new directory. So the daemon ends, and the kubelet restarts the container.

The rules of this file:

* Only mountinfo tells: inotify(7) does not report the deletion of a directory that is still mounted. It
  reports that of kubelet.sock, which comes first. So the mount is checked every few seconds, but only while
  kubelet.sock is missing.
* A kubelet that still follows a list allocates devices as before. The daemon ends after that. While a
  registration is under way, the kubelet may follow already.
* On a host, the path leads to the new directory. Nothing is dead there.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from genericdp import log
from genericdp.kubelet.api.deviceplugin import KUBELET_SOCKET
from genericdp.service.mounts import MOUNTINFO, mount_at, mounts_in
from genericdp.watch import DirectoryWatch

#: How often to look while there is no kubelet.sock, in seconds.
AGAIN_S = 2.0

#: Behind the root of a mount whose directory was deleted (d_path in the kernel).
_DELETED = "//deleted"

_log = log.get(__name__)


def is_dead(directory: str, mountinfo: str = MOUNTINFO) -> bool:
    """Whether a directory is on a mount whose own directory was deleted."""
    return mount_at(directory, mounts_in(mountinfo)).root.endswith(_DELETED)


async def until_dead(directory: str, is_followed: Callable[[], bool], *, again_s: float = AGAIN_S) -> None:
    """Return when the mount of the kubelet's directory is dead and `is_followed` is false, and log it.

    is_followed  whether a kubelet follows the list of a resource, or may do so already
    """
    changed = asyncio.Event()

    def socket_is_there() -> bool:
        return os.path.exists(f"{directory}/{KUBELET_SOCKET}")

    def hear(names: frozenset[str]) -> None:
        if not names or KUBELET_SOCKET in names:
            changed.set()

    watch = DirectoryWatch(directory, hear)
    try:
        while not is_dead(directory) or is_followed():
            changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if socket_is_there() else again_s):
                    await changed.wait()
    finally:
        watch.close()
    _log.error(
        "the kubelet's directory was deleted; ending, because only a new container can mount the new one",
        path=directory,
        hint="the kubelet restarts the container; if it finds no kubelet then, restart the kubelet",
    )
