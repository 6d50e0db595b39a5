"""Asks the kubelet's PodResources API for the holdings (`core.status.holdings`).

The rules of this file:

* No call of the kubelet tells a plugin that a device is free again; the evidence is here and, for init
  containers, in the kubelet's `checkpoint`.
* No answer is not evidence: a missing socket, an old kubelet or the kubelet's rate limit (100 calls a second,
  for all clients on the node together) give None, never "nobody".
* An answer may be long. Everything else has its turn while it is taken. One that no node can have is none.
* The kubelet passes on what other plugins say and does not check that it is UTF-8. So only what is needed is
  read, and names are read as bytes: one bad name does not hide the others.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from genericdp.core.status.holdings import Holder, Holdings, PodName
from genericdp.kubelet.api import podresources as api
from genericdp.kubelet.deadline import Turn, enforced
from genericdp.messages import Message, field, message, private_channel


@message("holdings")
class _Devices(Message):
    resource_name: bytes = field(1)
    device_ids: Sequence[bytes] = field(2)


@message("holdings")
class _Container(Message):
    name: bytes = field(1)
    devices: Sequence[_Devices] = field(2)


@message("holdings")
class _Pod(Message):
    name: bytes = field(1)
    namespace: bytes = field(2)
    containers: Sequence[_Container] = field(3)


@message("holdings")
class ListedPods(Message):
    """The part of a ListPodResourcesResponse that tells the holdings."""

    pod_resources: Sequence[_Pod] = field(1)


_TIMEOUT_S = 5.0

#: As in the kubelet's own client of this API: grpc's 4 MiB do not suffice on a node with many devices.
_LONGEST_ANSWER = 16 << 20


#: The most pods, containers, devices and ids that are read. There is a device for each id and NUMA node, so a
#: node whose pods hold all 20,000 ids of a resource has some 40,000.
_MOST_ENTRIES = 500_000


@dataclass(frozen=True, slots=True)
class Listed:
    """What the kubelet lists: every pod that it knows, and who holds devices.

    A kubelet before 1.34 also lists pods that have ended. They hold nothing.
    """

    pods: frozenset[PodName]
    holdings: Holdings


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
    found = await listed(socket_path)
    return None if found is None else found.holdings


async def listed(socket_path: str) -> Listed | None:
    """The pods and the holdings now; None without an answer."""
    if not os.path.exists(socket_path):  # noqa: ASYNC240  (one stat of a local file)
        return None
    async with private_channel(
        f"unix:{socket_path}", ("grpc.max_receive_message_length", _LONGEST_ANSWER)
    ) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[api.ListPodResourcesRequest, bytes] = channel.unary_unary(
            api.LIST.path,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
        )
        try:
            async with enforced(_TIMEOUT_S):
                answer = await call(api.ListPodResourcesRequest(), timeout=_TIMEOUT_S)
        except (grpc.aio.AioRpcError, TimeoutError):
            return None
    try:
        pods = ListedPods.FromString(answer)
    except DecodeError:
        return None
    return await taken(pods) if _is_possible(pods) else None


async def taken(answer: ListedPods) -> Listed:
    """What an answer says. Everything else has its turn in between."""
    names: set[PodName] = set()
    holdings: dict[tuple[str, str], set[Holder]] = {}
    turn = Turn()
    for pod in answer.pod_resources:
        names.add((_text(pod.namespace), _text(pod.name)))
        for container in pod.containers:
            holder = Holder(_text(pod.namespace), _text(pod.name), _text(container.name))
            for devices in container.devices:
                resource = _text(devices.resource_name)
                for id_ in devices.device_ids:
                    holdings.setdefault((resource, _text(id_)), set()).add(holder)
        await turn.end_if_long()
    return Listed(frozenset(names), {key: tuple(sorted(holders)) for key, holders in holdings.items()})


def _is_possible(pods: ListedPods) -> bool:
    """Whether an answer has no more entries than a node can have. Goes through no more than so many."""
    return all(total <= _MOST_ENTRIES for total in accumulate(_sizes(pods)))


def _sizes(pods: ListedPods) -> Iterator[int]:
    """The lengths of all lists in an answer."""
    yield len(pods.pod_resources)
    for pod in pods.pod_resources:
        yield len(pod.containers)
        for container in pod.containers:
            yield len(container.devices)
            for devices in container.devices:
                yield len(devices.device_ids)


def _text(name: bytes) -> str:
    """The name with an escape for each byte that is not UTF-8; genericdp has no id with a backslash."""
    return name.decode(errors="backslashreplace")
