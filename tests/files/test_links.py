"""The stable links as a container runtime finds them, in a real directory."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from genericdp.errors import GenericdpError
from genericdp.files.links import Links


def links_in(directory: Path) -> dict[str, str]:
    return {entry.name: os.readlink(entry) for entry in sorted(directory.iterdir())}


def test_a_link_points_at_its_device_node_in_a_directory_made_for_it(tmp_path: Path) -> None:
    directory = tmp_path / "dev" / "genericdp"
    assert Links(str(directory)).apply({"ftdi_A5": "/dev/ttyUSB0"}) == {}
    assert links_in(directory) == {"ftdi_A5": "/dev/ttyUSB0"}
    assert directory.stat().st_mode & 0o022 == 0


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


def test_what_a_killed_process_left_half_done_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".new").symlink_to("/dev/ttyUSB0")
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/null"}


def test_a_leftover_under_the_temporary_name_of_a_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".new").touch()
    assert Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"}) == {}
    assert links_in(tmp_path) == {"ftdi_A5": "/dev/null"}


def test_links_to_anything_but_devices_are_left_alone(tmp_path: Path) -> None:
    others = {"bin": "usr/bin", "by-name": "../../sda", "log": "/run/systemd/journal/dev-log"}
    for name, target in others.items():
        (tmp_path / name).symlink_to(target)
    assert Links(str(tmp_path)).apply({"ftdi_A5": None}) == {}
    assert links_in(tmp_path) == {**others, "ftdi_A5": "ftdi_A5"}


def test_other_files_in_the_directory_stay(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    (tmp_path / "folder").mkdir()
    links = Links(str(tmp_path))
    links.apply({"ftdi_A5": None})
    links.apply({})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["README", "folder"]
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


def test_a_link_directory_that_cannot_be_tidied_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".new").mkdir()
    with pytest.raises(GenericdpError) as refused:
        Links(str(tmp_path)).apply({"ftdi_A5": "/dev/null"})
    assert str(refused.value) == f"cannot use the link directory '{tmp_path}': Is a directory"
    assert refused.value.hint == HINT


def test_links_are_intact_while_they_are_as_they_were_made(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").mkdir()
    links = Links(str(tmp_path))
    assert links.intact()
    links.apply({"ftdi_A5": "/dev/ttyUSB0", "absent": None, "in-the-way": "/dev/null"})
    assert links.intact()
    os.unlink(tmp_path / "absent")
    assert not links.intact()
    assert not links.intact(["ftdi_A5", "absent"])
    assert links.intact(["ftdi_A5", "somebody elses"])
    links.apply({"ftdi_A5": "/dev/ttyUSB0"})
    assert links.intact()


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


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    links = Links(str(tmp_path))
    with descriptors():
        for _ in range(3):
            links.apply({"ftdi_A5": "/dev/null"})
        with pytest.raises(GenericdpError):
            Links("/dev/null").apply({})
