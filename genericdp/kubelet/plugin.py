"""The DevicePlugin service of one resource.

The rules of this file:

* Each stream remembers what it sent last, so a dead stream cannot swallow an update that a live one needs.
* A stream sends the whole list as soon as it opens. After that, it sends only a list that differs from its
  last one, at most once in the coalescing time (the first change is sent at once). Every message costs the
  kubelet a checkpoint with fsync (kubelet 1.36, `genericDeviceUpdateCallback`). `send_again` is
  for when that is wanted.
* A request that no kubelet sends is refused before anything is done with it (`requests`).
* Allocate and GetPreferredAllocation run inside the kubelet's admission of pods, without a deadline:
  they only compute, but Allocate then waits until the holding is saved or cannot be (`settling`).
* A plugin that is being stopped refuses Allocate: nobody would remember what it gives.
"""
# ruff: noqa: N802  (the proto's spelling)

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc

from genericdp.core.allocate import Allocation, RefusalReason, RefusedError, allocate
from genericdp.core.cdi import ByCdi, by_names, cdi_device
from genericdp.core.hostile import for_quote
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.memory.answered import CdiDevice
from genericdp.core.prefer import prefer
from genericdp.errors import GenericdpError
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.requests import refuse_excess, user_agent
from genericdp.kubelet.responses import add_answer, list_of
from genericdp.kubelet.settling import Settling, nothing_to_save
from genericdp.kubelet.streams import Streams
from genericdp.messages import Context


class UsbReset(Protocol):
    """How the USB devices behind the ids of a container are reset before it starts."""

    async def __call__(
        self, units: Collection[tuple[int, int]], ids: Collection[str], *, reset: bool
    ) -> None:
        """Reset those with these numbers (bus, device), but none of which another container may have a part.

        Also wait for resets that have begun, of these devices or of hubs above them. Without `reset`, do
        nothing else. Returns when the result is known: the offer no longer lists a device as present that a
        reset has removed. Raises GenericdpError.
        """


#: How many absent devices a refusal names. Instead of a text of more than 16 KiB, gRPC sends one of its own.
NAMED_IN_REFUSAL = 10


async def no_usb_reset(units: Collection[tuple[int, int]], ids: Collection[str], *, reset: bool) -> None:
    """For resources without USB devices."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """The answer to one container request: devices after `took_s` seconds, or `error` for a reason.

    cdi_device  what the answer names instead of device nodes; None for an answer by devices
    """

    resource: str
    ids: tuple[str, ...]
    error: str = ""
    refused: RefusalReason | None = None
    cdi_device: CdiDevice | None = None
    took_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list for the kubelet, as the offer that it is made of; `before`: that of the stream's last list."""

    before: Offer | None
    offer: Offer


class Plugin:
    """One resource as a device plugin. Serves any number of streams; never ends one on its own.

    streams   the open ListAndWatch streams
    messages  how many lists were sent, except to clients that are known not to be the kubelet
    starting  how many containers wait for their devices, in PreStartContainer
    settling  the answers that wait until what `on_allocate` was told is saved
    """

    def __init__(
        self,
        offer: Offer,
        *,
        link_dir: str,
        coalesce_s: float,
        on_allocate: Callable[[Allocated], None] = lambda _: None,
        settled: Callable[[], Awaitable[None]] = nothing_to_save,
        on_list: Callable[[Listed], None] = lambda _: None,
        by_cdi: ByCdi = lambda _: False,
        usb_reset: UsbReset = no_usb_reset,
    ) -> None:
        self.offer = offer
        self.streams = Streams()
        self.messages = 0
        self.starting = 0
        self._link_dir = link_dir
        self._coalesce_s = coalesce_s
        self._on_allocate = on_allocate
        self.settling = Settling(settled)
        self._on_list = on_list
        self._by_cdi = by_cdi
        self._usb_reset = usb_reset
        self._list = list_of(offer)
        self._repeats = 0
        self._stopping = False
        self._changed = asyncio.Event()
        self._used: dict[str, int] = {}
        self._uses = 0

    def update(self, offer: Offer) -> None:
        """Take over a new offer of the same resource. Streams send it if their list changed."""
        self.offer = offer
        new = list_of(offer)
        if new != self._list:
            self._list = new
            self._wake_up()
        known = offer.ids
        self._used = {id_: use for id_, use in self._used.items() if id_ in known}

    def send_again(self) -> None:
        """Send the list again although it has not changed."""
        self._repeats += 1
        self._wake_up()

    def stop(self) -> None:
        """Give nothing any more. Its server ends a moment later, and may have calls that have not begun."""
        self._stopping = True

    def options(self) -> api.DevicePluginOptions:
        """Which optional calls the kubelet makes. It heeds only the answer to GetDevicePluginOptions."""
        return api.DevicePluginOptions(
            pre_start_required=self.offer.resource.prestart is not None,
            get_preferred_allocation_available=True,
        )

    async def GetDevicePluginOptions(self, request: api.Empty, context: Context) -> api.DevicePluginOptions:
        del request
        self.streams.see_question(user_agent(context))
        return self.options()

    async def ListAndWatch(
        self, request: api.Empty, context: Context
    ) -> AsyncIterator[api.ListAndWatchResponse]:
        del request
        sent: api.ListAndWatchResponse | None = None
        repeats = self._repeats
        listed: Offer | None = None
        with self.streams.opened(user_agent(context)) as stream:
            while True:
                changed = self._changed
                if self._list != sent or self._repeats != repeats:
                    sent, repeats = self._list, self._repeats
                    before, listed = listed, self.offer
                    if not self.streams.is_others(stream):
                        self.messages += 1
                        self._on_list(Listed(before, listed))
                    yield sent
                    await asyncio.sleep(self._coalesce_s)
                    continue
                await changed.wait()

    async def GetPreferredAllocation(
        self, request: api.PreferredAllocationRequest, context: Context
    ) -> api.PreferredAllocationResponse:
        names = ("available_deviceIDs", "must_include_deviceIDs")
        await refuse_excess(context, request.container_requests, *names)
        return api.PreferredAllocationResponse(
            container_responses=[
                api.ContainerPreferredAllocationResponse(
                    deviceIDs=prefer(
                        self.offer,
                        asked.available_deviceIDs,
                        asked.must_include_deviceIDs,
                        asked.allocation_size,
                        self._used,
                    )
                )
                for asked in request.container_requests
            ]
        )

    async def Allocate(self, request: api.AllocateRequest, context: Context) -> api.AllocateResponse:
        await refuse_excess(context, request.container_requests, "devices_ids")
        name = self.offer.resource.name
        response = api.AllocateResponse()
        for asked in request.container_requests:
            ids = tuple(asked.devices_ids)
            began = time.perf_counter()
            try:
                allocation = self._allocate(ids)
            except RefusedError as error:
                self._on_allocate(Allocated(name, ids, str(error), error.reason))
                await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
            named = cdi_device(self.offer, ids) if ids and self._by_cdi(self.offer.resource) else None
            add_answer(
                response.container_responses,
                by_names(allocation, named, self.offer.resource) if named else allocation,
            )
            self._note_use(ids)
            took_s = time.perf_counter() - began
            self._on_allocate(Allocated(name, ids, cdi_device=named, took_s=took_s))
        await self.settling.wait()
        if not response.container_responses:
            # An empty answer would leak the devices in the kubelet ("no containers return in allocation
            # response").
            return api.AllocateResponse(container_responses=[api.ContainerAllocateResponse()])
        return response

    def _allocate(self, ids: tuple[str, ...]) -> Allocation:
        """Raises RefusedError."""
        if self._stopping:
            name = self.offer.resource.name
            raise RefusedError(
                f"{name} is no longer offered, or is being registered again; create the pod again",
                RefusalReason.STOPPED,
            )
        return allocate(self.offer, ids, self._link_dir)

    async def PreStartContainer(
        self, request: api.PreStartContainerRequest, context: Context
    ) -> api.PreStartContainerResponse:
        await refuse_excess(context, (request,), "devices_ids")
        prestart = self.offer.resource.prestart
        if prestart is not None:
            self.starting += 1
            try:
                async with asyncio.timeout(prestart.wait_s):
                    await self._until_present(request.devices_ids)
                    await self._reset_all(request.devices_ids, reset=prestart.usb_reset)
                    await self._until_present(request.devices_ids)
            except TimeoutError:
                refusal = self._refusal(request.devices_ids, prestart.wait_s)
                await context.abort(grpc.StatusCode.UNAVAILABLE, refusal)
            except GenericdpError as error:
                why = f"{error}; {error.hint}" if error.hint else f"{error}"
                name = self.offer.resource.name
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{name}: {why}")
            finally:
                self.starting -= 1
        return api.PreStartContainerResponse()

    async def _until_present(self, ids: Sequence[str]) -> None:
        while self._absent(ids):
            await self._changed.wait()

    async def _reset_all(self, ids: Sequence[str], *, reset: bool) -> None:
        """Reset each USB device behind the ids of a container once, or wait for resets that have begun."""
        known = self.offer.ids
        await self._usb_reset(dict.fromkeys(each for id_ in ids for each in known[id_].usb), ids, reset=reset)

    def _absent(self, ids: Iterable[str]) -> list[tuple[str, Device | None]]:
        devices = [(id_, self.offer.device(id_)) for id_ in ids]
        return [(id_, device) for id_, device in devices if device is None or not device.healthy]

    def _refusal(self, ids: Iterable[str], waited_s: float) -> str:
        absent = self._absent(ids)
        parts = [
            f"'{for_quote(id_)}' ({device.reason if device else 'no rule matches it any more'})"
            for id_, device in absent[:NAMED_IN_REFUSAL]
        ]
        if len(absent) > NAMED_IN_REFUSAL:
            parts.append(f"{len(absent) - NAMED_IN_REFUSAL} more")
        what = ", ".join(parts) or "the USB reset to end"
        return (
            f"{self.offer.resource.name}: waited {waited_s:g} s for {what}; "
            "plug it in again: the container starts as soon as it is back"
        )

    def _note_use(self, ids: Iterable[str]) -> None:
        self._uses += 1
        for id_ in ids:
            self._used[id_] = self._uses

    def _wake_up(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()
