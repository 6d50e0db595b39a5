"""The lock on the kubelet's directory."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from genericdp.kubelet.lock import DirectoryLock


def test_one_has_it_until_it_lets_go(tmp_path: Path) -> None:
    first, second = DirectoryLock(str(tmp_path)), DirectoryLock(str(tmp_path))
    assert first.taken()
    assert first.is_held()
    assert not second.taken()
    assert not second.is_held()
    assert list(tmp_path.iterdir()) == []
    first.release()
    assert not first.is_held()
    assert second.taken()
    second.release()


def test_it_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from genericdp.kubelet.lock import DirectoryLock; "
        "lock = DirectoryLock(sys.argv[1]); print(lock.taken(), flush=True); time.sleep(600)"
    )
    lock = DirectoryLock(str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert not lock.taken()
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert lock.taken()
    lock.release()


def test_a_directory_that_is_created_again_is_another_one(tmp_path: Path) -> None:
    directory = tmp_path / "device-plugins"
    first, second = DirectoryLock(str(directory)), DirectoryLock(str(directory))
    assert first.taken(), "nobody holds what does not exist"
    assert not first.is_held()
    directory.mkdir()
    assert first.taken()
    directory.rmdir()
    assert not first.is_held()
    directory.mkdir()
    assert second.taken()
    assert not first.taken()
    second.release()


def test_where_locks_do_not_work_it_is_taken_as_if_it_were_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    lock = DirectoryLock(str(tmp_path))
    assert lock.taken()
    assert lock.is_held()
    lock.release()


def test_without_a_descriptor_nobody_knows_whose_it_is(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lock = DirectoryLock(str(tmp_path))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            lock.taken()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not lock.is_held()


def test_without_memory_nobody_knows_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    lock, before = DirectoryLock(str(tmp_path)), os.listdir("/proc/self/fd")
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        lock.taken()
    assert not lock.is_held()
    assert os.listdir("/proc/self/fd") == before
