"""Two daemons with other directories: only the one that serves the kubelet acts on its containers."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.files.cdi.specs import LOCK
from genericdp.kubelet import socket as kubelet_socket
from genericdp.simulator import CONTAINERD, Container, ContainerState, Kubelet, Pod
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene
from tests.scenes.service import FixedRules, Service, settings_below
from tests.scenes.waiting import idle, until

FIRST, SECOND = a_usb_serial(0, serial="A", port="2"), a_usb_serial(1, serial="A", port="1", devnum=9)
BY_CDI = FTDI_RULE + 'answer = "cdi"\n'
STOP = FTDI_RULE + 'on_unplug = "stop"\ndebounce = "20ms"\n'


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_socket, "AGAIN_S", 0.01)


def elsewhere(root: Path, cdi_dir: str = "") -> Settings:
    """The settings of a genericdp that shares the kubelet with another one, and perhaps `cdi_dir`."""
    return settings_below(
        root,
        link_dir=f"{root}/other",
        state_dir=f"{root}/other-state",
        run_dir=f"{root}/other-run",
        cdi_dir=cdi_dir or f"{root}/cdi",
    )


async def a_rival(stack: AsyncExitStack, scene: Scene, root: Path, rules: str, cdi_dir: str = "") -> Service:
    """Another daemon, which has found that the first one serves the kubelet."""
    settings = elsewhere(root, cdi_dir)
    second = await stack.enter_async_context(Service(settings, FixedRules(rules), scene.udev))
    await until(lambda: second.daemon.plugins.kubelet.rival)
    return second


def named_in(directory: str) -> dict[str, str]:
    """CDI device -> its first device node, of all spec files."""
    return {
        device["name"]: device["containerEdits"]["deviceNodes"][0]["hostPath"]
        for path in Path(directory).glob("*.json")
        for device in json.loads(path.read_text())["devices"]
    }


async def test_who_does_not_serve_the_kubelet_writes_no_spec_files_until_the_other_one_ends(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one has not seen which twin was there first."""
    runtime = replace(CONTAINERD, cdi_dirs=(f"{short_dir}/cdi",))
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(a_scene(short_dir, FIRST, rules=BY_CDI, runtime=runtime))
        await scene.until_allocatable(1)
        scene.plug(SECOND)
        await scene.until_allocatable(2)
        before = named_in(scene.settings.cdi_dir)
        second = await a_rival(stack, scene, short_dir, BY_CDI)
        other = a_usb_serial(7, serial="Z", port="9", devnum=20)
        scene.plug(other)
        await scene.until_allocatable(3)
        scene.unplug(other)
        await scene.until_allocatable(2, capacity=3)
        await second.wait_until(lambda: second.steps > 2)
        await idle()
        assert named_in(scene.settings.cdi_dir) == before
        assert "the CDI spec files were changed, restoring them" not in caplog.messages
        assert second.daemon.recorder.history.failing == {}
        await scene.service.stop()
        await scene.until_allocatable(2)
        assert len(named_in(scene.settings.cdi_dir)) == 2
        await second.stop()
        assert list(Path(scene.settings.cdi_dir).iterdir()) == []


async def test_who_does_not_serve_the_kubelet_writes_nothing_to_a_directory_of_its_own(
    short_dir: Path,
) -> None:
    """Runtimes read several directories, and refuse a device that is in two of them."""
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(a_scene(short_dir, FIRST, rules=BY_CDI))
        await scene.until_allocatable(1)
        own = short_dir / "etc-cdi"
        second = await a_rival(stack, scene, short_dir, BY_CDI, str(own))
        await second.wait_until(lambda: second.steps > 0)
        assert not own.exists()


async def test_who_loses_the_kubelet_to_another_one_gives_up_its_spec_files(short_dir: Path) -> None:
    """Both were started before the kubelet."""
    settings = settings_below(short_dir)
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(
            a_scene(short_dir, FIRST, rules=BY_CDI, kubelet_runs=False, settings=settings)
        )
        assert named_in(settings.cdi_dir).keys() == {"ftdi_A"}
        own = f"{short_dir}/etc-cdi"
        second = Service(elsewhere(short_dir, own), FixedRules(BY_CDI), scene.udev)
        await stack.enter_async_context(second)
        assert named_in(own).keys() == {"ftdi_A"}
        async with scene.kubelet:
            await scene.until_allocatable(1)
            both = scene.daemon, second.daemon
            await until(lambda: sum(one.plugins.kubelet.rival for one in both) == 1)
            for one in both:
                has_files = named_in(one.settings.cdi_dir).keys() == {"ftdi_A"}
                assert has_files is not one.plugins.kubelet.rival


async def test_who_was_killed_and_is_a_rival_after_its_start_leaves_no_spec_files(short_dir: Path) -> None:
    """Runtimes read several directories: a file that nobody keeps right leads to another pod's device."""
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(a_scene(short_dir, FIRST, rules=BY_CDI))
        await scene.until_allocatable(1)
        second = await a_rival(stack, scene, short_dir, BY_CDI, f"{short_dir}/etc-cdi")
        left = {path: path.read_text() for path in Path(scene.settings.cdi_dir).glob("*.json")}
        assert left
        await scene.service.stop()
        for path, text in left.items():
            path.write_text(text)
        kubelet = second.daemon.plugins.kubelet
        await until(lambda: kubelet.incarnation is not None and not kubelet.rival)
        await scene.service.start()
        await until(lambda: scene.daemon.plugins.kubelet.rival)
        await scene.service.wait_until(lambda: scene.service.steps)
        await until(lambda: not list(Path(scene.settings.cdi_dir).iterdir()))
        assert named_in(f"{short_dir}/etc-cdi").keys() == {"ftdi_A"}


async def test_two_kubelets_need_two_cdi_directories(short_dir: Path) -> None:
    """The devices of the second one are Unhealthy until it gets a directory of its own."""
    shared = f"{short_dir}/cdi"
    rules = [FTDI_RULE.replace('"0403"', f'"0403", serial = "{each}"') + 'answer = "cdi"\n' for each in "AB"]
    devices = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2", devnum=9)
    for name in ("one", "two"):
        (short_dir / name).mkdir()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(
            a_scene(
                short_dir / "one",
                *devices,
                rules=rules[0],
                settings=settings_below(short_dir / "one", cdi_dir=shared),
            )
        )
        await one.until_allocatable(1)
        await stack.enter_async_context(Kubelet(short_dir / "two"))
        settings = settings_below(short_dir / "two", cdi_dir=shared)
        two = await stack.enter_async_context(Service(settings, FixedRules(rules[1]), one.udev))
        await two.wait_until(lambda: two.steps)
        why = f"cannot use the CDI directory '{shared}': another genericdp writes to it"
        (device,) = two.daemon.inventory.offers[FTDI].devices
        assert (device.healthy, device.reason) == (False, why)
        assert named_in(shared).keys() == {"ftdi_A"}
        # The other one ends, and this one hears of it at once.
        await one.service.stop()
        await two.wait_until(lambda: two.daemon.inventory.offers[FTDI].devices[0].healthy)
        assert named_in(shared).keys() == {"ftdi_B"}
        assert (Path(shared) / LOCK).exists()


@pytest.mark.usefixtures("kubelet_knows_its_pods")
async def test_who_does_not_serve_the_kubelet_stops_no_container(short_dir: Path) -> None:
    """For the second one, the id of the twin that was there first is that of the other twin."""
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(a_scene(short_dir, FIRST, rules=STOP))
        await scene.until_allocatable(1)
        scene.plug(SECOND)
        await scene.until_allocatable(2)
        second = await a_rival(stack, scene, short_dir, STOP)
        asked = [Container("main", limits={FTDI: 1})]
        pods = [await scene.kubelet.admit(Pod(name, asked)) for name in ("one", "two")]
        scene.unplug(SECOND)
        # The first stops the container that has lost its device; the second would stop the other container.
        stops = scene.kubelet.container_runtime.stops
        await scene.kubelet.wait_until(lambda: stops)
        LoopTime().advance(1.0)
        await second.wait_until(lambda: second.steps > 1)
        await idle()
        assert len(stops) == 1
        (spared,) = (pod for pod in pods if pod.name != stops[0].pod.name)
        assert spared.container("main").state is ContainerState.RUNNING
        assert second.daemon._comeback._plugs.by_device == {}
