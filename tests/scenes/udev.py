"""A fake of udev: made-up devices with real device nodes, which a test plugs and unplugs.

The rules of this file:

* The nodes are real (mknod, so root is needed) and live in a directory of their own below /dev, for
  the simulated container runtimes look at them with lstat.
* What is plugged in again is another directory in sysfs.
* A plug tells the daemon what udev would tell: that something happened, and where.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint, Uevent
from genericdp.errors import GenericdpError, UnreadError
from tests.scenes.dev import a_directory


class FakeUdev:
    """Made-up udev devices. `Daemon(devices=udev)` takes them for real.

    changes  whether looking again after a hint finds something changed
    unread   what cannot be read
    unseen   that udevd has not looked at the devices
    """

    def __init__(self, dev: Path) -> None:
        self.dev = dev
        self.changes = True
        self.unread: UnreadError | None = None
        self.unseen: GenericdpError | None = None
        self._devices: dict[str, UdevDevice] = {}
        self._sinks: list[Callable[[Hint], None]] = []
        self._unheard: list[Hint] | None = None
        self._plugs = 0

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        return self._devices

    def remember(self, devices: object, /) -> None:
        del devices

    def want(self, wanted: Iterable[object], /) -> bool:
        del wanted
        return False

    def resync(self) -> bool:
        return True

    def apply(self, *hints: Hint) -> bool:
        del hints
        return self.changes

    def listen(self, sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
        del rescan_s
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def plug(self, *devices: UdevDevice) -> None:
        """Put devices in, with their nodes, and let udev tell of them."""
        for device in devices:
            placed = self._placed(device)
            self._devices[placed.sys_path] = placed
            self._tell("add", placed)

    def unplug(self, *devices: UdevDevice) -> None:
        """Pull devices out."""
        for device in devices:
            gone = self._devices.pop(device.sys_path)
            Path(gone.device_node or "").unlink()
            self._tell("remove", gone)

    def change(self, *devices: UdevDevice) -> None:
        """Let udev say something else of devices that are there."""
        for device in devices:
            inode = self._devices[device.sys_path].incarnation
            changed = replace(device, device_node=self.node(device), incarnation=inode)
            self._devices[changed.sys_path] = changed
            self._tell("change", changed)

    def node(self, device: UdevDevice) -> str:
        """Where the node of a device is."""
        return f"{self.dev}/{device.devname}"

    def _placed(self, device: UdevDevice) -> UdevDevice:
        path = Path(self.node(device))
        assert device.number is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = stat.S_IFCHR if device.number.kind == "c" else stat.S_IFBLK
        os.mknod(path, kind | 0o660, os.makedev(device.number.major, device.number.minor))
        self._plugs += 1
        return replace(device, device_node=str(path), incarnation=self._plugs)

    def tell(self, hint: Hint) -> None:
        """Let everybody who listens hear something."""
        if self._unheard is not None:
            self._unheard.append(hint)
            return
        for sink in self._sinks:
            sink(hint)

    @contextmanager
    def unheard(self) -> Iterator[list[Hint]]:
        """What happens in the block is not told; gives the hints, to be told late or never."""
        hints: list[Hint] = []
        self._unheard = hints
        try:
            yield hints
        finally:
            self._unheard = None

    def _tell(self, action: str, device: UdevDevice) -> None:
        self.tell(Uevent(action, device.sys_path, device.subsystem, "udev"))


@contextmanager
def a_fake_udev() -> Iterator[FakeUdev]:
    """One without devices; their nodes go with it."""
    with a_directory() as dev:
        yield FakeUdev(dev)
