"""The access to a device node of this machine."""

import os
from pathlib import Path

from genericdp.cli.access import access_of


def test_access_is_that_of_the_node_on_this_machine() -> None:
    access = access_of("/dev/null")

    assert str(access) == "crw-rw-rw-, owner root (0), group root (0)"
    assert access is not None
    assert access.as_json() == {"mode": "0666", "uid": 0, "owner": "root", "gid": 0, "group": "root"}
    assert access_of("/dev/nothing") is None
    assert access_of("") is None
    assert access_of("/dev/\0") is None


def test_a_number_without_a_name_is_shown_as_such(tmp_path: Path) -> None:
    path = tmp_path / "node"
    path.touch()
    path.chmod(0o640)
    os.chown(path, 54321, 54322)

    access = access_of(str(path))

    assert str(access) == "-rw-r-----, owner without a name (54321), group without a name (54322)"
