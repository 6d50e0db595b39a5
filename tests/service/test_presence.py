"""Which devices were Healthy when the machine went down, on disk."""

import json
import os
import shutil
from pathlib import Path

import pytest

from genericdp.files.whole_file import LONGEST
from genericdp.service.presence import SAVE_WITHIN_S, Presence
from tests.scenes.scene import LoopTime
from tests.scenes.slow_disk import a_slow_disk, fails, when_waited_for
from tests.scenes.waiting import until

BOTH = frozenset({"ftdi_A", "ftdi_B"})
UNREAD = "cannot read which devices were there before the reboot, so READY does not wait for them"


def fields(caplog: pytest.LogCaptureFixture) -> object:
    (record,) = caplog.records
    return vars(record)["fields"]


def presence(directory: Path, boot: str, healthy: frozenset[str] | None = None) -> Presence:
    made = Presence(str(directory), boot)
    made.load()
    if healthy is not None:
        made.see(healthy)
    return made


async def test_what_one_boot_saved_the_next_one_loads(tmp_path: Path) -> None:
    state = tmp_path / "state"
    presence(state, "one", BOTH).save()
    assert Presence(str(state), "two").load() == BOTH
    # It is still there for the next process, if this one does not come to save anything.
    assert Presence(str(state), "two").load() == BOTH
    assert os.listdir(state) == ["presence.json"]


async def test_a_restart_of_the_daemon_is_no_boot(tmp_path: Path) -> None:
    presence(tmp_path, "one", BOTH).save()
    assert Presence(str(tmp_path), "one").load() == frozenset()


async def test_an_unknown_boot_saves_and_loads_nothing(tmp_path: Path) -> None:
    unknown = presence(tmp_path, "", BOTH)
    unknown.save()
    assert os.listdir(tmp_path) == []
    presence(tmp_path, "one", BOTH).save()
    assert Presence(str(tmp_path), "").load() == frozenset()


async def test_a_file_that_is_gone_is_written_again_when_the_daemon_stops(tmp_path: Path) -> None:
    state = tmp_path / "state"
    one = presence(state, "one", BOTH)
    one.save()
    shutil.rmtree(state)
    one.see(BOTH)
    one.save()
    again = presence(state, "one", BOTH)
    os.unlink(again.path)
    again.save()
    assert Presence(str(state), "two").load() == BOTH


async def test_a_device_that_comes_and_goes_is_written_seldom_and_not_at_all_if_it_is_back(
    tmp_path: Path,
) -> None:
    time = LoopTime()
    file = tmp_path / "presence.json"
    one = presence(tmp_path, "one", BOTH)
    one.save()
    before = file.stat()
    for _ in range(2):
        one.see(frozenset({"ftdi_A"}))
        time.advance(SAVE_WITHIN_S / 2)
        one.see(BOTH)
        time.advance(SAVE_WITHIN_S / 2)
    assert file.stat() == before

    one.see(frozenset({"ftdi_A"}))
    one.see(frozenset({"ftdi_B"}))
    time.advance(SAVE_WITHIN_S)
    await until(lambda: file.stat().st_ino != before.st_ino)
    assert json.loads(file.read_text()) == {"version": 1, "boot": "one", "healthy": ["ftdi_B"]}


async def test_nothing_is_written_that_was_not_seen(tmp_path: Path) -> None:
    presence(tmp_path, "one", BOTH).save()
    presence(tmp_path, "two").save()
    assert Presence(str(tmp_path), "three").load() == BOTH


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"x"',
        '{"version": 2, "boot": "one", "healthy": []}',
        '{"version": 1}',
        "[" * 5000,
    ]
    + [
        f'{{"version": 1, "boot": {boot}, "healthy": {ids}}}'
        for boot, ids in (("1", "[]"), ('"one"', '"ab"'))
    ],
)
async def test_a_file_that_makes_no_sense_is_said_and_replaced(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "presence.json"
    file.write_text(text)
    two = Presence(str(tmp_path), "two")
    assert two.load() == frozenset()
    assert caplog.messages == [UNREAD]
    assert fields(caplog) == {"path": str(file), "why": "it is damaged"}
    two.see(BOTH)
    two.save()
    assert Presence(str(tmp_path), "three").load() == BOTH


def test_a_file_of_an_absurd_size_is_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (tmp_path / "presence.json").open("wb") as file:
        file.truncate(LONGEST + 1)
    assert Presence(str(tmp_path), "two").load() == frozenset()
    assert caplog.messages == [UNREAD]


async def test_a_file_that_others_can_write_does_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    presence(tmp_path, "one", BOTH).save()
    (tmp_path / "presence.json").chmod(0o666)
    assert Presence(str(tmp_path), "two").load() == frozenset()
    assert caplog.messages == [UNREAD]


async def test_a_directory_that_cannot_be_written_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("not a directory")
    presence(tmp_path / "state", "one", BOTH).save()
    assert caplog.messages == ["cannot save which devices are there, so the next boot may not wait for them"]
    assert fields(caplog) == {"path": f"{tmp_path}/state/presence.json", "why": "File exists"}


async def test_what_could_not_be_saved_is_saved_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    time, one, tries = LoopTime(), presence(tmp_path, "one", BOTH), list[int]()

    def fsync(descriptor: int) -> None:
        tries.append(descriptor)
        fails(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        for number, pause in enumerate((SAVE_WITHIN_S, 1.0, 2.0, 4.0), 1):
            time.advance(pause)
            await until(lambda: len(tries) == number and one._retry.waits)  # noqa: B023  (asked in this round)
    assert caplog.messages == ["cannot save which devices are there, so the next boot may not wait for them"]
    time.advance(8.0)
    await until(lambda: Presence(str(tmp_path), "two").load() == BOTH)
    await until(lambda: not one._disk.is_busy)
    one.close()
    assert not one._retry.waits


async def test_nothing_is_tried_again_once_the_file_says_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    time, one = LoopTime(), presence(tmp_path, "one", BOTH)
    one.save()
    await until(lambda: not one._disk.is_busy)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        for said in (1, 2):
            one.see(frozenset())
            time.advance(SAVE_WITHIN_S)
            await until(lambda: one._retry.waits)
            one.see(BOTH)
            time.advance(1.0)
            await until(lambda: not one._retry.waits)
            assert len(caplog.messages) == said


async def test_a_slow_disk_holds_up_nothing_and_has_the_last_state_in_the_end(tmp_path: Path) -> None:
    time, one = LoopTime(), presence(tmp_path, "one", BOTH)
    one.save()
    with a_slow_disk() as slow:
        one.see(frozenset())
        time.advance(SAVE_WITHIN_S)
        await until(lambda: slow.waits)
        # As it was, and as the file still says.
        one.see(BOTH)
        slow.answer()
        await until(lambda: Presence(str(tmp_path), "two").load() == frozenset())
        await until(lambda: not one._disk.is_busy)
    time.advance(SAVE_WITHIN_S)
    await until(lambda: Presence(str(tmp_path), "two").load() == BOTH)


async def test_what_changes_while_a_write_fails_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, one = LoopTime(), presence(tmp_path, "one", frozenset())
    with a_slow_disk() as slow:
        time.advance(SAVE_WITHIN_S)
        await until(lambda: slow.waits)
        one.see(BOTH)
        monkeypatch.setattr(slow, "_fsync", fails)
        slow.answer_one()
        await until(lambda: not one._disk.is_busy)
        monkeypatch.undo()
    time.advance(SAVE_WITHIN_S)
    await until(lambda: Presence(str(tmp_path), "two").load() == BOTH)


async def test_the_end_waits_for_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time, one = LoopTime(), presence(tmp_path, "one", frozenset())
    with a_slow_disk() as slow:
        time.advance(SAVE_WITHIN_S)
        await until(lambda: slow.waits)
        one.see(BOTH)
        when_waited_for(monkeypatch, slow.answer)
        one.close()
    assert Presence(str(tmp_path), "two").load() == BOTH
