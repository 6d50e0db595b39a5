"""When links are made again: at once, but not again and again; and those that could not be made."""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from shutil import rmtree

import pytest

from genericdp.files.link_upkeep import AGAIN_S, REVIVE_AGAIN_S, LinkUpkeep
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import until


class Upkeep:
    """One link, made again whenever it has to be."""

    def __init__(self, directory: Path) -> None:
        self.link = directory / "ftdi_A"
        self.times = 0
        self.read_again: list[list[str]] = []
        self.wanted: str | None = "/dev/null"
        self._upkeep = LinkUpkeep(str(directory), self.apply, self._read_again)
        self.watching, self.dead = self._upkeep.watching, self._upkeep.dead

    def apply(self) -> None:
        self.times += 1
        self.failed = self._upkeep.apply({self.link.name: self.wanted})

    def _read_again(self, names: Collection[str]) -> None:
        self.read_again.append(sorted(names))
        self.apply()

    def kill(self) -> None:
        """Point the link at itself, as udev's rule of the package does."""
        self.link.with_name(".gone").symlink_to(self.link.name)
        self.link.with_name(".gone").rename(self.link)

    def close(self) -> None:
        self._upkeep._links.close()

    @property
    def waits(self) -> bool:
        """Whether the link will be made again later."""
        return self._upkeep._timer is not None or self._upkeep._retry._timer is not None

    def made(self, times: int) -> Callable[[], bool]:
        return lambda: self.times == times and os.path.lexists(self.link)


async def test_links_that_somebody_changes_again_and_again_are_made_again_at_intervals(
    tmp_path: Path,
) -> None:
    time, upkeep = LoopTime(), Upkeep(tmp_path)
    upkeep.apply()
    with upkeep.watching():
        upkeep.link.unlink()
        await until(upkeep.made(2))
        assert not upkeep.waits

        upkeep.link.unlink()
        await until(lambda: upkeep.waits)
        assert upkeep.times == 2
        time.advance(AGAIN_S)
        await until(upkeep.made(3))

        time.advance(AGAIN_S)
        upkeep.link.unlink()
        await until(upkeep.made(4))
        assert not upkeep.waits


async def test_links_whose_directory_is_removed_again_and_again_are_made_again_at_shorter_intervals(
    tmp_path: Path,
) -> None:
    time, upkeep = LoopTime(), Upkeep(tmp_path / "links")
    upkeep.apply()
    with upkeep.watching():
        rmtree(tmp_path / "links")
        await until(upkeep.made(2))
        rmtree(tmp_path / "links")
        await until(lambda: upkeep.waits)
        assert upkeep.times == 2
        time.advance(REVIVE_AGAIN_S)
        await until(upkeep.made(3))


async def test_a_link_that_udev_pointed_at_itself_is_restored_if_its_device_is_there_and_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time, upkeep = LoopTime(), Upkeep(tmp_path)
    upkeep.apply()
    with upkeep.watching():
        upkeep.kill()
        await until(lambda: upkeep.read_again == [["ftdi_A"]] and upkeep.link.readlink() == Path("/dev/null"))

        # Again and again: at intervals.
        upkeep.kill()
        await until(lambda: upkeep.waits)
        upkeep.apply()
        await until(lambda: upkeep.waits)
        assert len(upkeep.read_again) == 1
        assert upkeep.link.readlink() == Path("ftdi_A")
        time.advance(REVIVE_AGAIN_S)
        await until(lambda: len(upkeep.read_again) == 2 and upkeep.link.readlink() == Path("/dev/null"))
        assert not upkeep.waits
    assert caplog.messages == []


async def test_a_link_that_udev_pointed_at_itself_stays_so_if_its_device_has_gone(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    with upkeep.watching():
        # A device that has gone is no reason to wait the next time.
        for times in (1, 2):
            upkeep.wanted = "/dev/null"
            upkeep.apply()
            upkeep.wanted = None
            upkeep.kill()
            await until(lambda: len(upkeep.read_again) == times)  # noqa: B023  (it is asked in this round)
            assert upkeep.link.readlink() == Path("ftdi_A")


async def test_a_step_that_comes_first_leaves_a_dead_link_dead_until_its_device_was_read_again(
    tmp_path: Path,
) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.apply()
    with upkeep.watching():
        upkeep.kill()
        assert upkeep.dead() == {"ftdi_A"}
        upkeep.apply()
        assert upkeep.link.readlink() == Path("ftdi_A")
        assert upkeep.dead() == {"ftdi_A"}
        await until(lambda: upkeep.read_again == [["ftdi_A"]])
        assert upkeep.link.readlink() == Path("/dev/null")
        assert upkeep.dead() == set()


async def test_a_link_that_cannot_be_made_is_tried_again_until_it_is(tmp_path: Path) -> None:
    time, directory = LoopTime(), tmp_path / "links"
    directory.write_text("not a directory")
    upkeep = Upkeep(directory)
    upkeep.apply()
    for times in (2, 3):
        assert list(upkeep.failed) == ["ftdi_A"]
        time.advance(AGAIN_S)
        await until(lambda: upkeep.times == times)  # noqa: B023  (it is asked in this round)
    directory.unlink()
    time.advance(AGAIN_S)
    await until(upkeep.made(4))
    assert not upkeep.failed
    assert not upkeep.waits
    upkeep.close()
