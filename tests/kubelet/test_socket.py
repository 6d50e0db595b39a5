"""kubelet.sock: which kubelet listens there, and what counts as another one."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from genericdp.kubelet.socket import APART_S, BURST, KubeletSocket
from genericdp.lock import DirectoryLock
from tests.scenes.scene import LoopTime
from tests.scenes.shortage import a_file_system_at, fill_inodes
from tests.scenes.waiting import idle, until


@contextmanager
def listening(directory: Path) -> Iterator[None]:
    """A kubelet binds its socket in place of the one that is there."""
    path = directory / "kubelet.sock"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        bound.listen()
        yield


@asynccontextmanager
async def followed(
    directory: Path, there: list[bool], apart_s: float = APART_S
) -> AsyncIterator[KubeletSocket]:
    kubelet = KubeletSocket(str(directory), there.append, apart_s=apart_s)
    following = asyncio.ensure_future(kubelet.follow())
    try:
        yield kubelet
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def events_of(directory: Path) -> None:
    """Whatever has happened in the directory so far is known to those who watch it."""
    (directory / "kubelet.sock").stat()
    await idle()


async def test_a_socket_that_nobody_listens_on_is_no_kubelet(short_dir: Path) -> None:
    there: list[bool] = []
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(short_dir / "kubelet.sock"))
        async with followed(short_dir, there) as kubelet:
            await idle()
            assert kubelet.incarnation is None
            bound.listen()
            await kubelet.wait_until_there()
            assert there == [True]


async def test_a_socket_that_is_touched_is_the_same_kubelet(short_dir: Path) -> None:
    there: list[bool] = []
    path = short_dir / "kubelet.sock"
    with listening(short_dir):
        async with followed(short_dir, there) as kubelet:
            incarnation = await kubelet.wait_until_there()
            for number in range(100):
                os.utime(path, (number, number))
                path.chmod(0o700 + number % 2)
                os.chown(path, os.geteuid(), os.getegid())
                await events_of(short_dir)
            assert kubelet.incarnation == incarnation
            assert there == [True]


async def test_every_socket_is_another_kubelet_though_its_inode_number_may_be_used_again(
    short_dir: Path,
) -> None:
    there: list[bool] = []
    async with followed(short_dir, there, apart_s=0.0) as kubelet:
        seen: set[int] = set()
        for _ in range(50):
            with listening(short_dir):
                if seen:
                    await kubelet.wait_until_over(max(seen))
                seen.add(await kubelet.wait_until_there())
        assert len(seen) == 50


async def test_a_socket_that_is_replaced_all_the_time_is_followed_now_and_then(short_dir: Path) -> None:
    time, there = LoopTime(), list[bool]()
    async with followed(short_dir, there, apart_s=20.0) as kubelet:
        for number in range(BURST):
            with listening(short_dir):
                await until(lambda wanted=number + 1: there.count(True) == wanted)  # type: ignore[misc]
        for _ in range(20):
            with listening(short_dir):
                await events_of(short_dir)
                assert kubelet.incarnation is None
        assert there.count(True) == BURST
        with listening(short_dir):
            await events_of(short_dir)
            assert kubelet.incarnation is None
            time.advance(21.0)
            await kubelet.wait_until_there()
        assert there.count(True) == BURST + 1


async def test_without_a_descriptor_for_it_the_kubelet_is_looked_for_again(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Descriptors may be scarce for a while; no event says when they no longer are."""
    time, real, refused = LoopTime(), os.open, asyncio.Event()

    def scarce(path: str, flags: int, *others: int) -> int:
        if path == f"{short_dir}/kubelet.sock" and not refused.is_set():
            refused.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, flags, *others)

    monkeypatch.setattr(os, "open", scarce)
    with listening(short_dir):
        async with followed(short_dir, []) as kubelet:
            await refused.wait()
            await idle()
            assert kubelet.incarnation is None
            time.advance(3.0)
            await kubelet.wait_until_there()


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """No more than this many can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        for _ in range(count):
            os.close(fillers.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)


@pytest.mark.parametrize("free", range(4))
async def test_however_few_descriptors_there_are_the_kubelet_is_followed_afterwards(
    short_dir: Path, free: int
) -> None:
    time = LoopTime()
    async with followed(short_dir, []) as kubelet:
        await idle()
        with listening(short_dir):
            with free_descriptors(free):
                await events_of(short_dir)
            time.advance(3.0)
            async with asyncio.timeout(5.0):
                await kubelet.wait_until_there()
            with contextlib.closing(DirectoryLock(str(short_dir))) as other:
                assert other.taken() is False


async def test_stale_sockets_are_removed_once_there_are_descriptors_to_find_them(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, real, refused, over = LoopTime(), os.listdir, asyncio.Event(), asyncio.Event()

    def scarce(path: str) -> list[str]:
        if path == str(short_dir) and not over.is_set():
            refused.set()
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path)

    stale = short_dir / "gdp-0123456789.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    monkeypatch.setattr(os, "listdir", scarce)
    with listening(short_dir):
        async with followed(short_dir, []) as kubelet:
            await refused.wait()
            await idle()
            assert kubelet.incarnation is None
            over.set()
            time.advance(3.0)
            await kubelet.wait_until_there()
            assert not stale.exists()


async def test_the_one_that_serves_takes_a_lock_again_that_was_removed(short_dir: Path) -> None:
    there: list[bool] = []
    with contextlib.closing(DirectoryLock(str(short_dir))) as other, listening(short_dir):
        async with followed(short_dir, there) as kubelet:
            await kubelet.wait_until_there()
            Path(other.path).rmdir()
            await events_of(short_dir)
            assert Path(other.path).exists()
            assert not other.taken()
            assert there == [True]


async def test_the_one_that_serves_makes_way_for_another_that_took_the_lock(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time, there = LoopTime(), list[bool]()
    with contextlib.closing(DirectoryLock(str(short_dir))) as other, listening(short_dir):
        async with followed(short_dir, there) as kubelet:
            await kubelet.wait_until_there()
            Path(other.path).rmdir()
            assert other.taken()
            await events_of(short_dir)
            assert (there, kubelet.incarnation, kubelet.rival) == ([True, False], None, True)
            assert "another genericdp serves this kubelet; waiting until it ends" in caplog.messages
            other.release()
            time.advance(1.0)
            await kubelet.wait_until_there()
            assert (there, kubelet.rival) == ([True, False, True], False)


async def test_without_a_descriptor_nobody_takes_a_lock_for_lost(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, there, real = LoopTime(), list[bool](), os.open

    def scarce(path: str, flags: int, *others: int) -> int:
        if path == other.path:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, flags, *others)

    with contextlib.closing(DirectoryLock(str(short_dir))) as other, listening(short_dir):
        async with followed(short_dir, there) as kubelet:
            await kubelet.wait_until_there()
            with monkeypatch.context() as short:
                short.setattr(os, "open", scarce)
                Path(other.path).rmdir()
                await events_of(short_dir)
            assert there == [True]
            time.advance(3.0)
            await idle()
            assert not other.taken()
            assert there == [True]


async def test_a_lock_for_which_there_was_no_room_is_taken_once_there_is(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    time, directory = LoopTime(), short_dir / "device-plugins"
    with a_file_system_at(directory, inodes=16), listening(directory):
        fillers = fill_inodes(directory)
        async with followed(directory, []) as kubelet:
            await kubelet.wait_until_there()
            await idle()
            time.advance(1.0)
            await idle()
            for filler in fillers:
                filler.unlink()
            other = DirectoryLock(str(directory))
            assert not Path(other.path).exists()
            time.advance(2.0)
            await until(Path(other.path).exists)
            assert other.taken() is False
            other.release()
    path = f"{directory}/.genericdp-lock"
    assert caplog.messages == [f"cannot lock '{path}': No space left on device", f"locked '{path}' now"]


async def test_a_lock_whose_name_is_taken_is_not_tried_again_without_an_event(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, tries, real = LoopTime(), list[bool](), DirectoryLock.taken

    def taken(lock: DirectoryLock) -> bool:
        tries.append(real(lock))
        return tries[-1]

    monkeypatch.setattr(DirectoryLock, "taken", taken)
    Path(DirectoryLock(str(short_dir)).path).touch()
    with listening(short_dir):
        async with followed(short_dir, []) as kubelet:
            await kubelet.wait_until_there()
            await events_of(short_dir)
            before = len(tries)
            time.advance(20.0)
            await idle()
            assert len(tries) == before


WITHOUT_DESCRIPTORS = """
import asyncio, os, resource, sys
import grpc.aio
from genericdp.kubelet.socket import KubeletSocket

async def main(directory, free):
    async with KubeletSocket(directory).idle_channel():
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1 + free, hard))
        server = grpc.aio.server()
        try:
            server.add_insecure_port(f"unix:{directory}/gdp.sock")
            await server.start()
        except RuntimeError:
            print("refused")
        await server.stop(None)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.parametrize("free", [0, 2, 4, 6])
def test_without_descriptors_grpc_refuses_and_does_not_abort(short_dir: Path, free: int) -> None:
    program = [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(short_dir), str(free)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout in {"", "refused\n"}
