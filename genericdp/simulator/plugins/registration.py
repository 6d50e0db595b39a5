"""The server of `/v1beta1.Registration/Register` on kubelet.sock.

The rules of this file:

* The order of the steps and the texts are those of kubelet 1.36 (`devicemanager/plugin/v1beta1/server.go`);
  every refusal has the code UNKNOWN.
* The options in the request are ignored: only GetDevicePluginOptions counts.
"""
# ruff: noqa: N802  # the proto's spelling

import os
from collections.abc import Callable
from dataclasses import dataclass

import grpc
import grpc.aio

from genericdp.kubelet.api import deviceplugin as api
from genericdp.messages import Context
from genericdp.simulator.errors import DeviceError
from genericdp.simulator.plugins.lifecycle import Plugins
from genericdp.simulator.plugins.validation import registration_error


@dataclass(slots=True, eq=False)
class Attempt:
    """One call of Register. `answer` is None while it is pending, "" when it was accepted, else the error."""

    resource: str
    endpoint: str
    version: str
    answer: str | None = None


class Registrations:
    """Serves Register and records every call."""

    def __init__(
        self,
        directory: str,
        plugins: Plugins,
        *,
        attempts: list[Attempt],
        refusal: Callable[[], str | None],
        on_change: Callable[[], None],
    ) -> None:
        self._directory = directory
        self._plugins = plugins
        self._attempts = attempts
        self._refusal = refusal
        self._on_change = on_change

    async def Register(self, request: api.RegisterRequest, context: Context) -> api.Empty:
        attempt = Attempt(request.resource_name, request.endpoint, request.version)
        self._attempts.append(attempt)
        try:
            await self._register(request)
        except DeviceError as error:
            attempt.answer = str(error)
            self._on_change()
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except BaseException:
            attempt.answer = "the caller gave up"
            raise
        attempt.answer = ""
        return api.Empty()

    async def _register(self, request: api.RegisterRequest) -> None:
        refusal = self._refusal() or registration_error(request.version, request.resource_name)
        if refusal is not None:
            raise DeviceError(refusal)
        await self._plugins.connect(request.resource_name, joined(self._directory, request.endpoint))


def joined(directory: str, endpoint: str) -> str:
    """Go's filepath.Join: an absolute endpoint ends up below the directory, "../x" beside it."""
    return os.path.normpath(f"{directory}/{endpoint}")
