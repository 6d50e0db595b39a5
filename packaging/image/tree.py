"""A file system as values: what is in a package, and what goes into a layer.

The rules of this file:

* Everything belongs to root, nothing is setuid, nothing can be written by others, nothing is a device node.
* A directory is there because something is in it, or because it is listed as empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A regular file or, with a `target`, a symbolic link."""

    content: bytes = b""
    target: str = ""
    executable: bool = False

    @property
    def mode(self) -> int:
        """Its permissions, as every layer has them."""
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True, slots=True)
class EmptyDirectory:
    """A directory in which there is nothing: a mount point, or a place for an operator's files."""


#: Path without a leading slash -> what is there.
Tree = Mapping[str, File | EmptyDirectory]


def text(content: str) -> File:
    """A regular file with this text."""
    return File(content.encode())


def parents(path: str) -> list[str]:
    """The directories above a path, from the top: "a/b/c" -> "a", "a/b"."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def merged(path: str) -> str:
    """Where a packaged file lies in a system with merged /usr: "lib/x" -> "usr/lib/x"."""
    top = path.partition("/")[0]
    return f"usr/{path}" if top in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") else path


def without_dangling_links(tree: Mapping[str, File]) -> dict[str, File]:
    """The tree without the links to files that are not in it."""
    kept = dict(tree)
    while True:
        places = kept.keys() | {above for path in kept for above in parents(path)}
        links = [(path, file) for path, file in kept.items() if file.target]
        dangling = [path for path, file in links if _resolved(path, file) not in places]
        if not dangling:
            return kept
        for path in dangling:
            del kept[path]


def _resolved(path: str, link: File) -> str:
    """The path to which a link points, without resolving links on the way."""
    parts = [] if link.target.startswith("/") else path.split("/")[:-1]
    for part in link.target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return merged("/".join(parts))
