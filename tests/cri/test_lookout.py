"""When it is said that the runtime is not the kubelet's: in time, and never of the right one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from genericdp.core.comeback.unknown import LONGEST_MAKING_S
from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.core.status.holdings import KUBELET_SETTLES_S
from genericdp.cri import sockets
from genericdp.cri.lookout import ALLOCATED_S, LOOK_AGAIN_S, Lookout
from genericdp.errors import GenericdpError
from genericdp.simulator import PodStatus, Point
from tests.scenes.builders import a_usb_serial, resources_of
from tests.scenes.rules import DOMAIN, FTDI_RULE
from tests.scenes.runtimes import another_runtime
from tests.scenes.scene import Scene, a_scene
from tests.scenes.service import settings_below

STICK = a_usb_serial(0, serial="A")
NEVER = float("inf")


class Looking:
    """A lookout with a clock that the test moves, beside a daemon whose rules do not want the runtime."""

    def __init__(self, settings: Settings) -> None:
        self.now = 1000.0
        self.errors: list[GenericdpError | None] = []
        self.offers: dict[str, Offer] = {}
        self.it = Lookout(settings, lambda: self.now, lambda: self.offers, self._see)

    def want(self) -> None:
        """A rule begins to want the runtime."""
        (resource,) = resources_of(FTDI_RULE + 'on_unplug = "stop"\n', domain=DOMAIN)
        self.offers = {resource.name: Offer(resource, ())}
        self.it.see_wanted(wanted=True)

    def want_no_longer(self) -> None:
        self.offers = {}
        self.it.see_wanted(wanted=False)

    @property
    def wait_s(self) -> float:
        """How long until the next look."""
        return self.it.look_at - self.now

    async def look(self) -> str:
        """Look when it is time; returns the error."""
        assert self.wait_s < NEVER
        self.now = max(self.now, self.it.look_at)
        await self.it.look()
        return str(self.errors[-1] or "")

    def _see(self, what: Retried, error: GenericdpError | None) -> None:
        assert what is Retried.RUNTIME
        self.errors.append(error)


@asynccontextmanager
async def looking(root: Path, *, wrong: bool) -> AsyncIterator[tuple[Scene, Looking]]:
    """A node with a lookout that looks at the kubelet's runtime, or at another one."""
    async with a_scene(root, STICK) as scene, another_runtime(root / "docker.sock"):
        await scene.until_allocatable(1)
        socket = f"{root}/docker.sock" if wrong else f"{root}/runtime.sock"
        it = Looking(settings_below(root, runtime_socket=socket))
        it.want()
        yield scene, it


async def test_the_kubelets_runtime_is_looked_at_once(short_dir: Path) -> None:
    async with looking(short_dir, wrong=False) as (scene, it):
        await scene.admit()
        assert it.wait_s == 0
        assert await it.look() == ""
        assert it.wait_s == NEVER
        it.it.see_allocated()
        assert it.wait_s == NEVER


async def test_another_runtime_is_said_to_be_one_once_a_pod_should_be_in_it(short_dir: Path) -> None:
    async with looking(short_dir, wrong=True) as (scene, it):
        assert await it.look() == ""
        assert it.wait_s == NEVER, "without a pod, nobody knows"
        pod = await scene.admit()
        it.it.see_allocated()
        assert it.wait_s == ALLOCATED_S
        assert await it.look() == ""
        assert it.wait_s == LONGEST_MAKING_S
        assert await it.look() == (
            f"containers cannot be stopped: containerd on '{short_dir}/docker.sock' has none of the kubelet's"
            " pods, such as default/app"
        )
        assert it.errors[-1] is not None
        assert it.errors[-1].hint == (
            "set 'runtime_socket' in genericdp.toml to the kubelet's --container-runtime-endpoint;"
            " in a pod, also mount the socket's directory"
        )
        assert it.wait_s == LOOK_AGAIN_S
        scene.kubelet.finish(pod)
        assert await it.look() == "", "without a pod, nobody knows"
        assert it.wait_s == NEVER


async def test_of_several_that_are_not_the_kubelets_all_are_named(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "SOCKETS", (f"{short_dir}/a.sock", f"{short_dir}/b.sock"))
    async with (
        a_scene(short_dir, STICK) as scene,
        another_runtime(short_dir / "a.sock"),
        another_runtime(short_dir / "b.sock"),
    ):
        await scene.until_allocatable(1)
        await scene.admit()
        it = Looking(settings_below(short_dir, runtime_socket=""))
        it.want()
        assert await it.look() == ""
        assert await it.look() == (
            f"containers cannot be stopped: containerd on '{short_dir}/a.sock' and containerd on"
            f" '{short_dir}/b.sock' have none of the kubelet's pods, such as default/app"
        )


async def test_a_pod_that_waits_for_its_sandbox_is_not_held_against_its_runtime(short_dir: Path) -> None:
    async with looking(short_dir, wrong=False) as (scene, it):
        with scene.kubelet.faults.hold(Point.SANDBOX) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            assert await it.look() == ""
            assert it.wait_s == LONGEST_MAKING_S
            it.now += LONGEST_MAKING_S - 1
            await it.it.look()
            assert it.errors[-1] is None
            gate.open()
            await admitting
        assert await it.look() == ""
        assert it.wait_s == NEVER


async def test_a_runtime_that_has_other_pods_of_the_kubelet_is_the_kubelets(short_dir: Path) -> None:
    """Pods that the network or an image keeps from being made are no evidence."""
    async with looking(short_dir, wrong=False) as (scene, it):
        await scene.admit(0, name="other")
        with scene.kubelet.faults.hold(Point.SANDBOX) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            assert await it.look() == ""
            assert it.wait_s == NEVER
            gate.open()
            await admitting


async def test_pods_that_ended_or_hold_no_device_are_not_held_against_a_runtime(short_dir: Path) -> None:
    """Nobody knows whether these run."""
    async with looking(short_dir, wrong=True) as (scene, it):
        await scene.admit(0, name="without")
        pod: PodStatus = await scene.admit()
        scene.kubelet.finish(pod)
        assert await it.look() == ""
        assert it.wait_s == NEVER


async def test_while_the_runtime_is_down_no_pod_is_held_against_it(short_dir: Path) -> None:
    async with looking(short_dir, wrong=False) as (scene, it):
        with scene.kubelet.faults.hold(Point.SANDBOX) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            assert await it.look() == ""
            await scene.kubelet.container_runtime.stop()
            assert (await it.look()).startswith("the container runtime does not answer on ")
            await scene.kubelet.container_runtime.start()
            assert await it.look() == ""
            assert it.wait_s == LONGEST_MAKING_S
            gate.open()
            await admitting


async def test_a_kubelet_that_starts_may_have_another_runtime(short_dir: Path) -> None:
    async with looking(short_dir, wrong=False) as (scene, it):
        await scene.admit()
        assert await it.look() == ""
        it.it.see_kubelet()
        it.now += 10
        it.it.see_kubelet()
        assert it.wait_s == KUBELET_SETTLES_S
        it.it.see_allocated()
        assert it.wait_s == ALLOCATED_S
        await scene.kubelet.container_runtime.stop()
        assert await it.look() != ""
        await scene.kubelet.container_runtime.start()
        assert await it.look() == ""
        assert it.wait_s == KUBELET_SETTLES_S - ALLOCATED_S - LOOK_AGAIN_S
        assert await it.look() == ""
        assert it.wait_s == NEVER


async def test_a_kubelet_that_was_away_made_no_pods_meanwhile(short_dir: Path) -> None:
    async with looking(short_dir, wrong=True) as (scene, it):
        await scene.admit()
        assert await it.look() == ""
        it.now += LONGEST_MAKING_S
        it.it.see_kubelet()
        assert await it.look() == ""
        assert it.wait_s == KUBELET_SETTLES_S


async def test_a_kubelet_that_does_not_answer_takes_nothing_back(short_dir: Path) -> None:
    async with looking(short_dir, wrong=True) as (scene, it):
        await scene.admit()
        assert await it.look() == ""
        assert await it.look() != ""
        await scene.kubelet.stop()
        assert await it.look() != ""


async def test_what_rules_no_longer_want_is_not_looked_at(short_dir: Path) -> None:
    async with looking(short_dir, wrong=True) as (scene, it):
        await scene.admit()
        assert await it.look() == ""
        assert await it.look() != ""
        it.want_no_longer()
        assert it.errors[-1] is None
        it.it.see_allocated()
        assert it.wait_s == NEVER
        it.now += LONGEST_MAKING_S
        it.want()
        assert it.wait_s == 0
        assert await it.look() == "", "nobody looked meanwhile"
