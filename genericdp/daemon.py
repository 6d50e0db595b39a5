"""The daemon: an event is a hint. Look again, rebuild the inventory, apply the difference.

The rules of this file:

* Every path goes through `Daemon.step`: start, hot-plug, lost events, edited rules, forgetting.
* Within a step, links come before plugins: when the kubelet reads Healthy, host_path is right.
* Nothing is decided here. `core` decides what the inventory is, what is remembered and when it is
  saved; this file reads the clock, calls it in order and carries out the result.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial

from genericdp import log, usb
from genericdp.core.hint import Hint, RescanCause, Resync
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.changes import diff
from genericdp.core.inventory.inventory import Inventory, without_links
from genericdp.core.memory.held import Answer
from genericdp.core.memory.memory import Memory, after_allocate
from genericdp.core.memory.remember import next_forgetting
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.resource import attributes_of
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.core.status.status_line import status_line
from genericdp.cri.cdi import ReadsCdi
from genericdp.cri.comeback import Comeback
from genericdp.errors import GenericdpError
from genericdp.files.cdi_upkeep import CdiUpkeep
from genericdp.files.link_upkeep import LinkUpkeep
from genericdp.files.saving import Saving
from genericdp.forgetting import Forgetting
from genericdp.inputs import Devices, Listen, Rules, listen_to_udev
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import REFUSED, Pauses, Progress
from genericdp.retry import Retry
from genericdp.standby import until_alone
from genericdp.status.answers import Answers
from genericdp.status.recorder import Recorder
from genericdp.systemd import Notify
from genericdp.udev import Pending, UdevDevices
from genericdp.watchdog import Watchdog

_log = log.get(__name__)


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
        self.rules = rules
        self.inventory = Inventory()
        self.memory = Memory()
        self.standing_by = ""
        self.recorder = Recorder(now)
        self._cdi = CdiUpkeep(settings, self.step, partial(self._see_tried, Retried.CDI))
        self.plugins = Plugins(
            settings,
            on_kubelet=self._see_kubelet,
            on_rival=lambda: self._notify.status(self.status_line()),
            on_progress=self._see_progress,
            on_allocate=self._see_allocated,
            on_list=self.recorder.see_list,
            by_cdi=self._cdi.answers,
            usb_reset=self._reset_usb,
            pauses=pauses,
        )
        self._notify = notify or Notify()
        self.watchdog = Watchdog(self._notify, self.plugins, now=now)
        self.answers = Answers(self, now=now, on_tried=self._see_tried)
        self._builder = Builder(rules.resources, settings.domain, settings.answer)
        self._now = now
        self._usb_reset = usb_reset
        self._on_step = on_step
        self._links = LinkUpkeep(settings.link_dir, self.step)
        self._saving = Saving(settings.state_dir, partial(self._see_tried, Retried.MEMORY))
        self._forgetting = Forgetting(
            self.plugins.kubelet,
            settings.pod_resources_socket,
            now=now,
            due=lambda: next_forgetting(self.memory, self.inventory),
            waits=lambda: bool(self.inventory.waiting),
            is_followed=lambda: not self.plugins.registrations or self.plugins.registered > 0,
            tell=self.step,
        )
        self._comeback = Comeback(
            settings, self._forgetting.is_complete, self.recorder.see_stop, self._see_tried, now=now
        )
        self._reads_cdi = ReadsCdi(settings, lambda: self.rules.resources, self._cdi.see_runtime)
        self._devices = devices or UdevDevices(attributes_of(rules.resources))
        self._reading_rules = Retry(self._reload_rules)
        self._reading = Retry(lambda: self._hear(Resync(RescanCause.UNREAD)))
        self._listen = listen
        self._pending = Pending()
        self._reload = False
        self._stopping = False
        self._awake = asyncio.Event()

    def stop(self) -> None:
        """End `run`: serve no more, leave the links."""
        self._stopping = True
        self._awake.set()

    def reload(self) -> None:
        """Read the rule files and every device again."""
        self._hear(Resync(RescanCause.RELOAD))
        self._reload_rules()

    async def run(self) -> None:
        """Serve until `stop`. READY is sent after the first inventory, with or without a kubelet.

        Raises GenericdpError if the memory cannot be read.

        While another genericdp serves the node, this one stands by. It is READY meanwhile, so that a rollout
        that waits for it continues and ends the other one.
        """
        feeding = asyncio.create_task(self.watchdog.run(), name="watchdog")
        try:
            with contextlib.ExitStack() as stack:
                async with self.answers.running():
                    # While another genericdp serves, that one answers.
                    await self.answers.listen(persist=False)
                    await until_alone(
                        self.settings, stack, self._stand_by, self._awake, lambda: self._stopping
                    )
                    self.standing_by = ""
                    if not self._stopping:
                        await self.answers.listen()
                        await self._serve()
        finally:
            feeding.cancel()
            await asyncio.wait((feeding,))

    async def _serve(self) -> None:
        self.memory = self._saving.load()
        with contextlib.ExitStack() as stack:
            stack.callback(self._saving.close)
            stack.callback(self._reading.succeeded)
            stack.callback(self._reading_rules.succeeded)
            # Subscribed before enumerated: what happens in between is not lost.
            stack.callback(self._listen(self._hear, self.settings.rescan_s))
            stack.callback(self.rules.watch(self._reload_rules))
            stack.enter_context(self._links.watching())
            stack.enter_context(self._cdi.serving())
            async with self.plugins.running(), asyncio.TaskGroup() as group:
                # The rules were read before they were watched, and this daemon may have stood by for
                # days since.
                self._read_rules()
                self._devices.resync()
                await self._reads_cdi.begin()
                self.step()
                self._see_unread()
                runs = (self._forgetting, self._comeback, self._reads_cdi)
                tasks = [group.create_task(each.run()) for each in runs]
                self._notify.ready(self.status_line())
                self.recorder.see_ready(self.inventory)
                if not self.plugins.kubelet.is_there():
                    _log.info("no kubelet yet, waiting for it", socket=self.plugins.kubelet.path)
                while not self._stopping:
                    await self._awake.wait()
                    self._awake.clear()
                    reloading = self._reload
                    self._follow_hints()
                    if reloading:
                        await self.answers.listen()
                self._notify.stopping("stopping")
                for task in tasks:
                    task.cancel()

    def step(self, answer: Answer | None = None) -> None:
        """Rebuild the inventory and carry out what changed. `answer`: of PodResources, see `remember`."""
        now = self._now()
        inventory, memory = take_inventory(self._builder, self._devices.devices, self.memory, now, answer)
        inventory = without_links(inventory, self._links.apply(inventory.links()))
        inventory = self._cdi.apply(inventory, memory.answered)
        changes = diff(self.inventory, inventory)
        self.recorder.see_step(self.inventory, inventory, changes)
        self.inventory = inventory
        self._keep(memory)
        if changes:
            self.plugins.apply(inventory, changes)
            self._notify.status(self.status_line())
        self._forgetting.look_again()
        self._comeback.see(inventory)
        self._on_step(inventory)

    def status_line(self) -> str:
        """One line for `systemctl status`."""
        there = self.plugins.kubelet.incarnation is not None
        registered = self.plugins.registered if there else None
        failing, rival = self.recorder.history.failing.values(), self.plugins.kubelet.rival
        problems = len(self.rules.problems)
        return status_line(self.inventory, registered, problems, failing, rival=rival)

    def _keep(self, memory: Memory) -> None:
        self._saving.keep(self.memory, memory)
        self.memory = memory

    def _reload_rules(self) -> None:
        self._reload = True
        self._awake.set()

    def _hear(self, hint: Hint) -> None:
        self.recorder.see_hint(hint)
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
        else:
            self.recorder.see_no_step(self.inventory)
        self._see_unread()

    def _see_unread(self) -> None:
        """Read again later what could not be read."""
        unread = self._devices.unread
        self._see_tried(Retried.DEVICES, unread)
        self._reading.tried(works=unread is None)

    async def _reset_usb(self, busnum: int, devnum: int) -> None:
        """Reset a USB device and read every device again, before the uevents of the reset are read."""
        # libusb blocks.
        await asyncio.to_thread(self._usb_reset, busnum, devnum)
        self._hear(Resync(RescanCause.USB_RESET))
        self._follow_hints()

    def _take_rules(self) -> bool:
        self._notify.reloading()
        changed = self._read_rules()
        _log.info("rules reloaded", resources=len(self.rules.resources), changed=changed)
        self._notify.ready(self.status_line())
        return changed

    def _read_rules(self) -> bool:
        """Read the rule files again; True if the rules changed."""
        self.rules.reload()
        self.recorder.see_rules(self.rules)
        self._reading_rules.tried(works=not self.rules.unread)
        changed = self._builder.resources != self.rules.resources
        if changed:
            self._builder = Builder(self.rules.resources, self.settings.domain, self.settings.answer)
            self._devices.want(attributes_of(self.rules.resources))
            self._reads_cdi.look_again()
        return changed

    def _stand_by(self, holder: str) -> None:
        self.standing_by = holder
        self._notify.ready(f"standing by: {holder} serves this node")

    def _see_kubelet(self, there: bool) -> None:
        self.recorder.see_kubelet(self.plugins.kubelet.path, there=there)
        self._reads_cdi.look_again()
        self._forgetting.look_again()

    def _see_allocated(self, allocated: Allocated) -> None:
        """Remember who got what before the kubelet knows it."""
        self.recorder.see_allocated(allocated)
        if allocated.error:
            return
        # A plugin that answers is in the inventory. If it were not, the call would fail and give nothing.
        offer = self.inventory.offers[allocated.resource]
        self._keep(after_allocate(self.memory, offer, allocated.ids, allocated.cdi_device, self._now()))
        self._cdi.apply(self.inventory, self.memory.answered)
        if not all(offer.ids[id_].healthy for id_ in allocated.ids if id_ in offer.ids):
            # The rules no longer offer what the pod now holds: other ids may have to wait for it.
            self.step()

    def _see_tried(self, what: Retried, error: GenericdpError | None) -> None:
        if self.recorder.see_tried(what, error):
            self._notify.status(self.status_line())

    def _see_progress(self, progress: Progress) -> None:
        self.recorder.see_progress(progress)
        self._forgetting.look_again()
        self._notify.status(self.status_line())
