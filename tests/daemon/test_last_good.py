"""A rule file that gets a mistake, and a daemon that is restarted before it is corrected."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from genericdp.core.status.history import Retried
from genericdp.files.rulefiles import RuleFiles
from genericdp.retry import LONGEST_S
from genericdp.service import reloading
from genericdp.service.reloading import KEEP_AFTER_S
from genericdp.simulator import Phase
from genericdp.status import client
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene, minors_in
from tests.scenes.service import Service, links_in
from tests.scenes.shortage import a_file_system_at, fill, read_only
from tests.scenes.slow_disk import a_slow_disk, when_waited_for
from tests.scenes.waiting import idle, until

STICK, OTHER_STICK = a_usb_serial(0, serial="A"), a_usb_serial(1, serial="B", port="3")
BAD = FTDI_RULE.replace('"0403"', "0403")


class Node:
    """A node with a rule file on disk."""

    def __init__(self, scene: Scene, root: Path) -> None:
        self.scene = scene
        self.settings = scene.settings
        self.directory = root / "rules.d"
        self.file = self.directory / "10-ftdi.toml"
        self._time = LoopTime()
        self.write(FTDI_RULE)
        rules = self.read()
        self.kept = Path(rules.resume(scene.settings.state_dir).path("10-ftdi.toml"))
        self.service = Service(scene.settings, rules, scene.udev)

    def write(self, text: str) -> None:
        """An operator saves the file."""
        self.file.write_text(text)
        self.file.chmod(0o644)

    async def edit(self, text: str) -> None:
        """An operator saves the file, and the daemon has read it."""
        self.write(text)
        await self.reload()

    async def reload(self) -> None:
        await self.read_again()
        await self.wait()

    async def read_again(self) -> None:
        """The daemon has read the file, and kept nothing yet."""
        reloads = self.service.daemon.recorder.history.reloads.by_kind
        before = sum(reloads.values())
        self.service.daemon.reload()
        await until(lambda: sum(reloads.values()) > before)

    async def wait(self, seconds: float = KEEP_AFTER_S) -> None:
        """Time passes. By default, as much as it takes until what was read is kept."""
        self._time.advance(seconds)
        await idle()

    async def restart(self) -> None:
        await self.service.stop()
        await self.start()

    async def start(self) -> None:
        """A new process, which reads the files again."""
        self.service.rules = self.read()
        await self.service.start()
        await self.wait()

    async def says(self) -> tuple[str, bool]:
        """The digest of the version in effect, and whether it is outdated, as `genericdp status` has it."""
        report = await asyncio.to_thread(client.status, self.settings)
        (file,) = report["rules"]["files"]
        return file["digest"], file["outdated"]

    @property
    def offers(self) -> list[str]:
        return list(self.service.daemon.inventory.offers)

    @property
    def failing(self) -> str:
        failure = self.service.daemon.recorder.history.failing.get(Retried.RULES)
        return "" if failure is None else failure.why

    def read(self) -> RuleFiles:
        """What a new process reads."""
        return RuleFiles([str(self.directory)], DOMAIN)


@asynccontextmanager
async def a_node(root: Path) -> AsyncIterator[Node]:
    """It has two sticks, which the good rule takes."""
    (root / "rules.d").mkdir(mode=0o755)
    async with a_scene(root, STICK, OTHER_STICK, daemon_runs=False) as scene:
        node = Node(scene, root)
        async with node.service:
            await scene.until_allocatable(2)
            await node.wait()
            yield node


async def test_a_mistake_does_not_end_a_resource_even_if_the_daemon_restarts(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_node(short_dir) as node:
        good, _ = await node.says()
        pod = await node.scene.admit()
        (minor,) = minors_in(pod.container("main"))
        links = links_in(node.settings)
        await node.edit(BAD)
        assert await node.says() == (good, True)
        for _ in range(2):
            caplog.clear()
            await node.restart()
            assert await node.says() == (good, True)
            assert links_in(node.settings) == links
            assert caplog.messages.count(f"{node.file}:4:47: not TOML: '0403' is not in quotes") == 1
        await node.scene.until_allocatable(2)
        # A container that restarts gets its own device, and a new pod the other one.
        assert links[f"ftdi_{'AB'[minor]}"].endswith(f"/ttyUSB{minor}")
        second = await node.scene.admit(name="second")
        assert second.phase is Phase.RUNNING
        assert minors_in(second.container("main")) == [1 - minor]
        await node.edit(FTDI_RULE)
        assert await node.says() == (good, False)
        assert not node.service.daemon.rules.problems


async def test_a_directory_that_is_mounted_after_the_start_ends_no_resource(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_node(short_dir) as node:
        good, _ = await node.says()
        pod = await node.scene.admit()
        await node.service.stop()
        # As at a boot at which the symlink's target is not mounted yet.
        node.directory.rename(short_dir / "away")
        node.directory.symlink_to(short_dir / "mount" / "rules.d")
        caplog.clear()
        await node.start()
        assert (await node.says(), node.offers) == ((good, True), [FTDI])
        assert f"{node.directory}: cannot be read: No such file or directory" in caplog.messages
        assert node.kept.read_text() == FTDI_RULE
        await node.scene.until_allocatable(2)
        assert pod.phase is Phase.RUNNING
        (short_dir / "mount").mkdir(mode=0o755)
        (short_dir / "away").rename(short_dir / "mount" / "rules.d")
        await node.reload()
        assert (await node.says(), node.offers) == ((good, False), [FTDI])
        assert not node.service.daemon.rules.problems


async def test_a_daemon_that_was_killed_has_kept_the_text(short_dir: Path) -> None:
    async with a_node(short_dir) as node:
        assert node.kept.read_text() == FTDI_RULE
        edited = FTDI_RULE + "# edited\n"
        await node.edit(edited)
        assert node.kept.read_text() == edited
        await node.edit(BAD)
        assert node.kept.read_text() == edited


async def test_a_slow_disk_holds_up_nothing_and_keeps_the_last_text(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_node(short_dir) as node:
        caplog.clear()
        with a_slow_disk() as slow:
            await node.edit(FTDI_RULE + "# edited\n")
            await until(lambda: slow.waits)
            # It is there, and not yet safe from a power cut.
            slow.answer_one()
            await until(lambda: node.kept.read_text() != FTDI_RULE)
            edited = FTDI_RULE + "# edited again\n"
            await node.edit(edited)
            assert node.service.daemon.rules.files[0].text == edited
            slow.answer()
            await until(lambda: not slow.waits)
            await node.wait()
            await until(lambda: node.kept.read_text() == edited)
        assert [each for each in caplog.messages if "kept" in each] == []


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), MemoryError()])
async def test_a_text_that_a_slow_disk_does_not_take_is_tried_again(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    edited = FTDI_RULE + "# edited\n"

    def fail(_: int) -> None:
        raise error

    async with a_node(short_dir) as node:
        unexpected = list[object]()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unexpected.append(context["exception"]))
        with a_slow_disk() as slow:
            await node.edit(edited)
            await until(lambda: slow.waits)
            # Another reading finds the disk busy.
            await node.reload()
            monkeypatch.setattr(slow, "_fsync", fail)
            slow.answer()
            await until(lambda: not slow.waits)
            await until(lambda: node.failing or unexpected)
            monkeypatch.undo()
            await node.wait(LONGEST_S)
            await until(lambda: node.kept.exists() and node.kept.read_text() == edited)
            await until(lambda: not node.failing)
        assert unexpected == [error] * isinstance(error, MemoryError)


async def test_the_end_waits_for_a_text_that_a_slow_disk_has_not_written_yet(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = FTDI_RULE + "# edited\n"
    async with a_node(short_dir) as node:
        with a_slow_disk() as slow:
            await node.edit(edited)
            await until(lambda: slow.waits)
            when_waited_for(monkeypatch, slow.answer)
            await node.service.stop()
            assert node.kept.read_text() == edited


async def test_nothing_is_kept_before_the_daemon_serves(short_dir: Path) -> None:
    """A disk may be slow, and the kubelet waits for READY."""
    async with a_node(short_dir) as node:
        edited = FTDI_RULE + "# edited\n"
        await node.service.stop()
        node.write(edited)
        node.service.rules = node.read()
        await node.service.start()
        assert node.kept.read_text() == FTDI_RULE
        await node.service.stop()
        assert node.kept.read_text() == edited


@pytest.mark.parametrize("ends", ["removed", "emptied"])
async def test_a_file_that_is_removed_or_emptied_ends_its_resources_for_good(
    short_dir: Path, ends: str
) -> None:
    async with a_node(short_dir) as node:
        await node.edit(BAD)
        await node.restart()
        assert node.offers == [FTDI]
        await node.service.stop()
        if ends == "removed":
            node.file.unlink()
        else:
            node.write("")
        await node.start()
        assert (node.offers, node.kept.exists()) == ([], False)
        await node.edit(BAD)
        await node.restart()
        assert (node.offers, await node.says()) == ([], ("", False))


async def test_what_cannot_be_kept_is_shown_and_kept_when_there_is_room(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = short_dir / "state"
    with a_file_system_at(state):
        async with a_node(short_dir) as node:
            caplog.clear()
            ballast = fill(state)
            # It takes more room than the removal of the older version makes.
            edited = FTDI_RULE + "# edited\n" * 1000
            await node.edit(edited)
            failure = f"cannot save '{node.kept}': No space left on device"
            assert node.failing == failure
            await node.reload()
            assert caplog.messages.count(failure) == 1
            assert (node.offers, node.kept.exists()) == ([FTDI], False)
            ballast.unlink()
            await node.wait(LONGEST_S)
            assert node.kept.read_text() == edited
            await node.wait(1.0)
            assert not node.failing


async def test_a_text_that_there_was_no_room_for_is_kept_although_the_file_has_a_mistake_by_then(
    short_dir: Path,
) -> None:
    state = short_dir / "state"
    with a_file_system_at(state):
        async with a_node(short_dir) as node:
            ballast = fill(state)
            edited = FTDI_RULE + "# edited\n"
            await node.edit(edited)
            await node.edit(BAD)
            ballast.unlink()
            good, _ = await node.says()
            await node.restart()
            assert (await node.says(), node.kept.read_text()) == ((good, True), edited)


async def test_what_there_was_no_time_to_keep_before_the_end_is_kept_after_the_next_start(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be slow, and a service manager kills what does not end."""
    edited = FTDI_RULE + "# edited\n"
    async with a_node(short_dir) as node:
        # Otherwise the daemon still looks whether there is more to keep.
        await node.wait()
        node.write(edited)
        await node.read_again()
        with monkeypatch.context() as patched:
            patched.setattr(reloading, "END_S", 0.0)
            await node.service.stop()
        assert node.kept.read_text() == FTDI_RULE
        await node.start()
        assert node.kept.read_text() == edited


async def test_where_the_state_directory_is_read_only_everything_else_works(short_dir: Path) -> None:
    state = short_dir / "state"
    with a_file_system_at(state), read_only(state):
        async with a_node(short_dir) as node:
            await node.restart()
            assert node.offers == [FTDI]
            await node.edit(BAD)
            assert node.offers == [FTDI]
            await node.restart()
            assert (node.offers, await node.says()) == ([], ("", False))


@pytest.mark.parametrize("spoilt", ["writable by others", "garbage"])
async def test_a_kept_text_that_cannot_be_used_is_as_none_and_the_log_says_why(
    short_dir: Path, caplog: pytest.LogCaptureFixture, spoilt: str
) -> None:
    async with a_node(short_dir) as node:
        await node.edit(BAD)
        await node.service.stop()
        why = f"refused: other users can write '{node.kept}'"
        if spoilt == "garbage":
            node.kept.write_bytes(b"\xff\x00")
            why = "not UTF-8"
        else:
            node.kept.chmod(0o666)
        caplog.clear()
        await node.start()
        assert (node.offers, await node.says()) == ([], ("", False))
        said = [each for each in caplog.messages if str(node.kept) in each]
        place = f"{node.kept}:1:1" if spoilt == "garbage" else str(node.kept)
        assert said == [f"{node.file}: the last good version cannot be used: {place}: {why}"]
        await node.edit(FTDI_RULE)
        assert (node.offers, node.kept.read_text()) == ([FTDI], FTDI_RULE)
        assert node.kept.stat().st_mode & 0o777 == 0o600
