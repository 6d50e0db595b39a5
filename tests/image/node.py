"""A node of a cluster: its kubelet, a device to plug in, and the directories that the DaemonSet's pods mount.

The rules of this file:

* /dev, /run/udev and the kernel are real. All other directories of the host are below one of this node alone.
* The stable links are in a file system of this node alone, although they are in /dev.
"""

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from genericdp.simulator import Container, ContainerStatus, Kubelet, Phase, PodStatus
from genericdp.simulator import Pod as Workload
from tests.image import cgroup
from tests.image.configmap import Volume
from tests.image.manifest import configuration, settings
from tests.image.pod import PATIENCE_S, Pod, network_namespace
from tests.image.unpacked import Unpacked
from tests.udev.hotplug import Console, reserve_console

LINKS = Path("/dev/genericdp")

#: Where everything of a node is; a tmpfs of this run.
_ROOT = Path("/run/node")

SCREEN = "genericdp.io/screen"

#: Real places; the others are moved below _ROOT.
_AS_THEY_ARE = ("/dev", "/run/udev")


class Node:
    """A node as a case begins: a kubelet that runs, rules for a console that is unplugged, no pods."""

    def __init__(self, image: Unpacked) -> None:
        self.image = image
        self.console = _console()
        shutil.rmtree(_ROOT, ignore_errors=True)
        _ROOT.mkdir()
        self.kubelet = Kubelet(self.place("/var/lib/kubelet"))
        volumes = _ROOT / "pods" / "uid" / "volumes" / "kubernetes.io~configmap"
        self.rules = Volume(volumes / "rules")
        self.rules.update({"50-screen.toml": self.screen_rules("screen")})
        self.settings = Volume(volumes / "settings")
        self.settings.update({"genericdp.toml": settings()})
        self.pods: list[Pod] = []
        self._resources = contextlib.AsyncExitStack()

    @staticmethod
    def place(path: str) -> Path:
        """Where a directory of the host is; it is made."""
        if path in _AS_THEY_ARE:
            return Path(path)
        place = _ROOT / "host" / path.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        return place

    def screen_rules(self, name: str) -> str:
        """A rule for the console of this node."""
        return f'[[resource]]\nname = "{name}"\nmatch = {{ DEVNAME = "{self.console.node}" }}\n'

    # The pods of the DaemonSet.

    async def pod(self, *, host_network: bool = True) -> Pod:
        """Start another pod of the DaemonSet."""
        name = f"genericdp-{len(self.pods)}"
        network = None
        if not host_network:
            network = _ROOT / f"{name}.network"
            network_namespace(network)
            self._resources.callback(lambda: _command("umount", str(network)))
        pod = Pod(
            name,
            _ROOT / name,
            configuration(
                self.image,
                lambda volume: self._volume(name, volume),
                network=str(network) if network else None,
                cgroup=cgroup.of(name),
            ),
        )
        self.pods.append(pod)
        await pod.start()
        return pod

    def _volume(self, pod: str, volume: Mapping[str, Any]) -> Path:
        if "hostPath" in volume:
            return self.place(volume["hostPath"]["path"])
        if "emptyDir" in volume:
            place = _ROOT / f"{pod}.{volume['name']}"
            place.mkdir()
            return place
        named = {"genericdp-rules": self.rules, "genericdp-settings": self.settings}
        return named[volume["configMap"]["name"]].path

    # Others' pods.

    async def admit(self) -> PodStatus:
        """Run a pod with one console."""
        self.kubelet.tick()
        pod = await self.kubelet.admit(Workload("app", [Container("main", limits={SCREEN: 1})]))
        assert pod.phase is Phase.RUNNING, f"{pod.phase} {pod.reason} {pod.message}"
        return pod

    def opened(self, container: ContainerStatus) -> str:
        """The node on the host that a container got."""
        assert container.created is not None, f"{container.reason} {container.message}"
        (node,) = container.created.nodes
        return node.source

    async def until_offered(self, count: int, resource: str = SCREEN) -> None:
        """Return once this number of devices is Healthy."""
        await self.until(lambda: self.kubelet.allocatable.get(resource) == count)

    async def until(self, condition: Any) -> None:
        """Return once `condition()` is true, checked after each change of the kubelet."""
        await self.kubelet.wait_until(condition, timeout_s=PATIENCE_S)

    def registrations(self, resource: str = SCREEN) -> int:
        """How often a resource was registered."""
        return sum(each.resource == resource and each.answer == "" for each in self.kubelet.registrations)

    def links(self) -> dict[str, str]:
        """The stable links: name -> target."""
        with os.scandir(LINKS) as entries:
            return {entry.name: os.readlink(entry.path) for entry in entries if entry.is_symlink()}

    def describe(self) -> str:
        """What a failed case needs to know."""
        logs = "\n".join(f"log of {pod.name}:\n{pod.log()}" for pod in self.pods)
        return f"{self.kubelet.describe()}\n{logs}"

    async def __aenter__(self) -> Self:
        self._resources.enter_context(_links())
        await self._resources.enter_async_context(self.kubelet)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for pod in self.pods:
            await pod.remove()
        await self._resources.aclose()


@functools.cache
def _console() -> Console:
    """One for the whole run: there are not many."""
    return reserve_console()


@contextlib.contextmanager
def _links() -> Iterator[None]:
    """While open, the directory of the links is a file system of our own: another genericdp may use it."""
    made = not LINKS.exists()
    LINKS.mkdir(mode=0o755, exist_ok=True)
    _command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(LINKS))
    try:
        yield
    finally:
        _command("umount", str(LINKS))
        if made:
            LINKS.rmdir()


def _command(*command: str) -> None:
    subprocess.run(command, check=True)
