"""The daemon: an event is a hint; look again, rebuild the inventory, apply the difference.

The rules of this file:

* Every path goes through `Daemon.step`: start, hot-plug, lost events, edited rules, forgetting.
* Within a step, links come before plugins: when the kubelet hears Healthy, host_path is right.
* Nothing is decided here. What the inventory is, what is remembered and what is worth saying are
  decisions of `core`; this file reads the clock, calls them in order and carries out the outcome.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from genericdp import log, usb
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.changes import diff
from genericdp.core.inventory.inventory import Inventory, without_links
from genericdp.core.inventory.memory import Memory, next_forgetting
from genericdp.core.inventory.take import take_inventory
from genericdp.core.rules.resource import Resource, attributes_of
from genericdp.core.rules.settings import Settings
from genericdp.core.status import watchdog
from genericdp.core.status.news import news
from genericdp.core.status.status_line import status_line
from genericdp.errors import GenericdpError, Problem
from genericdp.files.links import Links
from genericdp.files.rulefiles import RuleFile
from genericdp.files.state import StateFile
from genericdp.kubelet import podresources
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import REFUSED, Pauses, Phase, Progress
from genericdp.standby import refuse_company, until_alone
from genericdp.status.witness import Witness
from genericdp.systemd import Notify
from genericdp.udev import Deafness, Hint, Monitor, Pending, Resync, UdevDevices
from genericdp.watch import DirectoryWatch

#: How long a change of the memory may wait for the disk, in seconds: a storm is written once.
SAVE_AFTER_S = 1.0

#: How long to wait before asking again who holds an absent device whose grace has passed, in seconds.
ASK_AGAIN_S = 60.0

#: How long a kubelet may take from its start until it knows its pods, in seconds. Until then it says
#: that nobody holds anything, as its PodResources answer before the API server has.
KUBELET_SETTLES_S = 120.0

#: How long to wait before trying again to make a link that could not be made, in seconds.
LINK_AGAIN_S = 10.0

_log = log.get(__name__)


class Rules(Protocol):
    """Where the rules come from: `genericdp.files.rulefiles`, or a list in a test."""

    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    files: tuple[RuleFile, ...]

    def reload(self) -> None: ...

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]: ...


class Devices(Protocol):
    """The udev devices as they are now: `genericdp.udev.UdevDevices`, or made-up ones in a test."""

    @property
    def devices(self) -> Mapping[str, UdevDevice]: ...

    def want(self, attributes: Iterable[str]) -> bool: ...

    def resync(self) -> bool: ...

    def apply(self, hint: Hint) -> bool: ...


#: Begins to pass hints on; returns what ends it.
Listen = Callable[[Callable[[Hint], None], float], Callable[[], None]]


def listen_to_udev(sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
    """Hints of the real monitor."""
    monitor = Monitor(sink, rescan_s=rescan_s)
    monitor.start()
    return monitor.close


class Daemon:
    """One daemon on one node. `run` it; `stop` and `reload` are for signals and tests."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        *,
        devices: Devices | None = None,
        listen: Listen = listen_to_udev,
        notify: Notify | None = None,
        now: Callable[[], float] = time.monotonic,
        pauses: Pauses = REFUSED,
        usb_reset: Callable[[int, int], None] = usb.reset,
        on_step: Callable[[Inventory], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.inventory = Inventory()
        self.memory = Memory()
        self.witness = Witness(self, now=now)
        self.plugins = Plugins(
            settings,
            on_kubelet=self._say_kubelet,
            on_progress=self._say_progress,
            on_allocate=self._say_allocated,
            on_list=self.witness.see_list,
            usb_reset=self._reset_usb,
            pauses=pauses,
        )
        self.rules = rules
        self.standing_by = ""
        self._builder = Builder(rules.resources, settings.domain)
        self._notify = notify or Notify()
        self._now = now
        self._usb_reset = usb_reset
        self._seen: dict[str, watchdog.Seen] = {}
        self._on_step = on_step
        self._links = Links(settings.link_dir)
        self._state = StateFile(settings.state_dir)
        self._devices = devices or UdevDevices(attributes_of(rules.resources))
        self._listen = listen
        self._pending = Pending()
        self._reload = False
        self._stopping = False
        self._awake = asyncio.Event()
        self._stepped = asyncio.Event()
        self._link_timer: asyncio.TimerHandle | None = None
        self._links_mended: float | None = None
        self._save_timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """End `run`: serve no more, leave the links."""
        self._stopping = True
        self._awake.set()

    def reload(self) -> None:
        """Read the rule files again."""
        self._reload = True
        self._awake.set()

    async def run(self) -> None:
        """Serve until `stop`. READY is told after the first inventory, kubelet or not.

        While another genericdp serves the node, stands by: it is READY, too, so that a rollout that
        waits for it goes on and ends the other. Raises GenericdpError for one that has other links.
        """
        feeding = asyncio.create_task(self._keep_watchdog(), name="watchdog")
        try:
            with contextlib.ExitStack() as stack:
                async with self.witness.asked():
                    # Where another one serves, it is the one that answers.
                    await self.witness.listen(say=False)
                    await until_alone(
                        self.settings, stack, self._say_standby, self._awake, lambda: self._stopping
                    )
                    self.standing_by = ""
                    if not self._stopping:
                        await refuse_company(self.settings.kubelet_dir)
                        await self.witness.listen()
                        await self._serve()
        finally:
            feeding.cancel()
            await asyncio.wait((feeding,))

    async def _serve(self) -> None:
        try:
            self.memory = self._state.load()
        except GenericdpError as error:
            _log.warning(str(error), hint=error.hint)
        with contextlib.ExitStack() as stack:
            stack.callback(self._save)
            stack.callback(self._forget_link_timer)
            # Subscribed before enumerated: what happens in between is heard, not lost.
            stack.callback(self._listen(self._hear, self.settings.rescan_s))
            stack.callback(self.rules.watch(self.reload))
            stack.callback(DirectoryWatch(self.settings.link_dir, self._hear_of_links).close)
            async with self.plugins.running(), asyncio.TaskGroup() as group:
                # They were read before they were watched: it may have stood by for days since.
                self._read_rules()
                self._devices.resync()
                self.witness.see_rules()
                self.step()
                forgetting = group.create_task(self._forget(), name="forgetting")
                self._notify.ready(self.status_line())
                _say_start(self.inventory)
                if not self.plugins.kubelet.is_there():
                    _log.info("there is no kubelet yet, waiting for it", socket=self.plugins.kubelet.path)
                while not self._stopping:
                    await self._awake.wait()
                    self._awake.clear()
                    reloading = self._reload
                    self._follow_hints()
                    if reloading:
                        await self.witness.listen()
                self._notify.stopping("stopping")
                forgetting.cancel()

    def step(self, held: frozenset[str] | None = None) -> None:
        """Rebuild the inventory and carry out what changed. `held`: see `memory.remember`."""
        now = self._now()
        inventory, memory = take_inventory(self._builder, self._devices.devices, self.memory, now, held)
        inventory = without_links(inventory, self._apply_links(inventory))
        changes = diff(self.inventory, inventory)
        for each in news(self.inventory, inventory):
            (_log.warning if each.warning else _log.info)(each.message, **each.fields)
        self.witness.see_step(self.inventory, inventory, changes)
        self.inventory = inventory
        if memory != self.memory:
            tied, self.memory = memory.ties != self.memory.ties, memory
            # Which of twins came first cannot be found out again after a power cut.
            self._save() if tied else self._save_soon()
        if changes:
            self.plugins.apply(inventory, changes)
            self._notify.status(self.status_line())
        stepped, self._stepped = self._stepped, asyncio.Event()
        stepped.set()
        self._on_step(inventory)

    def status_line(self) -> str:
        """One line for `systemctl status`."""
        there = self.plugins.kubelet.incarnation is not None
        registered = self.plugins.registered if there else None
        return status_line(self.inventory, registered, len(self.rules.problems))

    def stuck(self) -> tuple[str, ...]:
        """The resources that have stopped trying to register, as far as anybody has looked."""
        now = self._now()
        self._seen = watchdog.look(self._seen, self.plugins.signs(), now)
        return watchdog.stuck(self._seen, now)

    def _hear(self, hint: Hint) -> None:
        self.witness.hear(hint)
        match hint:
            case Deafness(reason=reason):
                if reason:
                    _log.warning(
                        "udev cannot be heard, following the kernel and looking now and then", why=reason
                    )
                else:
                    _log.info("udev is heard again")
            case Resync(reason=reason):
                _log.debug("looking at every device", why=reason)
        self._pending.add(hint)
        self._awake.set()

    def _follow_hints(self) -> None:
        changed = False
        if self._reload:
            self._reload = False
            changed = self._take_rules()
        for hint in self._pending.take():
            changed |= self._devices.apply(hint)
        if changed:
            self.step()
        self.witness.see_nothing_more()

    async def _reset_usb(self, busnum: int, devnum: int) -> None:
        """Reset a USB device and look at what is there then, before its uevents are read."""
        # libusb blocks.
        await asyncio.to_thread(self._usb_reset, busnum, devnum)
        self._hear(Resync("a USB device was reset"))
        self._follow_hints()

    def _take_rules(self) -> bool:
        self._notify.reloading()
        changed = self._read_rules()
        self.witness.see_rules()
        _log.info("rules are read again", resources=len(self.rules.resources), changed=changed)
        self._notify.ready(self.status_line())
        return changed

    def _read_rules(self) -> bool:
        """Take over what the rule files say now; whether that is something else."""
        self.rules.reload()
        for problem in self.rules.problems:
            _log.error(f"{problem.location}: {problem.message}", hint=problem.hint)
        changed = self._builder.resources != self.rules.resources
        if changed:
            self._builder = Builder(self.rules.resources, self.settings.domain)
            self._devices.want(attributes_of(self.rules.resources))
        return changed

    def _apply_links(self, inventory: Inventory) -> dict[str, str]:
        """Make the links; whatever cannot be made is tried again and meanwhile not Healthy."""
        self._forget_link_timer()
        wanted = inventory.links()
        try:
            failed = self._links.apply(wanted)
        except GenericdpError as error:
            _log.error(str(error), hint=error.hint)
            failed = dict.fromkeys(wanted, str(error))
        if failed:
            loop = asyncio.get_running_loop()
            self._link_timer = loop.call_later(LINK_AGAIN_S, self.step)
        return failed

    def _forget_link_timer(self) -> None:
        if self._link_timer is not None:
            self._link_timer.cancel()
            self._link_timer = None

    def _hear_of_links(self, names: frozenset[str]) -> None:
        # What we do ourselves is heard, too.
        if self._links.intact(names):
            return
        loop = asyncio.get_running_loop()
        if self._links_mended is None or loop.time() - self._links_mended > LINK_AGAIN_S:
            self._links_mended = loop.time()
            _log.warning("somebody changed our links, making them again", directory=self._links.directory)
            self.step()
        elif self._link_timer is None:  # whoever it is does it again and again
            self._link_timer = loop.call_later(LINK_AGAIN_S, self.step)

    async def _forget(self) -> None:
        """Let go of absent devices once their grace has passed and nobody holds them."""
        while True:
            stepped = self._stepped
            due = next_forgetting(self.memory, self.inventory)
            wait = None if due is None else due - self._now()
            if wait is None or wait > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await stepped.wait()
                continue
            if self._kubelet_knows_its_pods():
                holdings = await podresources.ask(self.settings.pod_resources_socket)
                # It may be another kubelet by now.
                if holdings is not None and self._kubelet_knows_its_pods():
                    self.step(frozenset(id_ for _, id_ in holdings))
            await asyncio.sleep(ASK_AGAIN_S)

    def _kubelet_knows_its_pods(self) -> bool:
        kubelet = self.plugins.kubelet
        up_s = asyncio.get_running_loop().time() - kubelet.since
        return kubelet.incarnation is not None and up_s >= KUBELET_SETTLES_S

    async def _keep_watchdog(self) -> None:
        """Tell the service manager that all is well, as long as it is: it starts us again otherwise."""
        interval = self._notify.watchdog_interval_s
        while interval is not None:
            self.plugins.kubelet.look_again()
            stuck = self.stuck()
            if stuck:
                _log.error("resources are stuck, the watchdog is not fed", resources=",".join(stuck))
            else:
                self._notify.watchdog()
            await asyncio.sleep(interval)

    def _save_soon(self) -> None:
        if self._save_timer is None:
            self._save_timer = asyncio.get_running_loop().call_later(SAVE_AFTER_S, self._save)

    def _save(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        try:
            self._state.save(self.memory)
        except GenericdpError as error:
            _log.warning(str(error), hint=error.hint)

    def _say_standby(self, holder: str) -> None:
        self.standing_by = holder
        self._notify.ready(f"standing by: {holder} serves this node")

    def _say_kubelet(self, there: bool) -> None:
        self.witness.see_kubelet(there)
        if there:
            _log.info("kubelet is here", socket=self.plugins.kubelet.path)
        else:
            _log.info("kubelet is gone, waiting for it", socket=self.plugins.kubelet.path)

    def _say_progress(self, progress: Progress) -> None:
        self.witness.see_progress(progress)
        match progress:
            case Progress(phase=Phase.REGISTERED):
                _log.info("resource is registered", resource=progress.resource)
            case Progress(phase=Phase.WAITING, error=error) if error:
                _log.warning("resource is not registered", resource=progress.resource, why=error)
        self._notify.status(self.status_line())

    def _say_allocated(self, allocated: Allocated) -> None:
        self.witness.see_allocated(allocated)
        fields = {"resource": allocated.resource, "ids": ",".join(allocated.ids)}
        if allocated.error:
            _log.warning("allocation is refused", **fields, why=allocated.error)
        else:
            _log.info("allocated", **fields)


def _say_start(inventory: Inventory) -> None:
    devices = sum(len(offer.devices) for offer in inventory.offers.values())
    _log.info("ready", resources=len(inventory.offers), devices=devices)
