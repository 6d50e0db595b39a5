"""A call with a deadline of the kubelet's, told apart from a plugin that answers DEADLINE_EXCEEDED itself."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio

from genericdp.simulator.clock import Clock

_Response = TypeVar("_Response")

#: grpc's own timer for the deadline may end the call a moment before the kubelet's clock does.
_EARLY_S = 0.1


async def within(clock: Clock, seconds: float, call: Callable[[float], Awaitable[_Response]]) -> _Response:
    """Make a call with this timeout, which the plugin sees too. TimeoutError when the deadline passed.

    AioRpcError for everything else that ended the call, with what the plugin said.
    """
    began = clock.now()
    try:
        async with clock.timeout(seconds):
            return await call(seconds)
    except grpc.aio.AioRpcError as error:
        passed = clock.now() - began > seconds - _EARLY_S
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and passed:
            raise TimeoutError from None
        raise
