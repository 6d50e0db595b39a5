"""What somebody mounts over a directory that a process uses already."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def bind_mounted(source: Path, target: Path) -> Iterator[None]:
    """In the block, one directory is mounted over another."""
    subprocess.run(["mount", "--bind", source, target], check=True)
    try:
        yield
    finally:
        # At once, even if somebody has something open there.
        subprocess.run(["umount", "--lazy", target], check=True)


@contextmanager
def an_empty_file_system_over(directory: Path) -> Iterator[None]:
    """In the block, an empty file system is mounted over a directory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)
