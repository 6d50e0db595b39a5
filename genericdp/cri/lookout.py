"""Looks whether the kubelet's container runtime can be asked, before it has to be.

The rules of this file:

* Nothing is asked while no rule wants it.
* A runtime that is not the kubelet's has no container to stop, as if all were well. So it is asked for the
  kubelet's pods: when a rule begins to want it, after a kubelet has started, after a pod got a device, and
  whenever it is asked for containers.
* Once it is known which runtime is the kubelet's, nothing more is asked until a kubelet starts.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from genericdp import log
from genericdp.core.comeback.unknown import Unknown, certain, follow, next_certainty
from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.settings import Settings
from genericdp.core.status import holdings
from genericdp.core.status.history import Retried
from genericdp.cri.connection import chosen
from genericdp.cri.sockets import ELSEWHERE
from genericdp.errors import GenericdpError

if TYPE_CHECKING:
    from genericdp.cri.choice import Choice

_log = log.get(__name__)

#: How long to wait before a runtime that cannot be asked is tried again, in seconds.
LOOK_AGAIN_S = 60.0

#: How long to wait after a pod got a device, in seconds. Others may get theirs meanwhile.
ALLOCATED_S = 10.0


class Lookout:
    """Looks when `look_at` has come: call `look` then. `chosen` is for those who ask for containers.

    now       the clock of `look_at`, in seconds
    offers    those of the resources that want the runtime
    on_tried  called whenever the runtime was asked, with the error or None
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float],
        offers: Callable[[], Mapping[str, Offer]],
        on_tried: Callable[[Retried, GenericdpError | None], None],
    ) -> None:
        self._settings = settings
        self._now = now
        self._offers = offers
        self._on_tried = on_tried
        self._look_at = self._settled_at = float("inf")
        self._found: set[tuple[str, str, str]] = set()
        self._is_known = False
        self._unknown: Unknown = {}

    @property
    def look_at(self) -> float:
        """When to look next; infinity if there is nothing to look for."""
        return min(self._look_at, self._settled_at) if self._offers() else float("inf")

    def see_wanted(self, *, wanted: bool) -> None:
        """The rules begin to want the runtime, or want it no longer."""
        self._look_at, self._unknown = self._now(), {}
        if not wanted:
            self._on_tried(Retried.RUNTIME, None)

    def see_kubelet(self) -> None:
        """A kubelet has started, maybe with another runtime. It knows its pods after a while."""
        self._is_known, self._unknown = False, {}
        self._settled_at = self._now() + holdings.KUBELET_SETTLES_S

    def see_allocated(self) -> None:
        """A pod got a device, so the runtime has that pod soon."""
        if not self._is_known:
            self._look_at = min(self._look_at, self._now() + ALLOCATED_S)

    async def look(self) -> None:
        """Look now."""
        if self._settled_at <= self._now():
            self._settled_at = float("inf")
        with suppress(GenericdpError):
            async with self.chosen():
                pass

    @asynccontextmanager
    async def chosen(self) -> "AsyncIterator[Choice]":
        """The runtimes that may be the kubelet's. Raises GenericdpError, also for errors within the block."""
        try:
            async with chosen(self._settings) as choice:
                self._tried(self._why_not(choice))
                yield choice
        except GenericdpError as error:
            # It may not have made pods, either.
            self._unknown = {}
            self._tried(error)
            raise

    def _tried(self, error: GenericdpError | None) -> None:
        self._look_at = next_certainty(self._unknown) if error is None else self._now() + LOOK_AGAIN_S
        if self._offers():
            self._on_tried(Retried.RUNTIME, error)

    def _why_not(self, choice: "Choice") -> GenericdpError | None:
        """Why these runtimes cannot say what the rules depend on."""
        found = {(each.name, each.version, each.socket) for each in choice.runtimes}
        for name, version, socket in sorted(found - self._found):
            _log.info("container runtime found", name=name, version=version, socket=socket)
        self._found, self._is_known = found, choice.known
        if choice.listed is not None:
            pods = () if choice.known else holdings.holding_pods(choice.listed.holdings)
            self._unknown = follow(self._unknown, pods, self._now())
        pod = certain(self._unknown, self._now())
        if pod is not None:
            names = " and ".join(f"{each.name} on '{each.socket}'" for each in choice.runtimes)
            have = "has" if len(choice.runtimes) == 1 else "have"
            what = f"none of the kubelet's pods, such as {'/'.join(pod)}"
            return GenericdpError(f"containers cannot be stopped: {names} {have} {what}", hint=ELSEWHERE)
        wanted = any(offer.resource.restarts for offer in self._offers().values())
        runtime = choice.runtimes[0]
        if runtime.tells_devices or not wanted:
            return None
        return GenericdpError(
            f"the container runtime on '{runtime.socket}', {runtime.name}, does not say which devices a"
            " container has: on_replug has no effect",
            hint="with cri-dockerd, only on_unplug works",
        )
