"""The event loop of the verbs that keep running."""

import asyncio
import os
import subprocess
import sys

from genericdp.cli import loop


async def watched_by_epoll() -> list[str]:
    """The descriptors of this process that watch others by epoll."""
    await asyncio.sleep(0)
    names = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return [name for name in names if os.path.islink(name) and os.readlink(name) == "anon_inode:[eventpoll]"]


def test_it_watches_nothing_by_epoll_whose_watches_are_those_of_all_processes_of_a_user() -> None:
    before = asyncio.run(watched_by_epoll())
    assert before
    assert len(loop.run(watched_by_epoll())) == len(before) - 1


#: Asyncio complains of the half of a loop that it has made, so this is a process of its own.
WITHOUT_DESCRIPTORS = """
import asyncio
from genericdp.cli import loop
from genericdp.errors import GenericdpError
from tests.scenes.shortage import descriptors_left
try:
    with descriptors_left(0):
        loop.run(asyncio.sleep(0))
except GenericdpError as error:
    print(error, error.hint, sep="; ")
"""


def test_without_a_descriptor_it_says_what_cannot_be_made() -> None:
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == (
        "cannot make an event loop: Too many open files; "
        "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'\n"
    )
