"""What a snapshot rests on: the device node, looked at with stat and never opened; and libudev."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from genericdp.core.device import DeviceNumber
from genericdp.udev import snapshot

NULL = DeviceNumber("c", 1, 3)


def test_a_node_of_the_right_kind_and_number_is_there() -> None:
    assert snapshot._is_there("/dev/null", NULL)


@pytest.mark.parametrize(
    "number", [None, DeviceNumber("b", 1, 3), DeviceNumber("c", 1, 5), DeviceNumber("c", 3, 1)]
)
def test_a_node_of_another_kind_or_number_is_not(number: DeviceNumber | None) -> None:
    assert not snapshot._is_there("/dev/null", number)


def test_nothing_else_is_a_node(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(tmp_path, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        names = [entry.name for entry in tmp_path.iterdir()]

        assert len(names) == 6
        assert [name for name in names if snapshot._is_there(str(tmp_path / name), NULL)] == []
    assert not snapshot._is_there("", NULL)
    assert not snapshot._is_there("/dev/\0", NULL)


_WITHOUT_LIBUDEV = """
import ctypes.util
ctypes.util.find_library = lambda name: None
from genericdp.errors import GenericdpError
from genericdp.udev import UdevDevices
try:
    UdevDevices()
except GenericdpError as error:
    print(error, error.hint, sep="; ")
"""


def test_a_machine_without_libudev_is_told_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _WITHOUT_LIBUDEV], check=True, capture_output=True, text=True
    ).stdout

    assert said == "libudev cannot be loaded; install the library of udev (Debian: libudev1)\n"
