"""A minimal device plugin, written directly against the API, that does what a test tells it."""
# ruff: noqa: N802, ARG002  # spelling and signatures are the API's

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.api import pluginregistration
from genericdp.simulator import Kubelet
from genericdp.simulator.changes import Changes

RESOURCE = "vendor.example/thing"


def device(id_: str, health: str = api.HEALTHY, *, numa: tuple[int, ...] | None = None) -> api.Device:
    """A device of a list. `numa=()` is a topology without nodes."""
    topology = None if numa is None else api.TopologyInfo(nodes=[api.NUMANode(ID=node) for node in numa])
    return api.Device(ID=id_, health=health, topology=topology)


def answer(**fields: Any) -> api.AllocateResponse:
    """An answer to Allocate for one container."""
    return api.AllocateResponse(container_responses=[api.ContainerAllocateResponse(**fields)])


class SmallPlugin:
    """A plugin for one resource. Each stream first gets `devices`; `send` sends a new list to all streams."""

    def __init__(self, *devices: str | api.Device, resource: str = RESOURCE, **options: bool) -> None:
        self.resource = resource
        self.options = api.DevicePluginOptions(**options)
        self.devices = [device(one) if isinstance(one, str) else one for one in devices]
        self.calls: list[tuple[str, Any]] = []
        self.streams: list[asyncio.Queue[list[api.Device] | None]] = []
        self.cancelled = 0
        self.authority = ""
        self.on_options: Callable[[Any], Any] = lambda _context: None
        self.on_allocate: Callable[[list[str], Any], Any] = lambda ids, _context: answer(
            envs={"IDS": ",".join(sorted(ids))}
        )
        self.on_prefer: Callable[[Any, Any], Any] = lambda _request, _context: []
        self.on_pre_start: Callable[[list[str], Any], Any] = lambda _ids, _context: None
        self.status: list[tuple[bool, str]] = []
        self.info: pluginregistration.PluginInfo | None = None
        self.remaining: float | None = None
        self._server: grpc.aio.Server | None = None
        self._changes = Changes()

    async def serve(self, path: Path | str) -> "SmallPlugin":
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(
            (api.device_plugin_handler(self), pluginregistration.plugin_registration_handler(self))
        )
        self._server.add_insecure_port(f"unix:{path}")
        await self._server.start()
        return self

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def register(
        self,
        kubelet: Kubelet,
        *,
        endpoint: str = "p.sock",
        version: str = api.VERSION,
        timeout_s: float = 15.0,
    ) -> None:
        """Call Register. AioRpcError when the kubelet refuses."""
        request = api.RegisterRequest(version=version, endpoint=endpoint, resource_name=self.resource)
        async with grpc.aio.insecure_channel(
            f"unix:{kubelet.socket}", options=(("grpc.use_local_subchannel_pool", 1),)
        ) as channel:
            await api.RegistrationStub(channel).Register(request, timeout=timeout_s)

    async def join(self, kubelet: Kubelet, endpoint: str = "p.sock") -> "SmallPlugin":
        """Serve, register, and wait until the kubelet has received the first list."""
        await self.serve(kubelet.directory / endpoint)
        await self.register(kubelet, endpoint=endpoint)
        await kubelet.wait_until(lambda: kubelet.messages(self.resource) > 0)
        return self

    async def send(self, kubelet: Kubelet, *devices: str | api.Device) -> None:
        """Send a list to every stream and wait until the kubelet has received it."""
        self.devices = [device(one) if isinstance(one, str) else one for one in devices]
        heard = kubelet.messages(self.resource) + len(self.streams)
        for queue in self.streams:
            queue.put_nowait(self.devices)
        await kubelet.wait_until(lambda: kubelet.messages(self.resource) >= heard)

    def end_stream(self, number: int) -> None:
        """End one of the streams with OK."""
        self.streams[number].put_nowait(None)

    async def GetDevicePluginOptions(self, request: api.Empty, context: Any) -> api.DevicePluginOptions:
        self.calls.append(("GetDevicePluginOptions", None))
        await _maybe(self.on_options(context))
        return self.options

    async def ListAndWatch(self, request: api.Empty, context: Any) -> AsyncIterator[api.ListAndWatchResponse]:
        self.calls.append(("ListAndWatch", context.time_remaining()))
        queue: asyncio.Queue[list[api.Device] | None] = asyncio.Queue()
        self.streams.append(queue)
        self._changes.notify()
        devices: list[api.Device] | None = self.devices
        try:
            while devices is not None:
                yield api.ListAndWatchResponse(devices=devices)
                devices = await queue.get()
        except (asyncio.CancelledError, GeneratorExit):
            # The latter if the kubelet has received a list while gRPC has not yet returned from sending it.
            self.cancelled += 1
            raise
        finally:
            self.streams.remove(queue)
            self._changes.notify()

    async def GetPreferredAllocation(
        self, request: api.PreferredAllocationRequest, context: Any
    ) -> api.PreferredAllocationResponse:
        self.calls.append(("GetPreferredAllocation", request))
        (wish,) = request.container_requests
        ids = await _maybe(self.on_prefer(wish, context))
        if ids is None:
            return api.PreferredAllocationResponse()
        response = api.ContainerPreferredAllocationResponse(deviceIDs=ids)
        return api.PreferredAllocationResponse(container_responses=[response])

    async def Allocate(self, request: api.AllocateRequest, context: Any) -> api.AllocateResponse:
        (wish,) = request.container_requests
        self.calls.append(("Allocate", list(wish.devices_ids)))
        self.remaining = context.time_remaining()
        response: api.AllocateResponse = await _maybe(self.on_allocate(list(wish.devices_ids), context))
        return response

    async def PreStartContainer(
        self, request: api.PreStartContainerRequest, context: Any
    ) -> api.PreStartContainerResponse:
        self.calls.append(("PreStartContainer", sorted(request.devices_ids)))
        self.remaining = context.time_remaining()
        await _maybe(self.on_pre_start(list(request.devices_ids), context))
        return api.PreStartContainerResponse()

    async def GetInfo(
        self, request: pluginregistration.InfoRequest, context: Any
    ) -> pluginregistration.PluginInfo:
        return self.info or pluginregistration.PluginInfo(
            type=pluginregistration.DEVICE_PLUGIN, name=self.resource, supported_versions=[api.VERSION]
        )

    async def NotifyRegistrationStatus(
        self, request: pluginregistration.RegistrationStatus, context: Any
    ) -> pluginregistration.RegistrationStatusResponse:
        self.status.append((request.plugin_registered, request.error))
        return pluginregistration.RegistrationStatusResponse()

    async def wait_until(self, predicate: Callable[[], object]) -> None:
        """Return once `predicate()` is true, checked whenever a stream opens or ends."""
        await self._changes.wait_until(predicate, timeout_s=30, describe=lambda: f"calls {self.calls}")

    def called(self, name: str) -> list[Any]:
        """The arguments of each call of a method, in order."""
        return [what for who, what in self.calls if who == name]


async def _maybe(value: Any) -> Any:
    """The value, or the result of the coroutine."""
    return await value if asyncio.iscoroutine(value) else value
