"""The kubelet's gRPC connection to one plugin.

The rules of this file:

* Each registration gets its own connection, even to a socket that is already connected.
* ListAndWatch, Allocate and GetPreferredAllocation have no deadline. A plugin that never answers one
  of the latter two blocks all admission; here that ends in a TimeoutError after `watchdog_s`.
* Errors become DeviceError with the kubelet's text. A connection that closes under a call ends it with the
  text of grpc-go for that, whatever the plugin does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc
import grpc.aio

from genericdp.kubelet.api import deviceplugin as api
from genericdp.messages import private_channel
from genericdp.simulator.clock import Clock
from genericdp.simulator.devices.resource import Device
from genericdp.simulator.errors import DEADLINE_PASSED, DeviceError, go_text
from genericdp.simulator.gates import Gates, Point
from genericdp.simulator.plugins.deadline import within
from genericdp.simulator.plugins.dialling import target

#: kubelet 1.36, `devicemanager/plugin/v1beta1/client.go`.
DIAL_TIMEOUT_S = 10.0
#: kubelet 1.36, `KubeletPreStartContainerRPCTimeoutInSecs`.
PRE_START_TIMEOUT_S = 30.0
#: The user agent of kubelet 1.36; gRPC's C core appends its own.
USER_AGENT = "grpc-go/1.81.1"
#: The default of grpc-go, which the kubelet does not change.
RECEIVE_LIMIT = 4 * 1024 * 1024

_CLOSING = "rpc error: code = Canceled desc = grpc: the client connection is closing"

_Response = TypeVar("_Response")


class Connection:
    """One connection, made by one registration, to the socket at the path `dialled`."""

    def __init__(
        self,
        resource: str,
        dialled: str,
        *,
        clock: Clock,
        gates: Gates,
        watchdog_s: float,
    ) -> None:
        self.resource = resource
        self.streaming = False
        self.dialling = False
        self.last_list: tuple[Device, ...] | None = None
        self._clock = clock
        self._gates = gates
        self._watchdog_s = watchdog_s
        self._stream: grpc.aio.UnaryStreamCall[api.Empty, api.ListAndWatchResponse] | None = None
        self._closed = False
        self._channel = private_channel(
            target(dialled),
            ("grpc.primary_user_agent", USER_AGENT),
            ("grpc.max_receive_message_length", RECEIVE_LIMIT),
        )
        self._stub = api.DevicePluginStub(self._channel)

    async def connect(self) -> api.DevicePluginOptions:
        """Dial for up to 10 s, then ask for the options for as long as the caller waits."""
        await self._gates.passes(Point.DIAL)
        self.dialling = True
        try:
            async with self._clock.timeout(DIAL_TIMEOUT_S):
                await self._channel.channel_ready()
        except TimeoutError:
            raise DeviceError("failed to dial device plugin: context deadline exceeded") from None
        finally:
            self.dialling = False
        await self._gates.passes(Point.OPTIONS)
        try:
            return await self._call(lambda: self._stub.GetDevicePluginOptions(api.Empty()))
        except DeviceError as error:
            raise DeviceError(f"failed to get device plugin options: {error}") from None

    async def stream(
        self, on_list: Callable[[tuple[Device, ...]], None], on_open: Callable[[], None]
    ) -> None:
        """Run ListAndWatch until it ends, for any reason."""
        await self._gates.passes(Point.LIST)
        self._stream = self._stub.ListAndWatch(api.Empty())
        self.streaming = True
        on_open()
        try:
            async for response in self._stream:
                self.last_list = tuple(Device.from_message(device) for device in response.devices)
                on_list(self.last_list)
        except grpc.aio.AioRpcError:
            return
        except asyncio.CancelledError:
            # Either the call was cancelled, which ends the stream like any error, or this task was.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        finally:
            self.streaming = False

    def cancel_stream(self) -> None:
        """Break the stream from the kubelet's side, but keep the connection."""
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        """Close the connection; the plugin sees its stream cancelled."""
        if not self._closed:
            self._closed = True
            self.cancel_stream()
            await self._channel.close()

    async def preferred(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> api.PreferredAllocationResponse:
        await self._gates.passes(Point.PREFERRED)
        wish = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
        )
        request = api.PreferredAllocationRequest(container_requests=[wish])
        response = await self._watched(
            "GetPreferredAllocation", lambda: self._stub.GetPreferredAllocation(request)
        )
        await self._gates.passes(Point.PREFERRED_ANSWERED)
        return response

    async def allocate(self, ids: Sequence[str]) -> api.AllocateResponse:
        await self._gates.passes(Point.ALLOCATE)
        request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
        response = await self._watched("Allocate", lambda: self._stub.Allocate(request))
        await self._gates.passes(Point.ALLOCATED)
        return response

    async def pre_start(self, ids: Sequence[str]) -> None:
        await self._gates.passes(Point.PRE_START)
        request = api.PreStartContainerRequest(devices_ids=ids)
        try:
            await self._call(
                lambda: within(
                    self._clock,
                    PRE_START_TIMEOUT_S,
                    lambda timeout_s: self._stub.PreStartContainer(request, timeout=timeout_s),
                )
            )
        except TimeoutError:
            raise DeviceError(DEADLINE_PASSED) from None

    async def _watched(self, name: str, call: Callable[[], Awaitable[_Response]]) -> _Response:
        try:
            async with asyncio.timeout(self._watchdog_s):
                return await self._call(call)
        except TimeoutError:
            raise TimeoutError(
                f"{self.resource} has not answered {name} in {self._watchdog_s:g} s; "
                "a real kubelet waits forever and admits no pod meanwhile"
            ) from None

    async def _call(self, call: Callable[[], Awaitable[_Response]]) -> _Response:
        if self._closed:
            raise DeviceError(_CLOSING)
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            raise DeviceError(go_text(error)) from None
        except asyncio.CancelledError:
            # Either the connection was closed during the call, or this task was cancelled.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise DeviceError(_CLOSING) from None
