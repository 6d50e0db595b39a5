"""Whether somebody listens on a unix socket."""

import os
import socket
from pathlib import Path

import pytest

from genericdp.unixsocket import accepts, why_not_bound
from tests.scenes.shortage import a_file_system_at, descriptors_left, fill_inodes


def test_a_socket_accepts_while_somebody_listens(short_dir: Path) -> None:
    path = short_dir / "x.sock"
    assert not accepts(str(path))
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        assert not accepts(str(path))
        made.listen(1)
        assert accepts(str(path))
    assert not accepts(str(path))


def test_a_socket_whose_queue_is_full_is_alive(short_dir: Path) -> None:
    path = short_dir / "x.sock"
    with socket.socket(socket.AF_UNIX) as made, socket.socket(socket.AF_UNIX) as one:
        made.bind(str(path))
        made.listen(1)
        with socket.socket(socket.AF_UNIX) as two:
            one.connect(str(path))
            two.connect(str(path))
            assert accepts(str(path))


def test_who_may_not_connect_cannot_tell(short_dir: Path) -> None:
    """Somebody may listen: such a socket is not removed."""
    path = short_dir / "x.sock"
    short_dir.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        made.listen(1)
        path.chmod(0o600)
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError):
                accepts(str(path))
        finally:
            os.seteuid(0)


def test_why_a_socket_cannot_be_bound_is_what_the_kernel_says(short_dir: Path) -> None:
    with a_file_system_at(short_dir / "full", inodes=8):
        path = short_dir / "full" / "x.sock"
        assert why_not_bound(str(path)) == ""
        assert not path.exists()
        fill_inodes(path.parent)
        assert why_not_bound(str(path)) == "No space left on device"
        with descriptors_left(0):
            assert why_not_bound(str(path)) == "Too many open files"
