"""When the memory is saved: a storm of changes together, and every storm."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from shutil import copy, copytree, rmtree
from threading import Event

import pytest

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.errors import GenericdpError
from genericdp.files import saving as saving_module
from genericdp.files import state, whole_file
from genericdp.files.saving import LONGEST_S, Saving
from genericdp.files.state import BOOT_VARIABLE, BrokenStateError, StateFile, this_boot
from genericdp.files.whole_file import FileIdentity, identity_at
from genericdp.log_lines import fields_of
from genericdp.watch import DirectoryWatch
from tests.scenes.rules import FTDI
from tests.scenes.scene import LoopTime
from tests.scenes.shortage import (
    a_directory_mounted_at,
    a_file_system_at,
    descriptors_left,
    fill,
    no_file_larger_than,
    read_only,
)
from tests.scenes.slow_disk import a_slow_disk, fails, when_waited_for
from tests.scenes.state_file import save
from tests.scenes.steps import steps
from tests.scenes.waiting import idle, until

#: The name under which a memory of `another` is kept.
NAMED = "memory.json.20231114T221320Z"


def memory(number: int) -> Memory:
    return Memory(ties={"ftdi_SAME": f"port {number}"})


def many(count: int) -> Memory:
    ids = [f"ftdi_{n}" for n in range(count)]
    spots = (Spot("port", "", "node"),)
    return Memory({id_: Remembered(FTDI, Device(id_, links=(id_,), spots=spots)) for id_ in ids})


@contextmanager
def in_use_with_links(state: Path, link_dir: Path) -> Iterator[Saving]:
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    try:
        yield saving
    finally:
        saving.close()


async def has_settled(saving: Saving) -> bool:
    """Whether nobody would have to wait now. No time passes."""
    waiting = asyncio.ensure_future(saving.settled())
    await idle()
    try:
        return waiting.done()
    finally:
        waiting.cancel()


def saved(directory: Path) -> Memory:
    with suppress(GenericdpError):  # it may appear between two looks, as another thread writes it
        return StateFile(str(directory)).load()
    return StateFile(str(directory)).load()


async def test_changes_that_may_wait_are_saved_together_and_so_are_those_after_them(tmp_path: Path) -> None:
    time, saving = LoopTime(), Saving(str(tmp_path))
    for storm in (1, 11, 21):
        before = saved(tmp_path)
        saving.save_within(10.0, memory(storm))
        time.advance(9.0)
        saving.save_within(10.0, memory(storm + 1))
        assert saved(tmp_path) == before
        time.advance(1.0)
        await until(lambda: saved(tmp_path) != before)  # noqa: B023  (it is asked in this round)
        assert saved(tmp_path) == memory(storm + 1)


async def test_what_may_not_wait_is_saved_at_once_with_what_waits(tmp_path: Path) -> None:
    saving = Saving(str(tmp_path))
    saving.save_within(3600.0, memory(1))
    saving.save_within(0.0, memory(2))
    assert saved(tmp_path) == memory(2)


async def test_allocate_waits_for_no_device_that_changed_before(tmp_path: Path) -> None:
    saving, other = Saving(str(tmp_path / "prepared")), Saving(str(tmp_path / "other"))
    before, after = many(200), many(200)
    saving.save_within(3600.0, before)
    prepared = steps(lambda: saving.save_within(0.0, after))
    assert 5 * prepared < steps(lambda: other.save_within(0.0, after))


@pytest.mark.parametrize("is_full", [False, True])
async def test_a_memory_of_an_earlier_boot_is_one_only_if_it_can_be_saved_at_the_start(
    tmp_path: Path, *, is_full: bool
) -> None:
    """On a full disk, a daemon of this boot may have given something without saving it."""
    device = Remembered(FTDI, Device("ftdi_A", links=("ftdi_A",), spots=(Spot("port", "", "node"),)))
    save(StateFile(str(tmp_path), "an earlier boot"), Memory({"ftdi_A": device}))
    saving = Saving(str(tmp_path))
    with no_file_larger_than(10) if is_full else nullcontext():
        begun = saving.begin()
        assert begun.devices["ftdi_A"].is_of_this_boot is is_full
    saving.close()
    assert StateFile(str(tmp_path), this_boot()).load() == begun


def another(tmp_path: Path) -> Path:
    """A state directory with another memory, which was written at a known time. It is kept under NAMED."""
    late = tmp_path / "late"
    save(StateFile(str(late)), memory(1))
    os.utime(late / "memory.json", (1_700_000_000, 1_700_000_000))
    return late


async def test_on_a_full_disk_it_is_tried_again_until_the_last_memory_is_saved(tmp_path: Path) -> None:
    time, tried = LoopTime(), list[str]()
    saving = Saving(str(tmp_path), lambda error: tried.append(str(error or "")))
    full = f"cannot save '{tmp_path}/memory.json': File too large"
    with no_file_larger_than(10):
        saving.save_within(0.0, memory(1))
        saving.save_within(0.0, memory(2))
        for tries, pause in enumerate((1.0, 2.0, 4.0), 3):
            time.advance(pause)
            await until(lambda: len(tried) == tries)  # noqa: B023  (it is asked in this round)
    assert tried == [full] * 5
    time.advance(8.0)
    await until(lambda: len(tried) == 6)
    assert tried[-1] == ""
    assert saved(tmp_path) == memory(2)


async def test_a_memory_that_is_closed_is_saved_now_or_never(tmp_path: Path) -> None:
    time, tried = LoopTime(), list[str]()
    saving = Saving(str(tmp_path), lambda error: tried.append(str(error or "")))
    saving.save_within(20.0, memory(1))
    with no_file_larger_than(10):
        saving.close()
    time.advance(40.0)
    await idle()
    assert len(tried) == 1


@contextmanager
def in_use(state: Path) -> Iterator[Saving]:
    """A memory that was saved and is in use, and nothing happens."""
    saving = Saving(str(state))
    saving.begin()
    saving.save_within(0.0, memory(2))
    yield saving
    saving.close()


async def test_a_file_that_is_removed_is_saved_again_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    time, saving = LoopTime(), Saving(str(state))
    assert saving.begin() == Memory()
    try:
        saving.save_within(0.0, memory(1))
        removals: tuple[Callable[[], object], ...] = ((state / "memory.json").unlink, lambda: rmtree(state))
        for remove in removals:
            remove()
            await until(lambda: saved(state) == memory(1))
            time.advance(1.0)
        # Not more than once a second.
        remove()
        await until(lambda: saved(state) == memory(1))
        remove()
        await idle()
        assert saved(state) == Memory()
        time.advance(1.0)
        await until(lambda: saved(state) == memory(1))
    finally:
        saving.close()
    assert caplog.messages == ["the saved memory was removed, saving it again"] * 3


async def test_so_is_one_in_whose_place_is_a_symlink_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to("neither")
    with in_use(tmp_path / "state") as saving:
        file = tmp_path / "state/memory.json"
        (tmp_path / "nowhere").rename(file)
        await until(lambda: not file.is_symlink())
        await saving.settled()
    assert saved(tmp_path / "state") == memory(2)


async def test_a_directory_that_was_removed_where_it_is_mounted_from_is_said_at_once(tmp_path: Path) -> None:
    """What `rm -r` on the host does to a volume of a pod."""
    host, state, tried = tmp_path / "host", tmp_path / "state", list[GenericdpError | None]()
    with a_directory_mounted_at(state, host):
        saving = Saving(str(state), tried.append)
        saving.begin()
        saving.save_within(0.0, memory(1))
        rmtree(host)
        await until(lambda: len(tried) > 1)
        error = tried[-1]
        assert str(error) == f"cannot save '{state}/memory.json': No such file or directory"
        assert error is not None
        assert error.hint == (
            "the directory was removed while it was mounted here; a restart of the pod or service mounts a "
            "new one; until the memory is saved, "
            "ids of twins and of absent devices do not survive a restart of the daemon or a reboot; "
            "do not edit rules before that"
        )
        saving.close()


async def test_while_the_disk_is_slow_changes_wait_and_are_saved_together(tmp_path: Path) -> None:
    tried = list[GenericdpError | None]()
    saving = Saving(str(tmp_path), tried.append)
    with a_slow_disk() as slow:
        for number in range(1, 5):
            saving.save_within(0.0, memory(number))
        await idle()
        assert (saved(tmp_path), tried) == (Memory(), [])
        slow.answer()
        await until(lambda: saved(tmp_path) == memory(4))
        await until(lambda: tried == [None, None])


async def test_it_is_settled_once_what_was_known_then_is_saved(tmp_path: Path) -> None:
    saving = Saving(str(tmp_path))
    assert await has_settled(saving)
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        await until(lambda: slow.waits)
        saving.save_within(0.0, memory(2))
        settled = asyncio.ensure_future(saving.settled())
        for _ in range(2):
            slow.answer_one()
        await until(lambda: saved(tmp_path) == memory(1))
        await until(lambda: slow.begun == 3)
        await idle()
        assert not settled.done()
        slow.answer()
        await until(settled.done)
        assert saved(tmp_path) == memory(2)


async def test_a_disk_that_was_slow_is_not_reported_later(tmp_path: Path) -> None:
    time, tried = LoopTime(), list[GenericdpError | None]()
    saving = Saving(str(tmp_path), tried.append)
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        slow.answer()
        await until(lambda: tried)
    time.advance(2 * LONGEST_S)
    await idle()
    assert tried == [None]


async def test_it_is_settled_too_if_it_cannot_be_saved(tmp_path: Path) -> None:
    tried = list[str]()
    saving = Saving(str(tmp_path), lambda error: tried.append(str(error)))
    with a_slow_disk() as slow, no_file_larger_than(10):
        saving.save_within(0.0, memory(1))
        await until(lambda: tried)
        assert await has_settled(saving)
        assert slow.begun == 0
    assert tried == [f"cannot save '{tmp_path}/memory.json': File too large"]
    saving.close()


@pytest.mark.parametrize("changes", [False, True])
async def test_an_unexpected_error_keeps_nobody_waiting_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changes: bool
) -> None:
    time, saving, failed = LoopTime(), Saving(str(tmp_path)), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))
    error = MemoryError()

    def fail(*_: object) -> None:
        raise error

    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        await until(lambda: slow.waits)
        if changes:
            saving.save_within(0.0, memory(2))
        settled = asyncio.ensure_future(saving.settled())
        with monkeypatch.context() as patch:
            patch.setattr(slow, "_fsync", fail)
            slow.answer_one()
            await until(lambda: failed)
        slow.answer()
        await idle()
        assert settled.done() or changes
        time.advance(0.0 if changes else 1.0)
        await until(lambda: saved(tmp_path) == memory(1 + changes), timeout_s=0.9)
    assert failed == [error]
    saving.close()


async def test_a_disk_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    time, tried = LoopTime(), list[GenericdpError | None]()
    saving = Saving(str(tmp_path), tried.append)
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        time.advance(0.1)
        settled = asyncio.ensure_future(saving.settled())
        await idle()
        time.advance(LONGEST_S - 0.2)
        await idle()
        assert (settled.done(), tried) == (False, [])
        time.advance(0.1)
        await idle()
        # What waits does so no longer than the disk has taken.
        assert settled.done()
        # Nor do the next ones.
        saving.save_within(0.0, memory(2))
        assert await has_settled(saving)
        (error,) = tried
        assert str(error) == f"cannot save '{tmp_path}/memory.json': the disk has not answered for 10 s"
        assert error is not None
        assert error.hint == (
            "until the memory is saved, "
            "ids of twins and of absent devices do not survive a restart of the daemon or a reboot; "
            "do not edit rules before that"
        )
        slow.answer()
        await until(lambda: saved(tmp_path) == memory(2))
        await until(lambda: tried[1:] == [None, None])
    # It may be slow again.
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(3))
        assert not await has_settled(saving)
        slow.answer()
        await until(lambda: len(tried) == 4)


@pytest.mark.parametrize("is_first", [False, True])
async def test_a_file_that_is_removed_while_the_disk_is_slow_is_saved_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_first: bool
) -> None:
    LoopTime()
    saving, file = Saving(str(tmp_path)), tmp_path / "memory.json"
    saving.begin()
    if not is_first:
        saving.save_within(0.0, memory(1))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(2))
        # It is there, and not yet safe from a power cut.
        slow.answer_one()
        await until(lambda: saved(tmp_path) == memory(2))
        file.unlink()
        await idle()
        slow.answer()
        await until(lambda: saved(tmp_path) == memory(2))
        saving.close()
    assert caplog.messages == ["the saved memory was removed, saving it again"]


async def test_an_answer_waits_no_longer_even_if_two_writes_come_before_it(tmp_path: Path) -> None:
    time, saving = LoopTime(), Saving(str(tmp_path))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        await until(lambda: slow.waits)
        saving.save_within(0.0, memory(2))
        settled = asyncio.ensure_future(saving.settled())
        await idle()
        time.advance(LONGEST_S - 0.1)
        for _ in range(2):
            slow.answer_one()
        await until(lambda: slow.begun == 3)
        await idle()
        assert not settled.done()
        time.advance(0.1)
        await idle()
        assert settled.done()
        slow.answer()
        saving.close()


async def test_the_start_waits_for_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a memory of an earlier boot is saved, nobody knows whether this boot gave something."""
    device = Remembered(FTDI, Device("ftdi_A", links=("ftdi_A",), spots=(Spot("port", "", "node"),)))
    save(StateFile(str(tmp_path), "an earlier boot"), Memory({"ftdi_A": device}))
    saving = Saving(str(tmp_path))
    with a_slow_disk() as slow:
        when_waited_for(monkeypatch, slow.answer)
        begun = saving.begin()
        assert StateFile(str(tmp_path), this_boot()).load() == begun
    saving.close()


async def test_the_start_does_not_wait_if_the_memory_is_kept_beside_the_links(
    tmp_path: Path, link_dir: Path
) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        kept(state, link_dir, 2)
        saving = Saving(str(state), link_dir=str(link_dir))
        with a_slow_disk() as slow:
            assert saving.begin() == memory(2)
            for number in range(2):
                await until(lambda: slow.begun == number + 1)  # noqa: B023  (it is asked in this round)
                # As a process would that is started after a kill in this moment.
                assert Saving(str(state), link_dir=str(link_dir)).load() == memory(2)
                slow.answer_one()
        saving.close()


async def test_the_end_keeps_what_waits_before_it_waits_for_a_slow_disk(
    tmp_path: Path, link_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    saving = Saving(str(state), link_dir=str(link_dir))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        saving.save_within(1.0, memory(2))
        found = list[Memory]()

        def look() -> None:
            found.append(Saving(str(state), link_dir=str(link_dir)).load())
            slow.answer()

        when_waited_for(monkeypatch, look)
        saving.close()
    assert found[0] == memory(2)
    assert saved(state) == memory(2)


async def test_who_has_waited_in_vain_is_reported(tmp_path: Path) -> None:
    time, tried = LoopTime(), list[GenericdpError | None]()
    saving = Saving(str(tmp_path), tried.append)
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        await until(lambda: slow.waits)
        time.advance(1.0)
        saving.save_within(0.0, memory(2))
        settled = asyncio.ensure_future(saving.settled())
        await idle()
        time.advance(LONGEST_S - 1.1)
        for _ in range(2):
            slow.answer_one()
        await until(lambda: slow.begun == 3)
        await until(lambda: tried == [None])
        # The second write has only begun, but the answer has waited for both.
        time.advance(1.1)
        await idle()
        assert settled.done()
        error = tried[1]
        assert str(error) == f"cannot save '{tmp_path}/memory.json': the disk has not answered for 10 s"
        slow.answer()
        saving.close()


async def test_what_was_kept_stays_if_the_directory_goes_before_the_disk_has_answered(
    tmp_path: Path, link_dir: Path
) -> None:
    state, found = tmp_path / "state", list[Memory]()

    def look(_: object) -> None:
        """As a process would that is started after a kill in this moment."""
        found.append(Saving(str(state), link_dir=str(link_dir)).load())

    saving = Saving(str(state), look, link_dir=str(link_dir))
    saving.begin()
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        slow.answer_one()
        await until(lambda: slow.begun == 2)
        rmtree(state)
        slow.answer()
        await until(lambda: found)
        await until(lambda: saved(state) == memory(1))
    saving.close()
    assert found[0] == memory(1)


async def test_the_end_waits_for_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saving = Saving(str(tmp_path))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        saving.save_within(0.0, memory(2))
        when_waited_for(monkeypatch, slow.answer)
        saving.close()
        assert saved(tmp_path) == memory(2)
    await idle()


@pytest.fixture
def link_dir(tmp_path: Path) -> Path:
    (tmp_path / "links").mkdir()
    return tmp_path / "links"


async def test_while_the_disk_is_full_a_memory_lasts_until_the_next_boot(
    tmp_path: Path, link_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        saving, other = Saving(str(state), link_dir=str(link_dir)), fill(state)
        saving.begin()
        saving.save_within(0.0, memory(2))
        saving.close()
        assert saved(state) == memory(1)
        again = Saving(str(state), link_dir=str(link_dir))
        assert again.begin() == memory(2)
        again.close()
        with monkeypatch.context() as patch:
            patch.setenv(BOOT_VARIABLE, "another")
            assert Saving(str(state), link_dir=str(link_dir)).load() == memory(1)
        other.unlink()
        again = Saving(str(state), link_dir=str(link_dir))
        assert again.begin() == memory(2)
        assert saved(state) == memory(2)
        again.close()


@pytest.mark.parametrize("how", ["removed", "emptied", "its directory made anew"])
async def test_it_is_kept_again_if_it_is_removed(tmp_path: Path, link_dir: Path, how: str) -> None:
    state, kept = tmp_path / "state", link_dir / ".memory"
    with a_file_system_at(state):
        saving = Saving(str(state), link_dir=str(link_dir))
        saving.begin()
        with a_full(state):
            saving.save_within(0.0, memory(1))
            if how == "removed":
                kept.unlink()
            elif how == "emptied":
                kept.write_bytes(b"")
            else:
                rmtree(link_dir)
                link_dir.mkdir()
            saving.save()  # It is tried again.
            assert after_a_kill(tmp_path) == memory(1)
            saving.close()


async def test_a_memory_that_was_kept_for_a_while_does_not_come_back(tmp_path: Path, link_dir: Path) -> None:
    """What is remembered is again what the file says."""
    state = tmp_path / "state"
    with a_file_system_at(state):
        saving = Saving(str(state), link_dir=str(link_dir))
        saving.begin()
        saving.save_within(0.0, memory(1))
        fill(state)
        saving.save_within(0.0, memory(2))
        saving.save_within(0.0, memory(1))
        assert after_a_kill(tmp_path) == memory(1)
        saving.close()


def kept(state: Path, link_dir: Path, number: int) -> None:
    """A memory that replaces the file in the state directory could not be saved."""
    keeping = StateFile(str(state), this_boot(), str(link_dir))
    with a_full(state):
        keeping.load()
        with pytest.raises(GenericdpError):
            save(keeping, memory(number))


@contextmanager
def a_full(state: Path) -> Iterator[None]:
    """In the block, the disk of the state directory is full."""
    other = fill(state)
    yield
    other.unlink()


async def test_a_memory_that_another_one_has_replaced_does_not_count(tmp_path: Path, link_dir: Path) -> None:
    """As when a process is killed between the two, or one with another link directory serves in between."""
    state = tmp_path / "state"
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        kept(state, link_dir, 2)
        other = StateFile(str(state), this_boot())
        other.load()
        save(other, memory(3))
        again = Saving(str(state), link_dir=str(link_dir))
        assert again.begin() == memory(3)
        # Nor if the other one is lost later.
        (state / "memory.json").unlink()
        assert after_a_kill(tmp_path) == memory(3)
        again.close()


@pytest.mark.parametrize("boot", ["", "another", this_boot()], ids=["unknown", "another", "this"])
async def test_it_counts_although_an_older_one_was_mounted_meanwhile(
    tmp_path: Path, link_dir: Path, boot: str
) -> None:
    state, late = tmp_path / "state", tmp_path / "late"
    save(StateFile(str(late), boot), memory(1))
    os.utime(late / "memory.json", (1_700_000_000, 1_700_000_000))
    with a_file_system_at(state):
        kept(state, link_dir, 2)
    state.rmdir()
    late.rename(state)
    saving = Saving(str(state), link_dir=str(link_dir))
    assert saving.begin() == memory(2)
    saving.close()
    assert saved(state) == memory(2)
    (state / NAMED).rename(state / "memory.json")
    assert saved(state) == memory(1)


async def test_a_memory_that_is_mounted_after_the_start_and_full_is_kept_aside_after_a_restart(
    tmp_path: Path, link_dir: Path
) -> None:
    state = tmp_path / "state"
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    saving.save_within(0.0, memory(2))
    state.rename(tmp_path / "hidden")
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        os.utime(state / "memory.json", (1_700_000_000, 1_700_000_000))
        with a_full(state):
            saving.save_within(0.0, memory(3))
            saving.close()
            again = Saving(str(state), link_dir=str(link_dir))
            assert again.begin() == memory(3)
        again.save()
        again.close()
        assert saved(state) == memory(3)
        (state / NAMED).rename(state / "memory.json")
        assert saved(state) == memory(1)


def test_what_was_before_is_saved_again_if_there_is_no_room_for_it_beside_the_links(
    tmp_path: Path, link_dir: Path
) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        save(StateFile(str(state), this_boot(), str(link_dir)), memory(1))
        kept(state, link_dir, 2)
        now = StateFile(str(state), this_boot(), str(link_dir))
        assert now.load() == memory(2)
        now.job(now.writer.dump(memory(1)))()
        assert StateFile(str(state), this_boot(), str(link_dir)).load() == memory(1)


@pytest.mark.parametrize("how", ["with its file", "with a damaged file", "without its file"])
async def test_it_counts_on_another_disk(
    tmp_path: Path, link_dir: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that is full or fails is replaced while the daemon does not run."""
    state, other = tmp_path / "state", tmp_path / "other"
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        kept(state, link_dir, 2)
        other.mkdir()
        if how != "without its file":
            copy(state / "memory.json", other)
        if how == "with a damaged file":
            (other / "memory.json").write_bytes(b"\0")
    saving = Saving(str(other), link_dir=str(link_dir))
    assert saving.begin() == memory(2)
    saving.close()
    assert saved(other) == memory(2)
    is_damaged = how == "with a damaged file"
    assert (other / "memory.json.broken").exists() is is_damaged
    file = other / "memory.json"
    said = [(record.message, fields_of(record)) for record in caplog.records]
    damaged = "the saved memory cannot be understood, using the one kept beside the links"
    hint = f"the daemon keeps the file as '{file}.broken'"
    assert said == ([(damaged, {"file": str(file), "hint": hint})] if is_damaged else [])


def test_it_counts_once_its_file_is_back(tmp_path: Path, link_dir: Path) -> None:
    """The directory was moved away while the daemon ran, and is moved back before the next start."""
    state, away = tmp_path / "state", tmp_path / "away"
    keeping = StateFile(str(state), this_boot(), str(link_dir))
    save(keeping, memory(1))
    state.rename(away)
    state.write_bytes(b"")
    with pytest.raises(GenericdpError):
        save(keeping, memory(2))
    state.unlink()
    away.rename(state)
    assert Saving(str(state), link_dir=str(link_dir)).load() == memory(2)


def test_it_counts_in_the_place_of_a_file_that_the_daemon_could_not_understand(
    tmp_path: Path, link_dir: Path
) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        (state / "memory.json").write_bytes(b"\0")
        keeping = StateFile(str(state), this_boot(), str(link_dir))
        with a_full(state):
            with pytest.raises(BrokenStateError):
                keeping.load()
            with pytest.raises(GenericdpError):
                save(keeping, memory(2))
        assert Saving(str(state), link_dir=str(link_dir)).load() == memory(2)


@pytest.mark.parametrize(
    "text", [b"", b"null", b"null\n{}", b"[null]\n{}", b"[null, true]\n{}", b"\xff", b"[" * 100_000]
)
def test_what_cannot_be_understood_there_does_not_count(
    tmp_path: Path, link_dir: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    save(StateFile(str(tmp_path)), memory(1))
    (link_dir / ".memory").write_bytes(text)
    assert Saving(str(tmp_path), link_dir=str(link_dir)).load() == memory(1)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"'{link_dir}/.memory' is ")
    assert fields_of(record)["hint"] == (
        "it may have been the later one: if the disk was full or slow before, drain the node"
    )


@pytest.mark.parametrize("text", [b"", b"x", b"[]\n"])
def test_that_it_cannot_be_understood_is_said_without_a_file_too(
    tmp_path: Path, link_dir: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (link_dir / ".memory").write_bytes(text)
    assert Saving(str(tmp_path / "state"), link_dir=str(link_dir)).load() == Memory()
    (message,) = caplog.messages
    assert message.startswith(f"'{link_dir}/.memory' is ")


@pytest.mark.parametrize("how", ["a shortage", "others may write it", "a directory"])
def test_without_what_cannot_be_read_there_it_does_not_start(
    tmp_path: Path, link_dir: Path, how: str
) -> None:
    """It may be later than the file."""
    state, spare = tmp_path / "state", link_dir / ".memory"
    with a_file_system_at(state):
        save(StateFile(str(state)), memory(1))
        kept(state, link_dir, 2)
    again = Saving(str(state), link_dir=str(link_dir))
    not_without_it = (
        "genericdp does not serve without what it remembers: pods may hold devices that are absent"
    )
    match how:
        case "a shortage":
            with descriptors_left(0), pytest.raises(GenericdpError) as unread:
                again._state._load_spare()
            message = f"cannot read '{spare}': Too many open files"
            hint = "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'; "
        case "others may write it":
            spare.chmod(0o666)
            with pytest.raises(GenericdpError) as unread:
                again.load()
            message = f"'{spare}' is refused: other users can write '{spare}'"
            hint = f"chmod go-w '{spare}'; "
        case _:
            spare.unlink()
            spare.mkdir()
            with pytest.raises(GenericdpError) as unread:
                again.load()
            message = f"cannot read '{spare}': Is a directory"
            hint = "move it away: genericdp does not write such a file; "
    assert str(unread.value) == message
    assert unread.value.hint == hint + not_without_it


def test_links_in_a_directory_that_is_not_trusted_do_not_keep_it_from_starting_without_a_memory_there(
    tmp_path: Path, link_dir: Path
) -> None:
    save(StateFile(str(tmp_path / "state")), memory(1))
    link_dir.chmod(0o777)
    assert Saving(str(tmp_path / "state"), link_dir=str(link_dir)).load() == memory(1)


async def test_that_it_cannot_be_kept_there_is_said_until_it_can(tmp_path: Path, link_dir: Path) -> None:
    time, said = LoopTime(), list[GenericdpError | None]()
    saving = Saving(str(tmp_path / "state"), said.append, link_dir=str(link_dir))
    saving.begin()
    (link_dir / ".memory").unlink(missing_ok=True)
    (link_dir / ".memory").mkdir()
    saving.save_within(0.0, memory(1))
    (error,) = [each for each in said if each is not None]
    assert str(error) == f"cannot save '{link_dir}/.memory': Is a directory"
    assert error.hint == (
        f"remove '{link_dir}/.memory'; until then, if somebody puts an old memory.json in place "
        "while genericdp is stopped, that one counts"
    )
    (link_dir / ".memory").rmdir()
    time.advance(2.0)
    await until(lambda: said[-1] is None)
    saving.close()
    assert StateFile(str(tmp_path), this_boot(), str(link_dir)).load() == memory(1)


async def test_nor_can_it_be_at_a_restart_is_said_at_once(tmp_path: Path, link_dir: Path) -> None:
    with in_use_with_links(tmp_path, link_dir) as saving:
        saving.save_within(0.0, memory(1))
    (link_dir / ".memory").unlink()
    (link_dir / ".memory.new").mkdir()
    said: list[GenericdpError | None] = []
    saving = Saving(str(tmp_path), said.append, link_dir=str(link_dir))
    assert saving.begin() == memory(1)
    assert [*map(str, said)] == [f"cannot save '{link_dir}/.memory': Is a directory"]
    (link_dir / ".memory.new").rmdir()
    saving.close()


@pytest.mark.parametrize("lost", ["memory.json", ".memory"])
async def test_what_is_removed_after_it_was_read_and_before_it_is_watched_is_saved_again(
    tmp_path: Path, link_dir: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    with in_use_with_links(tmp_path, link_dir) as saving:
        saving.save_within(0.0, memory(1))
    directory = link_dir if lost == ".memory" else tmp_path

    def watch(path: str, tell: Callable[[frozenset[str]], None]) -> DirectoryWatch:
        if path == str(directory):
            (directory / lost).unlink()
        return DirectoryWatch(path, tell)

    monkeypatch.setattr(saving_module, "DirectoryWatch", watch)
    with in_use_with_links(tmp_path, link_dir):
        await until((directory / lost).exists)


def test_what_is_kept_is_kept_again_if_another_memory_was_saved_meanwhile(
    tmp_path: Path, link_dir: Path
) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        file = StateFile(str(state), this_boot(), str(link_dir))
        save(file, memory(1))
        # The next one cannot be written beside the links.
        (link_dir / ".memory.new").mkdir()
        save(file, memory(2))
        (link_dir / ".memory.new").rmdir()
        with a_full(state), pytest.raises(GenericdpError):
            save(file, memory(1))
        assert StateFile(str(state), this_boot(), str(link_dir)).load() == memory(1)


async def test_it_is_kept_again_when_the_links_are_back(tmp_path: Path, link_dir: Path) -> None:
    """Another memory was saved meanwhile."""
    state = tmp_path / "state"
    with in_use_with_links(state, link_dir) as saving:
        saving.save_within(0.0, memory(1))
        link_dir.rename(tmp_path / "away")
        saving.save_within(0.0, memory(2))
        backup = (state / "memory.json").read_bytes()
        (tmp_path / "away").rename(link_dir)
        saving.save_within(0.0, memory(1))
    (state / "memory.json").write_bytes(backup)
    assert StateFile(str(state), this_boot(), str(link_dir)).load() == memory(1)


@pytest.mark.parametrize("what", ["the file", "the directory"])
async def test_what_is_removed_there_is_kept_again_at_once(
    tmp_path: Path, link_dir: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    with in_use_with_links(tmp_path / "state", link_dir) as saving:
        saving.save_within(0.0, memory(1))
        if what == "the file":
            (link_dir / ".memory").unlink()
        else:
            rmtree(link_dir)
            link_dir.mkdir()
        await until((link_dir / ".memory").exists)
    (record,) = caplog.records
    assert record.getMessage() == "the saved memory was removed, saving it again"
    assert fields_of(record)["file"] == f"{link_dir}/.memory"


async def test_while_it_cannot_be_kept_there_the_file_is_written_once(tmp_path: Path, link_dir: Path) -> None:
    """The pauses between the tries grow."""
    time, file = LoopTime(), tmp_path / "state" / "memory.json"
    with in_use_with_links(tmp_path / "state", link_dir) as saving:
        saving.save_within(0.0, memory(1))
        (link_dir / ".memory.new").mkdir()
        saving.save_within(0.0, memory(2))
        before = file.stat().st_ino
        tries = saving._tries
        for seconds, tried in ((1.0, 1), (1.0, 1), (1.0, 2), (3.0, 2), (1.0, 3)):
            time.advance(seconds)
            await idle()
            assert saving._tries - tries == tried
        assert file.stat().st_ino == before
        (link_dir / ".memory.new").rmdir()


async def test_at_each_start_it_is_kept_again(tmp_path: Path, link_dir: Path) -> None:
    """It may be there since a time when another memory counted, of which there is a backup."""
    state = tmp_path / "state"
    file = StateFile(str(state), this_boot(), str(link_dir))
    save(file, memory(1))
    (link_dir / ".memory.new").mkdir()
    save(file, memory(2))
    backup = (state / "memory.json").read_bytes()
    save(file, memory(1))
    (link_dir / ".memory.new").rmdir()
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    saving.close()
    (state / "memory.json").write_bytes(backup)
    assert StateFile(str(state), this_boot(), str(link_dir)).load() == memory(1)


def after_a_kill(tmp_path: Path, before_its_start: Callable[[], None] = lambda: None) -> Memory:
    """With what a process goes on that is started after a kill in this moment, in copies in `killed`."""
    killed = tmp_path / "killed"
    rmtree(killed, ignore_errors=True)
    for name in ("state", "links"):
        copytree(tmp_path / name, killed / name)
    before_its_start()
    saving = Saving(str(killed / "state"), link_dir=str(killed / "links"))
    begun = saving.begin()
    saving.close()
    assert saved(killed / "state") == begun
    return begun


@pytest.mark.parametrize("written", [0, 1, 2, 3])
@pytest.mark.parametrize("last", [2, 3])
async def test_a_kill_while_the_disk_is_slow_loses_nothing(
    tmp_path: Path, link_dir: Path, written: int, last: int
) -> None:
    """Each write waits twice for the disk: before its file has its name, and afterwards."""
    state = tmp_path / "state"
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    saving.save_within(0.0, memory(1))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(2))
        await until(lambda: slow.waits)
        if last == 3:
            saving.save_within(0.0, memory(3))
        for number in range(min(written, 2 * last - 3)):
            slow.answer_one()
            await until(lambda: slow.begun == number + 2)  # noqa: B023  (it is asked in this round)
        await idle()
        assert after_a_kill(tmp_path, slow.answer) == memory(last)
        await until(lambda: saved(state) == memory(last))
        saving.close()


async def test_what_was_kept_does_not_go_while_the_next_memory_waits(tmp_path: Path, link_dir: Path) -> None:
    state, found = tmp_path / "state", list[Memory]()

    def look(_: object) -> None:
        """As a process would that is started after a kill in this moment."""
        found.append(Saving(str(state), link_dir=str(link_dir)).load())

    saving = Saving(str(state), look, link_dir=str(link_dir))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(1))
        saving.save_within(0.0, memory(2))
        slow.answer()
        await until(lambda: len(found) == 2)
    assert found == [memory(2), memory(2)]


async def test_a_disk_that_hangs_before_it_is_written_loses_nothing_either(
    tmp_path: Path, link_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(StateFile(str(tmp_path / "state"), this_boot()), memory(1))
    saving, answers = Saving(str(tmp_path / "state"), link_dir=str(link_dir)), Event()
    saving.begin()

    def identity_at(path: str) -> FileIdentity | None:
        if threading.current_thread() is not threading.main_thread():
            answers.wait()
        return whole_file.identity_at(path)

    monkeypatch.setattr(state, "identity_at", identity_at)
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(2))
        assert Saving(str(tmp_path / "state"), link_dir=str(link_dir)).load() == memory(2)
        answers.set()
        slow.answer()
        saving.close()


async def test_a_memory_that_was_kept_for_a_kill_is_replaced_by_a_failure_to_write_it(
    tmp_path: Path, link_dir: Path
) -> None:
    state, tried = tmp_path / "state", list[GenericdpError | None]()
    with a_file_system_at(state):
        saving = Saving(str(state), tried.append, link_dir=str(link_dir))
        saving.begin()
        saving.save_within(0.0, memory(1))
        fill(state)
        with a_slow_disk() as slow:
            saving.save_within(0.0, memory(2))
            await saving.settled()
            assert slow.waits == 0
        error = tried[-1]
        assert error is not None
        assert error.hint.endswith(
            "until the memory is saved, ids of twins and of absent devices do not survive a reboot"
        )
        assert Saving(str(state), link_dir=str(link_dir)).load() == memory(2)
        saving.close()


async def test_a_memory_that_takes_the_place_while_nothing_happens_is_kept_aside_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    with in_use(state) as saving:
        await idle()
        (late / "memory.json").rename(state / "memory.json")
        await until((state / NAMED).exists)
        await saving.settled()
        assert saved(state) == memory(2)
        assert "another saved memory took the place of this daemon's, and is kept aside" in caplog.messages


@pytest.mark.parametrize("boot", ["", "another", this_boot()], ids=["unknown", "another", "this"])
async def test_an_older_one_that_takes_the_place_while_the_disk_hangs_does_not_count_after_a_kill(
    tmp_path: Path, link_dir: Path, boot: str
) -> None:
    state = tmp_path / "state"
    save(StateFile(str(tmp_path / "late"), boot), memory(1))
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    saving.save_within(0.0, memory(2))
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(3))
        await until(lambda: slow.waits)
        (tmp_path / "late/memory.json").rename(state / "memory.json")
        await idle()
        assert after_a_kill(tmp_path, slow.answer) == memory(3)
        saving.close()
    (aside,) = (tmp_path / "killed/state").glob("memory.json.2*")
    aside.rename(tmp_path / "killed/state/memory.json")
    assert saved(tmp_path / "killed/state") == memory(1)


@pytest.mark.parametrize("how", ["replaced", "removed"])
async def test_between_two_removals_within_a_second_the_memory_is_kept(
    tmp_path: Path, link_dir: Path, how: str
) -> None:
    state = tmp_path / "state"
    file = state / "memory.json"

    async def disturb() -> None:
        if how == "removed":
            file.unlink()
        else:
            (another(tmp_path) / "memory.json").rename(file)
        await idle()

    time, saving = LoopTime(), Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    saving.save_within(0.0, memory(2))
    for _ in range(2):
        await disturb()
        assert saved(state) == memory(2)
        await disturb()
        assert saved(state) != memory(2)
        kept = identity_at(str(link_dir / ".memory"))
        file.write_bytes(b"")
        await disturb()
        assert kept is not None
        assert identity_at(str(link_dir / ".memory")) == kept  # One storm writes it once.
        assert after_a_kill(tmp_path) == memory(2)
        time.advance(1.0)
        await until(lambda: saved(state) == memory(2))
        time.advance(1.0)
    saving.close()


def test_a_memory_of_this_boot_is_not_written_again_as_long_as_it_says_the_same(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path), this_boot()), memory(1))
    written = identity_at(str(tmp_path / "memory.json"))
    again = StateFile(str(tmp_path), this_boot())
    save(again, again.load())
    assert identity_at(str(tmp_path / "memory.json")) == written


async def test_one_that_appears_before_the_first_save_is_not_the_memory_of_this_daemon(
    tmp_path: Path, link_dir: Path
) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    saving = Saving(str(state), link_dir=str(link_dir))
    with a_file_system_at(state):
        saving.begin()
        with a_full(state):
            saving.save_within(0.0, memory(2))
            saving.close()
    state.rmdir()
    late.rename(state)  # Now it is mounted.
    assert after_a_kill(tmp_path) == memory(2)


@pytest.mark.parametrize("how", ["restored", "removed", "of another boot"])
async def test_what_happens_to_the_file_while_no_process_runs_takes_nothing_from_the_memory(
    tmp_path: Path, link_dir: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    state = tmp_path / "state"
    saving = Saving(str(state), link_dir=str(link_dir))
    saving.begin()
    for number in (1, 2, 3):
        saving.save_within(0.0, memory(number))
        if number == 1:
            copy(state / "memory.json", tmp_path / "older")
    saving.close()
    if how == "removed":
        (state / "memory.json").unlink()
    else:
        if how == "of another boot":
            save(StateFile(str(tmp_path / "late"), "another"), memory(1))
            (tmp_path / "late/memory.json").rename(tmp_path / "older")
        os.utime(tmp_path / "older", (1_700_000_000, 1_700_000_000))
        (tmp_path / "older").rename(state / "memory.json")
    again = Saving(str(state), link_dir=str(link_dir))
    assert again.begin() == memory(3)
    again.close()
    assert saved(state) == memory(3)
    hints = [fields_of(record)["hint"] for record in caplog.records]
    if how == "removed":
        assert hints == []
        return
    hint = "the pods of this node got their devices without it; to use it, drain the node, stop genericdp, "
    hint += f"remove '{link_dir}/.memory', rename the file to 'memory.json' and start genericdp"
    assert hints == [hint]
    (link_dir / ".memory").unlink()
    (state / NAMED).rename(state / "memory.json")
    assert Saving(str(state), link_dir=str(link_dir)).load() == memory(1)


@pytest.mark.parametrize("what", ["touched", "copied"])
async def test_a_file_with_the_same_content_is_not_another_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    state = tmp_path / "state"
    path = state / "memory.json"
    with in_use(state) as saving:
        await idle()
        if what == "touched":
            os.utime(path, (1_700_000_000, 1_700_000_000))
        else:
            Path(copy(path, tmp_path / "copy")).replace(path)
        await idle()
        saving.save_within(0.0, memory(3))
        await saving.settled()
    assert saved(state) == memory(3)
    assert [*state.iterdir()] == [path]
    assert not caplog.messages


async def test_a_memory_that_takes_the_place_while_the_disk_is_slow_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    with in_use(state) as saving, a_slow_disk() as slow:
        saving.save_within(0.0, memory(3))
        await until(lambda: slow.waits)
        (late / "memory.json").rename(state / "memory.json")
        await idle()
        slow.answer()
        await saving.settled()
    assert saved(state) == memory(3)
    assert "another saved memory took the place of this daemon's, and is kept aside" in caplog.messages
    (state / NAMED).rename(state / "memory.json")
    assert saved(state) == memory(1)


async def test_one_that_takes_the_place_of_a_damaged_one_meanwhile_is_kept_under_its_own_name(
    tmp_path: Path,
) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "memory.json").write_bytes(b"\0")
    saving = Saving(str(state))
    saving.begin()
    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(3))
        await until(lambda: slow.waits)
        (late / "memory.json").rename(state / "memory.json")
        slow.answer()
        saving.close()
    assert sorted(path.name for path in state.iterdir()) == ["memory.json", NAMED]


async def test_a_memory_that_cannot_be_read_in_the_place_of_a_damaged_one_is_kept_too(tmp_path: Path) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "memory.json").write_bytes(b"\0")
    saving = Saving(str(state))
    saving.begin()
    (late / "memory.json").rename(state / "memory.json")
    (state / "memory.json").chmod(0o666)  # so it is refused
    saving.save_within(0.0, memory(3))
    await saving.settled()
    saving.close()
    assert sorted(path.name for path in state.iterdir()) == ["memory.json", NAMED]


async def test_nor_is_it_lost_if_the_disk_fails_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late, state = another(tmp_path), tmp_path / "state"
    saving = Saving(str(state))
    saving.begin()
    saving.save_within(0.0, memory(2))

    with a_slow_disk() as slow:
        saving.save_within(0.0, memory(3))
        await until(lambda: slow.waits)
        state.rename(tmp_path / "hidden")
        late.rename(state)
        monkeypatch.setattr(slow, "_fsync", fails)
        slow.answer()
        await saving.settled()
        monkeypatch.undo()
    saving.close()
    assert saved(state) == memory(3)
    (state / NAMED).rename(state / "memory.json")
    assert saved(state) == memory(1)


async def test_links_on_a_read_only_file_system_do_not_keep_a_memory_from_being_saved(
    tmp_path: Path, link_dir: Path
) -> None:
    state, links = tmp_path / "state", tmp_path / "read-only"
    with a_file_system_at(links), read_only(links):
        saving = Saving(str(state), link_dir=str(links))
        saving.begin()
        saving.save_within(0.0, memory(1))
        saving.close()
    assert saved(state) == memory(1)


def test_where_the_memory_cannot_be_kept_either_the_error_says_so(tmp_path: Path, link_dir: Path) -> None:
    state = tmp_path / "state"
    with a_file_system_at(state):
        fill(state)
        both = "restart of the daemon or a reboot; do not edit rules before that"
        for there, lost in ((link_dir, "reboot"), (tmp_path / "none", both)):
            with pytest.raises(GenericdpError) as caught:
                save(StateFile(str(state), this_boot(), str(there)), memory(1))
            assert caught.value.hint == (
                "free some space on that file system; "
                f"until the memory is saved, ids of twins and of absent devices do not survive a {lost}"
            )


async def test_a_memory_that_is_mounted_after_the_start_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Pods have got devices without it: what it says may contradict what they have."""
    late, state = another(tmp_path), tmp_path / "state"
    saving = Saving(str(state))
    assert saving.begin() == Memory()
    saving.save_within(0.0, memory(2))
    state.rename(tmp_path / "hidden")
    late.rename(state)
    saving.save_within(0.0, memory(3))
    saving.close()
    assert saved(state) == memory(3)
    kept = state / NAMED
    (record,) = caplog.records
    assert record.message == "another saved memory took the place of this daemon's, and is kept aside"
    assert fields_of(record) == {
        "file": str(kept),
        "hint": "the pods of this node got their devices without it; to use it, drain the node, "
        "stop genericdp, rename the file to 'memory.json' and start genericdp",
    }
    kept.rename(state / "memory.json")
    assert saved(state) == memory(1)


def test_a_memory_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path)), memory(1))
    with descriptors_left(0), pytest.raises(GenericdpError, match="Too many open files"):
        Saving(str(tmp_path)).load()
    assert Saving(str(tmp_path)).load() == memory(1)
