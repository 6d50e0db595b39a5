"""A machine with any devices: plays the kernel and udevd for a process under umockdev's preload.

The preload library shows the tree below $UMOCKDEV_DIR as /sys and /dev and hands out uevents that
are sent to sockets in it. libumockdev can fill that tree, but then sends an `add` for each device on
its own, at once and without what udev would say, and none for one that is gone. So the tree is made
here; it is what libumockdev makes, and the test of the recorded files holds the two together.

In a test marked `testbed` (tests/udev/machine.py):

    with Testbed() as bed:
        bed.plug(gadgets.serial_dongle())

A child process sees the same devices: the variable is in the environment. Some things differ from a
real machine: a message goes to the sockets of both sources (kernel and udev hear the same);
symlinks *into* /dev lead nowhere for os.stat, because the node is seen only under its own name; and
what is made in /dev (mkdir, symlink) is made in the real one, so links belong into another folder.
Each open of a real node (subprocess.DEVNULL!) inside `with` leaves a socket behind in this process.
"""

import os
import shutil
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from genericdp.udev.snapshot import context
from tests.udev.gadgets import Entry, Gadget

#: Where the udev database is: private to a machine of its own.
RUN = Path("/run/udev")

#: Subsystems that are a bus; all others are classes.
_BUSES = frozenset({"usb", "pci", "platform", "hid", "usb-serial", "mdev", "dsa", "auxiliary"})


class Testbed:
    """The machine; empty at first. A context manager: what runs inside `with` sees it."""

    __test__ = False  # pytest takes the name for a test's

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bed-"))
        self._plugged: dict[str, Entry] = {}
        self._seqnum = 0

    def __enter__(self) -> Self:
        for folder in ("dev/.node", "sys/dev/char", "sys/dev/block", "sys/bus", "sys/class", "sys/devices"):
            (self.root / folder).mkdir(parents=True)
        (RUN / "data").mkdir(parents=True, exist_ok=True)
        (RUN / "control").touch()
        # Loading libudev opens /dev/null; inside, the preload library never closes what it opens with it.
        context()
        os.environ["UMOCKDEV_DIR"] = str(self.root)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del os.environ["UMOCKDEV_DIR"]
        shutil.rmtree(self.root)
        shutil.rmtree(RUN)

    # What happens to a machine

    def plug(self, *gadgets: Gadget) -> None:
        """Plug in gadgets: the kernel finds them, udev deals with each device, an `add` is sent for it."""
        for entry in self.attach(*gadgets):
            self.initialize(entry)
            self.uevent(entry, "add")

    def unplug(self, *gadgets: Gadget) -> None:
        """Unplug gadgets: the devices go, children first; a `remove` is sent for each when it is gone."""
        for gadget in gadgets:
            for entry in reversed(gadget):
                if not entry.shared:
                    self.detach(entry)
                    self.uevent(entry, "remove")

    def attach(self, *gadgets: Gadget) -> list[Entry]:
        """Only the kernel's part of a plug: sysfs and the device node. Returns what is new."""
        new = []
        for entry in (entry for gadget in gadgets for entry in gadget):
            if entry.path not in self._plugged:
                self._make(entry)
                self._plugged[entry.path] = entry
                new.append(entry)
        return new

    def detach(self, entry: Entry) -> None:
        """Only the disappearance: node, database entry and sysfs go, no event is sent."""
        del self._plugged[entry.path]
        self._database(entry).unlink(missing_ok=True)
        if entry.node:
            (self.root / "dev" / entry.node).unlink(missing_ok=True)
            (self.root / "dev/.node" / entry.node.replace("/", "_")).unlink(missing_ok=True)
        if entry.number:
            (self.root / "sys/dev" / self._kind(entry) / entry.number).unlink()
        self._listing(entry).unlink()
        shutil.rmtree(self._sysfs(entry))

    def replace(self, old: Gadget, new: Gadget) -> None:
        """Others are at the place of devices. No event is sent, udevd still has what it wrote of those."""
        gone = [entry for entry in old if not entry.shared]
        kept = {}
        for number, entry in enumerate(gone):
            if (database := self._database(entry)).exists():
                kept[database] = RUN / f"kept{number}"
                kept[database].hardlink_to(database)
        for entry in reversed(gone):
            self.detach(entry)
        self.attach(new)
        for database, path in kept.items():
            path.rename(database)

    def dismantle(self, entry: Entry) -> None:
        """How much the kernel has removed of a device when it sends `remove`: its directory comes last."""
        (self._sysfs(entry) / "uevent").unlink()
        if entry.number:
            (self._sysfs(entry) / "dev").unlink()
            (self.root / "sys/dev" / self._kind(entry) / entry.number).unlink()

    def initialize(self, entry: Entry) -> None:
        """Only udevd's part of a plug: the entry in its database."""
        lines = [f"S:{link.removeprefix('/dev/')}" for link in entry.devlinks]
        lines.append("I:1234567")
        lines += [f"E:{name}={value}" for name, value in entry.udev.items()]
        lines += [f"{letter}:{tag}" for tag in entry.tags for letter in "GQ"]
        lines.append("V:1")
        text = "".join(f"{line}\n" for line in lines)
        # Another file each time, as udevd does it.
        path = self._database(entry)
        path.unlink(missing_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def uevent(self, entry: Entry, action: str, **properties: str) -> None:
        """Send the event of one device, as udev sends it, to everybody who listens now."""
        self._seqnum += 1
        message = {"ACTION": action, "SEQNUM": str(self._seqnum), **entry.properties, **properties}
        text = "".join(f"{name}={value}\0" for name, value in message.items())
        payload = text.encode("utf-8", "surrogateescape")
        # The header of sd-device-monitor: prefix, magic, sizes; the hashes serve filters only.
        sizes = (40, 40, len(payload))
        header = struct.pack("=8s8I", b"libudev\0", socket.htonl(0xFEEDCAFE), *sizes, 0, 0, 0, 0)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for listener in self.root.glob("event*"):
                try:
                    sender.sendto(header + payload, socket.MSG_DONTWAIT, str(listener))
                except ConnectionRefusedError:
                    listener.unlink()  # its listener has gone

    def add_bare_node(self, node: str, number: str) -> None:
        """Make a device node below /dev that udev does not know."""
        path = self.root / "dev" / node
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        (self.root / "dev/.node" / node.replace("/", "_")).symlink_to(number)

    def group(self, number: int, *entries: Entry) -> None:
        """The IOMMU puts these devices, and no others, into one group."""
        devices = self.root / f"sys/kernel/iommu_groups/{number}/devices"
        shutil.rmtree(devices, ignore_errors=True)
        devices.mkdir(parents=True)
        for entry in entries:
            sysfs = self._sysfs(entry)
            _link(devices / sysfs.name, sysfs)
            (sysfs / "iommu_group").unlink(missing_ok=True)
            _link(sysfs / "iommu_group", devices.parent)

    def bind(self, entry: Entry, driver: str) -> None:
        """Another driver takes a device, or, with "", none has it any more."""
        link = self._sysfs(entry) / "driver"
        link.unlink(missing_ok=True)
        if driver:
            _link(link, self.root / "sys/bus" / entry.subsystem / "drivers" / driver)
        self.uevent(entry, "bind" if driver else "unbind")

    # What a test may tamper with

    def set_attribute(self, entry: Entry, name: str, value: str | bytes) -> None:
        """Give a sysfs attribute another value (a line feed is added to text, as the kernel does)."""
        data = value if isinstance(value, bytes) else f"{value}\n".encode()
        path = self._sysfs(entry) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    @contextmanager
    def stuck(self, entry: Entry, name: str = "dev") -> Iterator[Callable[[], None]]:
        """Reading a device hangs, as while a driver probes it, until the function that this gives is called.

        It is one file that hangs: that with its number, because libudev does not read a pipe.
        """
        path = self._sysfs(entry) / name
        value, after = path.read_bytes(), path.with_suffix(".after")
        path.unlink()
        os.mkfifo(path)
        # Opening it must not hang: the preload library has a lock, which it holds meanwhile.
        held = os.open(path, os.O_RDWR | os.O_CLOEXEC)

        def put_back() -> None:
            if path.parent.exists():
                after.write_bytes(value)
                after.replace(path)
            # A reader that has not opened the pipe yet opens the regular file instead.
            os.write(held, value)

        with ExitStack() as stack:
            stack.callback(os.close, held)
            stack.callback(put_back)
            yield stack.close

    def node(self, entry: Entry) -> Path:
        """The file that is shown as the device node, to be tampered with."""
        return self.root / "dev" / entry.node

    def wipe_database(self) -> None:
        """Everything that udevd knew is forgotten; udevd itself runs."""
        shutil.rmtree(RUN / "data")
        (RUN / "data").mkdir()

    # The tree

    def _make(self, entry: Entry) -> None:
        sysfs = self._sysfs(entry)
        sysfs.mkdir(parents=True, exist_ok=True)
        kernel = "".join(f"{name}={value}\n" for name, value in entry.kernel_properties.items())
        (sysfs / "uevent").write_bytes(kernel.encode("utf-8", "surrogateescape"))
        for name, value in entry.attributes.items():
            self.set_attribute(entry, name, value.encode("utf-8", "surrogateescape") + b"\n")
        top = "bus" if entry.subsystem in _BUSES else "class"
        _link(sysfs / "subsystem", self.root / "sys" / top / entry.subsystem)
        _link(self._listing(entry), sysfs)
        if entry.driver:
            _link(sysfs / "driver", self.root / "sys/bus" / entry.subsystem / "drivers" / entry.driver)
        if entry.number:
            self.set_attribute(entry, "dev", entry.number)
            _link(self.root / "sys/dev" / self._kind(entry) / entry.number, sysfs)
            node = self.node(entry)
            node.parent.mkdir(parents=True, exist_ok=True)
            node.touch()
            if self._kind(entry) == "block":
                node.chmod(0o1644)  # the sticky bit: how the preload library is told
            (self.root / "dev/.node" / entry.node.replace("/", "_")).symlink_to(entry.number)

    def _sysfs(self, entry: Entry) -> Path:
        return self.root / "sys" / entry.path.lstrip("/")

    def _listing(self, entry: Entry) -> Path:
        name = entry.path.rpartition("/")[2]
        if entry.subsystem in _BUSES:
            return self.root / "sys/bus" / entry.subsystem / "devices" / name
        return self.root / "sys/class" / entry.subsystem / name

    def _kind(self, entry: Entry) -> str:
        return "block" if entry.subsystem == "block" else "char"

    def _database(self, entry: Entry) -> Path:
        if entry.number:
            return RUN / "data" / f"{self._kind(entry)[0]}{entry.number}"
        if "IFINDEX" in entry.kernel:
            return RUN / "data" / f"n{entry.kernel['IFINDEX']}"
        return RUN / "data" / f"+{entry.subsystem}:{entry.path.rpartition('/')[2]}"


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
