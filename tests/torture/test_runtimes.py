"""Device nodes in containers: runtimes that follow links, skip missing paths, or cannot rename."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.files.links import Links
from genericdp.simulator import CONTAINERD, CRIO, Container, ContainerState, LowLevel, Pod, Point, Runtime
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene, both_runtimes, minors_in, nodes_in
from tests.scenes.waiting import idle

BY_LINK = FTDI_RULE.replace("/dev/serial{index}", "{link}")

every_runtime = pytest.mark.parametrize(
    "runtime",
    [replace(runtime, low_level=low) for runtime in (CONTAINERD, CRIO) for low in LowLevel],
    ids=lambda each: f"{each.personality.value}-{each.low_level.value}",
)


@every_runtime
async def test_a_device_replugged_between_allocate_and_creation_is_the_right_one(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(Point.ALLOCATED) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            scene.unplug(a_usb_serial(0))
            await idle()
            scene.plug(a_usb_serial(0, serial="B", port="7"), a_usb_serial(1))
            await idle()
            gate.open()
            pod = await admitting
        assert minors_in(pod.container("main")) == [1]


@every_runtime
async def test_a_device_unplugged_between_allocate_and_creation_prevents_the_creation(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(Point.ALLOCATED) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            scene.unplug(a_usb_serial(0))
            await idle()
            gate.open()
            pod = await admitting
        assert pod.container("main").state is ContainerState.WAITING
        assert pod.container("main").created is None
        await scene.until_allocatable(0)
        scene.plug(a_usb_serial(3))
        await scene.until_allocatable(1)
        await scene.kubelet.sync(pod)
        assert minors_in(pod.container("main")) == [3]


@every_runtime
async def test_in_a_user_namespace_the_link_path_gives_the_right_device_even_after_a_replug(
    short_dir: Path, runtime: Runtime
) -> None:
    """Runc bind-mounts the host's file at the container path, so that path must exist on the host."""
    async with a_scene(short_dir, a_usb_serial(0), rules=BY_LINK, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        container = Container("main", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("app", [container], host_users=False))
        link = f"{short_dir}/links/ftdi_A50285BI"
        assert nodes_in(pod.container("main")) == [(link, 188, 0)]
        scene.unplug(a_usb_serial(0))
        await scene.until_allocatable(0)
        # Another unit has the kernel name now.
        scene.plug(a_usb_serial(0, serial="B", port="7"), a_usb_serial(1))
        await scene.until_allocatable(2)
        status = await scene.kubelet.restart_container(pod, "main")
        assert nodes_in(status) == [(link, 188, 1)]


@both_runtimes
async def test_in_a_user_namespace_runc_refuses_any_other_path_and_never_gives_another_device(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        container = Container("main", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("app", [container], host_users=False))
        assert pod.container("main").state is ContainerState.WAITING
        assert "mount /dev/serial0 (via " in pod.container("main").message


@every_runtime
async def test_a_privileged_container_gets_the_device_under_its_link(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, a_usb_serial(2), rules=BY_LINK, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1}, privileged=True)]))
        assert (f"{short_dir}/links/ftdi_A50285BI", 188, 2) in nodes_in(pod.container("main"))


def test_a_link_that_is_re_pointed_is_never_missing_in_between(short_dir: Path) -> None:
    links = Links(str(short_dir / "links"))
    path = f"{short_dir}/links/ftdi_A"
    assert links.apply({"ftdi_A": "/dev/null"}) == {}
    seen: set[str] = set()
    missing: list[OSError] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.add(os.readlink(path))
            except OSError as error:
                missing.append(error)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(2_000):
            target = ("/dev/null", "/dev/zero", None)[number % 3]
            assert links.apply({"ftdi_A": target}) == {}
    finally:
        done.set()
        watcher.join()
    assert missing == []
    assert seen <= {"/dev/null", "/dev/zero", "ftdi_A"}
