"""No CDI spec file stays where nobody keeps it right, however `cdi_dir` is edited and the daemon ends."""

import asyncio
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.errors import GenericdpError
from genericdp.files.cdi.specs import CdiSpecs
from genericdp.files.directories import (
    CDI_DIR,
    CDI_DIR_BESIDE_LINKS,
    cdi_notes,
    noted_cdi_dirs,
    notes_of_each_other,
    write_all,
)
from genericdp.service.directories import MOST_FORMER, Directories
from genericdp.status import client
from tests.scenes.builders import a_usb_serial
from tests.scenes.mounts import bind_mounted
from tests.scenes.rules import FTDI
from tests.scenes.scene import LoopTime, a_scene
from tests.scenes.service import settings_below
from tests.scenes.shortage import a_file_system_at, fill
from tests.scenes.waiting import idle, until

A = a_usb_serial(0, serial="A")
SPEC = "genericdp_example.com_ftdi.json"


def begun(settings: Settings) -> None:
    """A daemon with these settings starts, writes a spec file, and is killed."""
    with closing(Directories(settings, lambda: None)) as directories:
        directories.begin()
        directories.note_cdi_dir()
    directory = Path(settings.cdi_dir)
    directory.mkdir(exist_ok=True)
    (directory / SPEC).touch()


def specs_below(root: Path) -> list[str]:
    """The names of the directories that have a spec file."""
    return sorted(path.parent.name for path in root.glob(f"*/{SPEC}"))


@pytest.mark.parametrize("also", [{}, {"state_dir": "another-state"}], ids=["alone", "with state_dir"])
async def test_after_an_edit_of_cdi_dir_a_killed_daemon_leaves_no_spec_files(
    short_dir: Path, also: dict[str, str]
) -> None:
    """Runtimes read several directories, and another device may have the number by now."""
    old = settings_below(short_dir, answer=AnswerBy.CDI)
    async with a_scene(short_dir, A, settings=old) as scene:
        await scene.until_allocatable(1)
        left = {path: path.read_text() for path in Path(old.cdi_dir).glob("*.json")}
        assert left
        await scene.service.stop()
        for path, text in left.items():
            path.write_text(text)
        others: dict[str, Any] = {key: f"{short_dir}/{name}" for key, name in also.items()}
        scene.service.settings = replace(old, cdi_dir=f"{short_dir}/etc", **others)
        await scene.service.start()
        assert list(Path(old.cdi_dir).iterdir()) == []
        await scene.until_allocatable(1)
        assert list(Path(f"{short_dir}/etc").glob("*.json"))


async def test_spec_files_that_cannot_be_removed_after_an_edit_of_cdi_dir_are_named_and_removed_later(
    tmp_path: Path,
) -> None:
    before, left = settings_below(tmp_path), tmp_path / "cdi" / "genericdp_example.com_ftdi.json"
    write_all(notes_of_each_other(before))
    write_all(cdi_notes(before, {before.cdi_dir}))
    left.mkdir(parents=True)
    tried: list[GenericdpError | None] = []
    directories = Directories(replace(before, cdi_dir=f"{tmp_path}/etc"), lambda: None, tried.append)
    with closing(directories):
        directories.begin()
        (error,) = tried
        assert error is not None
        assert str(error) == (
            f"the CDI spec files stay in '{tmp_path}/cdi', which was 'cdi_dir': "
            f"cannot remove '{left}': Is a directory"
        )
        assert error.hint == (
            f"remove {tmp_path}/cdi/genericdp_*.json: container runtimes may read them, and they may lead to "
            "other devices by now"
        )
        left.rmdir()
        left.touch()
        LoopTime().advance(1.0)
        await until(lambda: not left.exists())
        assert tried == [error, None]
    assert Path(before.state_dir, CDI_DIR).read_text() == f"{tmp_path}/etc\n"


async def test_after_an_edit_of_cdi_dir_the_spec_files_of_another_genericdp_stay(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    write_all(cdi_notes(before, {before.cdi_dir}))
    other = CdiSpecs(before.cdi_dir)
    other.apply({"genericdp_example.com_ftdi.json": "theirs"})
    with closing(Directories(replace(before, cdi_dir=f"{tmp_path}/etc"), lambda: None)) as directories:
        directories.begin()
    assert other.intact()
    other.withdraw()


async def test_on_a_full_disk_an_edit_of_cdi_dir_that_is_undone_leaves_no_spec_files(short_dir: Path) -> None:
    one = settings_below(short_dir, answer=AnswerBy.CDI)
    two = replace(one, cdi_dir=f"{short_dir}/two")
    with a_file_system_at(short_dir / "state"):
        async with a_scene(short_dir, A, settings=one) as scene:
            await scene.until_allocatable(1)
            await scene.service.stop()
            filler = fill(short_dir / "state")
            scene.service.settings = two
            await scene.service.start()
            await scene.until_allocatable(1)
            left = {path: path.read_text() for path in Path(two.cdi_dir).glob("*.json")}
            assert left
            await scene.service.stop()
            for path, text in left.items():
                path.write_text(text)
            scene.service.settings = one
            await scene.service.start()
            await scene.until_allocatable(1)
            assert list(Path(two.cdi_dir).iterdir()) == []
            assert list(Path(one.cdi_dir).glob("*.json"))
            filler.unlink()
            LoopTime().advance(1.0)
            await until(lambda: noted_cdi_dirs(one) == {one.cdi_dir})


@pytest.mark.parametrize("lost", ["state_dir", "link_dir"])
async def test_one_note_is_enough(lost: str, tmp_path: Path) -> None:
    """A state directory cannot be written or is not that of the host; /dev is empty after a boot."""
    (tmp_path / "file").touch()
    other: dict[str, Any] = {lost: f"{tmp_path}/file/{lost}"}
    one = replace(settings_below(tmp_path), **other)
    for cdi_dir in ("one", "two", "three", "two"):
        begun(replace(one, cdi_dir=f"{tmp_path}/{cdi_dir}"))
        assert specs_below(tmp_path) == [cdi_dir]


async def test_after_several_edits_each_directory_that_could_not_be_cleared_is_still_noted(
    tmp_path: Path,
) -> None:
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    # A directory in the place of a file stays.
    (tmp_path / "one" / SPEC).unlink()
    (tmp_path / "one" / SPEC).mkdir()
    for each in ("two", "three"):
        begun(replace(one, cdi_dir=f"{tmp_path}/{each}"))
        noted = f"{tmp_path}/one\n{tmp_path}/{each}\n"
        assert Path(one.state_dir, CDI_DIR).read_text() == "".join(sorted(noted.splitlines(keepends=True)))
        assert (
            Path(one.link_dir, CDI_DIR_BESIDE_LINKS).read_text() == Path(one.state_dir, CDI_DIR).read_text()
        )
        assert specs_below(tmp_path) == sorted(["one", each])
    (tmp_path / "one" / SPEC).rmdir()
    (tmp_path / "one" / SPEC).touch()
    begun(replace(one, cdi_dir=f"{tmp_path}/four"))
    assert specs_below(tmp_path) == ["four"]
    assert Path(one.state_dir, CDI_DIR).read_text() == f"{tmp_path}/four\n"


async def test_an_edit_of_link_dir_takes_the_note_along(tmp_path: Path) -> None:
    """Only the one beside the links could be written."""
    one = settings_below(tmp_path)
    write_all(notes_of_each_other(one))
    Path(one.state_dir, CDI_DIR).mkdir()
    begun(one)
    begun(replace(one, link_dir=f"{tmp_path}/other", cdi_dir=f"{tmp_path}/two"))
    assert specs_below(tmp_path) == ["two"]
    begun(replace(one, link_dir=f"{tmp_path}/other"))
    assert specs_below(tmp_path) == ["cdi"]


async def test_nor_is_one_that_is_not_noted_any_more(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    with closing(Directories(settings, lambda: None)) as directories:
        directories.begin()
        directories.note_cdi_dir()
        for note in cdi_notes(settings, [settings.cdi_dir]):
            Path(note.path).unlink()
            Path(f"{note.path}.new").mkdir()
        await until(lambda: not directories._are_noted)
        with pytest.raises(GenericdpError, match="before it is noted"):
            directories.note_cdi_dir()
        for note in cdi_notes(settings, [settings.cdi_dir]):
            Path(f"{note.path}.new").rmdir()


async def test_a_directory_that_cannot_be_noted_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = settings_below(tmp_path, state_dir=f"{tmp_path}/file/state", link_dir=f"{tmp_path}/file/links")
    tried: list[GenericdpError | None] = []
    with closing(Directories(settings, lambda: None, tried.append)) as directories:
        directories.begin()
        with pytest.raises(GenericdpError) as caught:
            directories.note_cdi_dir()
        why = (
            f"cannot use the CDI directory '{tmp_path}/cdi' before it is noted: cannot write "
            f"'{tmp_path}/file/state/cdi_dir': Not a directory"
        )
        assert (str(caught.value), [*map(str, tried)]) == (why, [why])
        (tmp_path / "file").unlink()
        directories.note_cdi_dir()
        assert noted_cdi_dirs(settings) == {settings.cdi_dir}


async def test_devices_wait_until_the_directory_is_noted(short_dir: Path) -> None:
    settings = settings_below(short_dir, answer=AnswerBy.CDI)
    notes = Path(settings.state_dir, CDI_DIR), Path(settings.link_dir, CDI_DIR_BESIDE_LINKS)
    for each in notes:
        each.mkdir(parents=True)
    async with a_scene(short_dir, A, settings=settings) as scene:
        await scene.until_allocatable(0, capacity=1)
        (device,) = scene.daemon.inventory.offers[FTDI].devices
        assert device.reason == (
            f"cannot use the CDI directory '{settings.cdi_dir}' before it is noted: "
            f"cannot write '{notes[0]}': Is a directory"
        )
        assert not Path(settings.cdi_dir).exists()
        for each in notes:
            each.rmdir()
        LoopTime().advance(1.0)
        await scene.until_allocatable(1)
        assert noted_cdi_dirs(settings) == {settings.cdi_dir}


def noted(settings: Settings) -> list[str]:
    return Path(settings.state_dir, CDI_DIR).read_text().splitlines()


@pytest.mark.parametrize("is_in_a_pod", [False, True])
async def test_a_directory_that_cannot_be_seen_stays_noted_and_is_cleared_when_it_appears(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *, is_in_a_pod: bool
) -> None:
    """Its file system is mounted later, or only in the pod of before."""
    if is_in_a_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    (tmp_path / "one").rename(tmp_path / "hidden")
    begun(replace(one, cdi_dir=f"{tmp_path}/two"))
    assert noted(one) == [f"{tmp_path}/one", f"{tmp_path}/two"]
    message = "CDI spec files may be left in a directory that is not mounted here"
    assert caplog.messages == [message] * is_in_a_pod
    with closing(Directories(replace(one, cdi_dir=f"{tmp_path}/two"), lambda: None)) as directories:
        directories.begin()
        assert noted(one) == [f"{tmp_path}/one", f"{tmp_path}/two"]
        (tmp_path / "hidden").rename(tmp_path / "one")
        await until(lambda: noted(one) == [f"{tmp_path}/two"])
        assert specs_below(tmp_path) == ["two"]


async def test_a_former_directory_is_cleared_when_its_file_system_is_mounted(tmp_path: Path) -> None:
    """Nothing was found in the empty directory below, and that says nothing about it."""
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    (tmp_path / "one").rename(tmp_path / "hidden")
    (tmp_path / "one").mkdir()
    for _ in range(2):
        begun(replace(one, cdi_dir=f"{tmp_path}/two"))
        assert noted(one) == [f"{tmp_path}/one", f"{tmp_path}/two"]
    with closing(Directories(replace(one, cdi_dir=f"{tmp_path}/two"), lambda: None)) as directories:
        directories.begin()
        with bind_mounted(tmp_path / "hidden", tmp_path / "one"):
            await until(lambda: noted(one) == [f"{tmp_path}/two"])
        assert specs_below(tmp_path) == ["two"]


async def test_a_former_directory_is_cleared_when_a_spec_file_comes_back(tmp_path: Path) -> None:
    """Nothing was found there at the start. Other files do not matter."""
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/two")
    former = tmp_path / "one"
    former.mkdir()
    write_all(cdi_notes(one, [str(former)]))
    tried: list[GenericdpError | None] = []
    with closing(Directories(one, lambda: None, tried.append)) as directories:
        directories.begin()
        (former / "nvidia.yaml").touch()
        await idle()
        assert len(tried) == 1
        (former / SPEC).touch()
        await until(lambda: noted(one) == [f"{tmp_path}/two"])
        assert [each.name for each in former.iterdir()] == ["nvidia.yaml"]


async def test_a_directory_that_is_used_again_is_no_former_one(tmp_path: Path) -> None:
    for each in ("one", "two"):
        (tmp_path / each).mkdir()
    (tmp_path / "cdi").symlink_to("one")
    settings = settings_below(tmp_path)
    with closing(Directories(settings, lambda: None)) as directories:
        directories.begin()
        for target, former in (("two", {f"{tmp_path}/one"}), ("one", {f"{tmp_path}/two"})):
            (tmp_path / "cdi").unlink()
            (tmp_path / "cdi").symlink_to(target)
            directories.note_cdi_dir()
            directories._name()
            assert directories._former.keys() == former


async def test_of_many_former_directories_in_which_nothing_is_found_none_is_noted(tmp_path: Path) -> None:
    one = settings_below(tmp_path)
    former = [f"{tmp_path}/{n}" for n in range(MOST_FORMER + 1)]
    for few in (former[1:], former):
        for each in few:
            Path(each).mkdir(exist_ok=True)
        write_all(cdi_notes(one, few))
        with closing(Directories(one, lambda: None)) as directories:
            directories.begin()
            kept = few if len(few) <= MOST_FORMER else []
            assert noted(one) == sorted([*kept, one.cdi_dir])


async def test_those_that_are_not_there_stay_noted_however_many(tmp_path: Path) -> None:
    one = settings_below(tmp_path)
    former = [f"{tmp_path}/{n}" for n in range(MOST_FORMER + 1)]
    write_all(cdi_notes(one, former))
    with closing(Directories(one, lambda: None)) as directories:
        directories.begin()
        assert noted(one) == sorted([*former, one.cdi_dir])


async def test_a_directory_that_a_note_names_already_is_used_though_no_note_can_be_written(
    tmp_path: Path,
) -> None:
    one = settings_below(tmp_path)
    write_all(cdi_notes(one, [one.cdi_dir, f"{tmp_path}/other"]))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / SPEC).touch()
    ways = [Path(one.state_dir, f"{CDI_DIR}.new"), Path(one.link_dir, f"{CDI_DIR_BESIDE_LINKS}.new")]
    for each in ways:
        each.mkdir()
    with closing(Directories(one, lambda: None)) as directories:
        directories.begin()
        assert not (tmp_path / "other" / SPEC).exists()
        directories.note_cdi_dir()
        for each in ways:
            each.rmdir()
    assert noted(one) == [one.cdi_dir]


async def test_where_a_symlink_led_before_is_cleared(tmp_path: Path) -> None:
    """It was pointed elsewhere after a kill: nothing but the note leads to the directory of before."""
    for each in ("one", "two"):
        (tmp_path / each).mkdir()
    (tmp_path / "cdi").symlink_to("one")
    settings = settings_below(tmp_path)
    begun(settings)
    (tmp_path / "cdi").unlink()
    (tmp_path / "cdi").symlink_to("two")
    begun(settings)
    assert [*(tmp_path / "one").iterdir()] == []
    assert noted(settings) == [f"{tmp_path}/two"]


@pytest.mark.parametrize("name", [b"\xe9", b"a\nb", b"a\n/b", b"a\\nb", b"a\\", b"a\rb", "\u2028".encode()])
async def test_a_directory_with_any_name_is_noted_and_cleared(short_dir: Path, name: bytes) -> None:
    """Only the setting has to be printable, not where a symlink leads."""
    real = Path(os.fsdecode(os.path.join(os.fsencode(short_dir), name)))
    real.mkdir(parents=True)
    (short_dir / "cdi").symlink_to(real)
    settings = settings_below(short_dir, answer=AnswerBy.CDI)
    async with a_scene(short_dir, A, settings=settings) as scene:
        await scene.until_allocatable(1)
        assert noted_cdi_dirs(settings) == {str(real)}
        left = {path: path.read_text() for path in real.glob("*.json")}
        assert left
        await scene.service.stop()
        for path, text in left.items():
            path.write_text(text)
        scene.service.settings = replace(settings, cdi_dir=f"{short_dir}/etc")
        await scene.service.start()
        assert [*real.glob("*.json")] == []
        await scene.until_allocatable(1)
        assert noted(settings) == [f"{short_dir}/etc"]


async def test_a_symlink_to_a_name_that_is_not_utf_8_does_not_end_the_daemon(short_dir: Path) -> None:
    settings = settings_below(short_dir, answer=AnswerBy.CDI)
    real = Path(os.fsdecode(os.fsencode(short_dir) + b"/caf\xe9"))
    async with a_scene(short_dir, A, settings=settings) as scene:
        await scene.until_allocatable(1)
        real.mkdir()
        Path(settings.cdi_dir).rename(short_dir / "before")
        Path(settings.cdi_dir).symlink_to(real)
        await until(lambda: [*real.glob("*.json")])
        await scene.until_allocatable(1)
        assert not (await asyncio.to_thread(client.status, settings))["failing"]


async def test_a_symlink_that_leads_elsewhere_while_files_are_there_leaves_none(short_dir: Path) -> None:
    for each in ("one", "two"):
        (short_dir / each).mkdir()
    (short_dir / "cdi").symlink_to("one")
    settings = settings_below(short_dir, answer=AnswerBy.CDI)
    async with a_scene(short_dir, A, settings=settings) as scene:
        await scene.until_allocatable(1)
        assert [*(short_dir / "one").glob("*.json")]
        (short_dir / "cdi.new").symlink_to("two")
        (short_dir / "cdi.new").rename(short_dir / "cdi")
        await until(lambda: [*(short_dir / "two").glob("*.json")])
        assert [*(short_dir / "one").glob("*.json")] == []
        assert f"{short_dir}/two" in noted(settings)


async def test_directories_are_cleared_even_if_nothing_can_be_noted(tmp_path: Path) -> None:
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    for note in (Path(one.state_dir, CDI_DIR), Path(one.link_dir, CDI_DIR_BESIDE_LINKS)):
        Path(f"{note}.new").mkdir()
    with closing(Directories(replace(one, cdi_dir=f"{tmp_path}/two"), lambda: None)) as directories:
        directories.begin()
    assert specs_below(tmp_path) == []


async def test_a_line_that_names_no_directory_hides_no_other_one(tmp_path: Path) -> None:
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    for note in (Path(one.state_dir, CDI_DIR), Path(one.link_dir, CDI_DIR_BESIDE_LINKS)):
        note.write_bytes(b"relative\n\xff\n" + note.read_bytes() + b"/with\rreturn\n")
    begun(replace(one, cdi_dir=f"{tmp_path}/two"))
    assert specs_below(tmp_path) == ["two"]


async def test_each_of_several_failures_is_reported(tmp_path: Path) -> None:
    one = settings_below(tmp_path, cdi_dir=f"{tmp_path}/one")
    begun(one)
    (tmp_path / "one" / SPEC).unlink()
    (tmp_path / "one" / SPEC).mkdir()
    Path(one.state_dir, "link_dir").unlink()
    Path(one.state_dir, "link_dir").mkdir()
    tried: list[GenericdpError | None] = []
    two = replace(one, cdi_dir=f"{tmp_path}/two")
    with closing(Directories(two, lambda: None, tried.append)) as directories:
        directories.begin()
        directories.see_room()
        why = (
            f"the CDI spec files stay in '{tmp_path}/one', which was 'cdi_dir': "
            f"cannot remove '{tmp_path}/one/{SPEC}': Is a directory; "
            f"cannot write '{one.state_dir}/link_dir': Is a directory; "
            "until then, an edit of 'link_dir' or 'state_dir' is not noticed"
        )
        assert [*map(str, tried)] == [why, why]
        assert tried[0] is not None
        assert f"remove '{one.state_dir}/link_dir'" in tried[0].hint


async def test_status_says_that_spec_files_stay_in_a_former_directory(short_dir: Path) -> None:
    one = settings_below(short_dir, cdi_dir=f"{short_dir}/one")
    begun(one)
    (short_dir / "one" / SPEC).unlink()
    (short_dir / "one" / SPEC).mkdir()
    async with a_scene(short_dir, A, settings=replace(one, cdi_dir=f"{short_dir}/two")) as scene:
        await scene.until_allocatable(1)
        (failing,) = (await asyncio.to_thread(client.status, scene.settings))["failing"]
        assert failing["what"] == "directories"
        assert failing["reason"] == (
            f"the CDI spec files stay in '{short_dir}/one', which was 'cdi_dir': "
            f"cannot remove '{short_dir}/one/{SPEC}': Is a directory"
        )
        (short_dir / "one" / SPEC).rmdir()
        LoopTime().advance(1.0)
        await until(lambda: not scene.daemon.recorder.history.failing)


async def test_a_note_that_is_no_file_names_nothing(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    Path(settings.state_dir).mkdir()
    os.mkfifo(Path(settings.state_dir, CDI_DIR))
    assert noted_cdi_dirs(settings) == frozenset()
