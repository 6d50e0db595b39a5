"""Stops the containers that no longer have their device. The kubelet starts them again, with the device.

The rules of this file:

* Nothing is asked while no rule wants it. What only this needs is loaded when it is first needed.
* Who holds a device is asked of PodResources, which containers there are of the kubelet's container runtime;
  `core.comeback` decides. Without an answer of both, nothing is stopped, and they are asked again.
* An answer of PodResources is final for a device only if it lists every id under which a pod may hold it: a
  kubelet that cannot reach the API server lists none. Until then, it matters whether a pod still holds it.
* What is asked grows with the containers, not with their devices: a container may hold thousands.
* Only the kubelet's own runtime can prove that a pod has no container. It is recognized by the pods that it
  has created, and a held device always belongs to such a pod.
* The pods of a kubelet that another genericdp serves hold what that one gave them. So meanwhile no device is
  followed, and no container is stopped.
* A stop lasts as long as the pod's grace period. It delays no other one. One that fails is tried again for
  each device that it was for: some may have come back by then.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from genericdp.core.comeback.container import Container, Inside
from genericdp.core.comeback.judge import Evidence, judge, newest
from genericdp.core.comeback.plugs import (
    ASK_AGAIN_S,
    Case,
    Key,
    Plugs,
    cases,
    follow,
    is_current,
    judged,
    next_case,
    not_stopped,
)
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.held import Held
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.core.status.holdings import Holder, Holdings, by_device, unlisted
from genericdp.cri.connection import Shared
from genericdp.cri.lookout import Lookout
from genericdp.errors import GenericdpError
from genericdp.kubelet import checkpoint, podresources

#: How long to wait before a runtime that could not stop a container is asked for it again, in seconds.
STOP_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Stop:
    """A container that the runtime is asked to stop, or that it could not stop (`error`).

    cause  "unplug" or "replug"
    """

    resource: str
    device: str
    holder: Holder
    cause: str
    error: str = ""


class Pods(Protocol):
    """What is known of the pods of the kubelet."""

    def complete(self) -> bool:
        """Whether PodResources, if it answers now, names every holder."""

    def held(self) -> Held:
        """What pods may hold."""

    def are_ours(self) -> bool:
        """Whether no other genericdp serves the kubelet."""

    def depend(self, *, depends: bool) -> None:
        """Take into account whether it matters if they still hold it."""


class Comeback:
    """Follows the devices of the resources that want it. Call `see` after each step while `running` runs.

    now        the clock of the debounce times, in seconds
    on_stop    called before each stop, and again if it failed
    on_tried   called whenever the runtime was asked, with the error or None
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float],
        pods: Pods,
        on_stop: Callable[[Stop], None],
        on_tried: Callable[[Retried, GenericdpError | None], None],
    ) -> None:
        self._settings = settings
        self._now = now
        self._pods = pods
        self._on_stop = on_stop
        self._lookout = Lookout(settings, now, lambda: self._plugs.offers, on_tried)
        self._inventory = Inventory()
        self._plugs = Plugs()
        # The devices of open cases that pods may hold under ids that were not listed.
        self._unlisted: frozenset[Key] = frozenset()
        # The id of a container that is being stopped -> the cases for which it is.
        self._stopping: dict[str, list[Case]] = {}
        # Socket -> the connection of all stops.
        self._connections: dict[str, Shared] = {}
        self._changed = asyncio.Event()

    def see(self, inventory: Inventory, plugged: Plugged, devices: Mapping[str, Remembered]) -> None:
        """Take another inventory into account, what is plugged in, and what is remembered of devices."""
        if not self._pods.are_ours():
            inventory = Inventory()
        wanted = bool(self._plugs.offers)
        self._inventory = inventory
        self._plugs = follow(self._plugs, inventory, plugged, self._now(), devices)
        if bool(self._plugs.offers) != wanted:
            self._lookout.see_wanted(wanted=not wanted)
        self._see_unlisted(self._unlisted)
        self._changed.set()

    def look_again(self) -> None:
        """Take into account that a kubelet has started, maybe with another runtime."""
        self._lookout.see_kubelet()
        self._changed.set()

    def see_allocated(self) -> None:
        """Take into account that a pod got a device."""
        self._lookout.see_allocated()
        self._changed.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ask and stop meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._run(), name="comeback")
            try:
                yield
            finally:
                task.cancel()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as stops:
            while True:
                due = next_case(self._plugs)
                look_at = self._lookout.look_at
                wait_s = min(look_at if due is None else min(due, look_at), 1e9) - self._now()
                if wait_s > 0:
                    self._changed.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(wait_s):
                            await self._changed.wait()
                elif due is not None and due <= self._now():
                    await self._judge(cases(self._plugs, self._now()), stops)
                else:
                    await self._lookout.look()

    async def _judge(self, due: Sequence[Case], stops: asyncio.TaskGroup) -> None:
        complete = self._pods.complete()
        holdings = await podresources.ask(self._settings.pod_resources_socket)
        if holdings is None:
            self._put_off(due)
            return
        complete = complete and self._pods.complete()
        keys = {case.key for case in due}
        missing = keys & unlisted(self._pods.held(), holdings)
        final = keys - missing if complete else frozenset[Key]()
        holders = self._holders(due, holdings)
        free = [case for case in due if not holders[case.key]]
        self._judged([(case, ()) for case in free if case.key in final], sure=True)
        self._put_off([case for case in free if case.key not in final])
        held = [case for case in due if holders[case.key]]
        if held:
            try:
                await self._judge_held(held, holders, final, stops)
            except GenericdpError:
                self._put_off(held)
        self._see_unlisted(self._unlisted - keys | missing)

    def _see_unlisted(self, devices: frozenset[Key]) -> None:
        is_open = {case.key for case in cases(self._plugs, float("inf"))} if devices else ()
        self._unlisted = devices.intersection(is_open)
        self._pods.depend(depends=bool(self._unlisted))

    def _holders(self, due: Sequence[Case], holdings: Holdings) -> Mapping[Key, frozenset[Holder]]:
        """Who holds the devices of these cases."""
        held = by_device(holdings, self._inventory)
        return {
            case.key: frozenset(holder for _, holder in held.get(case.key[0], {}).get(case.key[1], ()))
            for case in due
        }

    async def _judge_held(
        self,
        due: Sequence[Case],
        holders: Mapping[Key, frozenset[Holder]],
        final: Collection[Key],
        stops: asyncio.TaskGroup,
    ) -> None:
        async with self._lookout.chosen() as choice:
            runtime = choice.runtimes[0]
            containers = newest(await runtime.containers())
            # Meanwhile a pod may have given way to one of the same name, which holds something else.
            holdings = await podresources.ask(self._settings.pod_resources_socket)
            again = self._holders(due, holdings or {})
            self._put_off([case for case in due if again.get(case.key) != holders[case.key]])
            known = [case for case in due if again.get(case.key) == holders[case.key]]
            ids = {
                containers[holder].id
                for case in known
                if not case.unplugged
                for holder in holders[case.key] & containers.keys()
            }
            # All at once, so that several whose shims hang take no longer than one.
            found = await asyncio.gather(*map(runtime.inside, ids))
            inside: dict[str, Inside | None] = dict(zip(ids, found, strict=True))
            resources = {case.key[0] for case in known}
            saved = await checkpoint.answers_in(self._settings.kubelet_dir, resources)
            evidence = Evidence(inside, saved, self._settings.link_dir)
            judgements = [
                (case, judge(case, holders[case.key], containers, evidence))
                for case in known
                if is_current(self._plugs, case)
            ]
            unsure = {
                case.key
                for case, judgement in judgements
                if case.key not in final
                or not choice.known
                or (runtime.tells_devices and not judgement.sure)
                or (judgement.starting and not case.has_outlasted_starts(self._now()))
            }
            for sure in (True, False):
                self._judged(
                    [(case, each.stops) for case, each in judgements if (case.key not in unsure) is sure],
                    sure=sure,
                )
            for case, judgement in judgements:
                for container in judgement.stops:
                    # It may hold another device that was judged as well.
                    of_it = self._stopping.setdefault(container.id, [])
                    of_it.append(case)
                    if len(of_it) == 1:
                        stops.create_task(self._stop(case, container, runtime.socket))

    async def _stop(self, case: Case, container: Container, socket: str) -> None:
        cause = "unplug" if case.unplugged else "replug"
        stop = Stop(*case.key, container.holder, cause)
        self._on_stop(stop)
        try:
            async with self._connections.setdefault(socket, Shared(socket)).connected() as runtime:
                await runtime.stop(container.id, container.grace_s)
        except GenericdpError as error:
            self._on_stop(Stop(*case.key, container.holder, cause, str(error)))
            failed, again_at = self._stopping[container.id], self._now() + STOP_AGAIN_S
            self._plugs = not_stopped(self._plugs, failed, container, again_at)
            self._changed.set()
        finally:
            del self._stopping[container.id]

    def _judged(self, stops: Sequence[tuple[Case, Sequence[Container]]], *, sure: bool) -> None:
        again_at = None if sure else self._now() + ASK_AGAIN_S
        self._plugs = judged(self._plugs, stops, again_at=again_at)

    def _put_off(self, due: Sequence[Case]) -> None:
        self._judged([(case, ()) for case in due], sure=False)
