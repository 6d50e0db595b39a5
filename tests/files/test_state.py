"""The saved memory: written whole, read back, and a broken file never prevents a start."""

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.withdrawn import Shares, Withdrawn
from genericdp.errors import GenericdpError
from genericdp.files.state import (
    BOOT_FILE,
    BrokenStateError,
    StateFile,
    this_boot,
)
from genericdp.files.whole_file import LONGEST
from tests.scenes.shortage import a_file_system_at, descriptors_left, no_file_larger_than
from tests.scenes.state_file import save

PORT = "/sys/devices/pci0000:00/0000:00:14.0 usb2 1.2"
UNTIL_THEN = (
    "until the memory is saved, ids of twins and of absent devices do not survive "
    "a restart of the daemon or a reboot; do not edit rules before that"
)
NOT_WITHOUT_IT = "genericdp does not serve without what it remembers: pods may hold devices that are absent"

KEPT_ASIDE = "the daemon keeps it as '{}.broken' and starts with an empty memory"

MEMORY = Memory(
    devices={
        "ftdi_A5": Remembered(
            "example.com/ftdi",
            Device(
                "ftdi_A5",
                links=("ftdi_A5",),
                numa=1,
                unit="ftdi_A5",
                port=PORT,
                hub=f"{PORT[:-2]}",
                spots=(Spot(PORT, "A5\udcff", "if00"),),
            ),
        ),
        "modem_7": Remembered(
            "example.com/modem",
            Device("modem_7", Health.UNHEALTHY, "it is unplugged", links=("modem_7@if02", "modem_7@usb")),
            absent_since=17.0,
            earlier={Spot(PORT, "", "if04"): "2c7c:0125"},
            not_given=frozenset({Spot(PORT, "", "if05")}),
            listed=False,
        ),
    },
    ties={"ftdi_A5": PORT},
    shares=Shares(
        {"example.com/ftdi": 2, "example.com/modem": None},
        {"ftdi_A5.7": Withdrawn("example.com/ftdi", "ftdi_A5", since=3.0)},
    ),
    held={
        "ftdi_A5.7": Holding("example.com/ftdi", "ftdi_A5", shared=True, given=3.0),
        "modem_7": Holding(
            "example.com/modem", "modem_7", shared=False, links=("modem_7@if02", "shared+kfd")
        ),
    },
)


def inode(state: StateFile) -> int:
    """Which file it is: a save makes another one before it removes this one."""
    return os.stat(state.path).st_ino


def test_what_outlives_a_restart_is_what_tombstones_and_twins_need(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path)), MEMORY)
    loaded = StateFile(str(tmp_path)).load()
    assert loaded.ties == MEMORY.ties
    assert loaded.known_ports == MEMORY.known_ports
    assert loaded.shares == Shares(
        MEMORY.shares.replicas, {"ftdi_A5.7": Withdrawn("example.com/ftdi", "ftdi_A5", since=None)}
    )
    assert loaded.devices == {
        id_: Remembered(
            known.resource,
            Device(
                id_,
                Health.UNHEALTHY,
                links=known.device.links,
                numa=known.device.numa,
                unit=known.device.unit,
                port=known.device.port,
                hub=known.device.hub,
                spots=known.device.spots,
            ),
            # Its grace time starts again.
            absent_since=None,
            earlier=known.earlier,
            not_given=known.not_given,
            listed=known.listed,
        )
        for id_, known in MEMORY.devices.items()
    }
    assert loaded.held == MEMORY.held
    assert [holding.given for holding in loaded.held.values()] == [None, None]


def test_what_was_loaded_is_saved_as_it_was(tmp_path: Path) -> None:
    first, second = StateFile(str(tmp_path / "a")), StateFile(str(tmp_path / "b"))
    save(first, MEMORY)
    save(second, first.load())
    assert Path(second.path).read_text() == Path(first.path).read_text()


def test_without_a_file_nothing_is_remembered(tmp_path: Path) -> None:
    assert StateFile(str(tmp_path / "none")).load() == Memory()


def test_the_directory_is_made_and_is_nobody_elses(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path / "lib" / "genericdp")), MEMORY)
    assert (tmp_path / "lib" / "genericdp").stat().st_mode & 0o777 == 0o700


def test_it_is_written_only_when_it_says_something_else(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    save(state, MEMORY)
    written = inode(state)
    save(state, MEMORY)
    later = replace(MEMORY.devices["modem_7"], absent_since=99.0)
    save(state, replace(MEMORY, devices={**MEMORY.devices, "modem_7": later}))
    assert inode(state) == written
    save(state, Memory(MEMORY.devices))
    assert inode(state) != written


def test_what_was_just_loaded_is_not_written_again(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path)), MEMORY)
    state = StateFile(str(tmp_path))
    memory, written = state.load(), inode(state)
    save(state, memory)
    assert inode(state) == written


@pytest.mark.parametrize("what", ["removed", "moved away", "emptied", "replaced", "its directory removed"])
@pytest.mark.parametrize("loaded", [False, True], ids=["saved", "loaded"])
def test_a_file_that_is_no_longer_the_one_that_was_written_is_written_again(
    tmp_path: Path, what: str, loaded: bool
) -> None:
    state = StateFile(str(tmp_path / "state"))
    save(state, MEMORY)
    if loaded:
        state = StateFile(str(tmp_path / "state"))
    memory, text = state.load() if loaded else MEMORY, Path(state.path).read_text()
    match what:
        case "removed":
            os.unlink(state.path)
        case "moved away":
            os.rename(state.path, tmp_path / "backup")
        case "emptied":
            Path(state.path).write_text("")
        case "replaced":
            other = StateFile(str(tmp_path / "other"))
            save(other, Memory())
            os.replace(other.path, state.path)
        case _:
            shutil.rmtree(tmp_path / "state")
    save(state, memory)
    assert Path(state.path).read_text() == text


def test_the_file_is_replaced_not_written_into(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    save(state, Memory())
    with open(state.path, encoding="utf-8") as reader:
        save(state, MEMORY)
        assert json.load(reader) == {
            "boot": "",
            "version": 1,
            "ties": {},
            "devices": {},
            "replicas": {},
            "withdrawn": {},
            "held": {},
            "siblings": [],
            "late": [],
            "renamed": {},
            "answered": [],
        }
    assert os.listdir(tmp_path) == ["memory.json"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "list indices must be integers or slices, not str"),
        ("{}", "'version' is missing"),
        (
            '{"version": 1, "ties": [], "devices": {}}',
            "'list' object has no attribute 'items'",
        ),
        ('{"version": 1, "ties": {"a": 1}, "devices": {}}', "1 is not a string"),
        ('{"version": 1, "ties": {}, "devices": {"a": {}}}', "'links' is missing"),
        (
            '{"version": 1, "ties": {}, "devices": {}, "replicas": {"a/b": -1}}',
            "-1 is not a number from 0 to 10000",
        ),
        (
            '{"version": 1, "ties": {}, "devices": {}, "replicas": {"a/b": 30000000}}',
            "30000000 is not a number from 0 to 10000",
        ),
        (
            '{"version": 1, "ties": {}, "devices": {}, "replicas": {"a/b": true}}',
            "True is not a number from 0 to 10000",
        ),
        (
            '{"version": 1, "ties": {}, "devices": {}, "replicas": {"a": 2}}',
            "'a' is not the name of a resource",
        ),
        ('{"version": 1, "ties": {}, "devices": {}, "withdrawn": {"a": {}}}', "'resource' is missing"),
        ('{"version": 1, "ties": {}, "devices": {}, "left": "a"}', "'a' is not a list"),
        (
            '{"version": 1, "ties": {}, "devices": {}, "left": [["a", "b"]]}',
            "not enough values to unpack (expected 3, got 2)",
        ),
    ],
)
def test_a_broken_file_is_reported_and_kept_aside(tmp_path: Path, text: str, why: str) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(text)
    with pytest.raises(BrokenStateError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is broken: {why}"
    assert broken.value.hint == KEPT_ASIDE.format(state.path)
    assert Path(state.path).read_text() == text, "looking at it moved it"
    save(state, Memory())
    assert Path(f"{state.path}.broken").read_text() == text
    assert StateFile(str(tmp_path)).load() == Memory()


def test_a_file_that_is_not_json_is_called_that(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text("")
    with pytest.raises(BrokenStateError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is not JSON: Expecting value: line 1 column 1 (char 0)"
    assert broken.value.hint == KEPT_ASIDE.format(state.path)


def test_the_file_of_a_later_version_is_kept_aside_too(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text('{"version": 2}')
    with pytest.raises(GenericdpError) as other:
        state.load()
    assert str(other.value) == (f"'{state.path}' has format 2; this version of genericdp reads format 1")
    assert other.value.hint == KEPT_ASIDE.format(state.path)


GOOD = {"resource": "a/b", "unit": "u", "port": "p", "hub": "h", "numa": None, "links": ["a"]}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"numa": "0"}, "'0' is not a number from 0 to 10000"),
        ({"numa": 10**30}, f"{10**30} is not a number from 0 to 10000"),
        ({"links": ["../etc/passwd"]}, "'../etc/passwd' is not a link name"),
        ({"links": [".."]}, "'..' is not a link name"),
        ({"links": [".new"]}, "'.new' is not a link name"),
        ({"links": [""]}, "'' is not a link name"),
        ({"links": ["a\0b"]}, "'a\\x00b' is not a name"),
        ({"links": ["\ud800"]}, "'\\ud800' is not a name"),
        ({"links": ["x" * 256]}, f"'{'x' * 256}' is not a link name"),
        ({"links": [7]}, "7 is not a string"),
        ({"links": "a"}, "'a' is not a list"),
        ({"links": ["b"]}, "'b' is not a link of 'a'"),
        ({"links": ["a@"]}, "'a@' is not a link of 'a'"),
        ({"links": ["a@x y"]}, "'a@x y' is not a link of 'a'"),
        ({"numa": True}, "True is not a number from 0 to 10000"),
        ({"spots": [["p", "s", 7]]}, "7 is not a string"),
        ({"spots": [["p", "s"]]}, "['p', 's'] is not a spot"),
        ({"spots": [7]}, "7 is not a list"),
        ({"spots": ["psw"]}, "'psw' is not a list"),
        ({"resource": "a"}, "'a' is not the name of a resource"),
        ({"resource": None}, "None is not a string"),
        ({"resource": "\ud800"}, "'\\ud800' is not a name"),
    ],
)
def test_an_entry_that_genericdp_cannot_have_written_is_refused(
    tmp_path: Path, wrong: dict[str, object], why: str
) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {}, "devices": {"a": {**GOOD, **wrong}}}))
    with pytest.raises(GenericdpError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is broken: {why}"


@pytest.mark.parametrize("id_", ["", ".", "..", "a b", "a/b", "a@b", "-a", "é", "x" * 58])
def test_a_device_under_what_is_not_an_id_is_refused(tmp_path: Path, id_: str) -> None:
    """The kubelet would take it, however empty it is, and give it to a pod."""
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {}, "devices": {id_: GOOD}}))
    with pytest.raises(GenericdpError) as broken:
        state.load()
    why = f"{id_!r} is not a name" if not id_.isascii() else f"{id_!r} is not the id of a device"
    assert str(broken.value) == f"'{state.path}' is broken: {why}"


@pytest.mark.parametrize(
    ("withdrawn", "device", "why"),
    [
        ("", "a", "'' is not an id of 'a'"),
        ("a.07", "a", "'a.07' is not an id of 'a'"),
        ("a.10000", "a", "'a.10000' is not an id of 'a'"),
        ("b", "a", "'b' is not an id of 'a'"),
        ("a.7", "", "'' is not the id of a device"),
        ("a.7", "a", "'a.7' is both a device and a withdrawn id"),
    ],
)
def test_a_withdrawn_id_that_is_not_one_of_its_device_is_refused(
    tmp_path: Path, withdrawn: str, device: str, why: str
) -> None:
    state = StateFile(str(tmp_path))
    entry = {"resource": "a/b", "device": device}
    devices = {"a": GOOD, "a.7": {**GOOD, "links": []}}
    document = {"version": 1, "ties": {}, "devices": devices, "withdrawn": {withdrawn: entry}}
    Path(state.path).write_text(json.dumps(document))
    with pytest.raises(GenericdpError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is broken: {why}"


@pytest.mark.parametrize(
    ("held", "wrong", "why"),
    [
        ("b", {}, "'b' is not an id of 'a'"),
        ("a", {"device": "a b"}, "'a b' is not the id of a device"),
        ("a", {"shared": 1}, "1 is not true or false"),
        ("a", {"links": "a"}, "'a' is not a list"),
        ("a", {"links": ["b@if00"]}, "'b@if00' is not a link of 'a'"),
    ],
)
def test_a_holding_that_genericdp_cannot_have_written_is_refused(
    tmp_path: Path, held: str, wrong: dict[str, object], why: str
) -> None:
    state = StateFile(str(tmp_path))
    entry = {"resource": "a/b", "device": "a", "shared": False, **wrong}
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {}, "devices": {}, "held": {held: entry}}))
    with pytest.raises(GenericdpError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is broken: {why}"


def test_of_a_long_mistake_only_the_beginning_is_reported(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {"u": ["p" * 1000]}}))
    with pytest.raises(GenericdpError) as broken:
        state.load()
    assert str(broken.value) == f"'{state.path}' is broken: ['{'p' * 498}…"


def test_a_file_from_before_spots_were_saved_is_read(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {}, "devices": {"a": GOOD}}))
    assert state.load().devices["a"].device.spots == ()


def test_a_file_of_other_bytes_is_broken_too(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_bytes(b"\xff\xfe")
    with pytest.raises(GenericdpError, match="is broken: 'utf-8' codec"):
        state.load()
    save(state, MEMORY)
    assert Path(f"{state.path}.broken").read_bytes() == b"\xff\xfe"


def test_a_file_that_is_nested_without_end_is_broken_too(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text("[" * 100_000)
    with pytest.raises(GenericdpError, match="is broken: maximum recursion depth exceeded"):
        state.load()


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    os.mkfifo(state.path)
    with pytest.raises(GenericdpError) as unreadable:
        state.load()
    assert str(unreadable.value) == f"cannot read '{state.path}': it is not a regular file"


def test_a_file_of_an_absurd_size_is_not_read(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    with open(state.path, "wb") as file:
        file.truncate(LONGEST + 1)
    with pytest.raises(GenericdpError) as unreadable:
        state.load()
    assert str(unreadable.value) == f"cannot read '{state.path}': File too large"


def test_a_broken_file_may_be_gone_when_it_is_to_be_kept_aside(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).touch()
    with pytest.raises(GenericdpError):
        state.load()
    os.unlink(state.path)
    save(state, MEMORY)
    assert os.listdir(tmp_path) == ["memory.json"]


def test_a_file_that_cannot_be_read_is_not_reported_as_broken(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    os.mkdir(state.path)
    with pytest.raises(GenericdpError) as unreadable:
        state.load()
    assert not isinstance(unreadable.value, BrokenStateError)
    assert str(unreadable.value) == f"cannot read '{state.path}': {os.strerror(errno.EISDIR)}"
    assert unreadable.value.hint == f"move it away: genericdp does not write such a file; {NOT_WITHOUT_IT}"


def test_without_descriptors_a_memory_is_neither_read_nor_lost(tmp_path: Path) -> None:
    save(StateFile(str(tmp_path)), MEMORY)
    state = StateFile(str(tmp_path))
    with descriptors_left(0), pytest.raises(GenericdpError) as unreadable:
        state.load()
    assert not isinstance(unreadable.value, BrokenStateError)
    assert str(unreadable.value) == f"cannot read '{state.path}': Too many open files"
    assert unreadable.value.hint == (
        f"raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'; {NOT_WITHOUT_IT}"
    )
    assert state.load().ties == MEMORY.ties


@pytest.mark.parametrize("what", ["its directory", "a directory above", "itself", "a file"])
def test_a_memory_behind_a_symlink_that_leads_to_nothing_is_not_an_empty_one(
    tmp_path: Path, what: str
) -> None:
    """The file system that it leads to may be mounted later."""
    state = StateFile(str(tmp_path / "lib" / "genericdp"))
    match what:
        case "its directory":
            (tmp_path / "lib").mkdir()
            (tmp_path / "lib" / "genericdp").symlink_to(tmp_path / "not_mounted")
        case "a directory above":
            (tmp_path / "lib").symlink_to("not_mounted")
        case "itself":
            (tmp_path / "lib" / "genericdp").mkdir(parents=True)
            Path(state.path).symlink_to("not_mounted")
        case _:
            (tmp_path / "lib").touch()
    with pytest.raises(GenericdpError) as unreadable:
        state.load()
    why = os.strerror(errno.ENOTDIR if what == "a file" else errno.ENOENT)
    assert not isinstance(unreadable.value, BrokenStateError)
    assert str(unreadable.value) == f"cannot read '{state.path}': {why}"
    assert unreadable.value.hint == (
        f"a symlink in this path leads to nothing, or a part of it is not a directory; {NOT_WITHOUT_IT}"
    )


@pytest.mark.parametrize("loaded", ["nothing", "a memory", "a broken one"])
def test_a_file_that_was_neither_read_nor_written_is_never_replaced(tmp_path: Path, loaded: str) -> None:
    """The state directory may be mounted after the start."""
    state, other = StateFile(str(tmp_path / "state")), StateFile(str(tmp_path / "other"))
    save(other, MEMORY)
    arrived = Path(other.path).read_bytes()
    os.utime(other.path, (1_700_000_000, 1_700_000_000))
    kept = tmp_path / "state" / "memory.json.20231114T221320Z"
    match loaded:
        case "nothing":
            (tmp_path / "state").mkdir()
            assert state.load() == Memory()
        case "a memory":
            save(state, Memory(ties={"a": "b"}))
            state.load()
        case _:
            (tmp_path / "state").mkdir()
            Path(state.path).touch()
            with pytest.raises(BrokenStateError):
                state.load()
    os.replace(other.path, state.path)
    assert save(state, Memory(ties={"a": "c"})) == str(kept)
    assert kept.read_bytes() == arrived
    assert StateFile(str(tmp_path / "state")).load() == Memory(ties={"a": "c"})
    assert save(state, Memory(ties={"a": "d"})) == ""
    assert {each.name for each in (tmp_path / "state").iterdir()} == {kept.name, "memory.json"}


def test_two_files_of_the_same_second_are_kept_aside_under_two_names(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path / "state"))
    kept = tmp_path / "state" / "memory.json.20231114T221320Z"
    for name, aside in (("one", kept), ("two", Path(f"{kept}-1"))):
        save(state, Memory(ties={"a": name}))
        Path(f"{state.path}.other").write_text(name)
        os.utime(f"{state.path}.other", (1_700_000_000, 1_700_000_000))
        os.replace(f"{state.path}.other", state.path)
        assert save(state, MEMORY) == str(aside)
        assert aside.read_text() == name
    assert kept.read_text() == "one"


def test_the_same_file_is_kept_aside_once_however_often_it_is_put_in_place(tmp_path: Path) -> None:
    """By a tool that restores it every hour, for example."""
    state = StateFile(str(tmp_path / "state"))
    kept = tmp_path / "state" / "memory.json.20231114T221320Z"
    for hour in range(3):
        save(state, Memory(ties={"a": str(hour)}))
        Path(f"{state.path}.other").write_text("another")
        os.utime(f"{state.path}.other", (1_700_000_000 + 3600 * hour, 1_700_000_000 + 3600 * hour))
        os.replace(f"{state.path}.other", state.path)
        assert save(state, MEMORY) == str(kept)
    assert {each.name for each in kept.parent.iterdir()} == {kept.name, "memory.json"}
    assert kept.read_text() == "another"
    # One with as many bytes and the same time, as from an archive, is another one.
    Path(state.path).write_text("ANOTHER")
    os.utime(state.path, (1_700_000_000, 1_700_000_000))
    save(state, MEMORY)
    assert (kept.read_text(), Path(f"{kept}-1").read_text()) == ("another", "ANOTHER")
    # A file of another name is none that was kept aside.
    Path(f"{kept}.old").write_text("a third")
    Path(state.path).write_text("a third")
    os.utime(state.path, (1_700_000_000, 1_700_000_000))
    assert save(state, MEMORY) == f"{kept}-2"


def test_while_it_cannot_be_seen_which_file_is_in_place_none_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be that of somebody else, which must not be lost."""
    state = StateFile(str(tmp_path))
    Path(state.path).write_text("another")
    monkeypatch.setattr("genericdp.files.state.identity_at", lambda _: None)
    with pytest.raises(GenericdpError) as unsaved:
        save(state, MEMORY)
    assert str(unsaved.value) == f"cannot save '{state.path}': Input/output error"
    assert Path(state.path).read_text() == "another"
    monkeypatch.undo()
    assert save(state, MEMORY) != ""


def an_arrived_file(path: Path) -> None:
    """Another file takes this place, as if a file system had been mounted."""
    arrived = Path(f"{path}.arrived")
    arrived.write_text("arrived")
    os.utime(arrived, (1_700_000_000, 1_700_000_000))
    os.replace(arrived, path)


def seen_by_renames(monkeypatch: pytest.MonkeyPatch, path: Path) -> list[str]:
    """What a file says whenever a file is renamed."""
    seen: list[str] = []
    really = os.replace

    def replace_file(old: str, new: str, **options: int) -> None:
        seen.append(path.read_text() if path.exists() else "nothing")
        really(old, new, **options)

    monkeypatch.setattr(os, "replace", replace_file)
    return seen


def test_a_file_that_is_kept_aside_keeps_its_place_until_the_new_one_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in between would leave no memory at all."""
    state = StateFile(str(tmp_path))
    save(state, MEMORY)
    an_arrived_file(Path(state.path))
    in_place = seen_by_renames(monkeypatch, Path(state.path))
    kept = f"{state.path}.20231114T221320Z"
    assert save(state, MEMORY) == kept
    assert set(in_place) == {"arrived"}
    assert Path(kept).read_text() == "arrived"
    assert StateFile(str(tmp_path)).load().ties == MEMORY.ties


def test_a_file_is_kept_aside_without_hard_links_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: str, **__: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))  # link(2): the file system has none

    monkeypatch.setattr(os, "link", link)
    state = StateFile(str(tmp_path))
    Path(state.path).touch()
    with pytest.raises(BrokenStateError):
        state.load()
    save(state, MEMORY)
    assert {each.name: each.stat().st_size > 0 for each in tmp_path.iterdir()} == {
        "memory.json": True,
        "memory.json.broken": False,
    }


def test_a_file_that_was_repaired_before_it_is_read_again_is_not_kept_aside(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text("broken")
    with pytest.raises(BrokenStateError):
        state.load()
    save(StateFile(str(tmp_path / "other")), MEMORY)
    os.replace(tmp_path / "other" / "memory.json", state.path)
    assert state.load().ties == MEMORY.ties
    save(state, Memory())
    assert {each.name for each in tmp_path.iterdir()} == {"memory.json", "other"}


def test_a_broken_file_is_kept_beside_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who repairs a copy of the first one may make a mistake, too."""
    state = StateFile(str(tmp_path))
    Path(f"{state.path}.broken").write_text("an earlier one")
    Path(state.path).write_text("broken")
    with pytest.raises(BrokenStateError) as broken:
        state.load()
    assert broken.value.hint == KEPT_ASIDE.format(state.path).replace(".broken'", ".broken-1'")
    in_place = seen_by_renames(monkeypatch, Path(state.path))
    save(state, MEMORY)
    assert set(in_place) == {"broken"}
    assert Path(f"{state.path}.broken").read_text() == "an earlier one"
    assert Path(f"{state.path}.broken-1").read_text() == "broken"
    assert len(os.listdir(tmp_path)) == 3


@contextmanager
def names_are_unsafe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No directory can be made safe from a power cut."""
    really = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(GenericdpError, match="Input/output error"):
            yield


def test_a_file_whose_name_could_not_be_made_safe_is_still_the_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(str(tmp_path))
    save(state, Memory())
    with names_are_unsafe(monkeypatch):
        save(state, MEMORY)
    # The previous memory is saved again, too: the file holds the new one.
    assert save(state, Memory()) == ""
    assert StateFile(str(tmp_path)).load() == Memory()
    assert os.listdir(tmp_path) == ["memory.json"]


def test_a_broken_file_stays_aside_when_the_new_one_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text("broken")
    with pytest.raises(BrokenStateError):
        state.load()
    with names_are_unsafe(monkeypatch):
        save(state, MEMORY)
    save(state, MEMORY)
    assert Path(f"{state.path}.broken").read_text() == "broken"


def test_where_another_file_was_moved_is_said_once_the_new_one_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(str(tmp_path))
    assert state.load() == Memory()
    an_arrived_file(Path(state.path))
    for _ in range(2):
        with names_are_unsafe(monkeypatch):
            save(state, MEMORY)
    assert save(state, MEMORY) == f"{state.path}.20231114T221320Z"
    assert save(state, Memory()) == "", "said once"


def test_a_file_that_could_not_be_replaced_is_kept_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(str(tmp_path))
    an_arrived_file(Path(state.path))
    really = os.replace

    def replace_file(old: str, new: str, **options: int) -> None:
        if new == "memory.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really(old, new, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_file)
        for _ in range(3):
            with pytest.raises(GenericdpError, match="Input/output error"):
                save(state, MEMORY)
    kept = f"{state.path}.20231114T221320Z"
    assert save(state, MEMORY) == kept
    assert {each.path for each in os.scandir(tmp_path)} == {state.path, kept}


@pytest.mark.parametrize(
    ("seconds", "name"), [(1 << 58, "99991231T235959Z"), (-(1 << 58), "19700101T000000Z")]
)
def test_a_file_with_a_time_that_no_calendar_has_is_kept_aside_too(
    tmp_path: Path, seconds: int, name: str
) -> None:
    with a_file_system_at(tmp_path / "state"):
        state = StateFile(str(tmp_path / "state"))
        Path(state.path).write_text("arrived")
        os.utime(state.path, (seconds, seconds))
        assert save(state, MEMORY) == f"{state.path}.{name}"
        assert Path(f"{state.path}.{name}").read_text() == "arrived"


def test_a_memory_is_read_and_saved_from_a_directory_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(str(tmp_path))
    save(state, MEMORY)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert StateFile(str(tmp_path)).load().held == MEMORY.held
    save(state, Memory())
    assert StateFile(str(tmp_path)).load() == Memory()


def test_on_a_full_disk_half_a_file_is_not_left_behind(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    save(state, Memory())
    before = Path(state.path).read_bytes()
    with no_file_larger_than(10), pytest.raises(GenericdpError) as failed:
        save(state, MEMORY)
    assert str(failed.value) == f"cannot save '{state.path}': File too large"
    assert os.listdir(tmp_path) == ["memory.json"]
    assert Path(state.path).read_bytes() == before


def test_what_cannot_be_saved_is_reported_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "lib").touch()
    state = StateFile(str(tmp_path / "lib"))
    with pytest.raises(GenericdpError) as failed:
        save(state, MEMORY)
    assert str(failed.value) == f"cannot save '{state.path}': {os.strerror(errno.EEXIST)}"
    assert failed.value.hint == (
        f"a symlink in this path leads to nothing, or a part of it is not a directory; {UNTIL_THEN}"
    )
    os.unlink(tmp_path / "lib")
    save(state, MEMORY)
    assert StateFile(str(tmp_path / "lib")).load().ties == MEMORY.ties


def test_whatever_a_device_is_called_can_be_saved(tmp_path: Path) -> None:
    hostile = '\udcff\n"\\u0000\U0001f4a9'
    memory = Memory(ties={"unit": hostile})
    save(StateFile(str(tmp_path)), memory)
    assert StateFile(str(tmp_path)).load() == memory


def test_a_file_without_withdrawn_ids_is_read(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    Path(state.path).write_text(json.dumps({"version": 1, "ties": {"u": "p"}, "devices": {"a": GOOD}}))
    loaded = state.load()
    assert loaded.ties == {"u": "p"}
    assert list(loaded.devices) == ["a"]
    assert loaded.shares == Shares()


def test_what_is_saved_is_on_the_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync(2): the fsync of a file says nothing about its entry in the directory."""
    synced: list[int] = []
    really = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    save(StateFile(str(tmp_path)), Memory(ties={"a": "b"}))
    assert synced == [(tmp_path / "memory.json").stat().st_ino, tmp_path.stat().st_ino]


def test_a_memory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    state = StateFile(str(tmp_path))
    save(state, MEMORY)
    Path(state.path).chmod(0o666)
    with pytest.raises(GenericdpError) as refused:
        StateFile(str(tmp_path)).load()
    assert not isinstance(refused.value, BrokenStateError)
    assert str(refused.value) == f"'{state.path}' is refused: other users can write '{state.path}'"
    assert refused.value.hint == f"chmod go-w '{state.path}'; {NOT_WITHOUT_IT}"


def test_in_a_directory_that_others_can_write_nothing_is_read_or_saved(tmp_path: Path) -> None:
    """Somebody may have put a symlink to any file of the host where the memory is to be written."""
    state, victim = StateFile(str(tmp_path / "state")), tmp_path / "victim"
    save(state, Memory())
    victim.write_text("of root")
    (tmp_path / "state" / "memory.json.new").symlink_to(victim)
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(GenericdpError) as refused:
        StateFile(str(tmp_path / "state")).load()
    assert str(refused.value) == f"'{state.path}' is refused: other users can write '{tmp_path}/state'"
    with pytest.raises(GenericdpError) as failed:
        save(state, MEMORY)
    assert str(failed.value) == f"cannot save '{state.path}': other users can write '{tmp_path}/state'"
    assert failed.value.hint == (
        "use a directory of root instead; if only genericdp uses it: "
        f"chmod go-w '{tmp_path}/state'; {UNTIL_THEN}"
    )
    assert victim.read_text() == "of root"


def test_a_directory_below_one_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 4242, 4242)
    with pytest.raises(GenericdpError) as failed:
        save(StateFile(str(tmp_path / "state")), MEMORY)
    assert str(failed.value) == (
        f"cannot save '{tmp_path}/state/memory.json': '{tmp_path}' belongs to user 4242"
    )
    assert failed.value.hint == (
        f"use a directory of root instead; if only genericdp uses it: chown root '{tmp_path}'; {UNTIL_THEN}"
    )


def test_it_is_not_written_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / "memory.json.new").symlink_to("other")
    save(StateFile(str(tmp_path)), MEMORY)
    assert (tmp_path / "other").read_text() == "other"
    assert StateFile(str(tmp_path)).load().ties == MEMORY.ties


def test_whatever_the_umask_is_only_its_owner_can_write_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        save(StateFile(str(tmp_path)), MEMORY)
    finally:
        os.umask(before)
    assert (tmp_path / "memory.json").stat().st_mode & 0o777 == 0o644


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    state = StateFile(str(tmp_path))
    save(state, MEMORY)
    state.load()
    os.unlink(state.path)
    os.mkdir(state.path)
    with pytest.raises(GenericdpError):
        state.load()
    tmp_path.chmod(0o777)
    with pytest.raises(GenericdpError):
        save(state, Memory())
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_boot_is_what_the_unit_says_or_else_the_kernel() -> None:
    kernel = Path(BOOT_FILE).read_text(encoding="ascii").strip()
    assert this_boot({}) == kernel.replace("-", "")
    assert len(this_boot({})) == 32
    assert this_boot({"GENERICDP_BOOT_ID": kernel}) == this_boot({})
    assert this_boot({"GENERICDP_BOOT_ID": "0123"}) == "0123"


def test_the_memory_says_what_is_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "memory.json.new").mkdir()
    with pytest.raises(GenericdpError) as raised:
        save(StateFile(str(tmp_path)), Memory())
    assert str(raised.value) == f"cannot save '{tmp_path}/memory.json': Is a directory"
    assert raised.value.hint == (f"remove '{tmp_path}/memory.json.new'; {UNTIL_THEN}")
