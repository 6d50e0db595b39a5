"""Containers, as their runtime tells them over CRI.

The rules of this file:

* A container is identified by the labels that the kubelet gives it. One without these labels is ignored.
* CRI does not define the OCI spec of a container, but containerd and CRI-O include it in a verbose status, as
  JSON. If it is missing or cannot be understood, the result is None, which never means "no devices".
* A spec is read as runc and crun carry it out: they make the nodes in order, and what a path has already
  stays. containerd lists all devices of the host after the own ones of a privileged container.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from genericdp.core.device import DeviceNumber
from genericdp.core.rules.name import ENV_PREFIX
from genericdp.core.status.holdings import Holder

#: The kubelet's labels and annotations (1.36, `kuberuntime/labels.go`).
_NAMESPACE, _POD = "io.kubernetes.pod.namespace", "io.kubernetes.pod.name"
_UID, _CONTAINER = "io.kubernetes.pod.uid", "io.kubernetes.container.name"
_GRACE = "io.kubernetes.pod.terminationGracePeriod"

#: The grace period of a pod that does not say another, in seconds (`DefaultTerminationGracePeriodSeconds`).
DEFAULT_GRACE_S = 30

#: The longest one. A pod may say up to 2**63 - 1, but runtimes count in 64-bit nanoseconds.
_LONGEST_GRACE_S = 2**31 - 1

#: The types of device nodes in the OCI runtime specification; "u" is a character device, too.
_KINDS = {"c": "c", "u": "c", "b": "b"}


@dataclass(frozen=True, slots=True)
class Inside:
    """What a container was created with.

    nodes  path in the container -> device number, as the spec says. In a user namespace, runc binds what the
           host has at the path instead; there, too, a restart only mends what the spec says
    envs   those of genericdp. Others may be secrets
    """

    nodes: Mapping[str, DeviceNumber]
    envs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs, or that was created to run.

    id       the runtime's; every start of a container in Kubernetes has another
    holder   its names in Kubernetes
    pod      the UID of its pod
    created  when, in nanoseconds since 1970
    grace_s  how long it may take to end, in seconds
    runs     whether it was started
    """

    id: str
    holder: Holder
    pod: str
    created: int = 0
    grace_s: int = DEFAULT_GRACE_S
    runs: bool = True


def container_of(
    id_: str, labels: Mapping[str, str], annotations: Mapping[str, str], created: int, *, runs: bool
) -> Container | None:
    """The container with these labels and annotations; None if it is not of a pod."""
    if not all(labels.get(name) for name in (_NAMESPACE, _POD, _UID, _CONTAINER)):
        return None
    holder = Holder(labels[_NAMESPACE], labels[_POD], labels[_CONTAINER])
    return Container(id_, holder, labels[_UID], created, _grace_s(annotations.get(_GRACE, "")), runs)


def _grace_s(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= len(str(2**63 - 1)):
        return min(int(text), _LONGEST_GRACE_S)
    return DEFAULT_GRACE_S


def inside(info: str) -> Inside | None:
    """What a container was created with, from `info["info"]` of its verbose status.

    None if it does not tell: a runtime without an OCI spec, such as cri-dockerd.
    """
    try:
        spec = json.loads(info)["runtimeSpec"]
        devices = (spec.get("linux") or {}).get("devices") or ()
        envs = (spec.get("process") or {}).get("env") or ()
        return Inside(
            _made(devices),
            {name: value for name, _, value in map(_parts, envs) if name.startswith(ENV_PREFIX)},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parts(env: Any) -> tuple[str, str, str]:
    if not isinstance(env, str):
        raise TypeError
    return env.partition("=")


def _made(devices: Iterable[Any]) -> Mapping[str, DeviceNumber]:
    # Both make a link of their own there.
    first: dict[str, DeviceNumber | None] = {"/dev/ptmx": None}
    for path, number in map(_device, devices):
        first.setdefault(path, number)
    return {path: number for path, number in first.items() if number is not None}


def _device(entry: Any) -> tuple[str, DeviceNumber | None]:
    """A path and what is made there; None for something else than a device node, such as a fifo."""
    path, kind = entry["path"], _KINDS.get(entry["type"])
    if kind is None:
        return path, None
    major, minor = entry["major"], entry["minor"]
    if not (isinstance(path, str) and isinstance(major, int) and isinstance(minor, int)):
        raise TypeError
    return path, DeviceNumber(kind, major, minor)
