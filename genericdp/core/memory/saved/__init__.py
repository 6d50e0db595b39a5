"""The saved form of the memory, as JSON. `writer` writes it, `reader` reads it.

Does not belong here: the file (`genericdp.files.state`), and what each value may be (`core.memory.fields`).
"""

from genericdp.core.memory.saved.reader import UnreadableMemoryError, boot_of, load
from genericdp.core.memory.saved.writer import Writer, dump

__all__ = ["UnreadableMemoryError", "Writer", "boot_of", "dump", "load"]
