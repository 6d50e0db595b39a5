"""What a subscription hears: every device, and nothing that a user can cause at will."""

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from genericdp.udev.subscription import Subscription, drop_mounts
from tests.udev.hotplug import NULL, trigger, udevd

BDI = "/sys/devices/virtual/bdi"


def of_the_kernel(action: str, path: str) -> bytes:
    return f"{action}@{path}\0ACTION={action}\0DEVPATH={path}\0SUBSYSTEM=x\0SEQNUM=1\0".encode()


def of_udev(hash_of_subsystem: int, magic: int = 0xFEEDCAFE) -> bytes:
    return (
        b"libudev\0" + struct.pack(">I", magic) + bytes(12) + struct.pack(">I", hash_of_subsystem) + bytes(99)
    )


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A sender and a receiver of messages; the filter is the same for all sockets."""
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, receiver:
        receiver.setblocking(False)
        yield sender, receiver


def passes(pair: tuple[socket.socket, socket.socket], message: bytes) -> bool:
    sender, receiver = pair
    sender.send(message)
    try:
        return receiver.recv(4096) == message
    except BlockingIOError:
        return False


@pytest.mark.parametrize("action", ["add", "remove", "change", "move", "bind", "unbind", "online", "offline"])
@pytest.mark.parametrize(
    "path",
    [
        "/devices/virtual/misc/fuse",
        "/devices/virtual/block/dm-0",
        "/devices/virtual/bdix/0:42",
        "/devices/pci0000:00/0000:00:14.0/usb1/1-2",
        "/devices/platform/bdi/x",
    ],
)
def test_each_event_of_the_kernel_that_is_about_a_device_arrives(
    pair: tuple[socket.socket, socket.socket], action: str, path: str
) -> None:
    drop_mounts(pair[1], "kernel")
    assert passes(pair, of_the_kernel(action, path))


@pytest.mark.parametrize("action", ["add", "remove", "change"])
@pytest.mark.parametrize(
    "path", ["/devices/virtual/bdi/0:42-fuseblk", "/module/fuse", "/kernel/slab/:0000064"]
)
def test_a_mount_and_what_is_no_device_do_not(
    pair: tuple[socket.socket, socket.socket], action: str, path: str
) -> None:
    assert passes(pair, of_the_kernel(action, path))
    drop_mounts(pair[1], "kernel")
    assert not passes(pair, of_the_kernel(action, path))


def test_of_udev_everything_arrives_but_mounts(pair: tuple[socket.socket, socket.socket]) -> None:
    drop_mounts(pair[1], "udev")
    assert not passes(pair, of_udev(0x2A1884A1))
    assert passes(pair, of_udev(0x2A1884A2))
    assert passes(pair, of_udev(0x2A1884A1, magic=0xFEEDCAFF)), "another version of udev"


@pytest.mark.hotplug
def test_a_real_uevent_of_a_mount_is_heard_from_nobody() -> None:
    """A user who mounted FUSE file systems in a loop kept the daemon 16 s behind."""
    mount = f"{BDI}/{min(os.listdir(BDI))}"
    with udevd() as running:
        sources = [Subscription(source, 1 << 20) for source in ("kernel", "udev")]
        trigger(mount)
        trigger(NULL)
        running.settle()
        for each in sources:
            heard = []
            while (device := each.receive()) is not None:
                heard.append(device.sys_path)
            # Other tests make consoles meanwhile, and the kernel tells every machine.
            assert [path for path in heard if not path.startswith("/sys/devices/virtual/vc/")] == [NULL]
            each.close()
