"""Host paths as the runtimes resolve them: links followed as Go does it, nodes read by lstat.

The rules of this file:

* It only reads, only the requested paths, and opens no device node.
* Error texts are Go's: `lstat /dev/x: no such file or directory`.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

#: Go's filepath.EvalSymlinks and CRI-O's securejoin both give up here.
_LINK_LIMIT = 255

#: What the runtimes skip while they walk the host's /dev.
SKIPPED_DIRECTORIES = frozenset({"pts", "shm", "fd", "mqueue", ".lxc", ".lxd-mounts", ".udev"})
SKIPPED_FILES = frozenset({"console"})


class PathError(Exception):
    """A path that cannot be followed, with Go's text."""

    def __init__(self, text: str, *, loop: bool = False) -> None:
        super().__init__(text)
        self.loop = loop


@dataclass(frozen=True, slots=True)
class HostNode:
    """The file at a path: `kind` is "c", "b", "p" (fifo), "d" (directory) or "" (any other file)."""

    path: str
    kind: str
    major: int
    minor: int
    mode: int
    uid: int
    gid: int


def look(path: str) -> HostNode:
    """The file at a path; a link is not followed. PathError when there is none."""
    try:
        found = os.lstat(path)
    except OSError as error:
        raise PathError(f"lstat {path}: {_words(error)}") from None
    kinds = {stat.S_IFCHR: "c", stat.S_IFBLK: "b", stat.S_IFIFO: "p", stat.S_IFDIR: "d"}
    return HostNode(
        path,
        kinds.get(stat.S_IFMT(found.st_mode), ""),
        os.major(found.st_rdev),
        os.minor(found.st_rdev),
        stat.S_IMODE(found.st_mode),
        found.st_uid,
        found.st_gid,
    )


def resolve(path: str, *, strict: bool) -> str:
    """Follow every link in a path. PathError on a loop and, if `strict`, on a missing component."""
    rest = [part for part in path.split("/") if part not in ("", ".")][::-1]
    done = "/"
    links = 0
    while rest:
        part = rest.pop()
        if part == "..":
            done = os.path.dirname(done)
            continue
        here = os.path.join(done, part)
        try:
            target = os.readlink(here)
        except OSError as error:
            if error.errno == errno.ENOENT and strict:
                raise PathError(f"lstat {here}: {_words(error)}") from None
            done = here
            continue
        links += 1
        if links > _LINK_LIMIT:
            raise PathError(path, loop=True)
        if target.startswith("/"):
            done = "/"
        rest.extend([part for part in target.split("/") if part not in ("", ".")][::-1])
    return done


def is_link(path: str) -> bool:
    """Whether the last component is a symbolic link."""
    return os.path.islink(path)


def entries(directory: str) -> list[str]:
    """The names in a directory, sorted as Go's ReadDir sorts them."""
    return sorted(os.listdir(directory))


def nodes_below(directory: str) -> Iterator[HostNode]:
    """Every device node below a directory, as in privileged containers. What goes meanwhile is left out."""
    with contextlib.suppress(FileNotFoundError):
        for name in entries(directory):
            with contextlib.suppress(PathError):
                node = look(f"{directory}/{name}")
                if node.kind == "d" and name not in SKIPPED_DIRECTORIES:
                    yield from nodes_below(node.path)
                elif node.kind in ("c", "b") and name not in SKIPPED_FILES:
                    yield node


def exists(path: str) -> bool:
    """Whether a path exists, with links followed."""
    return os.path.exists(path)


def _words(error: OSError) -> str:
    words = os.strerror(error.errno or 0)
    return words[:1].lower() + words[1:]
