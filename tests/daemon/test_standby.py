"""Two daemons on one node: the second one stands by, and takes over when the first one ends."""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import socket
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.rulefiles import RuleFiles
from genericdp.kubelet import socket as kubelet_socket
from genericdp.kubelet.registration import Phase, Progress
from genericdp.lock import DirectoryLock
from genericdp.service.flock import NodeLock
from genericdp.service.standby import until_alone
from genericdp.simulator import Generation
from genericdp.simulator.gates import Point
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene, both_generations
from tests.scenes.service import Service, links_in, settings_below
from tests.scenes.shortage import a_file_system_at, descriptors_left, fill_inodes
from tests.scenes.stranger import STRANGER
from tests.scenes.waiting import idle, until

REGISTERED = "1 resource, 1 of 1 device healthy; registered"


def a_second(scene: Scene, rules: RuleFiles | None = None) -> Service:
    """Another daemon on the same node."""
    return Service(scene.settings, rules or scene.rules, scene.udev)


@both_generations
async def test_the_second_one_stands_by_and_serves_as_soon_as_the_first_ends(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        async with a_second(scene) as second:
            (ready,) = second.statuses
            assert ready.startswith("standing by: process ")
            assert ready.endswith(" serves this node")
            # It hears of nothing, makes no link and does not register.
            scene.plug(a_usb_serial(1, serial="B", port="2"))
            await scene.until_allocatable(2)
            assert second.steps == 0
            await scene.service.stop()
            await second.wait_until(lambda: second.steps)
            await scene.until_allocatable(2)
            assert links_in(scene.settings).keys() == {"ftdi_A50285BI", "ftdi_B"}
            assert second.statuses[1:] == ["1 resource, 2 of 2 devices healthy; 0 of them registered"]


async def test_a_rule_file_that_was_edited_while_it_stood_by_is_in_force_when_it_serves(
    short_dir: Path,
) -> None:
    file = short_dir / "10-ftdi.toml"
    file.write_text(FTDI_RULE)
    file.chmod(0o644)
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        async with a_second(scene, RuleFiles([str(file)], DOMAIN)) as second:
            file.write_text(FTDI_RULE.replace('"ftdi"', '"serial"'))
            await scene.service.stop()
            await second.wait_until(lambda: second.steps)
            assert second.daemon.inventory.offers.keys() == {f"{DOMAIN}/serial"}


async def test_one_that_stands_by_can_be_stopped_and_leaves_everything_alone(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        async with a_second(scene):
            pass
        scene.plug(a_usb_serial(1, serial="B", port="2"))
        await scene.until_allocatable(2)


async def test_locks_that_are_removed_still_keep_a_new_one_from_serving(short_dir: Path) -> None:
    """`rm -r` by an administrator, or by the removal of another installation."""
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        directories = [Path(scene.settings.link_dir), Path(scene.settings.state_dir)]
        for directory in directories:
            rmtree(directory)
        await until(lambda: all((each / ".lock").exists() for each in directories))
        async with a_second(scene) as second:
            assert second.statuses[0].startswith("standing by: process ")
            assert second.steps == 0


async def test_one_whose_removed_lock_another_one_took_ends(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        lock = Path(scene.settings.link_dir, ".lock")
        lock.unlink()
        with NodeLock(scene.settings.link_dir) as faster:
            assert faster.taken()
            await until(scene.service.has_ended)
    said = "another genericdp has taken the lock of this directory; this one ends"
    assert caplog.messages.count(said) == 1


async def test_a_shortage_of_memory_when_a_lock_is_removed_does_not_end_its_holder(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, short = fcntl.flock, [True]

    def flock(file: int, operation: int) -> None:
        if short and short.pop():
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        real(file, operation)

    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        monkeypatch.setattr("fcntl.flock", flock)
        lock = Path(scene.settings.link_dir, ".lock")
        lock.unlink()
        said = f"cannot tell who holds the lock '{lock}': Cannot allocate memory"
        await until(lambda: said in caplog.messages)
        await until(lambda: lock.exists() and lock.stat().st_size > 0)
        assert not scene.service.has_ended()
        with NodeLock(scene.settings.link_dir) as other:
            assert not other.taken()


async def test_one_that_cannot_open_a_lock_during_a_shortage_waits_and_then_stands_by(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would serve beside the holder, and save a memory without what pods got meanwhile."""
    real, short = os.open, [True]

    def refuse(path: str, *args: Any, **kwargs: Any) -> int:
        if short and str(path).endswith("/.lock"):
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
        return real(path, *args, **kwargs)

    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        second = Service(scene.settings, scene.rules, scene.udev)
        with monkeypatch.context() as patch:
            patch.setattr("os.open", refuse)
            starting = asyncio.create_task(second.start())
            lock = Path(scene.settings.link_dir, ".lock")
            said = f"cannot lock '{lock}': Too many open files in system; waiting"
            await until(lambda: said in caplog.messages)
            await scene.admit()
            short.clear()
            await starting
        assert second.daemon.standing_by
        assert second.steps == 0
        await scene.service.stop()
        await second.wait_until(lambda: second.steps)
        assert list(second.daemon.memory.held) == ["ftdi_A50285BI"]
        await second.stop()


async def test_one_that_cannot_open_a_lock_during_a_shortage_can_be_stopped(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_below(short_dir)
    lock = NodeLock(settings.link_dir)
    with lock, descriptors_left(0), contextlib.ExitStack() as stack:
        awake, stop = asyncio.Event(), asyncio.Event()
        waiting = asyncio.create_task(
            until_alone(settings, stack, awake, stop.is_set, on_wait=lambda _: None, end=stop.set)
        )
        said = f"cannot lock '{settings.link_dir}/.lock': Too many open files; waiting"
        await until(lambda: said in caplog.messages)
        stop.set()
        awake.set()
        await waiting


async def test_it_does_not_wait_for_itself_where_one_directory_is_a_link_to_the_other(
    short_dir: Path,
) -> None:
    settings = settings_below(short_dir)
    Path(settings.link_dir).mkdir()
    Path(settings.state_dir).symlink_to(settings.link_dir)
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        assert scene.daemon.standing_by == ""


def elsewhere(root: Path) -> Settings:
    """The settings of a genericdp that shares nothing with another one but the kubelet."""
    return settings_below(
        root, link_dir=f"{root}/other", state_dir=f"{root}/other-state", run_dir=f"{root}/other-run"
    )


async def test_one_with_other_links_and_the_same_memory_stands_by(short_dir: Path) -> None:
    """Otherwise, it would serve with what it had read before the first one changed it.

    While pods hold devices, it serves with the links of the first one.
    """
    other = settings_below(short_dir, link_dir=f"{short_dir}/other", run_dir=f"{short_dir}/other-run")
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        second = Service(other, scene.rules, scene.udev)
        await second.start()
        assert second.daemon.standing_by
        await scene.admit()
        await scene.service.stop()
        await until(second.has_ended)
        with pytest.raises(GenericdpError, match="while this one stood by"):
            await second.stop()
        # The service manager starts it again.
        async with second:
            assert list(second.daemon.memory.held) == ["ftdi_A50285BI"]
            assert second.daemon.settings.link_dir == scene.settings.link_dir


async def test_one_with_other_links_waits_for_the_kubelet_and_has_it_when_the_first_ends(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kubelet_socket, "AGAIN_S", 0.01)
    other = elsewhere(short_dir)

    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        async with Service(other, scene.rules, scene.udev) as second:
            await until(lambda: second.daemon.plugins.kubelet.rival)
            assert second.daemon.status_line() == (
                "1 resource, 1 of 1 device healthy; another genericdp serves the kubelet"
            )
            said = "another genericdp serves this kubelet; waiting until it ends"
            assert caplog.messages.count(said) == 1
            # The one that was there did not notice.
            assert len(scene.kubelet.registrations) == 1
            await scene.service.stop()
            await scene.kubelet.wait_until(lambda: len(scene.kubelet.registrations) == 2)
            await scene.until_allocatable(1)
            await until(lambda: second.daemon.status_line() == REGISTERED)


async def test_one_whose_kubelet_comes_later_meets_another_there(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were started at boot, before there was a directory to lock."""
    monkeypatch.setattr(kubelet_socket, "AGAIN_S", 0.01)
    other = elsewhere(short_dir)

    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene:
        async with Service(other, scene.rules, scene.udev) as second:
            async with scene.kubelet:
                await scene.until_allocatable(1)
                both = (scene.daemon, second.daemon)
                await until(lambda: sum(one.plugins.kubelet.rival for one in both) == 1)
                for _ in range(3):
                    scene.kubelet.faults.remove_directory()
                    await scene.kubelet.restart()
                    await scene.until_allocatable(1)
                    await until(lambda: sum(one.plugins.kubelet.rival for one in both) == 1)
                assert len(scene.kubelet.registrations) == 4


def is_another(path: Path, before: int) -> bool:
    return path.exists() and not os.path.samestat(path.stat(), os.fstat(before))


@both_generations
@pytest.mark.parametrize("what", ["chmod", "chown", "remove"])
async def test_whoever_waits_does_not_take_the_lock_from_the_one_that_serves(
    short_dir: Path, generation: Generation, what: str
) -> None:
    """An operator corrects the rights below `/var/lib/kubelet`, or clears up there."""
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        lock = Path(DirectoryLock(str(scene.kubelet.directory)).path)
        async with Service(elsewhere(short_dir), scene.rules, scene.udev) as second:
            await until(lambda: second.daemon.plugins.kubelet.rival)
            for _ in range(3):
                before = os.open(lock, os.O_PATH)
                match what:
                    case "chmod":
                        lock.chmod(0o755)
                    case "chown":
                        os.chown(lock, STRANGER, STRANGER)
                    case _:
                        lock.rmdir()
                await until(partial(is_another, lock, before))
                os.close(before)
                assert (lock.stat().st_mode, lock.stat().st_uid) == (0o40700, os.geteuid())
                await idle()
            assert second.daemon.plugins.kubelet.rival
            assert second.daemon.plugins.kubelet.incarnation is None
            assert len(scene.kubelet.registrations) == 1
            assert scene.kubelet.streams(FTDI) == 1
            assert scene.daemon.status_line() == REGISTERED


@both_generations
async def test_the_one_that_has_lost_the_lock_ends_its_streams_and_registers_no_more(
    short_dir: Path, generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_socket, "AGAIN_S", 0.01)
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        with closing(DirectoryLock(str(scene.kubelet.directory))) as other:
            Path(other.path).rmdir()
            assert other.taken()
            await scene.kubelet.wait_until(lambda: not scene.kubelet.streams(FTDI))
            await until(lambda: not list(scene.kubelet.directory.glob("gdp-*.sock")))
            assert scene.daemon.status_line() == (
                "1 resource, 1 of 1 device healthy; another genericdp serves the kubelet"
            )
            assert scene.daemon.plugins.registrations[FTDI].progress == Progress(
                FTDI, Phase.WAITING, "another genericdp serves the kubelet"
            )
            assert len(scene.kubelet.registrations) == 1
        await scene.until_allocatable(1)
        assert len(scene.kubelet.registrations) == 2
        assert scene.kubelet.streams(FTDI) == 1


@both_generations
async def test_a_kubelet_that_comes_back_to_another_one_hears_nothing_of_the_one_that_served_before(
    short_dir: Path, generation: Generation
) -> None:
    """The kubelet's directory is made again, and the other one is faster: a reset of the node."""
    time = LoopTime()
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        await scene.kubelet.stop()
        directory = scene.kubelet.directory
        directory.rename(f"{directory}-before")
        directory.mkdir(mode=0o755)
        with closing(DirectoryLock(str(directory))) as other:
            assert other.taken()
            await scene.kubelet.start()
            await until(lambda: scene.daemon.plugins.kubelet.rival)
            for _ in range(20):
                time.advance(1.0)
                await idle()
            assert len(scene.kubelet.registrations) == 1
            assert not list(directory.glob("gdp-*.sock"))


@pytest.mark.parametrize("point", [Point.ANSWER, Point.DIAL])
async def test_a_registration_that_has_begun_ends_when_the_lock_is_lost(
    short_dir: Path, point: Point
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        with (
            scene.kubelet.faults.hold(point) as gate,
            closing(DirectoryLock(str(scene.kubelet.directory))) as other,
        ):
            await scene.service.start()
            await gate.reached()
            Path(other.path).rmdir()
            assert other.taken()
            await until(lambda: scene.daemon.plugins.kubelet.rival)
            await until(lambda: not list(scene.kubelet.directory.glob("gdp-*.sock")))
            said = Progress(FTDI, Phase.WAITING, "another genericdp serves the kubelet")
            await until(lambda: scene.daemon.plugins.registrations[FTDI].progress == said)


async def test_a_stranger_on_a_socket_with_our_name_is_reported_and_left_alone(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kubelet_socket, "_ENDING_S", 0.01)
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        theirs = scene.kubelet.directory / "gdp-0123456789.sock"
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(theirs))
            stranger.listen(0)
            await scene.service.start()
            await scene.until_allocatable(1)
            said = "another program listens on a socket with a name of genericdp"
            await until(lambda: said in caplog.messages)
            assert theirs.exists()
            await until(lambda: scene.daemon.status_line() == REGISTERED)


async def test_sockets_that_a_killed_daemon_left_are_removed(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        left = scene.kubelet.directory / "gdp-0123456789.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left))
        await scene.service.start()
        await scene.until_allocatable(1)
        assert not left.exists()


async def test_without_a_directory_to_lock_it_says_so_and_serves(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_below(short_dir, link_dir=f"{short_dir}/file/links")
    (short_dir / "file").touch()
    async with a_scene(short_dir, settings=settings, kubelet_runs=False):
        pass
    assert f"cannot lock '{short_dir}/file/links/.lock': Not a directory" in caplog.messages


@pytest.mark.parametrize("which", ["link_dir", "state_dir"])
async def test_a_lock_for_which_there_was_no_room_is_taken_once_there_is(
    short_dir: Path, caplog: pytest.LogCaptureFixture, which: str
) -> None:
    caplog.set_level("INFO")
    settings = settings_below(short_dir)
    directory = Path(getattr(settings, which))
    with a_file_system_at(directory, inodes=64):
        fillers = fill_inodes(directory)
        async with a_scene(short_dir, settings=settings, kubelet_runs=False):
            lock = directory / ".lock"
            assert not lock.exists()
            for filler in fillers:
                filler.unlink()
            LoopTime().advance(1.0)
            await until(lock.exists)
            with NodeLock(str(directory)) as other:
                assert not other.taken()
        with NodeLock(str(directory)) as other:
            assert other.taken()
    assert caplog.messages.count(f"cannot lock '{lock}': No space left on device") == 1
    assert caplog.messages.count("the lock of this directory can be kept now") == 1


async def test_one_that_finds_it_taken_by_then_ends(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    settings = settings_below(short_dir)
    with a_file_system_at(Path(settings.link_dir), inodes=64):
        fillers = fill_inodes(Path(settings.link_dir))
        async with a_scene(short_dir, settings=settings, kubelet_runs=False) as scene:
            for filler in fillers:
                filler.unlink()
            with NodeLock(settings.link_dir) as faster:
                assert faster.taken()
                LoopTime().advance(1.0)
                await until(scene.service.has_ended)
    warned = [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]
    assert warned[-1] == "another genericdp has taken the lock of this directory; this one ends"
    assert "the lock of this directory can be kept now" not in caplog.messages


async def test_one_lock_is_enough_where_the_directory_of_the_other_one_turns_out_to_be_the_same(
    short_dir: Path,
) -> None:
    settings = settings_below(short_dir)
    Path(settings.link_dir).mkdir(mode=0o755)
    Path(settings.state_dir).symlink_to("not_mounted")
    ended: list[bool] = []
    with contextlib.ExitStack() as stack:
        await until_alone(
            settings, stack, asyncio.Event(), lambda: False, lambda _: None, end=lambda: ended.append(True)
        )
        Path(settings.state_dir).unlink()
        Path(settings.state_dir).symlink_to(settings.link_dir)
        LoopTime().advance(1.0)
        await idle()
        assert ended == []
        with NodeLock(settings.state_dir) as other:
            assert not other.taken()
