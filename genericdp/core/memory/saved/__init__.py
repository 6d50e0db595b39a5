"""The saved form of the memory, as JSON. `writer` writes it, `reader` reads it, `order`
tells which of two is the later one, and `delay` how soon a change is saved.

Does not belong here: the file (`genericdp.files.state`), and what each value may be (`core.memory.fields`).
"""

from genericdp.core.memory.saved.delay import save_within_s
from genericdp.core.memory.saved.order import since_boot_ns, timed, untimed
from genericdp.core.memory.saved.reader import UnreadableMemoryError, load
from genericdp.core.memory.saved.writer import Writer, dump

__all__ = [
    "UnreadableMemoryError",
    "Writer",
    "dump",
    "load",
    "save_within_s",
    "since_boot_ns",
    "timed",
    "untimed",
]
