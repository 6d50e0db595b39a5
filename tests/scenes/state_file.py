"""A memory that is saved at once, as `Saving` does it on a fast disk."""

from genericdp.core.memory.memory import Memory
from genericdp.errors import GenericdpError
from genericdp.files.state import StateFile


def save(file: StateFile, memory: Memory) -> str:
    """Save a memory, or keep it beside the links. Raises GenericdpError.

    Returns the path to which another file was moved that was in its place, "" without one.
    """
    data = file.writer.dump(memory)
    try:
        aside = file.job(data)()
    except GenericdpError as error:
        raise file.failure(error, is_kept=file.keep(data)) from error
    file.drop_spare()
    return aside
