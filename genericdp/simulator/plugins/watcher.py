"""The plugin watcher, which registers plugins by their sockets below plugins_registry.

The rules of this file:

* One `reconcile` is one round of the kubelet's loop (every second): it registers new sockets,
  deregisters those that have gone, and retries failures after a back-off.
* It ignores streams: a plugin whose stream ended still counts as registered, and nothing happens until
  its socket is removed and created again.
"""

import os
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio

from genericdp.kubelet.api import pluginregistration as api
from genericdp.messages import private_channel
from genericdp.simulator.clock import Clock
from genericdp.simulator.errors import DEADLINE_PASSED, DeviceError, go_text
from genericdp.simulator.plugins.connection import DIAL_TIMEOUT_S
from genericdp.simulator.plugins.deadline import within
from genericdp.simulator.plugins.lifecycle import Plugins
from genericdp.simulator.plugins.validation import is_extended_resource_name

GET_INFO_TIMEOUT_S = 1.0
NOTIFY_TIMEOUT_S = 5.0
FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 122.0

_Response = TypeVar("_Response")

#: A socket file: its path and its inode, so that a socket created again counts as new.
Found = tuple[str, int]


@dataclass(slots=True)
class _Failure:
    back_off_s: float
    not_before: float


class Watcher:
    """Registers the plugin sockets below a directory."""

    def __init__(self, directory: Path, plugins: Plugins, clock: Clock) -> None:
        self.registered: dict[Found, api.PluginInfo] = {}
        self.errors: list[str] = []
        self._directory = directory
        self._plugins = plugins
        self._clock = clock
        self._failures: dict[Found, _Failure] = {}

    async def reconcile(self) -> None:
        """Run one round."""
        found = _sockets(self._directory)
        for socket in [one for one in self.registered if one not in found]:
            info = self.registered.pop(socket)
            # By name: this disconnects the plugin that is current for the resource, whichever it is.
            self._plugins.deregister(info.name, info.endpoint or socket[0])
        self._failures = {socket: failure for socket, failure in self._failures.items() if socket in found}
        for socket in sorted(found - self.registered.keys()):
            failure = self._failures.get(socket)
            if failure is None or self._clock.now() >= failure.not_before:
                await self._register(socket)

    async def _register(self, socket: Found) -> None:
        try:
            async with private_channel(f"unix:{socket[0]}") as channel:
                await self._introduce(socket, channel)
        except DeviceError as error:
            self.errors.append(str(error))
            known = self._failures.get(socket)
            back_off = FIRST_BACK_OFF_S if known is None else min(LONGEST_BACK_OFF_S, known.back_off_s * 2)
            self._failures[socket] = _Failure(back_off, self._clock.now() + back_off)
        else:
            self._failures.pop(socket, None)

    async def _introduce(self, socket: Found, channel: grpc.aio.Channel) -> None:
        stub, path = api.PluginRegistrationStub(channel), socket[0]
        try:
            async with self._clock.timeout(DIAL_TIMEOUT_S):
                await channel.channel_ready()
        except TimeoutError:
            raise DeviceError(
                f"RegisterPlugin error -- dial failed at socket {path}, "
                f"err: failed to dial socket {path}, err: context deadline exceeded"
            ) from None
        try:
            info = await self._call(GET_INFO_TIMEOUT_S, partial(stub.GetInfo, api.InfoRequest()))
        except DeviceError as error:
            raise DeviceError(
                "RegisterPlugin error -- failed to get plugin info using RPC GetInfo "
                f"at socket {path}, err: {error}"
            ) from None
        try:
            _validate(info, path)
            await self._register_with_device_manager(info, path)
        except DeviceError as error:
            await self._notify(stub, path, str(error))
            raise
        self.registered[socket] = info
        await self._notify(stub, path)

    async def _register_with_device_manager(self, info: api.PluginInfo, path: str) -> None:
        try:
            await self._plugins.connect(info.name, info.endpoint or path)
        except DeviceError as error:
            raise DeviceError(
                f"RegisterPlugin error -- plugin registration failed with err: {error}"
            ) from None

    async def _notify(self, stub: api.PluginRegistrationStub, path: str, problem: str = "") -> None:
        status = api.RegistrationStatus(plugin_registered=not problem, error=problem)
        try:
            await self._call(NOTIFY_TIMEOUT_S, partial(stub.NotifyRegistrationStatus, status))
        except DeviceError as error:
            what = "error" if problem else "registration status"
            raise DeviceError(
                f"RegisterPlugin error -- failed to send {what} at socket {path}, err: {problem}: {error}"
            ) from None

    async def _call(self, seconds: float, call: Callable[..., Awaitable[_Response]]) -> _Response:
        """Make a call with a deadline. DeviceError with grpc-go's text."""
        try:
            return await within(self._clock, seconds, lambda timeout_s: call(timeout=timeout_s))
        except TimeoutError:
            raise DeviceError(DEADLINE_PASSED) from None
        except grpc.aio.AioRpcError as error:
            raise DeviceError(go_text(error)) from None


def _validate(info: api.PluginInfo, path: str) -> None:
    prefix = "RegisterPlugin error -- plugin validation failed with err: "
    if info.type != api.DEVICE_PLUGIN:
        raise DeviceError(
            f"RegisterPlugin error -- no handler registered for plugin type: {info.type} at socket {path}"
        )
    if "v1beta1" not in info.supported_versions:
        raise DeviceError(
            f"{prefix}manager version, v1beta1, is not among plugin supported versions "
            f"[{' '.join(info.supported_versions)}]"
        )
    if not is_extended_resource_name(info.name):
        raise DeviceError(
            f'{prefix}invalid name of device plugin socket: the ResourceName "{info.name}" is invalid'
        )


def _sockets(directory: Path) -> set[Found]:
    """Every socket below a directory, at any depth, whose name does not start with a dot."""
    found = set()
    for where, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(where, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if stat.S_ISSOCK(status.st_mode) and not name.startswith("."):
                found.add((path, status.st_ino))
    return found
