"""Which requests a plugin answers: those that are no larger than what a kubelet sends. And who sent them.

Every process of root can call the socket of a plugin, and while an answer is computed the whole daemon waits.

The rules of this file:

* What a request can cost is bounded before anything else is done with it: it is neither answered, logged nor
  counted.
* A kubelet asks for one container per call, and names only ids of the lists that it got (kubelet 1.36).
"""

from collections.abc import Sequence

import grpc
import grpc.aio

from genericdp.messages import Context

#: The most containers of one request, and the most ids of all of them.
CONTAINER_LIMIT = 16
COUNT_LIMIT = 100_000

#: The most characters of one id. Those of genericdp are shorter.
LENGTH_LIMIT = 256


async def refuse_excess(context: Context, containers: Sequence[object], *fields: str) -> None:
    """End a call that is too large to be answered. `fields`: where each container of it has ids."""
    why = excess(containers, *fields)
    if why:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why)


def excess(containers: Sequence[object], *fields: str) -> str:
    """Why a request is too large to be answered; "" if it is not."""
    if len(containers) > CONTAINER_LIMIT:
        return f"the request is for {len(containers)} containers, and the limit is {CONTAINER_LIMIT}"
    lists: list[Sequence[str]] = [getattr(each, field) for each in containers for field in fields]
    count = sum(map(len, lists))
    if count > COUNT_LIMIT:
        return f"the request names {count} device ids, and the limit is {COUNT_LIMIT}"
    longest = max((len(id_) for ids in lists for id_ in ids), default=0)
    if longest > LENGTH_LIMIT:
        return f"the request names a device id of {longest} characters, and the limit is {LENGTH_LIMIT}"
    return ""


def user_agent(context: Context) -> str:
    """The user agent that a client sent; "" without one."""
    named = (value for key, value in context.invocation_metadata() or () if key == "user-agent")
    return str(next(named, ""))
