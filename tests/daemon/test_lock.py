"""The lock of the link directory: one has it, and the kernel takes it away from the dead."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from genericdp.errors import GenericdpError
from genericdp.service.flock import NodeLock
from tests.scenes.stranger import STRANGER, as_stranger


def test_one_has_the_lock_and_the_other_learns_the_holder(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path)) as first, NodeLock(str(tmp_path)) as second:
        assert first.taken()
        assert not second.taken()
        assert second.holder == f"process {os.getpid()} on {os.uname().nodename}"


def test_it_is_free_when_the_first_lets_go(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path)) as second:
        with NodeLock(str(tmp_path)) as first:
            assert first.taken()
            assert not second.taken()
        assert second.taken()
        assert second.taken(), "one that is ours stays ours"


def test_it_is_free_when_the_first_was_killed(tmp_path: Path) -> None:
    program = (
        "import signal, sys; from genericdp.service.flock import NodeLock; lock = NodeLock(sys.argv[1]); "
        "print(lock.taken(), flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        with NodeLock(str(tmp_path)) as lock:
            assert not lock.taken()
            assert lock.holder == f"process {other.pid} on {os.uname().nodename}"
            other.send_signal(signal.SIGKILL)
            other.wait()
            assert lock.taken()


def test_the_directory_is_made_and_the_file_is_roots_alone(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path / "dev" / "genericdp")):
        assert (tmp_path / "dev" / "genericdp" / ".lock").stat().st_mode & 0o777 == 0o600


def test_the_holder_is_unknown_until_it_writes_its_name(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path)) as lock:
        assert lock.holder == "another process"
        Path(lock.path).write_bytes(b"\xff" * 5000)
        assert lock.holder == "\ufffd" * 200


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GenericdpError) as refused:
        NodeLock(str(tmp_path))
    assert str(refused.value) == f"cannot lock '{tmp_path}/.lock': Too many levels of symbolic links"
    assert refused.value.hint == "without the lock, a second genericdp on this node would not be noticed"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("mode", "owner"), [(0o644, None), (0o640, None), (0o602, None), (0o600, STRANGER)])
def test_a_file_that_others_may_have_locked_is_replaced(tmp_path: Path, mode: int, owner: int | None) -> None:
    """By `chmod -R` or a backup, say. Whoever can read it can hold its lock for ever."""
    path = tmp_path / ".lock"
    path.touch()
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner, owner)
    with path.open(encoding="utf-8") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with NodeLock(str(tmp_path)) as lock, NodeLock(str(tmp_path)) as second:
            assert lock.taken()
            assert lock.kept()
            assert not second.taken()
            assert (path.stat().st_mode, path.stat().st_uid) == (0o100600, os.geteuid())


def test_the_holder_of_a_file_that_is_replaced_learns_it(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path)) as holder:
        assert holder.taken()
        Path(holder.path).chmod(0o644)
        assert holder.kept()
        with NodeLock(str(tmp_path)) as other:
            assert other.taken()
            assert not holder.kept()


def test_whoever_waits_does_not_wait_for_a_stranger(short_dir: Path) -> None:
    """One that was there first, and could open the file for a while."""
    short_dir.chmod(0o755)
    with NodeLock(str(short_dir)) as waiting:
        with NodeLock(str(short_dir)) as holder:
            assert holder.taken()
            assert not waiting.taken()
            Path(holder.path).chmod(0o644)
            with as_stranger():
                theirs = os.open(holder.path, os.O_RDONLY)
        fcntl.flock(theirs, fcntl.LOCK_EX)
        assert waiting.taken()
        os.close(theirs)


def test_where_files_have_no_modes_there_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstat

    def everybody(file: int) -> os.stat_result:
        mode, *others = real(file)
        return os.stat_result((int(mode) | 0o077, *others))

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr("os.fstat", everybody)
    with pytest.raises(GenericdpError) as refused:
        NodeLock(str(tmp_path))
    assert str(refused.value) == f"cannot lock '{tmp_path}/.lock': other users may open it"
    assert refused.value.hint == "without the lock, a second genericdp on this node would not be noticed"
    assert os.listdir("/proc/self/fd") == before


def refuse_locks(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("fcntl.flock", refuse)


def test_it_is_taken_where_locks_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch, errno.ENOLCK)
    with NodeLock(str(tmp_path)) as lock:
        assert lock.taken()


def test_for_want_of_memory_it_is_neither_taken_nor_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with NodeLock(str(tmp_path)) as lock:
        assert lock.taken()
        Path(lock.path).unlink()
        with monkeypatch.context() as short:
            refuse_locks(short, errno.ENOMEM)
            for question in (lock.taken, lock.kept):
                with pytest.raises(GenericdpError) as untold:
                    question()
                said = f"cannot tell who holds the lock '{lock.path}': Cannot allocate memory"
                assert str(untold.value) == said
                assert untold.value.hint == "free some memory, or raise MemoryMax= of the unit"
        assert lock.kept()


def test_a_name_that_cannot_be_looked_at_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with NodeLock(str(tmp_path)) as lock:
        assert lock.taken()
        with monkeypatch.context() as broken:
            broken.setattr("os.lstat", refuse)
            with pytest.raises(GenericdpError) as untold:
                lock.kept()
        assert str(untold.value) == f"cannot tell who holds the lock '{lock.path}': Input/output error"
        assert lock.kept()


def test_a_lock_whose_file_lost_its_name_is_taken_again_under_that_name(tmp_path: Path) -> None:
    """Otherwise, the next one would make another file and have a lock of its own."""
    with NodeLock(str(tmp_path)) as waiting:
        with NodeLock(str(tmp_path)) as first:
            assert first.taken()
            Path(first.path).unlink()
            assert not waiting.taken(), "the file that it opened is still locked"
        assert waiting.taken()
        assert waiting.kept()
        with NodeLock(str(tmp_path)) as third:
            assert not third.taken()
            assert third.holder == waiting.holder


def test_the_holder_of_a_file_that_lost_its_name_makes_it_again(tmp_path: Path) -> None:
    directory = tmp_path / "links"
    with NodeLock(str(directory)) as holder, NodeLock(str(directory)) as waiting:
        assert holder.taken()
        removals: tuple[Callable[[], object], ...] = (
            Path(holder.path).unlink,
            lambda: shutil.rmtree(directory),
        )
        for remove in removals:
            remove()
            assert holder.kept()
            assert not waiting.taken()
            with NodeLock(str(directory)) as third:
                assert not third.taken()


def test_a_lock_that_another_one_took_under_its_name_is_not_kept(tmp_path: Path) -> None:
    with NodeLock(str(tmp_path)) as holder:
        assert holder.taken()
        Path(holder.path).unlink()
        with NodeLock(str(tmp_path)) as other:
            assert other.taken()
            assert not holder.kept()
        assert holder.kept()
