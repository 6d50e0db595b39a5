"""The plugin watcher's API: its messages and service (proto/pluginregistration/v1/api.proto).

The other way to join a kubelet: a socket below plugins_registry that answers these calls.

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here: servers and clients are elsewhere.
"""
# ruff: noqa: N802  # the proto's spelling

from collections.abc import Sequence
from typing import Protocol

import grpc
import grpc.aio

from genericdp.messages import Context, Message, Method, field, generic_handler, message

#: The `type` of PluginInfo that makes a device plugin of it.
DEVICE_PLUGIN = "DevicePlugin"


@message("pluginregistration")
class PluginInfo(Message):
    """`name` is the resource; an empty `endpoint` means the socket that was asked."""

    type: str = field(1)
    name: str = field(2)
    endpoint: str = field(3)
    supported_versions: Sequence[str] = field(4)


@message("pluginregistration")
class RegistrationStatus(Message):
    plugin_registered: bool = field(1)
    error: str = field(2)


@message("pluginregistration")
class RegistrationStatusResponse(Message):
    pass


@message("pluginregistration")
class InfoRequest(Message):
    pass


GET_INFO = Method("/pluginregistration.Registration/GetInfo", InfoRequest, PluginInfo)
NOTIFY_REGISTRATION_STATUS = Method(
    "/pluginregistration.Registration/NotifyRegistrationStatus",
    RegistrationStatus,
    RegistrationStatusResponse,
)


class PluginRegistrationServicer(Protocol):
    """What a plugin serves below plugins_registry."""

    async def GetInfo(self, request: InfoRequest, context: Context) -> PluginInfo: ...

    async def NotifyRegistrationStatus(
        self, request: RegistrationStatus, context: Context
    ) -> RegistrationStatusResponse: ...


def plugin_registration_handler(
    servicer: PluginRegistrationServicer,
) -> grpc.GenericRpcHandler:
    """For `server.add_generic_rpc_handlers`: the plugin's side."""
    return generic_handler(servicer, GET_INFO, NOTIFY_REGISTRATION_STATUS)


class PluginRegistrationStub:
    """The kubelet's side."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.GetInfo = GET_INFO.unary(channel)
        self.NotifyRegistrationStatus = NOTIFY_REGISTRATION_STATUS.unary(channel)
