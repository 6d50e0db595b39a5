"""What somebody mounts over a directory that a process uses already."""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


@contextmanager
def mounted(directory: Path, *what: str | Path) -> Iterator[None]:
    """In the block, something is mounted on a directory; `what` are the other arguments of mount(8)."""
    subprocess.run(["mount", *what, directory], check=True)
    try:
        yield
    finally:
        # At once, even if somebody has something open there.
        subprocess.run(["umount", "--lazy", directory], check=True)


def bind_mounted(source: Path, target: Path) -> AbstractContextManager[None]:
    """In the block, one directory is mounted over another."""
    return mounted(target, "--bind", source)


def an_empty_file_system_over(directory: Path, options: str = "") -> AbstractContextManager[None]:
    """In the block, an empty file system is mounted over a directory."""
    return mounted(directory, "-t", "tmpfs", "-o", f"mode=755{options}", "tmpfs")
