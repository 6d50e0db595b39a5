"""The sockets of genericdp in the kubelet's directory: stale ones, and those on which somebody listens."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from genericdp.kubelet.endpoints import fresh_name, sweep
from tests.scenes.shortage import descriptors_left


@contextmanager
def a_socket(path: Path, *, listening: bool) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        if listening:
            made.listen(1)
        yield made


def test_names_are_short_and_never_the_same() -> None:
    names = {fresh_name() for _ in range(1000)}
    assert len(names) == 1000
    # The kubelet's directory takes 32 of the 107 bytes that the path of a socket may have.
    assert {len(name) for name in names} == {19}


def test_what_a_killed_process_left_is_removed_and_what_lives_is_named(short_dir: Path) -> None:
    left, alive = fresh_name(), fresh_name()
    with a_socket(short_dir / left, listening=False), a_socket(short_dir / alive, listening=True):
        assert sweep(str(short_dir)) == (alive,)
        assert os.listdir(short_dir) == [alive]


def test_nothing_of_others_is_touched(short_dir: Path) -> None:
    theirs = ["kubelet.sock", "gdp-.sock", "gdp-0123456789.sock.bak", "nvidia.sock"]
    for name in theirs:
        with a_socket(short_dir / name, listening=False):
            pass
    (short_dir / "gdp-0123456789.sock").write_text("no socket")
    assert sweep(str(short_dir)) == ()
    assert sorted(os.listdir(short_dir)) == sorted([*theirs, "gdp-0123456789.sock"])


def test_a_directory_that_is_not_there_has_none(short_dir: Path) -> None:
    assert sweep(str(short_dir / "none")) == ()


def test_without_a_descriptor_nobody_knows_which_of_them_live(short_dir: Path) -> None:
    with a_socket(short_dir / fresh_name(), listening=False):
        with descriptors_left(0), pytest.raises(OSError, match="Too many open files"):
            sweep(str(short_dir))
        assert sweep(str(short_dir)) == ()
        assert os.listdir(short_dir) == []
