"""The lock in the kubelet's directory."""

import errno
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from genericdp.lock import NAME, PATIENCE_S, DirectoryLock
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene
from tests.scenes.service import FixedRules, Service
from tests.scenes.shortage import a_file_system_at, fill_inodes, read_only
from tests.scenes.stranger import STRANGER, as_stranger
from tests.scenes.waiting import until

#: What is said where there can be no lock.
UNNOTICED = "without the lock, another genericdp that uses this directory is not noticed"

#: The same where something else has the name.
MAKE_WAY = f"remove what has this name: genericdp makes the directory itself; {UNNOTICED}"


def test_one_has_it_until_it_lets_go(tmp_path: Path) -> None:
    first, second = DirectoryLock(str(tmp_path)), DirectoryLock(str(tmp_path))
    assert first.taken()
    assert first.is_held()
    assert not second.taken()
    assert not second.is_held()
    first.release()
    assert not first.is_held()
    assert second.taken()
    second.release()


def test_it_is_an_empty_directory_that_nobody_else_can_open_and_its_holder_removes(tmp_path: Path) -> None:
    holder, other = DirectoryLock(str(tmp_path)), DirectoryLock(str(tmp_path))
    assert holder.taken()
    assert list(tmp_path.iterdir()) == [tmp_path / NAME]
    assert (tmp_path / NAME).stat().st_mode == 0o40700
    assert list((tmp_path / NAME).iterdir()) == []
    assert not other.taken()
    other.close()
    assert holder.is_held(), "only the holder removes it"
    holder.close()
    holder.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_a_stranger_who_can_read_the_directory_cannot_keep_it(short_dir: Path, operation: int) -> None:
    """flock(2) needs no more than a descriptor, and the kubelet makes its directory with the mode 0755."""
    short_dir.chmod(0o755)
    lock = DirectoryLock(str(short_dir))
    assert lock.taken()
    lock.release()
    with as_stranger():
        theirs = os.open(short_dir, os.O_RDONLY)
        fcntl.flock(theirs, operation)
        with pytest.raises(PermissionError):
            os.open(short_dir / NAME, os.O_RDONLY)
    assert lock.taken()
    assert lock.is_held()
    lock.release()
    os.close(theirs)


def widened(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def of_a_stranger(path: Path) -> None:
    path.mkdir(0o700)
    os.chown(path, STRANGER, STRANGER)


def closed_to_all(path: Path) -> None:
    path.mkdir(0o700)
    path.chmod(0)


@pytest.mark.parametrize("make", [widened, of_a_stranger, closed_to_all])
def test_what_others_may_have_locked_is_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / NAME
    make(path)
    theirs = os.open(path, os.O_RDONLY)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    now = [0.0]
    lock = DirectoryLock(str(tmp_path), lambda: now[0])
    assert not lock.taken(), "it may be that of another genericdp, which is about to replace it"
    now[0] = PATIENCE_S
    assert lock.taken()
    assert lock.is_held()
    assert not os.path.samestat(os.fstat(theirs), path.stat())
    assert (path.stat().st_mode, path.stat().st_uid) == (0o40700, os.geteuid())
    lock.release()
    os.close(theirs)


def test_whoever_has_the_lock_that_is_replaced_or_removed_learns_who_has_it_now(tmp_path: Path) -> None:
    path, now = tmp_path / NAME, [0.0]
    first, second = (DirectoryLock(str(tmp_path), lambda: now[0]) for _ in range(2))
    for lose in losses(path):
        assert first.taken()
        assert not second.taken()
        lose()
        assert not second.taken(), "the holder may take it again"
        now[0] += PATIENCE_S
        assert second.taken(), "it does not"
        assert not first.is_held()
        assert not first.taken()
        second.close()
    first.close()


def losses(path: Path) -> tuple[Callable[[], object], ...]:
    """What an operator can do to the lock."""
    return (
        lambda: path.chmod(0o755),
        path.rmdir,
        lambda: os.chown(path, STRANGER, STRANGER),
        lambda: shutil.move(path, path.with_name("moved")),
    )


def test_whoever_waits_leaves_the_holder_the_time_to_make_the_lock_again(tmp_path: Path) -> None:
    path, now = tmp_path / NAME, [0.0]
    first, second = (DirectoryLock(str(tmp_path), lambda: now[0]) for _ in range(2))
    assert first.taken()
    for lose in losses(path):
        assert not second.taken()
        lose()
        assert not second.taken()
        now[0] += PATIENCE_S / 2
        assert not second.taken()
        assert not first.is_held(), "it has to be made again"
        assert first.taken()
        assert first.is_held()
        now[0] += PATIENCE_S
        assert not second.taken()
        assert (path.stat().st_mode, path.stat().st_uid) == (0o40700, os.geteuid())
    first.close()
    assert second.taken()
    second.close()


@pytest.mark.parametrize("is_killed", [True, False])
def test_nobody_waits_for_the_time_of_a_holder_that_has_ended(tmp_path: Path, is_killed: bool) -> None:
    first, second = (DirectoryLock(str(tmp_path), lambda: 0.0) for _ in range(2))
    for lose in losses(tmp_path / NAME):
        assert first.taken()
        assert not second.taken()
        lose()
        first.release() if is_killed else first.close()
        assert second.taken()
        second.close()


def full(path: Path, mode: int = 0o700) -> None:
    (path / "file").mkdir(parents=True)
    path.chmod(mode)


def full_of_a_stranger(path: Path) -> None:
    full(path)
    os.chown(path, STRANGER, STRANGER)


def link_to_a_directory(path: Path) -> None:
    path.with_name("elsewhere").mkdir(0o700)
    path.symlink_to("elsewhere")


IN_THE_WAY = [
    pytest.param(Path.touch, "Not a directory", id="file"),
    pytest.param(lambda path: path.touch(0o700), "Not a directory", id="file-of-that-mode"),
    pytest.param(os.mkfifo, "Not a directory", id="fifo"),
    pytest.param(lambda path: path.symlink_to("/"), "Not a directory", id="symlink"),
    pytest.param(lambda path: path.symlink_to("nowhere"), "Not a directory", id="dangling-symlink"),
    pytest.param(link_to_a_directory, "Not a directory", id="symlink-to-a-directory-of-that-mode"),
    pytest.param(lambda path: full(path, 0o755), "Directory not empty", id="full-and-open"),
    pytest.param(lambda path: full(path, 0), "Directory not empty", id="full-and-closed"),
    pytest.param(full_of_a_stranger, "Directory not empty", id="full-and-of-a-stranger"),
]


@pytest.mark.parametrize(("make", "why"), IN_THE_WAY)
def test_where_the_name_is_taken_each_acts_as_if_it_were_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None], why: str
) -> None:
    make(tmp_path / NAME)
    before = (tmp_path / NAME).lstat()
    lock = DirectoryLock(str(tmp_path))
    for _ in range(3):
        assert lock.taken()
        assert not lock.is_held()
    lock.close()
    assert (tmp_path / NAME).lstat() == before
    (line,) = caplog.records
    assert line.getMessage() == f"cannot lock '{tmp_path}/{NAME}': {why}"
    assert vars(line)["fields"] == {"hint": MAKE_WAY}


def test_a_mount_point_in_its_place_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with a_file_system_at(tmp_path / NAME):
        (tmp_path / NAME).chmod(0o755)
        lock = DirectoryLock(str(tmp_path))
        assert lock.taken()
        assert not lock.is_held()
        lock.close()
        (line,) = caplog.records
        assert line.getMessage() == f"cannot lock '{tmp_path}/{NAME}': Device or resource busy"
        assert vars(line)["fields"] == {"hint": MAKE_WAY}


def test_what_somebody_has_put_into_it_is_no_obstacle_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full(tmp_path / NAME)
    first, second = DirectoryLock(str(tmp_path)), DirectoryLock(str(tmp_path))
    assert first.taken()
    assert first.is_held()
    assert not second.taken()
    first.close()
    assert second.taken()
    second.close()
    assert [each.name for each in (tmp_path / NAME).iterdir()] == ["file"]
    assert not caplog.records


@pytest.mark.parametrize(("make", "why"), IN_THE_WAY)
async def test_a_daemon_serves_whatever_has_the_name_and_takes_the_lock_when_that_is_gone(
    short_dir: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None], why: str
) -> None:
    path = short_dir / "device-plugins" / NAME
    async with a_scene(short_dir, a_usb_serial(0, serial="A"), daemon_runs=False) as scene:
        make(path)
        async with Service(scene.settings, FixedRules(FTDI_RULE), scene.udev) as service:
            await scene.until_allocatable(1)
            assert caplog.messages.count(f"cannot lock '{path}': {why}") == 1
            path.rename(short_dir / "aside")
            lock = service.daemon.plugins.kubelet._lock
            await until(lock.is_held)
            assert scene.kubelet.allocatable[FTDI] == 1
    assert not path.exists()


def test_where_it_cannot_be_made_the_log_says_so_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "device-plugins"
    lock, waits = DirectoryLock(str(directory)), list[bool]()
    with a_file_system_at(directory, inodes=64):
        with read_only(directory):
            assert lock.taken()
            assert not lock.is_held()
            waits.append(lock.waits)
        fillers = fill_inodes(directory)
        assert lock.taken()
        assert not lock.is_held()
        waits.append(lock.waits)
        for each in fillers:
            each.unlink()
        assert lock.taken()
        assert lock.is_held()
        waits.append(lock.waits)
        with read_only(directory):
            assert lock.taken(), "it is there, and needs no writing"
            assert lock.is_held()
        lock.release()
    assert waits == [True, True, False]
    said = [(line.getMessage(), vars(line)["fields"]["hint"]) for line in caplog.records]
    assert said == [
        (
            f"cannot lock '{directory}/{NAME}': Read-only file system",
            "mount that file system read-write; the unit may permit only some paths",
        ),
        (f"cannot lock '{directory}/{NAME}': No space left on device", "free some space on that file system"),
    ]


def test_it_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from genericdp.lock import DirectoryLock; "
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
    shutil.rmtree(directory)
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
