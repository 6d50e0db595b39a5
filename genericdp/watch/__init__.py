"""Watching files and mounts: what the kernel reports, and never more of it than the daemon can bear.

Read in this order: `queue` (the kernel's queue of events, read a little at a time), `mounts` (which cause no
such events), `directory` (a directory that may not exist yet, disappear and come back). `disk` runs
what waits for a disk in a thread.
"""

from genericdp.watch.directory import DirectoryWatch, what_to_do
from genericdp.watch.mounts import AGAIN_S
from genericdp.watch.queue import Event, EventQueue, flags

__all__ = ["AGAIN_S", "DirectoryWatch", "Event", "EventQueue", "flags", "what_to_do"]
