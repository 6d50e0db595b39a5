"""Asks the kubelet's PodResources API for the holdings (`core.status.holdings`).

The rules of this file:

* No call of the kubelet tells a plugin that a device is free again; this is the only evidence.
* No answer is not evidence: a missing socket, an old kubelet or the kubelet's rate limit (100 calls a second,
  for all clients on the node together) give None, never "nobody".
"""

import os

import grpc
import grpc.aio

from genericdp.core.status.holdings import Holder, Holdings
from genericdp.kubelet.api import podresources as api

_TIMEOUT_S = 5.0

#: As in the kubelet's own client of this API: grpc's 4 MiB do not suffice on a node with many devices.
_LONGEST_ANSWER = 16 << 20


def identity_of(socket_path: str) -> object:
    """What tells the socket from another one under its name; None without one."""
    try:
        found = os.stat(socket_path)
    except OSError:
        return None
    # Numbers of inodes are used again, times of changes are not.
    return found.st_dev, found.st_ino, found.st_ctime_ns


async def ask(socket_path: str) -> Holdings | None:
    """The holdings now; None without an answer."""
    if not os.path.exists(socket_path):  # noqa: ASYNC240  (one stat of a local file)
        return None
    async with grpc.aio.insecure_channel(
        f"unix:{socket_path}",
        options=(
            ("grpc.default_authority", "localhost"),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", _LONGEST_ANSWER),
        ),
    ) as channel:
        lister = api.PodResourcesListerStub(channel)
        try:
            answer = await lister.List(api.ListPodResourcesRequest(), timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return None
    holdings: dict[tuple[str, str], set[Holder]] = {}
    for pod in answer.pod_resources:
        for container in pod.containers:
            holder = Holder(pod.namespace, pod.name, container.name)
            for devices in container.devices:
                for id_ in devices.device_ids:
                    holdings.setdefault((devices.resource_name, id_), set()).add(holder)
    return {key: tuple(sorted(holders)) for key, holders in holdings.items()}
