"""Containers, as their runtime tells them over CRI.

The rules of this file:

* A container is identified by the labels that the kubelet gives it. One without these labels is ignored.
* CRI does not define the OCI spec of a container, but containerd and CRI-O include it in a verbose status, as
  JSON. If it is missing or cannot be understood, the result is None, which never means "no devices".
"""

import json
from collections.abc import Mapping
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

#: The types of device nodes in the OCI runtime specification; "u" is a character device, too.
_KINDS = {"c": "c", "u": "c", "b": "b"}


@dataclass(frozen=True, slots=True)
class Inside:
    """What a container was created with.

    nodes  path in the container -> device number
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
    # A pod may say up to 2**63 - 1, which CRI takes, too.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else DEFAULT_GRACE_S


def inside(info: str) -> Inside | None:
    """What a container was created with, from `info["info"]` of its verbose status.

    None if it does not tell: a runtime without an OCI spec, such as cri-dockerd.
    """
    try:
        spec = json.loads(info)["runtimeSpec"]
        devices = (spec.get("linux") or {}).get("devices") or ()
        envs = (spec.get("process") or {}).get("env") or ()
        return Inside(
            dict(_device(entry) for entry in devices if entry["type"] in _KINDS),
            {name: value for name, _, value in map(_parts, envs) if name.startswith(ENV_PREFIX)},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parts(env: Any) -> tuple[str, str, str]:
    if not isinstance(env, str):
        raise TypeError
    return env.partition("=")


def _device(entry: Any) -> tuple[str, DeviceNumber]:
    path, major, minor = entry["path"], entry["major"], entry["minor"]
    if not (isinstance(path, str) and isinstance(major, int) and isinstance(minor, int)):
        raise TypeError
    return path, DeviceNumber(_KINDS[entry["type"]], major, minor)
