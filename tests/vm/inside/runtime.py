"""Runs in the guest as root and drives containerd over CRI as a kubelet does: JSON lines over a virtio port.

    {"create": {…, see `Request`}}          -> {"real": outcome, "simulated": outcome}
    {"run": pod, "script": text}            -> {"out": text}        in the pod's container
    {"stop": pod, "grace_s": seconds}       -> {"seconds": how long it took}
    {"restarted": pod, "times": count}      -> {"real": outcome}    once it was restarted as often
    {"refused": pod}                        -> {"real": outcome}    once the last request was refused
    {"reset": true}                         -> {}                   no container remains

Each request has an id, which its answer repeats. A request to create ends the pod's container, if it has
one, and creates another with the same request to the runtime and to the simulator. An outcome is
{"error": text} or what a process in the container finds:

    {"nodes": {path: [kind, major, minor, mode, uid, gid, "rw"]}, "envs": {name: value}, "out": text}

The access is what opening for reading and for writing led to: a letter, or - for EPERM (the device cgroup)
and = for EACCES (the mode).

The rules of this file:

* Pods use the host's network, except those with a user namespace, so hardly any CNI is needed.
* The images have no more than a shell, whose words are read.
"""

import asyncio
import json
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import grpc.aio

from genericdp.cri import api
from genericdp.messages import Message, Method
from genericdp.simulator.runtimes.creation import create
from genericdp.simulator.runtimes.runtime import (
    CdiSupport,
    ContainerConfig,
    CreateContainerError,
    CreatedContainer,
    LowLevel,
    RequestedDevice,
    RequestedMount,
    Runtime,
)
from tests.vm.inside import cri

PORT = "/dev/virtio-ports/vm.runtime"
SOCKET = "/run/containerd/containerd.sock"
LOGS = Path("/var/log/pods")

#: As kubelets with systemd's cgroups do.
CGROUP_PARENT = "/kubepods.slice/kubepods-besteffort.slice"

#: The ids of a user namespace, as a kubelet assigns them.
MAPPING = {"host_id": 65536 * 2, "container_id": 0, "length": 65536}

#: What a container always has.
_ALWAYS = "null zero full random urandom tty console ptmx"

#: Runs a script ($1), prints what a process finds, and runs until it is told to end. $2: whether to open the
#: nodes. The script comes first, because the rest takes seconds in an emulator.
_REPORT = r"""
trap 'exit 0' TERM
opened() {
    why=$( (eval ": $1\"$path\"") 2>&1 ) && { printf %s "$2"; return; }
    case $why in
    *"Permission denied"*) printf = ;;
    *"not permitted"*) printf - ;;
    *) printf %s "($why)" ;;
    esac
}
echo script
eval "$1" 2>&1
echo report
nodes='-type c -o -type b -o -type p'
find / \( -path /proc -o -path /sys -o -path /dev/pts \) -prune -o \( $nodes \) -print 2>/dev/null |
while read -r path; do
    case " ALWAYS " in *" ${path#/dev/} "*) continue ;; esac
    kind=c; open=$2; [ -b "$path" ] && kind=b
    # Opening a fifo would wait for somebody at its other end.
    [ -p "$path" ] && kind=p && open=
    echo "node $kind $(stat -c '%t %T %a %u %g' "$path") $([ "$open" ] && opened '<' r && opened '>' w) $path"
done
env | sed 's/^/env /'
echo end
while :; do sleep 1000 & wait; done
""".replace("ALWAYS", _ALWAYS)

#: What no simulator can know: a container's id, where its root is, and a number of a descriptor.
_UNPREDICTABLE = re.compile(r' ?"[0-9a-f]{64}"|/\S+/[0-9a-f]{64}/rootfs| \(via /proc/self/fd/\d+\)')

_Asked = TypeVar("_Asked", bound=Message)
_Answer = TypeVar("_Answer", bound=Message)


@dataclass(slots=True)
class Request:
    """One container.

    uid         of a pod that the kubelet knows, and by which the service recognizes its containers
    handler     "runc" or "crun"
    script      run in the container at its start
    cdi         what the runtime does with CDI devices, see `CdiSupport`
    keep        make another container whenever it has ended, as a kubelet does by restartPolicy Always
    """

    pod: str
    uid: str = ""
    handler: str = "runc"
    script: str = ""
    keep: bool = False
    devices: list[list[str]] = field(default_factory=list)
    mounts: list[list[Any]] = field(default_factory=list)
    envs: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    cdi_devices: list[str] = field(default_factory=list)
    privileged: bool = False
    user_namespace: bool = False
    run_as_user: int = 0
    run_as_group: int = 0
    groups: list[int] = field(default_factory=list)
    cdi: str = "on"

    def config(self) -> ContainerConfig:
        """As the simulator takes it."""
        return ContainerConfig(
            devices=tuple(RequestedDevice(host, inside, access) for host, inside, access in self.devices),
            mounts=tuple(RequestedMount(host, inside, only) for host, inside, only in self.mounts),
            envs=self.envs,
            annotations=self.annotations,
            cdi_devices=tuple(self.cdi_devices),
            privileged=self.privileged,
            user_namespace=self.user_namespace,
            run_as_user=self.run_as_user,
            run_as_group=self.run_as_group,
            image_files=frozenset({"/srv/file"}),
        )


@dataclass(slots=True)
class Pod:
    """A pod's sandbox, and its container if it has one.

    restarts    containers that were made because the one before had ended
    outcome     of the last one
    """

    sandbox: str
    config: cri.PodSandboxConfig
    container: str = ""
    attempts: int = 0
    restarts: int = 0
    outcome: dict[str, Any] = field(default_factory=dict)
    keeper: asyncio.Task[None] | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)

    def let_go(self) -> None:
        """Keep its container no longer."""
        self.restarts = 0
        if self.keeper is not None:
            self.keeper.cancel()
            self.keeper = None


class Containerd:
    """containerd, driven over CRI."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        #: The pods that have a container, by name; and all that have a sandbox, which is slow to make.
        self._pods: dict[str, Pod] = {}
        self._ready: dict[tuple[object, ...], Pod] = {}

    async def start(self) -> None:
        """Remove what an earlier driver left, or a boot."""
        everything = await self._call(api.LIST_POD_SANDBOX, api.ListPodSandboxRequest())
        for each in everything.items:
            await self._call(cri.STOP_POD_SANDBOX, cri.StopPodSandboxRequest(pod_sandbox_id=each.id))
            await self._call(cri.REMOVE_POD_SANDBOX, cri.RemovePodSandboxRequest(pod_sandbox_id=each.id))

    async def create(self, request: Request) -> dict[str, Any]:
        """Create and start a container; returns the outcome."""
        key = (request.pod, request.handler, request.user_namespace, request.privileged)
        try:
            if key not in self._ready:
                self._ready[key] = await self._sandbox(request)
        except grpc.aio.AioRpcError as error:
            return {"error": error.details() or ""}
        pod = self._pods[request.pod] = self._ready[key]
        pod.let_go()
        await self._create(pod, request)
        if request.keep:
            pod.keeper = asyncio.create_task(self._keep(pod, request))
        return pod.outcome

    async def restarted(self, name: str, times: int) -> dict[str, Any]:
        """The outcome, once the container of a pod was restarted this often."""
        pod = self._pods[name]
        while pod.restarts < times:
            pod.tried.clear()
            await pod.tried.wait()
        return pod.outcome

    async def refused(self, name: str) -> dict[str, Any]:
        """The outcome, once no container could be made for a pod."""
        pod = self._pods[name]
        while "error" not in pod.outcome:
            pod.tried.clear()
            await pod.tried.wait()
        return pod.outcome

    async def run(self, name: str, script: str) -> str:
        """Run a script in the container of a pod."""
        answer = await self._call(
            cri.EXEC_SYNC,
            cri.ExecSyncRequest(
                container_id=self._pods[name].container, cmd=["/bin/sh", "-c", script], timeout=60
            ),
        )
        return (answer.stdout + answer.stderr).decode()

    async def stop(self, name: str, grace_s: int) -> float:
        """End the container of a pod as the kubelet does."""
        began = time.monotonic()
        await self._call(
            api.STOP_CONTAINER,
            api.StopContainerRequest(container_id=self._pods[name].container, timeout=grace_s),
        )
        return time.monotonic() - began

    async def reset(self) -> None:
        """Remove all containers. Their pods stay ready for others."""
        for pod in self._ready.values():
            pod.let_go()
            await self._remove_container(pod)
        self._pods.clear()

    async def _call(self, method: Method[_Asked, _Answer], request: _Asked) -> _Answer:
        return await method.unary(self._channel)(request)

    async def _sandbox(self, request: Request) -> Pod:
        uid = f"{request.pod}-{time.time_ns()}"
        config = cri.PodSandboxConfig(
            metadata=api.PodSandboxMetadata(name=request.pod, uid=uid, namespace="default"),
            log_directory=str(LOGS / f"default_{request.pod}_{uid}"),
            labels=_labels(request, uid),
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=CGROUP_PARENT,
                security_context=cri.LinuxSandboxSecurityContext(
                    namespace_options=_namespaces(request), privileged=request.privileged
                ),
            ),
        )
        answer = await self._call(
            cri.RUN_POD_SANDBOX, cri.RunPodSandboxRequest(config=config, runtime_handler=request.handler)
        )
        return Pod(answer.pod_sandbox_id, config)

    async def _create(self, pod: Pod, request: Request) -> None:
        try:
            await self._remove_container(pod)
            config = _container_config(request, pod.attempts)
            pod.attempts += 1
            made = cri.CreateContainerRequest(
                pod_sandbox_id=pod.sandbox, config=config, sandbox_config=pod.config
            )
            pod.container = (await self._call(cri.CREATE_CONTAINER, made)).container_id
            await self._call(cri.START_CONTAINER, cri.StartContainerRequest(container_id=pod.container))
        except grpc.aio.AioRpcError as error:
            pod.outcome = {"error": _UNPREDICTABLE.sub("", error.details() or "")}
        else:
            log = Path(pod.config.log_directory) / config.log_path
            pod.outcome = await self._found(pod, log, request)

    async def _keep(self, pod: Pod, request: Request) -> None:
        while True:
            # As often as a kubelet looks at its containers (`plegRelistPeriod`).
            await asyncio.sleep(1.0)
            if pod.container and await self._runs(pod):
                continue
            await self._create(pod, request)
            if "error" not in pod.outcome:
                pod.restarts += 1
            pod.tried.set()

    async def _runs(self, pod: Pod) -> bool:
        request = api.ContainerStatusRequest(container_id=pod.container)
        status = (await self._call(api.CONTAINER_STATUS, request)).status
        return status is not None and status.state == api.ContainerState.CONTAINER_RUNNING

    async def _remove_container(self, pod: Pod) -> None:
        if pod.container:
            await self._call(
                api.STOP_CONTAINER, api.StopContainerRequest(container_id=pod.container, timeout=10)
            )
            await self._call(cri.REMOVE_CONTAINER, cri.RemoveContainerRequest(container_id=pod.container))
            pod.container = ""

    async def _found(self, pod: Pod, log: Path, request: Request) -> dict[str, Any]:
        until = time.monotonic() + 60.0
        while True:
            # A line of the log: time, stream, whether it is whole, text.
            lines = [line.split(" ", 3)[-1] for line in log.read_text().splitlines()] if log.exists() else []
            if "end" in lines:
                return _outcome(lines, request)
            if not await self._runs(pod):
                return {"error": f"it ended: {lines}"}
            if time.monotonic() > until:
                return {"error": f"it does not end its report: {lines}"}
            await asyncio.sleep(0.05)


def simulate(request: Request) -> dict[str, Any]:
    """The outcome by the simulator's containerd."""
    runtime = Runtime(low_level=LowLevel(request.handler), cdi=CdiSupport(request.cdi))
    try:
        created = create(runtime, request.config())
    except CreateContainerError as error:
        return {"error": _UNPREDICTABLE.sub("", str(error))}
    return {"nodes": _nodes(created, request), "envs": dict(created.envs)}


def _nodes(created: CreatedContainer, request: Request) -> dict[str, list[Any]]:
    nodes: dict[str, list[Any]] = {}
    wanted = [path for _, path, _ in request.devices]
    for node in created.nodes:
        if request.privileged and node.container_path not in wanted:
            continue
        access = ""
        for letter, bit in (("r", 4), ("w", 2)):
            groups = {request.run_as_group, *request.groups, *created.groups}
            shift = 6 if node.uid == request.run_as_user else 3 if node.gid in groups else 0
            # root's capabilities do not count for an owner outside the user namespace.
            permitted = node.mode >> shift & bit or (request.run_as_user == 0 and node.uid != 65534)
            access += "=" if not permitted else letter if letter in node.permissions else "-"
        nodes[node.container_path] = [
            *(node.kind, node.major, node.minor, f"{node.mode:o}", node.uid, node.gid),
            "" if request.privileged else access,
        ]
    return nodes


def _outcome(lines: list[str], request: Request) -> dict[str, Any]:
    nodes: dict[str, list[Any]] = {}
    envs: dict[str, str] = {}
    output, report = lines[1 : lines.index("report")], lines[lines.index("report") + 1 :]
    for line in report:
        what, _, text = line.partition(" ")
        if what == "node":
            kind, major, minor, mode, uid, gid, access, path = text.split(" ", 7)
            nodes[path] = [kind, int(major, 16), int(minor, 16), mode, int(uid), int(gid), access]
        elif what == "env":
            name, _, value = text.partition("=")
            envs[name] = value
    wanted = [path for _, path, _ in request.devices]
    if request.privileged:
        nodes = {path: node for path, node in nodes.items() if path in wanted}
    for name in ("PATH", "HOSTNAME", "HOME", "SHLVL", "PWD"):
        envs.pop(name, None)
    return {"nodes": nodes, "envs": envs, "out": "".join(f"{line}\n" for line in output)}


def _container_config(request: Request, attempt: int) -> cri.ContainerConfig:
    security = cri.LinuxContainerSecurityContext(
        privileged=request.privileged,
        namespace_options=_namespaces(request),
        supplemental_groups=request.groups,
        run_as_user=_optional(request.run_as_user),
        run_as_group=_optional(request.run_as_group),
    )
    return cri.ContainerConfig(
        metadata=api.ContainerMetadata(name="main", attempt=attempt),
        image=cri.ImageSpec(image="localhost/busybox:1"),
        command=["/bin/sh", "-c", _REPORT, "report", request.script, "" if request.privileged else "open"],
        envs=[cri.KeyValue(key=key, value=value) for key, value in request.envs.items()],
        mounts=[
            api.Mount(host_path=host, container_path=inside, readonly=only)
            for host, inside, only in request.mounts
        ],
        devices=[
            cri.Device(host_path=host, container_path=inside, permissions=access)
            for host, inside, access in request.devices
        ],
        labels=_labels(request, request.uid or request.pod) | {"io.kubernetes.container.name": "main"},
        annotations={"io.kubernetes.pod.terminationGracePeriod": "30", **request.annotations},
        log_path=f"main/{attempt}.log",
        linux=cri.LinuxContainerConfig(security_context=security),
        CDI_devices=[cri.CDIDevice(name=name) for name in request.cdi_devices],
    )


def _optional(value: int) -> cri.Int64Value | None:
    return cri.Int64Value(value=value) if value else None


def _labels(request: Request, uid: str) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": request.pod,
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": uid,
    }


def _namespaces(request: Request) -> cri.NamespaceOption:
    mode = cri.NamespaceMode
    if not request.user_namespace:
        return cri.NamespaceOption(network=mode.NODE, pid=mode.CONTAINER, ipc=mode.POD)
    ids = [cri.IDMapping(**MAPPING)]
    own = cri.UserNamespace(mode=mode.POD, uids=ids, gids=ids)
    return cri.NamespaceOption(network=mode.POD, pid=mode.CONTAINER, ipc=mode.POD, userns_options=own)


async def _answer(containerd: Containerd, request: dict[str, Any]) -> dict[str, Any]:
    match request:
        case {"create": wanted}:
            asked = Request(**wanted)
            # The simulator first: it only looks, while a runtime makes what a mount lacks.
            simulated = simulate(asked)
            return {"real": await containerd.create(asked), "simulated": simulated}
        case {"run": pod, "script": script}:
            return {"out": await containerd.run(pod, script)}
        case {"stop": pod, "grace_s": grace_s}:
            return {"seconds": await containerd.stop(pod, grace_s)}
        case {"restarted": pod, "times": times}:
            return {"real": await containerd.restarted(pod, times)}
        case {"refused": pod}:
            return {"real": await containerd.refused(pod)}
        case {"reset": _}:
            await containerd.reset()
            return {}
    return {"error": f"unknown request {request}"}


async def main() -> None:
    """Serve until SIGTERM."""
    loop = asyncio.get_running_loop()
    port = os.open(PORT, os.O_RDWR)
    # The previous one may have been killed in the middle of a line.
    os.write(port, b"\n")
    lines = os.fdopen(port, "rb", closefd=False)
    async with grpc.aio.insecure_channel(f"unix:{SOCKET}") as channel:
        containerd = Containerd(channel)
        await containerd.start()
        while True:
            request = json.loads(await loop.run_in_executor(None, lines.readline))
            try:
                answer = await _answer(containerd, request)
            except (grpc.aio.AioRpcError, KeyError, OSError) as error:
                answer = {"error": repr(error)}
            data = json.dumps({"id": request["id"], **answer}).encode() + b"\n"
            while data:
                data = data[os.write(port, data) :]


if __name__ == "__main__":
    asyncio.run(main())
