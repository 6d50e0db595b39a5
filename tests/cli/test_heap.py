"""The heap of the daemon: what large blocks needed is given back."""

import subprocess
import sys

#: Frees a block of 1 MiB, and then says whether one of 256 KiB is mapped on its own (`mallinfo2.hblkhd`).
_SCRIPT = """
import ctypes, sys
from genericdp.cli import service

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
if sys.argv[1] == "kept small":
    service._keep_heap_small()
libc.free(libc.malloc(1 << 20))
before = libc.mallinfo2().hblkhd
block = libc.malloc(256 << 10)
print(libc.mallinfo2().hblkhd > before)
"""


def is_mapped_on_its_own(heap: str) -> bool:
    output = subprocess.run([sys.executable, "-c", _SCRIPT, heap], check=True, capture_output=True, text=True)
    return output.stdout == "True\n"


def test_a_large_block_leaves_no_hole_in_the_heap_after_another_one_was_freed() -> None:
    assert is_mapped_on_its_own("kept small")
    assert not is_mapped_on_its_own("as glibc does it"), "glibc no longer raises its threshold by itself"
