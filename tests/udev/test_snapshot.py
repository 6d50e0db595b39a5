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
NOTHING = (False, None)


def test_a_node_of_the_right_kind_and_number_is_there_and_has_a_group() -> None:
    assert snapshot._look_at("/dev/null", NULL) == (True, os.stat("/dev/null").st_gid)


@pytest.mark.parametrize(
    "number", [None, DeviceNumber("b", 1, 3), DeviceNumber("c", 1, 5), DeviceNumber("c", 3, 1)]
)
def test_a_node_of_another_kind_or_number_is_not(number: DeviceNumber | None) -> None:
    assert snapshot._look_at("/dev/null", number) == NOTHING


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
        assert {snapshot._look_at(str(tmp_path / name), NULL) for name in names} == {NOTHING}
    assert snapshot._look_at(None, NULL) == NOTHING
    assert snapshot._look_at("/dev/\0", NULL) == NOTHING


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


def test_without_libudev_the_error_says_what_to_install() -> None:
    output = subprocess.run(
        [sys.executable, "-c", _WITHOUT_LIBUDEV], check=True, capture_output=True, text=True
    ).stdout

    assert output == "libudev cannot be loaded; install the library of udev (Debian: libudev1)\n"


def test_a_shortage_of_threads_is_not_a_missing_libudev() -> None:
    program = "import threading; threading.stack_size(1 << 46)" + _WITHOUT_LIBUDEV
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout

    assert output.startswith("libudev cannot be loaded: can't start new thread; raise the limit: TasksMax= ")
