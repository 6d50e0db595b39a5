"""Which udev device somebody means."""

import errno
import os
from pathlib import Path

import pytest

from genericdp.cli.find import bare_node, find
from genericdp.errors import GenericdpError
from tests.scenes.builders import a_device, a_usb_serial, by_sys_path

DONGLE = a_usb_serial(0)
NULL = a_device("/sys/devices/virtual/mem/null", subsystem="mem", node="/dev/null", number="c 1:3")
DEVICES = by_sys_path(DONGLE, NULL)


@pytest.mark.parametrize(
    "word",
    [
        "/dev/ttyUSB0",
        "ttyUSB0",
        DONGLE.devlinks[0],
        DONGLE.devlinks[0].removeprefix("/dev/"),
        DONGLE.sys_path,
    ],
)
def test_a_device_goes_by_its_node_its_devlinks_its_sys_path_and_its_kernel_name(word: str) -> None:
    assert find(word, DEVICES, "/dev/genericdp") is DONGLE


def test_a_device_without_a_node_goes_by_its_kernel_name() -> None:
    assert find("1-2", DEVICES, "/dev/genericdp") is DONGLE.usb_device


def test_any_link_to_a_device_node_will_do(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    assert find(str(tmp_path / "link"), DEVICES, "/dev/genericdp") is NULL


def told(word: str, link_dir: str = "/dev/genericdp") -> str:
    with pytest.raises(GenericdpError) as raised:
        find(word, DEVICES, link_dir)
    return f"{raised.value}; {raised.value.hint}"


def test_a_missing_path_is_reported_with_where_to_look(tmp_path: Path) -> None:
    assert told("/dev/nothing\n") == (
        r"'/dev/nothing\n' does not exist; 'genericdp list --all' shows the device nodes of this machine"
    )
    assert told("/sys/nothing") == "'/sys/nothing' does not exist; the device may be unplugged"
    assert told("/sys/devices/virtual/mem") == (
        "'/sys/devices/virtual/mem' is not a udev device; below it are /dev/null"
    )
    assert told("/sys/kernel") == (
        "neither '/sys/kernel' nor anything below it has a device node; only device nodes can be offered"
    )
    assert told(str(tmp_path)) == (
        f"'{tmp_path}' is not a device of this machine; 'genericdp list --all' shows the device nodes"
    )


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("/dev/tun", "did you mean /dev/net/tun?"),
        ("nul", "did you mean /dev/null?"),
        ("/dev/bus/Null", "did you mean /dev/null?"),
        ("ttyUBS0", "did you mean /dev/ttyUSB0?"),
        ("ttyX0", "'genericdp list --all' shows the device nodes of this machine"),
        ("ttyUSB7", "'genericdp list --all' shows the device nodes of this machine"),
    ],
)
def test_a_misspelt_device_node_is_recognized_and_another_number_is_another_device(
    word: str, hint: str
) -> None:
    tun = a_device("/sys/devices/virtual/misc/tun", subsystem="misc", node="/dev/net/tun", number="c 10:200")
    with pytest.raises(GenericdpError) as raised:
        find(word, by_sys_path(DONGLE, NULL, tun), "/links")
    assert raised.value.hint == hint


def test_a_word_may_have_meant_a_device_an_id_or_a_resource() -> None:
    assert told("gpu") == (
        "no device node, device id or resource is called 'gpu'; "
        "'genericdp list --all' shows the device nodes of this machine"
    )


def test_a_network_interface_is_no_device_that_a_container_can_get() -> None:
    assert told("lo") == (
        "'lo' is a network interface; a device plugin gives containers device nodes and nothing else"
    )


@pytest.mark.parametrize("word", ["", ".", ".."])
def test_a_word_that_names_no_file_names_no_network_interface(word: str) -> None:
    assert "network interface" not in told(word)


@pytest.mark.parametrize("word", ["50-fuse.toml", "/etc/genericdp/rules.d/50-fuse.toml"])
def test_a_rule_file_is_not_a_device(word: str) -> None:
    assert told(word) == f"'{word}' is not a device; did you mean --rules {word}?"


def test_a_link_that_may_not_be_read_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def readlink(path: str) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    (tmp_path / "link").symlink_to("/dev/null")
    monkeypatch.setattr(os, "readlink", readlink)
    assert bare_node(f"{tmp_path}/link") == bare_node(f"{tmp_path}/file")


def test_the_link_of_an_unplugged_device_is_known_as_such(tmp_path: Path) -> None:
    (tmp_path / "ftdi_A1").symlink_to("ftdi_A1")
    assert told(f"{tmp_path}/ftdi_A1", str(tmp_path)) == (
        f"'{tmp_path}/ftdi_A1' is the stable link of a device that is not plugged in; "
        "'genericdp list' shows what is known about it"
    )
    assert (
        told(f"{tmp_path}/ftdi_A1") == f"'{tmp_path}/ftdi_A1' is a dangling link; the device may be unplugged"
    )
