"""The event loop of the verbs that keep running."""

import asyncio
import errno
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from genericdp.cli import loop
from genericdp.log_lines import fields_of
from tests.scenes.shortage import descriptors_left
from tests.scenes.waiting import until


async def watched_by_epoll() -> list[str]:
    """The descriptors of this process that watch others by epoll."""
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


async def refuses_a_client(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Listen at a path, and wait until it is logged that a client cannot be answered."""
    listener = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    with closing(socket.socket(socket.AF_UNIX)) as client, descriptors_left(0):
        client.connect(os.fspath(path))
        await until(lambda: bool(caplog.records))
    listener.close()
    await listener.wait_closed()


def test_that_no_client_can_be_answered_is_logged_with_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop.run(refuses_a_client(tmp_path / "a.sock", caplog))
    record = caplog.records[0]  # asyncio tries many times in a row
    assert (record.levelname, record.getMessage()) == ("WARNING", "cannot accept a connection")
    assert fields_of(record) == {
        "socket": str(tmp_path / "a.sock"),
        "why": "Too many open files",
        "hint": "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'",
    }
    assert record.exc_info is None


async def fails_unseen(error: Exception) -> None:
    def fail() -> None:
        raise error

    running, failed = asyncio.get_running_loop(), asyncio.Event()
    running.call_soon(fail)
    running.call_soon(failed.set)
    await failed.wait()


@pytest.mark.parametrize("error", [ValueError(), OSError(errno.EMFILE, "Too many open files")], ids=repr)
def test_any_other_error_that_nobody_awaits_is_logged_as_asyncio_does(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    loop.run(fails_unseen(error))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
