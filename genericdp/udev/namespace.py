"""Does the kernel send uevents to this network namespace at all?

Since Linux 4.18 it sends them only to network namespaces that belong to the initial user namespace
(lib/kobject_uevent.c). In any other one no event ever arrives, so a missing event cannot be noticed.
"""

import fcntl
import os

# ioctl_ns(2); the inode of the initial user namespace is fixed (linux/proc_ns.h, PROC_USER_INIT_INO).
_NS_GET_USERNS = 0xB701
_INITIAL_USER_NAMESPACE = 0xEFFFFFFD


def hears_no_uevents(namespace: str = "/proc/self/ns/net") -> bool:
    """Whether another user namespace than the initial one owns the network namespace; False if unknown."""
    try:
        network = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        owner = fcntl.ioctl(network, _NS_GET_USERNS)
    except OSError:
        # Not permitted: an outer user namespace owns it, as for a service of the host.
        return False
    finally:
        os.close(network)
    try:
        return os.fstat(owner).st_ino != _INITIAL_USER_NAMESPACE
    finally:
        os.close(owner)
