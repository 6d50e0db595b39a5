"""The container paths of one answer to the kubelet.

The rules of this file:

* Of two DeviceSpecs with the same container path, the kubelet silently drops one. So a path that is
  taken gets a number, `-1`, `-2`, …
* Entering a path costs the same however many are taken: an answer may have 20,000 that want one path.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Access = TypeVar("Access")


class ContainerPaths(Generic[Access]):
    """The container paths of one answer: the host path that is there, and how it may be used."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._access: dict[str, Access] = {}
        self._beside: dict[str, _Beside] = {}

    def __iter__(self) -> Iterator[tuple[str, str, Access]]:
        """Each container path with its host path and access, in the order in which they were entered."""
        return zip(self._taken, self._taken.values(), self._access.values(), strict=True)

    def place(self, path: str, host_path: str, access: Access) -> str:
        """Enter a path of the host under a container path, or under the next free one. Returns that path."""
        if self._taken.setdefault(path, host_path) == host_path:
            self._access.setdefault(path, access)
            return path
        if path not in self._beside:
            self._beside[path] = _Beside()
        beside = self._beside[path]
        while (found := beside.paths.get(host_path)) is None:
            numbered = f"{path}-{beside.next}"
            there = self._taken.setdefault(numbered, host_path)
            self._access.setdefault(numbered, access)
            beside.paths.setdefault(there, numbered)
            beside.next += 1
        return found


@dataclass(slots=True)
class _Beside:
    """The numbered paths beside a container path, so that no number is looked at twice.

    next   the first number that nobody has looked at
    paths  what of the host is under the numbers before it: host path -> container path
    """

    next: int = 1
    paths: dict[str, str] = field(default_factory=dict)
