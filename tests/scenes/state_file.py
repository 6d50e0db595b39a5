"""A memory that is saved at once, as `Saving` does it on a fast disk, or lost."""

from collections.abc import Callable
from pathlib import Path

from genericdp.core.memory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.state import SPARE, StateFile


def save(file: StateFile, memory: Memory) -> str:
    """Save a memory, or keep it beside the links. Raises GenericdpError.

    Returns the path to which another file was moved that was in its place, "" without one.
    """
    data = file.writer.dump(memory)
    is_kept = file.keep(data)
    try:
        return file.job(data)()
    except GenericdpError as error:
        raise file.failure(error, is_kept=is_kept) from error


def lose(settings: Settings, loss: Callable[[Path], object] = Path.unlink) -> None:
    """While no daemon runs, something happens to the saved memory, and what is kept of it is removed."""
    loss(Path(settings.state_dir, "memory.json"))
    Path(settings.link_dir, SPARE).unlink(missing_ok=True)
