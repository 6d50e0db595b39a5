"""Are uevents sent into this network namespace at all?

Since Linux 4.18 the kernel sends them only into network namespaces that belong to the first user
namespace (lib/kobject_uevent.c). In any other, nothing is ever heard, so nothing can be missed in
a way that would be noticed.
"""

import fcntl
import os

# ioctl_ns(2); the number of the first user namespace is fixed (linux/proc_ns.h, PROC_USER_INIT_INO).
_NS_GET_USERNS = 0xB701
_FIRST_USER_NAMESPACE = 0xEFFFFFFD


def hears_no_uevents(namespace: str = "/proc/self/ns/net") -> bool:
    """Whether the network namespace belongs to another user namespace; False when unknown."""
    try:
        network = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        owner = fcntl.ioctl(network, _NS_GET_USERNS)
    except OSError:
        # Not permitted: the owner lies further out than we can see, as for a service of the host.
        return False
    finally:
        os.close(network)
    try:
        return os.fstat(owner).st_ino != _FIRST_USER_NAMESPACE
    finally:
        os.close(owner)
