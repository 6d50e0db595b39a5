"""A daemon that starts without its memory, while pods hold twins or devices of several nodes.

Only the kubelet still names the ids and the links. Only the memory said which of two twins had come first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.kubelet import checkpoint
from genericdp.simulator import CONTAINERD, ContainerState, PodStatus, Runtime
from tests.scenes.builders import a_gpu, a_kfd, a_modem, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE, KIT, KIT_RULE, MODEM, MODEM_RULE
from tests.scenes.scene import Scene, a_scene, both_runtimes, ids_told, minors_in, nodes_in
from tests.scenes.service import links_in, settings_below
from tests.scenes.shortage import a_file_system_at, read_only
from tests.scenes.state_file import lose
from tests.scenes.waiting import until

pytestmark = pytest.mark.usefixtures("pods_leave_at_once")

FIRST, SECOND = a_usb_serial(0, serial="A", port="2"), a_usb_serial(1, serial="A", port="1")
PLAIN, OF_SECOND, OF_FIRST = "ftdi_A", "ftdi_A-port-1_ehqimnov2m", "ftdi_A-port-2_376l7egvbq"

Loss = Callable[[Path], None]


def cut(memory: Path) -> None:
    memory.write_bytes(memory.read_bytes()[:-20])


@contextmanager
def never_saved(state: Path) -> Iterator[None]:
    with a_file_system_at(state), read_only(state):
        yield


def told(scene: Scene) -> dict[str, str]:
    ids = scene.daemon.inventory.offers[FTDI].ids
    return {id_: device.reason or str(device.health) for id_, device in ids.items()}


async def two_pods(scene: Scene) -> tuple[PodStatus, PodStatus]:
    """Two pods, one with each twin."""
    await scene.until_allocatable(1)
    one = await scene.admit(name="one")
    scene.plug(SECOND)
    await scene.until_allocatable(2)
    other = await scene.admit(name="other")
    for pod, id_, minor in ((one, PLAIN, 0), (other, OF_SECOND, 1)):
        assert (ids_told(pod.container("main")), minors_in(pod.container("main"))) == ([id_], [minor])
    return one, other


async def restart_without(scene: Scene, loss: Loss) -> None:
    await scene.service.stop()
    lose(scene.settings, loss)
    await scene.service.start()


async def check(scene: Scene, one: PodStatus, other: PodStatus) -> None:
    """Each pod keeps its twin or does not start, and nobody else gets it before the pod is gone."""
    assert told(scene) == {
        PLAIN: "only its id is known",
        OF_SECOND: "Healthy",
        OF_FIRST: f"a pod may still hold it as {PLAIN}",
    }
    leads = {link: Path(target).name for link, target in links_in(scene.settings).items()}
    assert leads == {PLAIN: PLAIN, f"held+{PLAIN}": "ttyUSB0", OF_SECOND: "ttyUSB1", OF_FIRST: OF_FIRST}
    await scene.until_allocatable(1, capacity=3)
    for pod in (one, other):
        await scene.kubelet.restart_container(pod, "main")
    assert one.container("main").state is ContainerState.WAITING
    assert minors_in(other.container("main")) == [1]
    scene.kubelet.delete(one)
    await scene.until_allocatable(2)
    third = await scene.admit(name="third")
    assert (ids_told(third.container("main")), minors_in(third.container("main"))) == ([OF_FIRST], [0])


@pytest.mark.parametrize("loss", [cut, Path.unlink])
async def test_a_twin_of_a_pod_goes_to_nobody_else_though_the_memory_is_lost(
    short_dir: Path, loss: Loss, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_scene(short_dir, FIRST) as scene:
        pods = await two_pods(scene)
        await restart_without(scene, loss)
        await check(scene, *pods)
    assert "nothing is remembered, but pods hold devices" in caplog.messages


async def test_nothing_is_carried_out_before_it_is_known_what_pods_hold(short_dir: Path) -> None:
    """The runtime said first that it reads CDI, and a step without what pods hold changed their links."""
    settings = settings_below(short_dir)
    camera = '[[resource]]\nname = "camera"\nmatch = { SUBSYSTEM = "video4linux" }\nanswer = "auto"\n'
    runtime = replace(CONTAINERD, cdi_dirs=(settings.cdi_dir,))
    async with a_scene(
        short_dir, FIRST, rules=FTDI_RULE + camera, settings=settings, runtime=runtime
    ) as scene:
        pods = await two_pods(scene)
        await restart_without(scene, Path.unlink)
        await check(scene, *pods)


async def test_a_twin_of_a_pod_goes_to_nobody_else_though_the_memory_was_never_saved(short_dir: Path) -> None:
    with never_saved(short_dir / "state"):
        async with a_scene(short_dir, FIRST) as scene:
            pods = await two_pods(scene)
            await restart_without(scene, lambda _: None)
            await check(scene, *pods)


async def test_a_memory_that_could_not_be_saved_outlives_the_daemon(short_dir: Path) -> None:
    with never_saved(short_dir / "state"):
        async with a_scene(short_dir, FIRST) as scene:
            one, other = await two_pods(scene)
            await scene.service.stop()
            await scene.service.start()
            assert told(scene) == {PLAIN: "Healthy", OF_SECOND: "Healthy"}
            for pod in (one, other):
                await scene.kubelet.restart_container(pod, "main")
            assert [minors_in(pod.container("main")) for pod in (one, other)] == [[0], [1]]


async def test_twins_that_were_mixed_up_are_told_apart_when_the_kubelet_answers(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checkpoint had another format, so nobody had told what pods hold when the daemon began."""
    readable = checkpoint.LONGEST

    def lose(memory: Path) -> None:
        memory.unlink()
        monkeypatch.setattr(checkpoint, "LONGEST", 0)

    async with a_scene(short_dir, FIRST) as scene:
        one, other = await two_pods(scene)
        await scene.kubelet.stop()
        await restart_without(scene, lose)
        assert told(scene) == {PLAIN: "Healthy", OF_FIRST: "Healthy"}
        monkeypatch.setattr(checkpoint, "LONGEST", readable)
        await scene.kubelet.start()
        await until(lambda: OF_SECOND in told(scene))
        await check(scene, one, other)


async def test_what_is_saved_without_knowing_which_twin_it_is_can_be_read_at_the_next_start(
    short_dir: Path,
) -> None:
    """The link of a shared node is called the same for both."""
    tables = ('match = { SUBSYSTEM = "tty" }', 'match = { DEVNAME = "/dev/kfd" }\nshared = true')
    rules = FTDI_RULE + "".join(f"[[resource.node]]\n{keys}\n" for keys in tables)
    async with a_scene(short_dir, a_kfd(), rules=rules) as scene:
        for number, twin in enumerate((FIRST, SECOND), start=1):
            scene.plug(twin)
            await scene.until_allocatable(number)
            await scene.admit(name=f"pod-{number}")
        await restart_without(scene, Path.unlink)
        found, links = told(scene), links_in(scene.settings)
        await scene.service.stop()
        await scene.service.start()
        assert (told(scene), links_in(scene.settings)) == (found, links)
        assert not list(Path(scene.settings.state_dir).glob("*.broken*"))


GPU_RULE = """
[[resource]]
name = "gpu"
match = { SUBSYSTEM = "drm" }
group_by = "parent"
[[resource.node]]
match = { DEVNAME = "/dev/kfd" }
shared = true
"""

#: Rules of devices of several nodes -> the resource, and what is plugged in.
OF_SEVERAL_NODES = {
    "a modem": (MODEM_RULE, MODEM, a_modem()),
    "a kit": (KIT_RULE, KIT, (a_usb_serial(0, port="1"), a_usb_serial(1, port="2", serial="B", devnum=5))),
    "with a shared node": (GPU_RULE, f"{FTDI.partition('/')[0]}/gpu", (*a_gpu(), a_kfd())),
}


async def after_a_power_cut(scene: Scene, loss: Loss, *left: UdevDevice) -> None:
    """The directory of links is empty after a boot, and these devices have not come back."""
    await scene.service.stop()
    loss(Path(scene.settings.state_dir) / "memory.json")
    for link in Path(scene.settings.link_dir).iterdir():
        link.unlink()
    scene.unplug(*left)
    await scene.service.start()


@both_runtimes
@pytest.mark.parametrize("loss", [cut, lambda _: None], ids=["the memory is lost", ""])
@pytest.mark.parametrize("what", OF_SEVERAL_NODES)
async def test_no_container_starts_without_what_is_absent_and_starts_again_with_it(
    short_dir: Path, what: str, loss: Loss, runtime: Runtime
) -> None:
    """CRI-O leaves a device out whose link is missing."""
    rules, resource, devices = OF_SEVERAL_NODES[what]
    async with a_scene(short_dir, *devices, rules=rules, runtime=runtime) as scene:
        await scene.until_allocatable(1, resource)
        pod = await scene.admit(resource=resource)
        had = minors_in(pod.container("main"))
        links = links_in(scene.settings)
        assert len(links) == len(had) > 1
        await after_a_power_cut(scene, loss, *devices)
        assert links_in(scene.settings) == {link: link for link in links}
        await scene.until_allocatable(0, resource)
        again = await scene.kubelet.restart_container(pod, "main")
        assert again.state is ContainerState.WAITING, nodes_in(again)
        scene.plug(*devices)
        await scene.until_allocatable(1, resource)
        again = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(again) == had
        assert links_in(scene.settings) == links


@both_runtimes
async def test_no_container_starts_without_a_part_of_its_device_though_the_memory_is_lost(
    short_dir: Path, runtime: Runtime
) -> None:
    """The other parts are there, and the one that has left is optional by now."""
    rules, resource, (gps, radio) = OF_SEVERAL_NODES["a kit"]
    optional = rules.replace('"2" }', '"2" }\noptional = true')
    async with a_scene(short_dir, gps, radio, rules=optional, runtime=runtime) as scene:
        await scene.until_allocatable(1, resource)
        pod = await scene.admit(resource=resource)
        await after_a_power_cut(scene, cut, radio)
        await scene.until_allocatable(1, resource)
        again = await scene.kubelet.restart_container(pod, "main")
        assert again.state is ContainerState.WAITING, nodes_in(again)
        scene.plug(radio)
        await until(lambda: all(link != leads for link, leads in links_in(scene.settings).items()))
        assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [0, 1]
