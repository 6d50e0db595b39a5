"""A file that is written whole: what is in its way is named."""

import errno
import os
from pathlib import Path

import pytest

from genericdp.errors import what_to_do
from genericdp.files.whole_file import identity_at, path_aside, write_whole


@pytest.mark.parametrize("name", ["a", "a.new"])
def test_a_directory_that_is_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_whole(f"{tmp_path}/a", b"text")
    assert what_to_do(raised.value, str(tmp_path)) == f"remove '{tmp_path}/{name}'"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_that_another_process_makes_in_the_same_instant_is_no_wrong_path() -> None:
    assert what_to_do(FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), "a.new"), "/var/lib") == ""


@pytest.mark.parametrize("what", ["a file", "a symlink", "a file above"])
def test_what_is_in_the_place_of_the_directory_is_not_to_be_removed(tmp_path: Path, what: str) -> None:
    """The file system to which a symlink leads may be mounted later."""
    if what == "a symlink":
        (tmp_path / "dir").symlink_to("not_mounted")
    else:
        (tmp_path / "dir").touch()
    path = f"{tmp_path}/dir/{'sub/' if what == 'a file above' else ''}a"
    with pytest.raises(OSError) as raised:
        write_whole(path, b"text")
    assert what_to_do(raised.value, os.path.dirname(path)) == (
        "a symlink in this path leads to nothing, or a part of it is not a directory"
    )


def test_a_file_that_cannot_be_compared_is_kept_aside_once(tmp_path: Path) -> None:
    """Others may write it; the next try to replace it finds it kept by the one before."""
    file = tmp_path / "a"
    file.write_text("text")
    file.chmod(0o666)
    identity = identity_at(str(file))
    assert identity is not None
    aside = path_aside(str(file), identity)
    os.link(file, aside)
    assert path_aside(str(file), identity) == aside
