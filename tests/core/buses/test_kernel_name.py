"""Which numbers in the names of the kernel are turns."""

import pytest

from genericdp.core.buses.kernel_name import parentless_name, platform_name, stem_of
from genericdp.core.inventory.place import UNKNOWN, locate
from tests.scenes.builders import a_chain, a_device


@pytest.mark.parametrize(
    ("name", "of_all"),
    [
        ("pps0", "pps"),
        ("hfi1_0", "hfi"),
        ("comedi0_subd3", "comedi_subd"),
        ("dahdi!1", "dahdi"),
        ("fuse", "fuse"),
        ("mpt2ctl", "mpt2ctl"),
        ("12", "12"),
    ],
)
def test_what_has_no_parent_is_counted_if_its_name_ends_in_a_number(name: str, of_all: str) -> None:
    assert parentless_name(a_device(f"/sys/devices/virtual/x/{name}", subsystem="x")) == of_all


@pytest.mark.parametrize("subsystem", ["tty", "vc", "msr", "cpuid", "raw", "ublk-char", "net", "block"])
def test_a_number_that_stands_for_something_is_part_of_the_name(subsystem: str) -> None:
    assert parentless_name(a_device(f"/sys/devices/virtual/{subsystem}/x7", subsystem=subsystem)) == "x7"


@pytest.mark.parametrize(
    ("name", "lasting"),
    [
        ("ci_hdrc.0", "ci_hdrc"),
        ("xhci-hcd.1.auto", "xhci-hcd.auto"),
        ("amdgpu_xcp_2", "amdgpu_xcp"),
        ("serial8250", "serial8250"),
        ("fe804000.i2c", "fe804000.i2c"),
        ("INT33D1:00", "INT33D1:00"),
    ],
)
def test_a_platform_device_that_a_driver_has_made_is_counted(name: str, lasting: str) -> None:
    assert platform_name(a_device(f"/sys/devices/platform/{name}", subsystem="platform")) == lasting


def test_a_name_from_the_device_tree_may_end_in_a_number() -> None:
    pru = a_device("/sys/devices/platform/pru_0", subsystem="platform", properties={"OF_FULLNAME": "/pru_0"})
    assert platform_name(pru) == "pru_0"


def test_a_slash_in_the_name_of_a_node_is_in_front_of_a_number_too() -> None:
    node = a_device("/sys/devices/pci0000:00/0000:00:01.0/tenstorrent/tenstorrent!0", subsystem="tenstorrent")
    assert stem_of(node) == "tenstorrent"
    assert stem_of(node, before=True) == "tenstorrent-0"


def test_units_without_a_parent_are_siblings() -> None:
    one, other = (a_device(f"/sys/devices/virtual/neuron_device/neuron{n}", node="/dev/x") for n in (0, 1))
    assert locate(one).spot == locate(other).spot
    assert locate(one).port.is_turn
    before = locate(other).before
    assert before is not None
    assert (before.port, before.number) == (other.sys_path, UNKNOWN)


def test_a_controller_in_a_socket_is_the_same_whatever_turn_its_driver_took() -> None:
    def behind(number: int) -> str:
        stick = a_chain(
            ("platform/soc/2184000.usb", "platform"),
            (f"ci_hdrc.{number}", "platform"),
            (f"usb{number + 1}", "usb"),
            (f"{number + 1}-1", "usb"),
            devtype="usb_device",
        )
        return locate(stick).port.exact

    assert behind(0) == behind(1) == "/sys/devices/platform/soc/2184000.usb/ci_hdrc usb 1"


def test_a_function_of_a_processor_is_told_without_the_turn_of_its_remote_processor() -> None:
    def behind(number: int) -> str:
        node = a_chain(
            ("platform/78000000.r5f", "platform"),
            (f"remoteproc/remoteproc{number}", "remoteproc"),
            (f"rproc-virtio.{number}.auto", "platform"),
            (f"virtio{number}", "virtio"),
            ("rpmsg/rpmsg0", "rpmsg"),
        )
        return locate(node).port.exact

    assert behind(0) == behind(3)
