"""The daemon: an event is a hint. Look again, rebuild the inventory, apply the difference.

The rules of this file:

* Every path goes through `Daemon.step`: start, hot-plug, lost events, edited rules, forgetting. The first
  step knows what pods may hold, so nothing else may cause one.
* Within a step, the memory comes before links, and links before plugins: a daemon that is killed knows what
  containers may have got, and when the kubelet reads Healthy, host_path is right.
* Nothing is decided here. `core` decides what the inventory is, what is remembered and when it is
  saved; this file reads the clock, calls it in order and carries out the result.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from functools import partial

from genericdp import log, usb
from genericdp.core.hint import Hint, RescanCause, Resync, Uevent
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory, diff, without_links
from genericdp.core.memory.answer import Answer, joined
from genericdp.core.memory.memory import Memory, after_allocate, resumed
from genericdp.core.memory.remember import next_forgetting
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.cri.cdi import ReadsCdi
from genericdp.cri.comeback import Comeback
from genericdp.errors import GenericdpError
from genericdp.files.cdi.upkeep import CdiUpkeep
from genericdp.files.link_upkeep import LinkUpkeep
from genericdp.files.saving import Saving
from genericdp.forgetting import Forgetting
from genericdp.inputs import Devices, Rules, plugged_in, take
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import REFUSED, Pauses, Progress
from genericdp.machine.devices import MachineDevices
from genericdp.service.again import Again
from genericdp.service.directories import Directories
from genericdp.service.ready import Ready
from genericdp.service.reloading import Reloading
from genericdp.service.standby import until_alone
from genericdp.service.watchdog import Watchdog
from genericdp.status.answers import Answers
from genericdp.status.recorder import Recorder
from genericdp.systemd import Notify
from genericdp.udev import Pending, Polling

_log = log.get(__name__)


class Daemon:
    """One daemon on one node. `run` it; `stop` and `reload` are for signals and tests."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        *,
        devices: Devices | None = None,
        notify: Notify | None = None,
        now: Callable[[], float] = time.monotonic,
        pauses: Pauses = REFUSED,
        usb_reset: Callable[[int, int], None] = usb.reset,
        on_step: Callable[[Inventory], None] = lambda _: None,
    ) -> None:
        self._directories = Directories(settings, self.stop, partial(self._see_tried, Retried.DIRECTORIES))
        self.settings = settings = self._directories.served
        self.rules, self._awake = rules, asyncio.Event()
        self.inventory, self.memory, self.standing_by = Inventory(), Memory(), ""
        self.recorder = Recorder(now)
        self._links = LinkUpkeep(settings.link_dir, self.step, self._read_again)
        tried = partial(self._see_tried, Retried.CDI)
        self.cdi = CdiUpkeep(settings, self.step, tried, lambda: self.plugins.kubelet.rival, self._links.dead)
        self._saving = Saving(settings.state_dir, self._see_saved, link_dir=settings.link_dir)
        self.plugins = Plugins(
            settings,
            on_kubelet=self._see_kubelet,
            on_rival=self._see_rival,
            on_progress=self._see_progress,
            on_allocate=self._see_allocated,
            settled=self._saving.settled,
            on_list=self.recorder.see_list,
            by_cdi=self.cdi.answers,
            usb_reset=self._reset_usb,
            pauses=pauses,
        )
        self._notify = notify or Notify()
        self.ready = Ready(settings, self._notify, self.status_line, now=now, wake=self._awake.set)
        self.watchdog = Watchdog(self._notify, self.plugins, now=now)
        self.answers = Answers(self, now=now, on_tried=self._see_tried)
        self._builder = Builder(rules.resources, settings.domain, settings.answer)
        self._now, self._on_step, self._resets = now, on_step, usb.Resets(usb_reset)
        self._forgetting = Forgetting(
            self.plugins,
            settings.pod_resources_socket,
            settings.link_dir,
            now=now,
            due=lambda: now() if self._directories.waits else next_forgetting(self.memory, self.inventory),
            waits=lambda: bool(self.inventory.waiting),
            held=lambda: self.memory.held,
            tell=self.step,
            tell_saved=self._directories.see_saved,
            on_read=partial(self._see_tried, Retried.CHECKPOINT),
        )
        self._comeback = Comeback(settings, now, self._forgetting, self.recorder.see_stop, self._see_tried)
        self._reads_cdi = ReadsCdi(settings, lambda: self.rules.resources, self.cdi.see_runtime)
        self._devices = devices or MachineDevices(rules.resources)
        self._devices.remember(lambda: self.memory.devices)
        self._reloading = Reloading(
            rules, settings, self.ready, self._awake.set, on_read=self._use_rules, on_tried=self._see_tried
        )
        self._again = Again(
            read=lambda: self._hear(Resync(RescanCause.UNREAD)), look=self.reload, on_tried=self._see_tried
        )
        self._pending, self._polling = Pending(), Polling(self._hear)
        self._answer: Answer | None = None
        self._begun = self._stopping = False

    def stop(self) -> None:
        """End `run`: serve no more, leave the links."""
        self._stopping = True
        self._awake.set()

    def reload(self) -> None:
        """Read the rule files and every device again."""
        self._hear(Resync(RescanCause.RELOAD))
        self._reloading.request()

    async def run(self) -> None:
        """Serve until `stop`. READY is sent after the first inventory, with or without a kubelet.

        Raises GenericdpError if the memory cannot be read. While another genericdp serves the node, this one
        stands by. It is READY meanwhile: a rollout that waits for it continues and ends the other one.
        """
        self.recorder.see_problems(self.rules.problems)
        with contextlib.ExitStack() as stack:
            async with self.watchdog.running(), self.answers.running():
                # While another genericdp serves, that one answers.
                await self.answers.listen(persist=False)
                await until_alone(
                    self.settings, stack, self._awake, lambda: self._stopping, self._stand_by, end=self.stop
                )
                self.standing_by = ""
                if not self._stopping:
                    await self.answers.listen()
                    await self._serve()

    async def _serve(self) -> None:
        async with self.plugins.kubelet.idle_channel(), contextlib.AsyncExitStack() as stack:
            self._directories.confirm()
            self.memory = resumed(self._saving.begin(), self._now())
            stack.enter_context(contextlib.closing(self._directories)).begin()
            self.ready.begin()
            for each in (self.ready, self._saving, self._polling, self._resets, self._again):
                stack.callback(each.close)
            # Subscribed before enumerated: what happens in between is not lost.
            stack.callback(self._devices.listen(self._hear, self.settings.rescan_s))
            stack.enter_context(self._reloading.watching())
            stack.enter_context(self._links.watching())
            stack.enter_context(self.cdi.serving(self._directories.note_cdi_dir))
            async with self.plugins.running(), self._comeback.running(), asyncio.TaskGroup() as group:
                # They were read before they were watched: this daemon may have stood by for days since.
                self._reloading.read()
                self._devices.resync()
                await self._reads_cdi.begin()
                before, held = self.memory, await self._forgetting.begin()
                self._begun = True
                self.step(held)
                self.recorder.see_begun(before, self.memory)
                self._again.see(self._devices)
                tasks = [group.create_task(each.run()) for each in (self._forgetting, self._reads_cdi)]
                self.ready.look(self.inventory)
                if not self.plugins.kubelet.is_there():
                    _log.info("no kubelet yet, waiting for it", socket=self.plugins.kubelet.path)
                while not self._stopping:
                    await self._awake.wait()
                    self._awake.clear()
                    reloading = self._reloading.due
                    self._follow_hints()
                    self.ready.look(self.inventory)
                    if reloading:
                        await self.answers.listen()
                self._notify.stopping("stopping")
                for task in tasks:
                    task.cancel()

    def step(self, answer: Answer | None = None) -> None:
        """Rebuild the inventory and carry out what changed. `answer`: of PodResources, see `remember`."""
        if self._begun:
            with self._again.outliving():
                self._step(answer)

    def _step(self, answer: Answer | None = None) -> None:
        # Hints may have arrived since this step became necessary: while a runtime was asked, for example.
        self._devices.apply(*self._pending.take())
        answer = self._answer = joined(self._answer, answer)
        taken, memory = take(self._builder, self._devices, self.memory, self._now(), answer)
        self._saving.keep(memory)
        inventory = without_links(taken, self._links.apply({**taken.links(), **taken.held_links}))
        inventory = self.cdi.apply(inventory, memory.answered)
        changes = diff(self.inventory, inventory)
        self.recorder.see_answer(answer, inventory, memory)
        self.recorder.see_step(self.inventory, inventory, changes)
        self.inventory, self.memory, self._answer = inventory, memory, None
        if changes:
            self.plugins.apply(inventory, changes)
            self.ready.see(inventory)
            self._notify.status_soon(self.status_line)
        self._directories.see(answer, memory.held)
        self._forgetting.look_again()
        self._comeback.see(inventory, plugged_in(self._builder, self._devices), memory.devices)
        self._polling.see(inventory)
        self._on_step(inventory)

    def status_line(self) -> str:
        """One line for `systemctl status`."""
        return self.answers.status_line()

    def _hear(self, hint: Hint) -> None:
        self.recorder.see_hint(hint)
        self._pending.add(hint)
        self._awake.set()

    def _follow_hints(self) -> None:
        with self._again.following() as everything:
            unread = self._devices.unread is not None
            changed = self._reloading.take() or everything
            changed |= self._devices.apply(*self._pending.take())
            if changed or (unread and self._devices.unread is None):
                self._step()
            else:
                self.recorder.see_no_step(self.inventory)
            self._again.see(self._devices)

    def _read_again(self, links: Collection[str]) -> None:
        """Read the devices of these links again, and look."""
        self._devices.apply(*(Uevent("change", path, "", "udev") for path in self.inventory.behind(links)))
        self.step()

    async def _reset_usb(self, units: Collection[usb.Unit], ids: Collection[str], *, reset: bool) -> None:
        """Reset USB devices and read every device again, before the uevents of the reset are read."""
        if await self._resets.ask(units, ids, self, self._devices, self._forgetting.ask_now, reset=reset):
            self._hear(Resync(RescanCause.USB_RESET))
            self._follow_hints()

    def _use_rules(self) -> bool:
        """Use the rules as they were read now; True if they changed."""
        self.recorder.see_rules(self.rules)
        if changed := self._builder.resources != self.rules.resources:
            self._builder = Builder(self.rules.resources, self.settings.domain, self.settings.answer)
            self._devices.want(self.rules.resources)
            self._reads_cdi.look_again()
        return changed

    def _stand_by(self, holder: str) -> None:
        self.standing_by = holder
        self._notify.ready(f"standing by: {holder} serves this node")

    def _see_kubelet(self, there: bool) -> None:
        self.recorder.see_kubelet(self.plugins.kubelet.path, there=there)
        for each in (self._reads_cdi, self._forgetting, self._comeback):
            each.look_again()

    def _see_rival(self) -> None:
        if self.inventory.offers:
            self.step()
        self._notify.status_soon(self.status_line)

    def _see_allocated(self, allocated: Allocated) -> None:
        """Remember who got what before the kubelet knows it."""
        self.recorder.see_allocated(allocated)
        if allocated.error:
            return
        self._comeback.see_allocated()
        # A plugin that answers is in the inventory. If it were not, the call would fail and give nothing.
        offer = self.inventory.offers[allocated.resource]
        memory = after_allocate(self.memory, offer, allocated.ids, allocated.cdi_device, self._now())
        self.memory = self._saving.keep(memory)
        written = self.cdi.see_answered(self.inventory, self.memory.answered)
        is_offered = all(offer.ids[id_].healthy for id_ in allocated.ids if id_ in offer.ids)
        # Other ids may have to wait for what the pod holds, or a link must say that nobody shares it.
        if not written or not is_offered or offer.resource.replicas == 1:
            self.step()

    def _see_tried(self, what: Retried, error: GenericdpError | None) -> None:
        if self.recorder.see_tried(what, error):
            self._notify.status_soon(self.status_line)

    def _see_saved(self, error: GenericdpError | None) -> None:
        self._see_tried(Retried.MEMORY, error)
        if error is None:
            self._directories.see_room()

    def _see_progress(self, progress: Progress) -> None:
        self.recorder.see_progress(progress)
        self._forgetting.look_again()
        self._notify.status_soon(self.status_line)
