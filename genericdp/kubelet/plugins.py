"""The plugins of all resources at one kubelet.

The rules of this file:

* `apply` gets the whole inventory and the changes; it touches only what changed.
* Every task belongs to the scope that `running` opens. A task that fails is a bug and ends the daemon;
  the service manager restarts it.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from genericdp.core.cdi import ByCdi
from genericdp.core.inventory.inventory import Changes, Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.settings import Settings
from genericdp.core.status.watchdog import Sign
from genericdp.kubelet.plugin import Allocated, Listed, Plugin, UsbReset, no_usb_reset
from genericdp.kubelet.registration import (
    REFUSED,
    STARTS_AT_ONCE,
    Pauses,
    Phase,
    Progress,
    Registration,
)
from genericdp.kubelet.settling import nothing_to_save
from genericdp.kubelet.socket import KubeletSocket


class Plugins:
    """The plugins of one kubelet. Use inside `async with plugins.running():`."""

    def __init__(
        self,
        settings: Settings,
        *,
        on_kubelet: Callable[[bool], None] = lambda _: None,
        on_rival: Callable[[], None] = lambda: None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_allocate: Callable[[Allocated], None] = lambda _: None,
        settled: Callable[[], Awaitable[None]] = nothing_to_save,
        on_list: Callable[[Listed], None] = lambda _: None,
        by_cdi: ByCdi = lambda _: False,
        usb_reset: UsbReset = no_usb_reset,
        pauses: Pauses = REFUSED,
    ) -> None:
        self.kubelet = KubeletSocket(
            settings.kubelet_dir, on_kubelet, on_rival=on_rival, apart_s=pauses.kubelet
        )
        self.registrations: dict[str, Registration] = {}
        self._settings = settings
        self._on_progress = on_progress
        self._on_allocate = on_allocate
        self._settled = settled
        self._on_list = on_list
        self._by_cdi = by_cdi
        self._usb_reset = usb_reset
        self._pauses = pauses
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        # Those of each resource that have not ended; all but the last one are being cancelled.
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """Resource name -> its plugin."""
        return {name: registration.plugin for name, registration in self.registrations.items()}

    @property
    def registered(self) -> int:
        """How many resources are registered."""
        return sum(each.progress.phase is Phase.REGISTERED for each in self.registrations.values())

    def may_be_followed(self) -> bool:
        """Whether a kubelet follows a list, or may do so already: a registration is under way."""
        return any(each.progress.phase is not Phase.WAITING for each in self.registrations.values())

    def are_followed(self) -> bool:
        """Whether the kubelet follows a list, or there is none to follow."""
        return not self.registrations or self.registered > 0

    def send_again(self) -> None:
        """Send one list again: the kubelet writes its checkpoint for each."""
        for each in self.registrations.values():
            if each.progress.phase is Phase.REGISTERED:
                each.plugin.send_again()
                return

    def signs(self) -> dict[str, Sign]:
        """The signs of life of each resource, for the watchdog."""
        without = self.kubelet.incarnation is None
        return {
            name: Sign(content=without or each.plugin.streams.kubelet_follows, tries=each.tries)
            for name, each in self.registrations.items()
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow kubelet.sock and keep the applied resources registered, until the end of the block."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            follower = group.create_task(self.kubelet.follow(), name="kubelet.sock")
            try:
                # It looks at once, so the first inventory knows whether another genericdp serves the kubelet.
                await asyncio.sleep(0)
                yield
            finally:
                tasks = [task for each in self._tasks.values() for task in each]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                follower.cancel()
                self._tasks.clear()
                self.registrations.clear()
                self._group = None

    def apply(self, inventory: Inventory, changes: Changes) -> None:
        """Start, update and stop plugins as the changes require."""
        for name in changes.removed:
            self._stop(name)
        for name in changes.added:
            self._start(inventory.offers[name])
        for name in changes.updated:
            plugin = self.registrations[name].plugin
            options = plugin.options()
            plugin.update(inventory.offers[name])
            if plugin.options() != options:
                # The kubelet asks for the options once, when it dials.
                self._stop(name)
                self._start(inventory.offers[name])

    def _start(self, offer: Offer) -> None:
        if self._group is None:
            raise RuntimeError("call apply inside running()")
        name = offer.resource.name
        plugin = Plugin(
            offer,
            link_dir=self._settings.link_dir,
            coalesce_s=self._settings.coalesce_s,
            on_allocate=self._on_allocate,
            settled=self._settled,
            on_list=self._on_list,
            by_cdi=self._by_cdi,
            usb_reset=self._usb_reset,
        )
        registration = Registration(
            plugin, self.kubelet, self._starts, on_progress=self._on_progress, pauses=self._pauses
        )
        tasks = self._tasks.setdefault(name, [])
        self.registrations[name] = registration
        serving = _serve_after(tuple(tasks), registration)
        task = self._group.create_task(serving, name=f"registration of {name}")
        tasks.append(task)
        task.add_done_callback(functools.partial(self._ended, name))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Forget a task: its result refers to its plugin and all its devices."""
        left = [each for each in self._tasks.pop(name, ()) if each is not task]
        if left:
            self._tasks[name] = left

    def _stop(self, name: str) -> None:
        self.registrations.pop(name).plugin.stop()
        self._tasks[name][-1].cancel()


async def _serve_after(earlier: Collection[asyncio.Task[None]], registration: Registration) -> None:
    """Serve once all earlier registrations of the same resource have ended their streams."""
    if earlier:
        await asyncio.wait(earlier)
    del earlier  # this runs for long, and the results of the earlier ones refer to their plugins
    await registration.serve()
