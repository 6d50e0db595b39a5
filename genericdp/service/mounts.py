"""What a pod lacks: directories of the host that its manifest does not mount.

A directory that is not mounted is empty or private, and nothing fails: the daemon would wait for a kubelet
for ever. So it logs at its start what is missing, what it is for and what does not work without it.

The rules of this file:

* It looks only in a pod. On a host, what owns a missing directory has not started yet.
* Nothing depends on it. The daemon starts in any case, and does what it can.
* A container has its own root, and perhaps its own `/run` and `/dev`. Every other mount comes from the host.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from genericdp import log
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy, Settings

#: The mounts that this process sees (proc_pid_mountinfo(5)).
MOUNTINFO = "/proc/self/mountinfo"

#: Where a container runtime mounts something of its own.
_OF_A_CONTAINER = ("/", "/run")

_log = log.get(__name__)


class Mount(NamedTuple):
    """One line of mountinfo: where it is mounted, the type of the file system, and what of it is mounted."""

    point: str
    type: str
    root: str = "/"


class Missing(NamedTuple):
    """A directory of the host that is not mounted: what it is for, and what does not work without it."""

    path: str
    purpose: str
    without: str


def is_in_a_pod(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a kubelet started this process: it sets this variable in every container."""
    return environment.get("KUBERNETES_SERVICE_HOST") is not None


def warn(settings: Settings, resources: Iterable[Resource], mountinfo: str = MOUNTINFO) -> None:
    """Log a warning for each directory of the host that is not mounted."""
    mounts = mounts_in(mountinfo)
    if not mounts:
        return  # without /proc, nobody can tell
    for path, purpose, without in missing(settings, resources, mounts):
        _log.warning(
            "a directory of the host is not mounted",
            path=path,
            purpose=purpose,
            without=without,
            hint="add a hostPath volume and its volumeMount to the pod of genericdp",
        )


def mounts_in(mountinfo: str) -> list[Mount]:
    """All mounts, in their order; none without /proc."""
    try:
        # A carriage return in a name ends no line.
        with open(mountinfo, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return [_mount_of(line) for line in file]
    except OSError:
        return []


def mount_at(path: str, mounts: Iterable[Mount]) -> Mount:
    """The mount that a path is on."""
    by_point = {mount.point: mount for mount in mounts}  # a later mount hides an earlier one
    while path not in by_point and path != "/":
        path = os.path.dirname(path)
    return by_point.get(path, Mount("/", ""))


def missing(settings: Settings, resources: Iterable[Resource], mounts: Iterable[Mount]) -> Iterator[Missing]:
    """The directories of the host that are not mounted, the most important first."""
    mounts = tuple(mounts)
    for needed in _needed(settings, resources):
        if not _is_of_the_host(mount_at(needed.path, mounts)):
            yield needed


def _needed(settings: Settings, resources: Iterable[Resource]) -> Iterator[Missing]:
    yield Missing(settings.kubelet_dir, "registering with the kubelet", "no pod gets a device")
    yield Missing("/dev", "device nodes", "no device is found")
    if not settings.link_dir.startswith("/dev/"):
        yield Missing(settings.link_dir, "stable links", "no container with a device starts")
    yield Missing("/run/udev", "udev's properties", "rules that match on these properties match nothing")
    yield Missing(
        os.path.dirname(settings.pod_resources_socket),
        "asking the kubelet which pods hold which devices",
        "absent devices stay listed",
    )
    yield Missing(
        settings.state_dir,
        "remembering devices and which pods hold them",
        "they are forgotten whenever this container is replaced",
    )
    if settings.answer is not AnswerBy.DEVICES or any(
        resource.answer not in (None, AnswerBy.DEVICES) for resource in resources
    ):
        yield Missing(settings.cdi_dir, "CDI spec files", "no container that gets its device by CDI starts")


def _is_of_the_host(mount: Mount) -> bool:
    if mount.point == "/dev":
        return mount.type == "devtmpfs"  # the one of a container is a tmpfs
    return mount.point not in _OF_A_CONTAINER


def _mount_of(line: str) -> Mount:
    fields, _, rest = line.partition(" - ")
    root, point = (_unescaped(field) for field in fields.split(" ")[3:5])
    return Mount(point, rest.split(" ")[0], root)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)
