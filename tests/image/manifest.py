"""The DaemonSet's pod, as a container runtime gets it from the kubelet: a configuration for runc.

The rules of this file:

* What the manifest says comes from the manifest. Only what containerd adds by itself is written here.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.image.seccomp import runtime_default
from tests.image.unpacked import CHECKOUT, Unpacked

BASE = CHECKOUT / "packaging/kubernetes/base"

_MIB = 1 << 20

#: What containerd mounts by itself; of those below /dev nothing is left if the pod mounts a /dev of its own.
_OWN_MOUNTS = (
    ("/proc", "proc", ("nosuid", "noexec", "nodev")),
    ("/dev", "tmpfs", ("nosuid", "strictatime", "mode=755", "size=65536k")),
    ("/dev/pts", "devpts", ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")),
    ("/dev/mqueue", "mqueue", ("nosuid", "noexec", "nodev")),
    ("/dev/shm", "tmpfs", ("nosuid", "noexec", "nodev", "mode=1777", "size=65536k")),
    ("/sys", "sysfs", ("nosuid", "noexec", "nodev", "ro")),
)

#: Of the character devices in every container.
_OWN_DEVICES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2), (136, None))

_HIDDEN = (
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
)
_READ_ONLY = ("/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def settings() -> str:
    """The settings file of the manifests."""
    return (BASE / "genericdp.toml").read_text(encoding="utf-8")


def pod_spec() -> Mapping[str, Any]:
    """The pod template's spec."""
    manifest = yaml.safe_load((BASE / "daemonset.yaml").read_text(encoding="utf-8"))
    spec: Mapping[str, Any] = manifest["spec"]["template"]["spec"]
    return spec


def configuration(
    image: Unpacked, volume: Callable[[Mapping[str, Any]], Path], *, network: str | None, cgroup: str
) -> dict[str, Any]:
    """The configuration of the pod's container.

    volume     where an entry of the pod's `volumes` is on the host
    network    the path of the pod's network namespace; None: that of the host, as in the manifest
    cgroup     the path of its control group
    """
    spec = pod_spec()
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not security["privileged"]
    assert spec["hostNetwork"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": security["runAsUser"], "gid": security["runAsGroup"]},
            "args": [*image.config["config"]["Entrypoint"], *container["args"]],
            "env": [*image.config["config"]["Env"], *_environment(container)],
            "cwd": image.config["config"]["WorkingDir"],
            "capabilities": {
                kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
            },
            "noNewPrivileges": not security["allowPrivilegeEscalation"],
        },
        "root": {"path": str(image.root), "readonly": security["readOnlyRootFilesystem"]},
        "hostname": "worker-1",
        "mounts": _mounts(spec, container, volume),
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [
                *({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                *([{"type": "network", "path": network}] if network else []),
            ],
            "maskedPaths": list(_HIDDEN),
            "readonlyPaths": list(_READ_ONLY),
            "resources": _resources(container),
            "seccomp": runtime_default(),
        },
    }


def _environment(container: Mapping[str, Any]) -> list[str]:
    (node_name,) = container["env"]
    assert node_name["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return [
        f"{node_name['name']}=worker-1",
        "KUBERNETES_SERVICE_HOST=10.96.0.1",
        "KUBERNETES_SERVICE_PORT=443",
    ]


def _mounts(
    spec: Mapping[str, Any], container: Mapping[str, Any], volume: Callable[[Mapping[str, Any]], Path]
) -> list[dict[str, Any]]:
    volumes = {each["name"]: each for each in spec["volumes"]}
    wanted = {each["mountPath"]: each for each in container["volumeMounts"]}
    mounts: list[dict[str, Any]] = [
        {"destination": path, "type": kind, "source": kind, "options": list(options)}
        for path, kind, options in _OWN_MOUNTS
        if not ("/dev" in wanted and f"{path}/".startswith("/dev/")) and path not in wanted
    ]
    for path, each in sorted(wanted.items()):
        source = volume(volumes[each["name"]])
        if each.get("subPath"):
            source = (source / each["subPath"]).resolve()
        access = "ro" if each.get("readOnly") else "rw"
        mounts.append(
            {
                "destination": path,
                "type": "bind",
                "source": str(source),
                "options": ["rbind", "rprivate", access],
            }
        )
    return mounts


def _resources(container: Mapping[str, Any]) -> dict[str, Any]:
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Mi"), limit
    devices = [{"allow": False, "access": "rwm"}]
    for major, minor in _OWN_DEVICES:
        number = {"major": major} if minor is None else {"major": major, "minor": minor}
        devices.append({"allow": True, "type": "c", "access": "rwm", **number})
    return {"devices": devices, "memory": {"limit": int(limit[:-2]) * _MIB}}
