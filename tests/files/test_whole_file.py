"""A file that is written whole: what is in its way is named."""

from pathlib import Path

import pytest

from genericdp.errors import what_to_do
from genericdp.files.whole_file import write_whole


@pytest.mark.parametrize("name", ["a", "a.new"])
def test_a_directory_that_is_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_whole(f"{tmp_path}/a", b"text")
    assert what_to_do(raised.value, str(tmp_path)) == f"remove '{tmp_path}/{name}'"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "dir").touch()
    with pytest.raises(FileExistsError) as raised:
        write_whole(f"{tmp_path}/dir/a", b"text")
    assert what_to_do(raised.value, f"{tmp_path}/dir") == f"remove '{tmp_path}/dir': it is not a directory"
