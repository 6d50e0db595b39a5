"""The stable links as a container runtime finds them, in a real directory."""

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from genericdp.errors import GenericdpError
from genericdp.files.kept_directory import make_for_all
from genericdp.files.links import Changed, Links, led
from genericdp.service.flock import NAME, NodeLock
from tests.scenes.shortage import descriptors_left
from tests.scenes.stranger import as_stranger


def links_in(directory: Path) -> dict[str, str]:
    return {entry.name: os.readlink(entry) for entry in sorted(directory.iterdir())}


def test_a_link_points_at_its_device_node_in_a_directory_made_for_it(tmp_path: Path) -> None:
    directory = tmp_path / "dev" / "genericdp"
    assert Links(str(directory)).apply({"ftdi_A5": "/dev/ttyUSB0"}) == {}
    assert links_in(directory) == {"ftdi_A5": "/dev/ttyUSB0"}
    assert directory.stat().st_mode & 0o022 == 0


@pytest.fixture
def umask_of_the_unit() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask_of_the_unit")
def test_a_directory_is_made_although_the_system_cannot_tell_what_is_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for `/`: no memory, or the disk fails."""

    def lstat(path: object) -> NoReturn:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), path)

    monkeypatch.setattr(os, "lstat", lstat)
    make_for_all(f"{tmp_path}/links")
    assert os.path.isdir(f"{tmp_path}/links")


def test_everybody_may_enter_the_directory_and_those_above_it_whatever_the_umask_is(short_dir: Path) -> None:
    """For a pod with a user namespace of its own, runc looks up the path of the host without any rights."""
    directory = short_dir / "dev" / "genericdp"
    short_dir.chmod(0o755)
    with NodeLock(str(directory)), as_stranger():
        assert list(directory.iterdir()) == [directory / NAME]
    directory.chmod(0o700)  # as an earlier release made it
    Links(str(directory)).apply({"ftdi_A5": "/dev/null"})
    with as_stranger():
        assert (directory / "ftdi_A5").is_char_device()


def test_nothing_else_is_opened_to_everybody_if_a_user_puts_it_there_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write the directory above may replace what was just made."""
    secret, directory, mkdir = tmp_path / "secret", tmp_path / "links", os.mkdir
    secret.touch(mode=0o600)

    def and_replaced(path: str, *rest: int) -> None:
        mkdir(path, *rest)
        os.rmdir(path)
        os.symlink(secret, path)

    monkeypatch.setattr(os, "mkdir", and_replaced)
    with pytest.raises(GenericdpError):
        Links(str(directory)).apply({})
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o711, 0o750])
def test_the_mode_that_an_operator_gave_the_directory_stays(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"})
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


def test_the_link_of_an_absent_device_points_at_itself_so_that_every_runtime_refuses(tmp_path: Path) -> None:
    Links(str(tmp_path)).apply({"ftdi_A5": None})
    assert links_in(tmp_path) == {"ftdi_A5": "ftdi_A5"}
    with pytest.raises(OSError) as refused:
        os.stat(tmp_path / "ftdi_A5")
    assert refused.value.errno == errno.ELOOP


def test_a_device_that_comes_back_as_another_node_keeps_its_link(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    for path in ("/dev/ttyUSB0", None, "/dev/ttyUSB3"):
        links.apply({"ftdi_A5": path})
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/ttyUSB3"}


def test_a_link_that_udev_pointed_at_itself_is_left_alone_until_its_device_was_read_again(
    tmp_path: Path,
) -> None:
    links = Links(str(tmp_path))
    wanted: dict[str, str | None] = {"ftdi_A5": "/dev/ttyUSB0", "ftdi_B5": "/dev/ttyUSB1", "absent": None}
    links.apply(wanted)
    kill(tmp_path / "ftdi_A5")
    (tmp_path / "absent").unlink()
    assert links.changed() == Changed(frozenset({"ftdi_A5"}), frozenset({"absent"}))
    assert links.changed(["ftdi_A5", "ftdi_B5", "unknown"]) == Changed(frozenset({"ftdi_A5"}), frozenset())
    for _ in range(2):
        assert links.apply(wanted) == {}
        assert links.dead == {"ftdi_A5"}
        assert links_in(tmp_path)["ftdi_A5"] == "ftdi_A5"
    links.revive(links.dead)
    links.apply(wanted)
    assert links.dead == frozenset()
    assert links_in(tmp_path)["ftdi_A5"] == "/dev/ttyUSB0"


def test_a_device_that_comes_back_elsewhere_has_its_link_again_although_udev_pointed_it_at_itself(
    tmp_path: Path,
) -> None:
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": "/dev/ttyUSB0"})
    kill(tmp_path / "ftdi_A5")
    links.apply({"ftdi_A5": "/dev/ttyUSB3"})
    assert links.dead == frozenset()
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/ttyUSB3"}


def test_a_link_that_an_earlier_process_left_dead_is_made_at_once(tmp_path: Path) -> None:
    kill(tmp_path / "ftdi_A5")
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": "/dev/ttyUSB0"})
    assert links.dead == frozenset()
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/ttyUSB0"}


def kill(link: Path) -> None:
    """Point a link at itself, as udev's rule of the package does."""
    link.with_name(".gone").symlink_to(link.name)
    link.with_name(".gone").rename(link)


def test_a_link_is_never_missing_while_it_changes(tmp_path: Path) -> None:
    links, link = Links(str(tmp_path)), str(tmp_path / "ftdi_A5")
    links.apply({"ftdi_A5": "/dev/ttyUSB0"})
    seen: set[str] = set()
    missing: list[OSError] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                seen.add(os.readlink(link))
            except OSError as error:
                missing.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        targets: list[str | None] = [None, "/dev/ttyUSB1", "/dev/ttyUSB0"]
        for round_ in range(3000):
            links.apply({"ftdi_A5": targets[round_ % 3]})
    finally:
        stop.set()
        reader.join()
    assert not missing
    assert seen <= {"ftdi_A5", "/dev/ttyUSB0", "/dev/ttyUSB1"}


def test_a_link_that_is_right_is_not_touched(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": "/dev/ttyUSB0", "absent": None})
    before = {name: os.lstat(tmp_path / name).st_ino for name in ("ftdi_A5", "absent")}
    links.apply({"ftdi_A5": "/dev/ttyUSB0", "absent": None})
    assert {name: os.lstat(tmp_path / name).st_ino for name in before} == before


def test_the_link_of_a_forgotten_device_is_removed(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": None, "other": "/dev/null"})
    assert links.apply({"other": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"other": "/dev/null"}


def test_a_forgotten_link_may_be_gone_already(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": "/dev/null"})
    (tmp_path / "ftdi_A5").unlink()
    assert links.apply({}) == {}


def test_a_link_of_an_earlier_process_that_nobody_asks_for_is_pointed_at_itself(tmp_path: Path) -> None:
    Links(str(tmp_path)).apply({"ftdi_A5": "/dev/ttyUSB0", "kept": "/dev/null"})
    assert Links(str(tmp_path)).apply({"kept": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "ftdi_A5", "kept": "/dev/null"}


def test_a_link_that_only_tells_which_node_is_held_is_removed_when_nobody_asks_for_it(tmp_path: Path) -> None:
    for name, target in (("held+a", "/dev/ttyUSB0"), ("held+b", "held+b"), ("held+c", "/etc/passwd")):
        (tmp_path / name).symlink_to(target)
    Links(str(tmp_path)).apply({"a": None})
    assert links_in(tmp_path) == {"a": "a", "held+c": "/etc/passwd"}


def test_links_of_an_earlier_process_tell_where_they_led(tmp_path: Path) -> None:
    directory, file = tmp_path / "directory", tmp_path / "file"
    directory.mkdir()
    file.touch()
    for name, target in {
        "a@if00": "/dev/ttyUSB0",
        "dead": "dead",
        "held+b": "/dev/ttyUSB1",
        "held+dead": "/dev/ttyUSB2",
        "elsewhere": "/etc/passwd",
        ".new-0": "/dev/ttyUSB3",
    }.items():
        (directory / name).symlink_to(target)
    assert led(str(directory)) == {
        "a@if00": "/dev/ttyUSB0",
        "held+b": "/dev/ttyUSB1",
        "held+dead": "/dev/ttyUSB2",
    }
    assert led(str(tmp_path / "missing")) == led(str(file)) == {}


def test_what_a_killed_process_left_half_done_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".new").symlink_to("/dev/ttyUSB0")
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/null"}


def test_a_leftover_under_the_temporary_name_of_a_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".new").touch()
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/null"}


@pytest.mark.parametrize(("age_s", "left"), [(10.0, True), (600.0, False)])
def test_what_a_killed_program_of_udevs_rule_left_is_cleared_away_when_it_is_old(
    tmp_path: Path, age_s: float, left: bool
) -> None:
    """A young one may be renamed in the next moment."""
    gone = tmp_path / ".gone-4711"
    gone.symlink_to("ftdi_A5")
    os.utime(gone, (time.time() - age_s,) * 2, follow_symlinks=False)
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert gone.is_symlink() is left
    assert os.readlink(tmp_path / "ftdi_A5") == "/dev/null"


def test_links_to_anything_but_devices_are_left_alone(tmp_path: Path) -> None:
    others = {"bin": "usr/bin", "by-name": "../../sda", "log": "/run/systemd/journal/dev-log"}
    for name, target in others.items():
        (tmp_path / name).symlink_to(target)
    assert Links(str(tmp_path)).apply({"ftdi_A5": None}) == {}
    assert links_in(tmp_path) == {**others, "ftdi_A5": "ftdi_A5"}


def test_other_files_in_the_directory_stay(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    (tmp_path / ".newspaper").touch()
    (tmp_path / "folder").mkdir()
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": None})
    links.apply({})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".newspaper", "README", "folder"]
    assert (tmp_path / "README").read_text() == "mine"


def test_a_file_that_has_the_name_of_a_link_gives_way(tmp_path: Path) -> None:
    # The path in an answer must be a link of genericdp, not a file that was there before.
    (tmp_path / "ftdi_A5").write_text("pretends")
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/ttyUSB0"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/ttyUSB0"}


def test_a_link_that_cannot_be_made_is_reported_and_the_others_are_made(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").mkdir()
    failed = Links(str(tmp_path)).apply({"in-the-way": "/dev/ttyUSB0", "other": "/dev/null"})
    assert failed == {"in-the-way": f"cannot create the link '{tmp_path}/in-the-way': Is a directory"}
    assert os.readlink(tmp_path / "other") == "/dev/null"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in-the-way", "other"]


HINT = (
    "it must be a directory, not a symlink, that only genericdp uses and that it can write to; "
    "see 'link_dir' in genericdp.toml"
)


@pytest.mark.parametrize(
    ("kind", "why"),
    [("file", "Not a directory"), ("symlink", "Not a directory"), ("loop", "Not a directory")],
)
def test_a_link_directory_that_is_not_a_directory_is_refused(tmp_path: Path, kind: str, why: str) -> None:
    directory = tmp_path / "genericdp"
    match kind:
        case "file":
            directory.touch()
        case "symlink":
            (tmp_path / "elsewhere").mkdir()
            directory.symlink_to(tmp_path / "elsewhere")
        case _:
            directory.symlink_to(directory)
    with pytest.raises(GenericdpError) as refused:
        Links(str(directory)).apply({"ftdi_A5": "/dev/null"})
    assert str(refused.value) == f"cannot use the link directory '{directory}': {why}"
    assert refused.value.hint == HINT


def test_a_link_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GenericdpError) as refused:
        Links(f"{tmp_path}/file/genericdp").apply({})
    assert str(refused.value) == f"cannot use the link directory '{tmp_path}/file/genericdp': Not a directory"


@pytest.mark.parametrize("inside", [(), ("file",)])
@pytest.mark.parametrize("name", [".new", ".new-0123456789abcdef"])
def test_a_directory_with_a_temporary_name_keeps_no_link_alive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, inside: tuple[str, ...]
) -> None:
    """It kept the link of an unplugged device at a device node that another device may have by now."""
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": "/dev/ttyUSB0", "gone": "/dev/ttyUSB1"})
    (tmp_path / name).mkdir()
    for file in inside:
        (tmp_path / name / file).touch()
    assert links.apply({"ftdi_A5": None}) == {}
    assert sorted(os.listdir(tmp_path)) == [name, "ftdi_A5"]
    assert os.readlink(tmp_path / "ftdi_A5") == "ftdi_A5"
    (warning,) = caplog.records
    assert warning.getMessage() == "something in the link directory is not of genericdp and cannot be removed"
    assert getattr(warning, "fields", None) == {
        "path": f"{tmp_path}/{name}",
        "why": "Is a directory",
        "hint": "nothing depends on it; remove it",
    }


@pytest.mark.parametrize("kind", ["file", "fifo", "socket", "symlink"])
def test_anything_else_with_a_temporary_name_is_cleared_away(tmp_path: Path, kind: str) -> None:
    for name in (".new", ".new-0123456789abcdef"):
        path = tmp_path / name
        match kind:
            case "file":
                path.touch()
            case "fifo":
                os.mkfifo(path)
            case "socket":
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(str(path))
            case _:
                path.symlink_to("/dev/ttyUSB0")
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/null"}


READ_ONLY = """
import json, sys
from subprocess import run
from genericdp import log
from genericdp.core.rules.settings import LogFormat
from genericdp.files.links import Changed, Links

log.configure(LogFormat.TEXT, stream=sys.stdout)
links = Links(sys.argv[1])
links.apply({"ftdi_A5": "/dev/ttyUSB0", "forgotten": "/dev/ttyUSB1", "there": "/dev/ttyUSB2"})
run(["mount", "--bind", sys.argv[1], sys.argv[1]], check=True)
run(["mount", "-o", "remount,bind,ro", sys.argv[1]], check=True)
print(json.dumps(links.apply({"ftdi_A5": None, "there": "/dev/ttyUSB3"})))
"""


def test_a_dead_link_that_cannot_be_changed_is_reported(tmp_path: Path) -> None:
    """Its device is Unhealthy already, so nothing else would show it."""
    command = ["unshare", "--mount", sys.executable, "-c", READ_ONLY, str(tmp_path)]
    *warnings, failed = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    why = "Read-only file system"
    assert json.loads(failed) == {
        "forgotten": f"cannot remove the link '{tmp_path}/forgotten': {why}",
        "ftdi_A5": f"cannot create the link '{tmp_path}/ftdi_A5': {why}",
        "there": f"cannot create the link '{tmp_path}/there': {why}",
    }
    message = "the link of an absent device cannot be changed and may lead to another device"
    assert [line.partition(" warning ")[2].strip() for line in warnings] == [
        f"{message}  link={tmp_path}/{name} why='{why}'" for name in ("forgotten", "ftdi_A5")
    ]


def test_a_link_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """They could point a link at any device, and the container runtime would follow it."""
    tmp_path.chmod(0o777)
    with pytest.raises(GenericdpError) as refused:
        Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"})
    assert str(refused.value) == (
        f"cannot use the link directory '{tmp_path}': other users can write '{tmp_path}'"
    )
    assert refused.value.hint == (
        f"use a directory of root instead; if only genericdp uses it: chmod go-w '{tmp_path}'"
    )
    assert links_in(tmp_path) == {}


def test_a_link_directory_below_one_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 4242, 4242)
    with pytest.raises(GenericdpError) as refused:
        Links(f"{tmp_path}/genericdp").apply({})
    assert str(refused.value) == (
        f"cannot use the link directory '{tmp_path}/genericdp': '{tmp_path}' belongs to user 4242"
    )


def test_links_are_intact_while_they_are_as_they_were_made(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").mkdir()
    links = Links(str(tmp_path))
    assert not any(links.changed())
    links.apply({"ftdi_A5": "/dev/ttyUSB0", "absent": None, "in-the-way": "/dev/null"})
    assert not any(links.changed())
    os.unlink(tmp_path / "absent")
    assert any(links.changed())
    assert any(links.changed(["ftdi_A5", "absent"]))
    assert not any(links.changed(["ftdi_A5", "somebody elses"]))
    links.apply({"ftdi_A5": "/dev/ttyUSB0"})
    assert not any(links.changed())


def test_only_links_that_were_replaced_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, read = Links(str(tmp_path)), list[str]()

    def target(path: str) -> str | None:
        read.append(os.path.basename(path))
        return os.readlink(path) if os.path.lexists(path) else None

    def read_for(dead: set[str]) -> list[str]:
        read.clear()
        assert links.dead_now() == dead
        return sorted(read)

    monkeypatch.setattr("genericdp.files.links._target", target)
    wanted: dict[str, str | None] = {"a": "/dev/a", "b": "/dev/b", "c": None}
    links.apply(wanted)
    assert read_for(set()) == ["a", "b", "c"]
    assert read_for(set()) == []
    point_at_itself(tmp_path / "a")
    assert read_for({"a"}) == ["a"]
    assert read_for({"a"}) == ["a"], "it may be alive again"
    links.apply(wanted)
    assert read_for({"a"}) == ["a"], "its device was not read again"
    links.revive(["a"])
    links.apply({**wanted, "b": "/dev/d"})
    assert read_for(set()) == ["a", "b"]
    (tmp_path / "c").unlink()
    assert read_for(set()) == ["c"]
    assert read_for(set()) == []
    os.rename(tmp_path, tmp_path.parent / "away")
    assert read_for(set()) == ["a", "b", "c"]


def test_a_dead_link_is_found_although_it_has_the_inode_number_of_an_earlier_one(tmp_path: Path) -> None:
    """A disk file system gives a number again as soon as it is free."""
    links = Links(str(tmp_path))
    for _ in range(20):
        links.apply({"a": None})
        assert links.dead_now() == set()
        links.apply({"a": "/dev/a"})
        point_at_itself(tmp_path / "a")
        assert links.dead_now() == {"a"}


def test_a_link_that_was_found_dead_is_read_again(tmp_path: Path) -> None:
    """Without room for a second link, the program of the udev rule removes the old one first."""
    links = Links(str(tmp_path))
    links.apply({"a": "/dev/a"})
    assert links.dead_now() == set()
    for _ in range(20):
        (tmp_path / "a").unlink()
        (tmp_path / "a").symlink_to("a")
        links.apply({"a": "/dev/a"})
        assert links.dead_now() == {"a"}
        links.revive(["a"])
        links.apply({"a": "/dev/a"})


def point_at_itself(link: Path) -> None:
    """What the program of the udev rule does."""
    new = link.with_name(".gone-1")
    new.symlink_to(link.name)
    new.rename(link)


def test_a_directory_that_was_exchanged_gets_its_links_anew(tmp_path: Path) -> None:
    directory = tmp_path / "genericdp"
    links = Links(str(directory))
    links.apply({"ftdi_A5": "/dev/null"})
    directory.rename(tmp_path / "old")
    links.apply({"ftdi_A5": "/dev/null"})
    assert links_in(directory) == {"ftdi_A5": "/dev/null"}


@contextmanager
def descriptors() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_stays_open_but_that_of_the_directory(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    with descriptors():
        links.apply({"ftdi_A5": "/dev/null"})
        with descriptors():
            for _ in range(3):
                links.apply({"ftdi_A5": "/dev/null"})
        links.close()
        with pytest.raises(GenericdpError):
            Links("/dev/null").apply({})


def test_without_a_descriptor_links_change_as_ever(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    links.apply({"ftdi_A": "/dev/null", "ftdi_B": "/dev/null", "ftdi_C": "/dev/null"})
    with descriptors_left(0):
        assert links.apply({"ftdi_A": None, "ftdi_B": "/dev/zero", "ftdi_D": "/dev/full"}) == {}
    assert links_in(tmp_path) == {"ftdi_A": "ftdi_A", "ftdi_B": "/dev/zero", "ftdi_D": "/dev/full"}
    links.close()


@pytest.mark.parametrize("applied_before", [True, False])
def test_without_a_descriptor_a_directory_that_is_another_one_is_not_used(
    tmp_path: Path, applied_before: bool
) -> None:
    directory, links = tmp_path / "links", Links(str(tmp_path / "links"))
    directory.mkdir()
    if applied_before:
        links.apply({"ftdi_A": "/dev/null"})
    directory.rename(tmp_path / "old")
    directory.mkdir()
    with descriptors_left(0), pytest.raises(GenericdpError) as unusable:
        links.apply({"ftdi_A": None})
    assert (str(unusable.value), unusable.value.hint) == (
        f"cannot use the link directory '{directory}': Too many open files",
        "raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'",
    )
    assert links_in(directory) == {}
    links.close()


def test_in_a_sticky_directory_the_link_of_another_user_is_replaced_and_says_nothing(short_dir: Path) -> None:
    directory = short_dir / "links"
    directory.mkdir()
    directory.chmod(0o1777)
    short_dir.chmod(0o755)
    with as_stranger():
        for name in ("ftdi_A", "held+ftdi_B", "ftdi_C"):
            (directory / name).symlink_to("/dev/null")
    assert led(str(directory)) == {}
    links = Links(str(directory))
    assert links.apply({"ftdi_A": "/dev/null"}) == {}
    assert (directory / "ftdi_A").lstat().st_uid == os.geteuid()
    assert links_in(directory) == dict.fromkeys(("ftdi_A", "ftdi_C", "held+ftdi_B"), "/dev/null")
    assert led(str(directory)) == {"ftdi_A": "/dev/null"}
    links.close()
