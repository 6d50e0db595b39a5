"""Asks the kubelet who holds devices, so that those that nobody holds can be forgotten or given out again.

The rules of this file:

* A device is forgotten only after its grace period and on evidence: the kubelet says that no container
  holds it. A kubelet that has just started does not know all its pods yet: the holders that it names count,
  but the absence of one proves nothing.
* A kubelet that starts answers before its kubelet.sock has replaced that of the one before. So the socket on
  which it answers counts as well, and whether a kubelet follows our lists.
* The checkpoint is read after PodResources has answered. It has a pod from its Allocate on, PodResources from
  the end of its admission on. So a pod that comes in between is in the checkpoint, and one that goes is in
  the answer. The other way round, one that comes could be in neither.
* What was given before this daemon serves may never have been saved, and may be in the checkpoint a moment
  later. So the checkpoint counts as well until it was read while the kubelet follows our lists. From then on,
  this daemon gives everything.
* The checkpoint is also read before the first inventory: where the memory was lost, ids depend on what pods
  hold. The links are read then, too: they show what an id meant before the rules were edited.
* Nothing is asked while nothing depends on the answer, except after each start of a kubelet: once at once,
  and once when it knows its pods. A start that finds a USB unit in use depends on it for a moment.
* A kubelet that is asked forgets the pods that have gone, but its checkpoint names them until it is written
  again, and on a quiet node nothing makes it. So while something depends on what only the checkpoint names,
  the kubelet is sent a list again: at most one after each answer, and one a minute.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import Held, may_be_of_the_past
from genericdp.core.status import holdings
from genericdp.errors import GenericdpError
from genericdp.files import links
from genericdp.kubelet import checkpoint, podresources
from genericdp.kubelet.checkpoint import Checkpoint
from genericdp.kubelet.socket import KubeletSocket

#: How long to wait before asking again about a device whose grace period has passed, in seconds.
ASK_AGAIN_S = 60.0

#: The same while a device has to wait until nobody holds it, while a kubelet has not answered at all, or
#: while its checkpoint cannot be read.
ASK_AGAIN_SOON_S = 10.0

#: How often a kubelet that has just started is asked until it answers. A node may have no PodResources API.
FIRST_TRIES = 6


#: The timeout of `ask_now`, in seconds.
ASK_NOW_S = 2.0

#: How long to wait before the kubelet is made to write its checkpoint once more, in seconds.
WRITE_AGAIN_S = 60.0


class Lists(Protocol):
    """The lists that the kubelet is sent."""

    kubelet: KubeletSocket

    def are_followed(self) -> bool:
        """Whether the kubelet is registered with, so that it has not ended."""

    def send_again(self) -> None:
        """Send one of them again, although nothing has changed."""


class Forgetting:
    """Asks the kubelet who holds devices whenever something depends on it.

    lists          what the kubelet that is asked follows
    pod_resources  the socket of its PodResources API
    link_dir       where the links are that answers name
    now            the clock of `due`, in seconds
    due            when the next grace period ends; None without one
    waits          whether a device has to wait until nobody holds it
    held           what pods hold
    tell           called with each answer; None: there was none
    tell_saved     called before that with what the checkpoint says; None: nobody knows
    on_read        called when the checkpoint was read, with the error or None
    """

    def __init__(
        self,
        lists: Lists,
        pod_resources: str,
        link_dir: str,
        *,
        now: Callable[[], float],
        due: Callable[[], float | None],
        waits: Callable[[], bool],
        held: Callable[[], Held],
        tell: Callable[[Answer | None], None],
        tell_saved: Callable[[Checkpoint | None], None],
        on_read: Callable[[GenericdpError | None], None],
    ) -> None:
        self._lists, self._kubelet = lists, lists.kubelet
        self._pod_resources = pod_resources
        self._link_dir = link_dir
        self._now = now
        self._grace_ends = due
        self._waits = waits
        self._held = held
        self._tell = tell
        self._tell_saved = tell_saved
        self._on_read = on_read
        self._changed = asyncio.Event()
        self._asking = asyncio.Lock()
        self._kubelet_seen: tuple[object, object] = (None, None)
        self._since = 0.0
        self._tries = 0
        self._answered: tuple[object, object] | None = None
        self._incomplete = self._unread = False
        self._knows_earlier = self._is_awaited = False
        self._led: Mapping[str, str] = {}
        self._written = float("-inf")

    async def begin(self) -> Answer | None:
        """What may have been given before this daemon serves, for the first inventory; None: nobody knows."""
        self._led = links.led(self._link_dir)
        asked, found = self._now(), await self._read_checkpoint()
        if found is None:
            return None
        answer = Answer(frozenset(), asked, complete=False, checkpointed=found.ids, earlier=found.given)
        return replace(answer, named=found.named, led=self._led, ours=found.ours)

    def held(self) -> Held:
        """What pods may hold."""
        return self._held()

    def are_ours(self) -> bool:
        """Whether no other genericdp serves the kubelet."""
        return not self._kubelet.rival

    def depend(self, *, depends: bool) -> None:
        """Take into account whether something else depends on what pods still hold. It may wait."""
        if depends is not self._is_awaited:
            self._is_awaited = depends
            self._changed.set()

    def look_again(self) -> None:
        """Take into account that more may depend on an answer, or that a kubelet has started."""
        self._changed.set()

    async def ask_now(self) -> None:
        """Ask who holds devices. Returns once the answer was told, or after a while without one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASK_NOW_S), self._asking:
                await self._ask()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            wait = self._wait_s()
            if wait is None or wait > 0:
                await self._until_changed(wait)
            else:
                needed = self._is_needed()
                # `ask_now` does not count: it gives up early, so it does not show that the kubelet is stuck.
                self._tries -= 1
                async with self._asking:
                    await self._ask()
                left = self._wait_s()
                if needed or (left is not None and left <= 0):
                    await self._pause()

    def _is_needed(self) -> bool:
        """Whether a device depends on the answer, rather than that a kubelet has started."""
        due = self._due()
        return self._waits() or self._unread or (due is not None and due <= self._now())

    def _due(self) -> float | None:
        return self._now() if self._is_awaited else self._grace_ends()

    def _wait_s(self) -> float | None:
        """How long there is nothing to ask, in seconds; None: until something changes."""
        if self._kubelet.incarnation is None:
            return None
        if self._is_new() or self._waits() or self._unread:
            return 0.0
        due = self._due()
        waits = [] if due is None else [due - self._now()]
        if self._incomplete and self._lists.are_followed():
            waits.append(holdings.KUBELET_SETTLES_S - self._up_s())
        return min(waits, default=None)

    def _is_new(self) -> bool:
        """Whether the kubelet has not answered since it started, and still may."""
        self._look()
        return self._kubelet.incarnation is not None and self._tries > 0

    def _look(self) -> None:
        """Notice another kubelet by what it listens on."""
        before, incarnation = self._kubelet_seen[0], self._kubelet.incarnation
        seen = (incarnation, podresources.identity_of(self._pod_resources))
        if seen != self._kubelet_seen:
            self._kubelet_seen = seen
            self._since = self._kubelet.since if incarnation != before else asyncio.get_running_loop().time()
            self._tries, self._incomplete = FIRST_TRIES, False

    def _up_s(self) -> float:
        """How long the same kubelet has been seen, in seconds."""
        self._look()
        return asyncio.get_running_loop().time() - self._since

    async def _until_changed(self, seconds: float | None) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            soon = self._is_new() or self._waits() or self._unread
            left = began + (ASK_AGAIN_SOON_S if soon else ASK_AGAIN_S) - loop.time()
            if left <= 0:
                return
            await self._until_changed(left)

    def complete(self) -> bool:
        """Whether the kubelet, if it answers now, names every holder."""
        return self._lists.are_followed() and holdings.are_complete(self._up_s())

    async def _ask(self) -> None:
        complete, asked = self.complete(), self._now()
        seen = self._kubelet_seen
        held = await podresources.ask(self._pod_resources)
        if held is None and self._is_needed():
            # Some of what is due is decided by time alone.
            self._tell(None)
        if held is None or self._is_another(seen):
            return
        followed = self._lists.are_followed()
        found = await self._read_checkpoint()
        if self._is_another(seen):
            return
        complete = complete and self.complete()
        self._tries, self._incomplete = 0, not complete
        first, self._answered = self._answered != seen, seen
        answer = Answer(frozenset(held), asked, complete, checkpointed=None, first=first, led=self._led)
        if found is not None:
            earlier = frozenset[tuple[str, str]]() if self._knows_earlier else found.given
            self._knows_earlier |= followed
            self._led = {} if self._knows_earlier else self._led
            answer = replace(
                answer, checkpointed=found.ids, named=found.named, earlier=earlier, ours=found.ours
            )
        self._tell_saved(found)
        self._tell(answer)
        if self._is_needed() and may_be_of_the_past(self._held(), answer):
            self._have_it_written()

    def _is_another(self, seen: tuple[object, object]) -> bool:
        """Whether another kubelet has started meanwhile: the answer of the one before proves nothing."""
        self._look()
        return self._kubelet_seen != seen

    async def _read_checkpoint(self) -> Checkpoint | None:
        found, why = None, None
        try:
            found = await checkpoint.read(self._kubelet.directory, self._link_dir)
        except GenericdpError as error:
            why = error
        self._unread = why is not None
        self._on_read(why)
        return found

    def _have_it_written(self) -> None:
        """Have the kubelet write its checkpoint, without the pods that it forgot when it was asked."""
        if self._now() - self._written >= WRITE_AGAIN_S:
            self._written = self._now()
            self._lists.send_again()
