"""A machine to plug things into: made-up udev devices with real device nodes, and a daemon on it.

The rules of this file:

* The nodes are real (mknod, so root is needed) and live in a directory of their own below /dev, for
  the simulated container runtimes look at them with lstat.
* A plug tells the daemon what udev would tell: that something happened, and where.
"""

import asyncio
import os
import secrets
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from genericdp import usb
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.errors import Problem
from genericdp.files.rulefiles import RuleFile
from genericdp.kubelet.registration import REFUSED, Pauses
from genericdp.simulator import Kubelet
from genericdp.systemd import Notify
from genericdp.udev import Hint, Uevent
from tests.scenes.builders import resources_of

DOMAIN = "example.com"

#: For tests that are not about how long a daemon waits before it tries again.
SHORT_PAUSES = Pauses(first=0.001, longest=0.01, stream=0.1)


class Machine:
    """Made-up udev devices. `Daemon(devices=machine, listen=machine.listen)` takes them for real."""

    def __init__(self, dev: Path) -> None:
        self.dev = dev
        self._devices: dict[str, UdevDevice] = {}
        self._sinks: list[Callable[[Hint], None]] = []
        self._unheard: list[Hint] | None = None

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        return self._devices

    def want(self, attributes: Iterable[str]) -> bool:
        del attributes
        return False

    def resync(self) -> bool:
        return True

    def apply(self, hint: Hint) -> bool:
        del hint
        return True

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

    def node(self, device: UdevDevice) -> str:
        """Where the node of a device is."""
        return f"{self.dev}/{device.devname}"

    def _placed(self, device: UdevDevice) -> UdevDevice:
        path = Path(self.node(device))
        assert device.number is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = stat.S_IFCHR if device.number.kind == "c" else stat.S_IFBLK
        os.mknod(path, kind | 0o660, os.makedev(device.number.major, device.number.minor))
        return replace(device, device_node=str(path))

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
def a_machine() -> Iterator[Machine]:
    """A machine without devices; its nodes go with it."""
    dev = Path(f"/dev/gdp-{secrets.token_hex(4)}")
    dev.mkdir()
    try:
        yield Machine(dev)
    finally:
        shutil.rmtree(dev)


class FixedRules:
    """Rules that a test gives and changes, instead of files."""

    def __init__(self, text: str) -> None:
        self.resources: tuple[Resource, ...] = resources_of(text, domain=DOMAIN)
        self.problems: tuple[Problem, ...] = ()
        self.files: tuple[RuleFile, ...] = ()

    def reload(self) -> None:
        pass

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        del on_change
        return lambda: None

    def become(self, text: str) -> None:
        """What the next reload reads."""
        self.resources = resources_of(text, domain=DOMAIN)


def settings_below(root: Path, *, coalesce_s: float = 0.0) -> Settings:
    """Settings with every directory below `root`, where `Kubelet(root)` looks too."""
    return Settings(
        domain=DOMAIN,
        kubelet_dir=f"{root}/device-plugins",
        pod_resources_socket=f"{root}/pod-resources/kubelet.sock",
        link_dir=f"{root}/links",
        state_dir=f"{root}/state",
        run_dir=f"{root}/run",
        coalesce_s=coalesce_s,
    )


def links_in(settings: Settings) -> dict[str, str]:
    """The links that are there: name -> target."""
    with os.scandir(settings.link_dir) as entries:
        return {entry.name: os.readlink(entry.path) for entry in entries if entry.is_symlink()}


class Steps:
    """What the daemon made of the machine, step by step; a test waits for what it expects."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.count = 0
        self._changed = asyncio.Event()

    def __call__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.count += 1
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def wait_until(self, predicate: Callable[[Inventory], bool]) -> None:
        """Return once the daemon's inventory is as wanted."""
        while not predicate(self.inventory):
            await self._changed.wait()


@asynccontextmanager
async def a_daemon(
    machine: Machine,
    rules: FixedRules,
    settings: Settings,
    *,
    now: Callable[[], float] = time.monotonic,
    pauses: Pauses = REFUSED,
    usb_reset: Callable[[int, int], None] = usb.reset,
    notify: Notify | None = None,
) -> AsyncIterator[Daemon]:
    """A daemon that runs on the machine for the length of the block."""
    steps = Steps()
    daemon = Daemon(
        settings,
        rules,
        devices=machine,
        listen=machine.listen,
        on_step=steps,
        now=now,
        pauses=pauses,
        usb_reset=usb_reset,
        notify=notify,
    )
    serving = asyncio.ensure_future(daemon.run())
    try:
        await steps.wait_until(lambda inventory: len(inventory.offers) == len(rules.resources))
        yield daemon
    finally:
        daemon.stop()
        await serving


async def until_allocatable(kubelet: Kubelet, resource: str, count: int) -> None:
    """Return once the kubelet would say so at its next tick, then let it say so."""
    await kubelet.wait_until(lambda: kubelet.allocatable.get(resource) == count)
    kubelet.tick()
