"""Directories that may not exist yet, vanish and come back: what the watch hears of them."""

import asyncio
import itertools
import os
import random
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest

from genericdp.watch import DirectoryWatch, directory, queue
from tests.scenes.mounts import bind_mounted
from tests.scenes.waiting import idle

ANYTHING: frozenset[str] = frozenset()


class Ear:
    """A watch, and what it was told."""

    def __init__(
        self,
        directory: str | Path,
        again_s: float = 60.0,
        on_write: Callable[[frozenset[str]], None] | None = None,
    ) -> None:
        self._told: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        self.watch = DirectoryWatch(str(directory), self._told.put_nowait, on_write=on_write, again_s=again_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()

    async def hears(self, name: str = "") -> None:
        """Return once it was told of a name; without one, that anything may have happened."""
        while True:
            names = await self._told.get()
            if name in names if name else names == ANYTHING:
                return

    async def hears_something(self) -> None:
        """Return once it was told of anything at all."""
        await self._told.get()

    async def heard(self) -> list[frozenset[str]]:
        """What it was told so far: everything that happened before this call."""
        await idle()
        return [self._told.get_nowait() for _ in range(self._told.qsize())]


async def test_a_process_watches_from_a_directory_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with Ear(tmp_path) as ear:
        (tmp_path / "name").touch()
        await ear.hears("name")


async def test_names_in_the_directory_are_told(tmp_path: Path) -> None:
    with Ear(tmp_path) as ear:
        (tmp_path / "kubelet.sock").touch()
        (tmp_path / "other").touch()
        assert await ear.heard() == [frozenset({"kubelet.sock", "other"})]
        (tmp_path / "other").rename(tmp_path / "renamed")
        assert await ear.heard() == [frozenset({"other", "renamed"})]
        (tmp_path / "kubelet.sock").unlink()
        assert await ear.heard() == [frozenset({"kubelet.sock"})]


async def test_writing_to_a_file_is_reported_and_reading_is_not(tmp_path: Path) -> None:
    (tmp_path / "50-modem.toml").touch()
    with Ear(tmp_path) as ear:
        (tmp_path / "50-modem.toml").read_text()
        assert await ear.heard() == []
        (tmp_path / "50-modem.toml").write_text("x")
        assert await ear.heard() == [frozenset({"50-modem.toml"})]
        (tmp_path / "50-modem.toml").chmod(0o600)
        assert await ear.heard() == [frozenset({"50-modem.toml"})]


async def test_writing_is_told_apart_from_changes_until_the_file_is_closed(tmp_path: Path) -> None:
    written: asyncio.Queue[frozenset[str]] = asyncio.Queue()
    with Ear(tmp_path, on_write=written.put_nowait) as ear:
        with (tmp_path / "a").open("w") as file:
            await ear.hears("a")
            file.write("half")
            file.flush()
            assert await written.get() == {"a"}
            assert await ear.heard() == []
        await ear.hears("a")


async def test_a_directory_that_is_made_level_by_level_is_watched(tmp_path: Path) -> None:
    directory = tmp_path / "var" / "lib" / "kubelet"
    with Ear(directory) as ear:
        for level in (tmp_path / "var", tmp_path / "var" / "lib", directory):
            level.mkdir()
            await ear.hears()
        (directory / "kubelet.sock").touch()
        await ear.hears("kubelet.sock")


async def test_a_directory_that_is_made_all_at_once_is_watched(tmp_path: Path) -> None:
    directory = tmp_path / "var" / "lib" / "kubelet"
    with Ear(directory) as ear:
        directory.mkdir(parents=True)
        (directory / "early").touch()
        await ear.hears()  # the callback looks, and finds what was made early
        (directory / "late").touch()
        await ear.hears("late")


async def test_what_happens_beside_the_way_to_the_directory_is_nobodys_business(tmp_path: Path) -> None:
    with Ear(tmp_path / "var" / "lib") as ear:
        (tmp_path / "tmp").mkdir()
        assert await ear.heard() == []
        (tmp_path / "var").mkdir()
        (tmp_path / "var" / "cache").mkdir()
        assert await ear.heard() == [ANYTHING]


async def test_a_directory_that_is_deleted_and_made_again_is_watched(tmp_path: Path) -> None:
    directory = tmp_path / "kubelet" / "device-plugins"
    directory.mkdir(parents=True)
    with Ear(directory) as ear:
        for _ in range(3):
            shutil.rmtree(tmp_path / "kubelet")
            await ear.hears()
            directory.mkdir(parents=True)
            await ear.hears()
            (directory / "kubelet.sock").touch()
            await ear.hears("kubelet.sock")


async def test_deleted_and_made_again_before_anybody_could_look(tmp_path: Path) -> None:
    directory = tmp_path / "kubelet" / "device-plugins"
    directory.mkdir(parents=True)
    with Ear(directory) as ear:
        shutil.rmtree(tmp_path / "kubelet")
        directory.mkdir(parents=True)
        await ear.hears()
        (directory / "kubelet.sock").touch()
        await ear.hears("kubelet.sock")


async def test_a_directory_that_another_one_replaces_is_left_for_that(tmp_path: Path) -> None:
    directory, new = tmp_path / "rules.d", tmp_path / "rules.d.new"
    directory.mkdir()
    new.mkdir()
    with Ear(directory) as ear:
        directory.rename(tmp_path / "rules.d.old")
        new.rename(directory)
        await ear.hears()
        (tmp_path / "rules.d.old" / "a").touch()
        (directory / "b").touch()
        assert await ear.heard() == [frozenset({"b"})]


async def test_a_directory_is_missed_though_somebody_holds_it_open(tmp_path: Path) -> None:
    directory = tmp_path / "rules.d"
    directory.mkdir()
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with Ear(directory) as ear:
            directory.rmdir()
            await ear.hears()
            directory.mkdir()
            await ear.hears()
            (directory / "a").touch()
            await ear.hears("a")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("kind", ["file", "loop", "dangling"])
async def test_what_is_no_directory_may_become_one(tmp_path: Path, kind: str) -> None:
    directory = tmp_path / "rules.d"
    match kind:
        case "file":
            directory.touch()
        case "loop":
            directory.symlink_to(directory)
        case _:
            directory.symlink_to(tmp_path / "nowhere")
    with Ear(directory / "below") as ear:
        directory.unlink()
        await ear.hears()
        (directory / "below").mkdir(parents=True)
        await ear.hears()
        (directory / "below" / "a").touch()
        await ear.hears("a")


@pytest.mark.parametrize("target", [".", "..", "absolute"])
async def test_a_symlink_to_an_ancestor_is_watched_like_any_directory(tmp_path: Path, target: str) -> None:
    """The kernel has one watch for a directory, whatever paths lead to it."""
    (tmp_path / "etc").mkdir()
    directory = tmp_path / "etc" / "rules.d"
    directory.symlink_to(directory.parent if target == "absolute" else target)
    with Ear(directory) as ear:
        (directory / "a").write_text("x")
        assert await ear.heard() == [frozenset({"a"})]
        directory.unlink()
        await ear.hears()
        directory.mkdir()
        await ear.hears()
        (directory / "b").touch()
        await ear.hears("b")


async def test_a_bind_mount_of_the_parent_is_watched_like_any_directory(tmp_path: Path) -> None:
    directory = tmp_path / "rules.d"
    directory.mkdir()
    with bind_mounted(tmp_path, directory), Ear(directory) as ear:
        (directory / "a").touch()
        assert await ear.heard() == [frozenset({"a"})]


async def test_a_symlink_on_the_way_may_be_pointed_elsewhere(tmp_path: Path) -> None:
    """As `current -> rev1` of git-sync, or `..data` of a ConfigMap."""
    for revision in ("rev1", "rev2"):
        (tmp_path / revision / "node" / "rules.d").mkdir(parents=True)
    current, new = tmp_path / "current", tmp_path / "new"
    current.symlink_to("rev1")
    with Ear(current / "node" / "rules.d") as ear:
        new.symlink_to("rev2")
        new.rename(current)
        assert await ear.heard() == [ANYTHING]
        (tmp_path / "rev1" / "node" / "rules.d" / "a").touch()
        (tmp_path / "rev2" / "node" / "rules.d" / "b").touch()
        assert await ear.heard() == [frozenset({"b"})]


@pytest.mark.parametrize("absolute", [False, True])
async def test_whatever_is_on_the_way_of_a_symlink_may_be_replaced(tmp_path: Path, *, absolute: bool) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "opt" / "a" / "b" / "rules.d").mkdir(parents=True)
    directory = tmp_path / "etc" / "rules.d"
    up = tmp_path if absolute else Path("..")
    directory.symlink_to(up / "opt" / "a" / ".." / "a" / "b" / "rules.d")
    with Ear(directory) as ear:
        (tmp_path / "opt" / "a").rename(tmp_path / "opt" / "old")
        await ear.hears()
        (tmp_path / "opt" / "a" / "b" / "rules.d").mkdir(parents=True)
        await ear.hears()
        (directory / "a").touch()
        await ear.hears("a")


async def test_any_ancestor_may_be_moved_away_and_replaced(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b" / "c" / "rules.d"
    directory.mkdir(parents=True)
    with Ear(directory) as ear:
        (tmp_path / "a").rename(tmp_path / "moved")
        assert await ear.heard() == [ANYTHING]
        directory.mkdir(parents=True)
        await ear.hears()
        (directory / "x").touch()
        await ear.hears("x")


async def test_a_change_of_the_permissions_on_the_way_is_heard(tmp_path: Path) -> None:
    """Rule files below a directory that others can write are refused."""
    (tmp_path / "a" / "b" / "rules.d").mkdir(parents=True)
    with Ear(tmp_path / "a" / "b" / "rules.d") as ear:
        (tmp_path / "a").chmod(0o777)
        assert await ear.heard() == [ANYTHING]


async def test_an_ancestor_that_may_not_be_read_is_passed_over(short_dir: Path) -> None:
    short_dir.chmod(0o711)
    (short_dir / "rules.d").mkdir()
    (short_dir / "rules.d").chmod(0o755)
    with as_nobody():
        ear = Ear(short_dir / "rules.d", again_s=0.01)
    with ear:
        (short_dir / "rules.d" / "a").touch()
        assert await ear.heard() == [frozenset({"a"})]


async def test_a_directory_costs_nothing_while_nothing_happens_to_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "rules.d").mkdir(parents=True)
    with Ear(tmp_path / "a" / "rules.d") as ear:
        for name in ("b", "a/c"):
            (tmp_path / name).mkdir()
            (tmp_path / name).rmdir()
        assert await ear.heard() == []


async def test_the_root_directory_can_be_watched() -> None:
    with Ear("/") as ear:
        assert ear.watch.directory == "/"


async def test_a_relative_path_means_what_it_meant_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules.d").mkdir()
    monkeypatch.chdir(tmp_path)
    with Ear("rules.d") as ear:
        monkeypatch.chdir("/")
        (tmp_path / "rules.d" / "a").touch()
        await ear.hears("a")


@pytest.fixture
def long_hush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions on the way, once disturbed, are not listened to any more in the test."""
    monkeypatch.setattr(directory, "FIRST_HUSH_S", 60.0)
    monkeypatch.setattr(directory, "LONGEST_HUSH_S", 60.0)


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of the kernel's queue brought."""
    lengths: list[int] = []

    def read(descriptor: int, most: int) -> bytes:
        data = os.read(descriptor, most)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(queue, "os", SimpleNamespace(read=read, fsdecode=os.fsdecode))
    return lengths


@pytest.mark.usefixtures("long_hush")
async def test_what_others_touch_all_the_time_beside_the_way_is_soon_not_listened_to(
    tmp_path: Path, read_bytes: list[int]
) -> None:
    """Any user may change the times of /tmp and /var/tmp."""
    (tmp_path / "var" / "rules.d").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "var" / "tmp").mkdir()
    with Ear(tmp_path / "var" / "rules.d") as ear:
        for _ in range(200):
            for _ in range(50):
                os.utime(tmp_path / "tmp")
                os.utime(tmp_path / "var" / "tmp")
            await asyncio.sleep(0)
        assert await ear.heard() == []
        assert sum(read_bytes) < 5 * 100 * 32


@pytest.mark.usefixtures("long_hush")
async def test_what_others_touch_beside_the_way_delays_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a").mkdir()
    with Ear(tmp_path / "a" / "rules.d") as ear:
        os.utime(tmp_path / "tmp")
        assert await ear.heard() == []
        (tmp_path / "a" / "rules.d").mkdir()
        assert await ear.heard() == [ANYTHING]
        (tmp_path / "a" / "rules.d" / "50-modem.toml").touch()
        assert await ear.heard() == [frozenset({"50-modem.toml"})]
        (tmp_path / "a").rename(tmp_path / "b")
        assert await ear.heard() == [ANYTHING]


async def test_permissions_on_the_way_are_heard_although_others_touch_what_is_beside(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a" / "rules.d").mkdir(parents=True)
    with Ear(tmp_path / "a" / "rules.d") as ear:
        for mode in (0o777, 0o755):
            os.utime(tmp_path / "tmp")
            assert await ear.heard() == []
            (tmp_path / "a").chmod(mode)
            os.utime(tmp_path / "tmp")
            await ear.hears()


async def test_permissions_on_the_way_are_listened_to_less_and_less_while_others_touch_what_is_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hushes: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def note(delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        hushes.append(delay)
        return call_later(0.0, callback)

    monkeypatch.setattr(loop, "call_later", note)
    (tmp_path / "tmp").mkdir()
    with Ear(tmp_path / "rules.d"):
        # A busy machine may let it listen for a while in between: it begins again then.
        while directory.LONGEST_HUSH_S not in hushes:
            os.utime(tmp_path / "tmp")
            await asyncio.sleep(0)
    assert hushes[0] == directory.FIRST_HUSH_S
    assert max(hushes) == directory.LONGEST_HUSH_S


@pytest.mark.parametrize("seed", range(5))
async def test_law_whatever_others_touch_each_change_on_the_way_and_in_the_directory_is_heard(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "LONGEST_HUSH_S", 0.02)
    chance = random.Random(seed)  # noqa: S311
    (tmp_path / "tmp").mkdir()
    rules = tmp_path / "a" / "b" / "rules.d"
    rules.mkdir(parents=True)
    count = itertools.count()

    def change_permissions() -> None:
        (tmp_path / "a").chmod((tmp_path / "a").stat().st_mode ^ 0o044)

    def write() -> None:
        (rules / f"{next(count)}.toml").touch()

    def replace() -> None:
        (tmp_path / "a").rename(tmp_path / f"old{next(count)}")
        rules.mkdir(parents=True)

    changes = (change_permissions, write, rules.rmdir, replace)
    with Ear(rules) as ear:
        for _ in range(30):
            for _ in range(chance.randrange(4)):
                os.utime(tmp_path / "tmp")
                os.utime(tmp_path / "a")
                await asyncio.sleep(chance.choice((0, 0.001)))
            while await ear.heard():
                pass
            change = chance.choice(changes) if rules.exists() else rules.mkdir
            change = write if change == rules.rmdir and os.listdir(rules) else change
            change()
            os.utime(tmp_path / "tmp")
            await ear.hears_something()


async def test_to_touch_what_is_on_the_way_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a" / "rules.d").mkdir(parents=True)
    with Ear(tmp_path / "a" / "rules.d") as ear:
        os.utime(tmp_path)
        os.utime(tmp_path / "a")
        assert await ear.heard() == []


async def test_after_an_overflow_anything_may_have_happened(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())

    with Ear(tmp_path) as ear:
        # Three events each, unlike the one before, so none is merged.
        for _ in range(limit // 3 + 1):
            os.close(os.open(tmp_path / "a", os.O_CREAT | os.O_WRONLY))
            os.unlink(tmp_path / "a")
        await ear.hears()
        (tmp_path / "b").touch()
        await ear.hears("b")


async def test_a_closed_watch_is_silent_and_may_be_closed_again(tmp_path: Path) -> None:
    with Ear(tmp_path) as ear:
        ear.watch.close()
        (tmp_path / "a").touch()
        assert await ear.heard() == []


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to read everything."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said to the operator: the reason and what to do."""
    fields = [vars(record)["fields"] for record in caplog.records if record.levelname == "WARNING"]
    return [f"{each['why']}; {each['hint']}" for each in fields]


async def test_a_directory_that_may_not_be_watched_is_looked_at_until_it_may(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short_dir.chmod(0o755)
    secret = short_dir / "secret"
    secret.mkdir(mode=0)

    with caplog.at_level("INFO"):
        with as_nobody():
            ear = Ear(secret, again_s=0.01)
            for _ in range(3):
                await ear.hears()
        with ear:
            await ear.hears()
            (secret / "kubelet.sock").touch()
            await ear.hears("kubelet.sock")
    assert set(warnings_in(caplog)) == {
        f"cannot watch the directory '{secret}': Permission denied; genericdp needs permission to read it"
    }
    assert caplog.records[-1].message == "watching the directory again"


async def test_a_directory_that_can_no_longer_be_watched_is_reported(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short_dir.chmod(0o755)
    secret = short_dir / "secret"

    with Ear(secret) as ear:
        os.mkdir(secret, mode=0)
        with as_nobody():
            await ear.hears()
    assert warnings_in(caplog) == [
        f"cannot watch the directory '{secret}': Permission denied; genericdp needs permission to read it"
    ]


async def test_without_inotify_instances_the_directory_is_looked_at_and_the_hint_names_the_limits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        ear = Ear(tmp_path, again_s=0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with ear:
        await ear.hears()
        (tmp_path / "kubelet.sock").touch()
        await ear.hears("kubelet.sock")
    assert warnings_in(caplog) == [
        (
            "cannot watch '/proc/self/mountinfo': Too many open files; "
            "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"
        ),
        (
            f"cannot watch the directory '{tmp_path}': Too many open files; "
            "raise the sysctl fs.inotify.max_user_instances, or the limit of open files"
        ),
    ]


async def test_a_watch_that_never_came_about_is_closed_like_any_other(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short_dir.chmod(0o755)
    (short_dir / "secret").mkdir(mode=0)

    with as_nobody(), Ear(short_dir / "secret"):
        pass
    assert len(warnings_in(caplog)) == 1
