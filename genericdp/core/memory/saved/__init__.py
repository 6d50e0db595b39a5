"""The saved form of the memory, as JSON. `writer` writes it, `reader` reads it, and
`order` tells which of two is the later one.

Does not belong here: the file (`genericdp.files.state`), and what each value may be (`core.memory.fields`).
"""

from genericdp.core.memory.saved.order import since_boot_ns, timed, untimed
from genericdp.core.memory.saved.reader import UnreadableMemoryError, load
from genericdp.core.memory.saved.writer import Writer, dump

__all__ = ["UnreadableMemoryError", "Writer", "dump", "load", "since_boot_ns", "timed", "untimed"]
