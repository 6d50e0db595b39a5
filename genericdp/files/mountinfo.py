"""What the mount table says about an open file (proc_pid_mountinfo(5)).

The rules of this file:

* Nothing is raised: a table that cannot be read says nothing.
"""

import os

#: The mounts that this process sees.
MOUNTINFO = "/proc/self/mountinfo"


def type_of(descriptor: int) -> bytes:
    """The type of the file system of an open file, such as b"nfs4"; b"" if that cannot be read."""
    device = os.fstat(descriptor).st_dev
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    return next((type_ for mount, type_ in _mounts() if mount[2] == number), b"")


def mounted_at(descriptor: int) -> bytes:
    """What of its file system is mounted where an open directory is; b"" if that cannot be read."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
            numbers = [line.split()[1] for line in file if line.startswith(b"mnt_id:")]
    except OSError:
        return b""
    return next((mount[3] for mount, _ in _mounts() if mount[0] in numbers), b"")


def _mounts() -> list[tuple[list[bytes], bytes]]:
    """The fields of all mounts, and the types of their file systems; none if they cannot be read."""
    try:
        with open(MOUNTINFO, "rb") as file:
            lines = [line.partition(b" - ") for line in file]
    except OSError:
        return []
    return [(mount.split(b" "), rest.split(b" ")[0]) for mount, _, rest in lines]
