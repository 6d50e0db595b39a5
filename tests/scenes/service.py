"""The daemon as a service manager runs it: started, READY, stopped, started again.

The rules of this file:

* Each start makes a new daemon of the same arguments, as a new process would be.
* A daemon that ends before it is READY fails the start with its own error.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from genericdp import usb
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.errors import Problem
from genericdp.files.last_good import LastGood
from genericdp.files.rulefiles import RuleFile, RuleFiles
from genericdp.kubelet.registration import REFUSED, Pauses
from genericdp.machine.devices import MachineDevices
from genericdp.simulator.changes import Changes
from genericdp.systemd import Notify
from tests.scenes.builders import resources_of
from tests.scenes.rules import DOMAIN
from tests.scenes.udev import FakeUdev
from tests.scenes.waiting import PATIENCE_S, until

#: For tests that are not about how long a daemon waits before it tries again.
SHORT_PAUSES = Pauses(first=0.001, longest=0.01, stream=0.1, kubelet=0.0)


class FixedRules:
    """Rules that a test gives and changes, instead of files."""

    def __init__(self, text: str) -> None:
        self.resources: tuple[Resource, ...] = resources_of(text, domain=DOMAIN)
        self.problems: tuple[Problem, ...] = ()
        self.files: tuple[RuleFile, ...] = ()
        self.unread = False

    def resume(self, state_dir: str) -> LastGood:
        return LastGood(state_dir)

    def reload(self) -> None:
        pass

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        del on_change
        return lambda: None

    def become(self, text: str) -> None:
        """What the next reload reads."""
        self.resources = resources_of(text, domain=DOMAIN)


def settings_below(root: Path, **others: Any) -> Settings:
    """Settings with every directory below `root`, where `Kubelet(root)` looks too; `others` as named."""
    settings = Settings(
        domain=DOMAIN,
        kubelet_dir=f"{root}/device-plugins",
        pod_resources_socket=f"{root}/pod-resources/kubelet.sock",
        runtime_socket=f"{root}/runtime.sock",
        link_dir=f"{root}/links",
        cdi_dir=f"{root}/cdi",
        state_dir=f"{root}/state",
        run_dir=f"{root}/run",
        coalesce_s=0.0,
    )
    return replace(settings, **others)


def links_in(settings: Settings) -> dict[str, str]:
    """The links that are there: name -> target."""
    with os.scandir(settings.link_dir) as entries:
        return {entry.name: os.readlink(entry.path) for entry in entries if entry.is_symlink()}


class _Manager(Notify):
    """The service manager is told; the test, too."""

    def __init__(
        self, address: str, watchdog_interval_s: float | None, on_ready: Callable[[str], None]
    ) -> None:
        super().__init__(address, watchdog_interval_s=watchdog_interval_s)
        self._on_ready = on_ready

    def ready(self, status: str = "") -> None:
        super().ready(status)
        self._on_ready(status)


class Service:
    """A daemon that can be started and stopped. `async with` starts it and, if it still runs, stops it.

    udev        None: the real one
    address     the socket of a service manager; "": there is none
    statuses    of each READY=1 since the last start
    steps       how many inventories the daemon has made since the last start
    """

    def __init__(
        self,
        settings: Settings,
        rules: FixedRules | RuleFiles,
        udev: FakeUdev | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        pauses: Pauses = REFUSED,
        usb_reset: Callable[[int, int], None] = usb.reset,
        address: str = "",
        watchdog_interval_s: float | None = None,
    ) -> None:
        self.settings = settings
        self.rules = rules
        self.statuses: list[str] = []
        self.steps = 0
        self._arguments: dict[str, Any] = {
            "now": now,
            "pauses": pauses,
            "usb_reset": usb_reset,
            "notify": _Manager(address, watchdog_interval_s, self._ready),
            "on_step": self._step,
        }
        self._udev = udev
        self._changes = Changes()
        self._daemon: Daemon | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def daemon(self) -> Daemon:
        """The daemon that was started last."""
        assert self._daemon is not None
        return self._daemon

    @property
    def runs(self) -> bool:
        """Whether there is a daemon."""
        return self._serving is not None

    async def start(self) -> None:
        """`systemctl start genericdp`; it is READY when this returns."""
        self.statuses, self.steps = [], 0
        devices = None
        if self._udev is not None:
            resources = self.rules.resources
            devices = MachineDevices(resources, udev=self._udev, listen=self._udev.listen)
        self._daemon = Daemon(self.settings, self.rules, devices=devices, **self._arguments)
        self._serving = asyncio.ensure_future(self._daemon.run())
        self._serving.add_done_callback(lambda _: self._changes.notify())
        try:
            await self.wait_until(lambda: self.statuses or self.has_ended())
        finally:
            if not self.statuses:
                await self.stop()

    async def stop(self) -> None:
        """`systemctl stop genericdp`, if it runs. Raises what the daemon ended with."""
        if self._serving is not None:
            self.daemon.stop()
            serving, self._serving = self._serving, None
            await serving

    async def wait_until(self, condition: Callable[[], object], *, timeout_s: float = PATIENCE_S) -> None:
        """Return once it is so; it is asked when the daemon is READY and after each step of it."""

        def describe() -> str:
            return f"{self.steps} steps, told {self.statuses}"

        await until(condition, self._changes, timeout_s=timeout_s, describe=describe)

    def has_ended(self) -> bool:
        """Whether the daemon has ended, by itself or because it was stopped."""
        return self._serving is None or self._serving.done()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def _ready(self, status: str) -> None:
        self.statuses.append(status)
        self._changes.notify()

    def _step(self, inventory: Inventory) -> None:
        del inventory
        self.steps += 1
        self._changes.notify()
