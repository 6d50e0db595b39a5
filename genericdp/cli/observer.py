"""Observes uevents without a daemon.

It shows what the rules make of them, and what the daemon would send to the kubelet.

The rules of this file:

* It sees what the daemon sees: it has the same monitor, the same snapshots and the same pure core.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from genericdp import VERSION
from genericdp.cli import loop
from genericdp.cli.survey import remembered
from genericdp.core.hint import Deafness, Hint, NodeChange, Poll, Resync, Uevent
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.status import events
from genericdp.core.status.news import news
from genericdp.inputs import take
from genericdp.machine.devices import MachineDevices
from genericdp.udev import Pending, Polling, SeenUevents


def observe(settings: Settings, resources: Sequence[Resource], tell: Callable[[events.Event], None]) -> None:
    """Report each event on this machine to `tell` until Ctrl-C."""
    memory, _ = remembered(settings)
    loop.run(Observer(settings, resources, memory, tell).watch())


class Observer:
    """Watches this machine with these rules, and reports each event."""

    def __init__(
        self,
        settings: Settings,
        resources: Sequence[Resource],
        memory: Memory,
        tell: Callable[[events.Event], None],
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._tell = tell
        self._builder = Builder(resources, settings.domain)
        self._devices = MachineDevices(resources)
        self._devices.remember(lambda: self._memory.devices)
        self._inventory = Inventory()
        self._pending, self._polling = Pending(), Polling(self._hear)
        self._heard: list[Uevent] = []
        self._notices: list[events.Event] = []
        self._seen = SeenUevents()
        self._awake = asyncio.Event()

    async def watch(self) -> None:
        """Report events until cancelled."""
        with contextlib.ExitStack() as stack, contextlib.closing(self._polling):
            stack.callback(self._devices.listen(self._hear, self._settings.rescan_s))
            self._devices.resync()
            self._inventory = self._look()
            # From here on nothing is missed; notices that came in meanwhile follow.
            self._tell(events.of_begin(VERSION, "watching", "rules"))
            while True:
                await self._awake.wait()
                self._awake.clear()
                for event in self._follow():
                    self._tell(event)

    def _hear(self, hint: Hint) -> None:
        match hint:
            case Uevent():
                if self._seen.is_new(hint):
                    self._heard.append(hint)
            case Resync():
                self._notices.append(events.of_resync(hint))
            case Deafness():
                self._notices.append(events.of_deafness(hint))
            case NodeChange() | Poll():
                pass  # what comes of it is shown
        self._pending.add(hint)
        self._awake.set()

    def _look(self) -> Inventory:
        inventory, self._memory = take(self._builder, self._devices, self._memory, time.monotonic())
        self._polling.see(inventory)
        return inventory

    def _follow(self) -> Iterator[events.Event]:
        notices, self._notices = self._notices, []
        yield from notices
        self._devices.apply(*self._pending.take())
        before, self._inventory = self._inventory, self._look()
        heard, self._heard = self._heard, []
        yield from events.of_uevents(heard, before, self._inventory)
        yield from events.of_changes(news(before, self._inventory))
        changes = diff(before, self._inventory)
        for name in (*changes.added, *changes.updated):
            event = events.of_list(before.offers.get(name), self._inventory.offers[name], sent=False)
            if event["changes"]:
                yield event
