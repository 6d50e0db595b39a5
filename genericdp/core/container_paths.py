"""The container paths of one answer to the kubelet.

The rules of this file:

* Of two DeviceSpecs with the same container path, the kubelet silently drops one. So a path that is
  taken gets a number, `-1`, `-2`, …
* A device node cannot be a directory: runc refuses the container, or leaves out the node. So the part of a
  path that would be both gets a number.
* A runtime mounts first, and then uses what it finds at the path of a device node as that node (runc). So a
  mount at that path or below it is refused: a number would hide a mistake.
* What a runtime makes below /dev of every container is not replaced by a device that calls itself so. A name
  that a device makes too long is shortened: otherwise one device would keep every container from starting.
* Entering a path costs the same however many are taken: an answer may have 20,000 that want one path. Whether
  mounts keep a node out costs the same however deep their paths are.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from genericdp.core.hostile import for_quote
from genericdp.core.limits import ENV_LIMIT, NAME_LIMIT, size_of_env, why_too_long

Access = TypeVar("Access")

#: What is below /dev of every container: devices, mounts and symlinks of the runtimes (runtime-spec,
#: config-linux.md, "Default Devices"), and the default `terminationMessagePath` of Kubernetes.
_OF_RUNTIME = re.compile(
    r"/dev/(?:null|zero|full|u?random|tty|console|ptmx|pts|shm|mqueue|fd|std(?:in|out|err)|core|termination-log)"
    "(?=/|$)"
)

#: How long a name may be that devices choose, in bytes: a number may have to follow.
_LONGEST = NAME_LIMIT - len("-20000")

#: How many characters of a hash end a name that was too long.
_MARK_LENGTH = 10


class ContainerPaths(Generic[Access]):
    """The container paths of one answer: the host path that is there, and how it may be used."""

    def __init__(self, *, nested: bool = False) -> None:
        """`nested`: whether a path may be below another one, as those of mounts."""
        self._taken: dict[str, str] = {}
        self._access: dict[str, Access] = {}
        self._beside: dict[str, _Beside] = {}
        self._nested = nested
        # The directory that a path wants -> the one that it gets. A directory in use leads to itself.
        self._directories: dict[str, str] = {"": ""}

    def __iter__(self) -> Iterator[tuple[str, str, Access]]:
        """Each container path with its host path and access, in the order in which they were entered."""
        return zip(self._taken, self._taken.values(), self._access.values(), strict=True)

    def place(self, path: str, host_path: str, access: Access) -> str:
        """Enter a path of the host under a container path, or under the next free one. Returns that path."""
        if not self._nested:
            path = self._in_directory(path)
        if self._enter(path, host_path, access) == host_path:
            return path
        if path not in self._beside:
            self._beside[path] = _Beside()
        beside = self._beside[path]
        while (found := beside.paths.get(host_path)) is None:
            numbered = f"{path}-{beside.next}"
            there = self._enter(numbered, host_path, access)
            if there is not None:
                beside.paths.setdefault(there, numbered)
            beside.next += 1
        return found

    def _enter(self, path: str, host_path: str, access: Access) -> str | None:
        """Enter this path if it is free. Returns the host path that is there now; None: it is a directory."""
        there = self._taken.get(path)
        if there is None and path not in self._directories:
            self._access[path] = access
            there = self._taken[path] = host_path
        return there

    def _in_directory(self, path: str) -> str:
        """The path, in a numbered directory if its own would also be a device node."""
        wanted = path[: path.rindex("/")]
        directory = self._directories.get(wanted)
        if directory is None:
            directory = ""
            for name in wanted.split("/")[1:]:
                directory = self._directory(f"{directory}/{name}")
            self._directories[wanted] = directory
        return path if directory == wanted else directory + path[len(wanted) :]

    def _directory(self, wanted: str) -> str:
        """The directory itself, or the first numbered one beside it that is not a device node."""
        directory = self._directories.get(wanted, wanted)
        numbers = count(1)
        while directory in self._taken:
            directory = f"{wanted}-{next(numbers)}"
        self._directories[wanted] = self._directories[directory] = directory
        return directory


@dataclass(slots=True)
class _Beside:
    """The numbered paths beside a container path, so that no number is looked at twice.

    next   the first number that nobody has looked at
    paths  what of the host is under the numbers before it: host path -> container path
    """

    next: int = 1
    paths: dict[str, str] = field(default_factory=dict)


def as_chosen(path: str, beginning: str) -> str:
    """A container path in which a device chose names, with other ones for those that no container can have.

    beginning  what the rule says that the path begins with
    """
    if len(path) > _LONGEST or not path.isascii():
        path = "/".join(map(_shortened, path.split("/")))
    found = _OF_RUNTIME.match(path)
    if found is None or beginning.startswith(f"{found.group()}/"):
        return path
    return f"{found.group()}-1{path[found.end() :]}"


def _shortened(name: str) -> str:
    """A name that Linux permits. Different ones stay different."""
    data = name.encode(errors="surrogateescape")
    if len(data) <= _LONGEST:
        return name
    mark = f"-{hashlib.sha256(data).hexdigest()[:_MARK_LENGTH]}"
    return data[: _LONGEST - len(mark)].decode(errors="ignore") + mark


def why_impossible(
    nodes: Collection[str], mounts: Collection[tuple[str, str]], envs: Mapping[str, str]
) -> str:
    """Why no runtime can start a container with all of this; "" if one can.

    nodes   the container paths of device nodes
    mounts  the container path and the path on the host of each
    """
    for name, value in envs.items():
        if (size := size_of_env(name, value)) > ENV_LIMIT:
            return (
                f"the env '{for_quote(name)}' would have {size} bytes, and Linux permits {ENV_LIMIT}; "
                "request fewer devices for a container, or shorten the env in the rule"
            )
    # In this order, the reason is the same in every process.
    inside = (*nodes, *(path for path, _ in mounts))
    for whose, paths in (("container", inside), ("host", (path for _, path in mounts))):
        for path in paths:
            if why := why_too_long(path):
                return f"the {whose} path '{for_quote(path)}' would have {why}; shorten it in the rule"
    return why_not_together([path for path, _ in mounts], nodes)


def why_not_together(mounts: Iterable[str], nodes: Iterable[str]) -> str:
    """Why a container with these container paths would lack a device node; "" if it gets all of them.

    nodes  of which none is below another one, as in `ContainerPaths`
    """
    mounts = tuple(mounts)
    if not mounts:
        return ""
    ordered = sorted(f"{node}/" for node in nodes)
    for mount in mounts:
        if node := node_above(f"{mount}/", ordered):
            why = why_covered(mount, node)
            return f"{why}; choose another 'container_path' for one of the two in the rule"
    return ""


def node_above(path: str, ordered: Sequence[str]) -> str:
    """The device node that a path is, or is below; "" if there is none.

    path, ordered  end in `/`; the nodes are sorted, and none is below another one
    """
    # In this order, what is below a node comes right behind it.
    before = bisect_right(ordered, path)
    return ordered[before - 1][:-1] if before and path.startswith(ordered[before - 1]) else ""


def why_covered(mount: str, node: str) -> str:
    """How a mount at the path of a device node, or below it, keeps the node out of a container."""
    if mount == node:
        return f"a mount and a device node would both be '{node}' in the container"
    return f"the mount '{mount}' would be below the device node '{node}'"
