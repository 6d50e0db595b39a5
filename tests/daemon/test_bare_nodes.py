"""Nodes that udev does not know, from /dev to the container and back."""

from pathlib import Path

import pytest

from genericdp.core.comeback.plugs import next_case
from genericdp.core.hint import NodeChange
from genericdp.core.status import holdings
from genericdp.simulator import ContainerState, Phase, Runtime
from tests.scenes.builders import a_usb_serial
from tests.scenes.dev import UNKNOWN_MAJOR, make_node
from tests.scenes.rules import DOMAIN
from tests.scenes.scene import Scene, a_scene, both_runtimes, nodes_in

GPU = f"{DOMAIN}/gpu"


def the_rule(scene: Scene) -> str:
    return (
        f'[[resource]]\nname = "gpu"\nmatch = {{ DEVNAME = "{scene.udev.dev}/acme[0-9]*" }}\n'
        'container_path = "/dev/acme{index}"\nunplug_grace = "0s"\n'
    )


async def a_gpu(scene: Scene) -> str:
    """One bare node, offered; its path."""
    node = scene.udev.dev / "acme0"
    make_node(node, 1)
    scene.edit_rules(the_rule(scene))
    await scene.until_allocatable(1, GPU)
    return str(node)


@both_runtimes
async def test_the_same_path_is_the_same_device_whatever_its_number(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, runtime=runtime) as scene:
        node = Path(await a_gpu(scene))
        pod = await scene.admit(resource=GPU)
        assert nodes_in(pod.container("main")) == [("/dev/acme0", UNKNOWN_MAJOR, 1)]
        (before,) = scene.kubelet.devices(GPU)

        node.unlink()
        await scene.until_allocatable(0, GPU, capacity=1)
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is not ContainerState.RUNNING

        make_node(node, 7)
        await scene.until_allocatable(1, GPU)
        assert list(scene.kubelet.devices(GPU)) == [before]
        status = await scene.kubelet.restart_container(pod, "main")
        assert nodes_in(status) == [("/dev/acme0", UNKNOWN_MAJOR, 7)]


async def test_while_there_is_an_alias_the_device_is_given_to_nobody(short_dir: Path) -> None:
    async with a_scene(short_dir) as scene:
        await a_gpu(scene)
        pod = await scene.admit(resource=GPU)
        alias = scene.udev.dev / "acme1"

        make_node(alias, 1)
        await scene.until_allocatable(0, GPU, capacity=1)
        (device,) = scene.daemon.inventory.offers[GPU].devices
        assert device.reason == (
            f"udev does not know it, and '{alias}' has the same number, c {UNKNOWN_MAJOR}:1"
        )
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is not ContainerState.RUNNING

        alias.unlink()
        await scene.until_allocatable(1, GPU)
        status = await scene.kubelet.restart_container(pod, "main")
        assert nodes_in(status) == [("/dev/acme0", UNKNOWN_MAJOR, 1)]


async def test_a_node_with_the_number_of_a_udev_device_is_no_way_around_its_owner(short_dir: Path) -> None:
    stick = a_usb_serial(0)
    async with a_scene(short_dir, stick) as scene:
        make_node(scene.udev.dev / "acme0", 0, major=188)
        scene.edit_rules(the_rule(scene))
        make_node(scene.udev.dev / "acme1", 1)
        await scene.until_allocatable(1, GPU)
        pods = [await scene.admit(resource=GPU, name=f"app-{n}") for n in range(2)]
        assert [pod.phase for pod in pods] == [Phase.RUNNING, Phase.FAILED]
        assert nodes_in(pods[0].container("main")) == [("/dev/acme0", UNKNOWN_MAJOR, 1)]
        (refusal,) = scene.daemon.inventory.refusals
        assert refusal.reason == (
            f"it has the number of '{scene.udev.node(stick)}', c 188:0; match that device node instead"
        )


async def test_the_device_is_the_same_after_a_restart_of_the_daemon(short_dir: Path) -> None:
    async with a_scene(short_dir) as scene:
        node = Path(await a_gpu(scene))
        pod = await scene.admit(resource=GPU)
        await scene.service.stop()
        node.unlink()
        await scene.service.start()
        await scene.until_allocatable(0, GPU, capacity=1)

        make_node(node, 2)
        await scene.until_allocatable(1, GPU)
        status = await scene.kubelet.restart_container(pod, "main")
        assert nodes_in(status) == [("/dev/acme0", UNKNOWN_MAJOR, 2)]


async def test_a_node_that_is_renamed_while_a_pod_has_it_is_given_to_no_other(short_dir: Path) -> None:
    async with a_scene(short_dir) as scene:
        node = Path(await a_gpu(scene))
        pod = await scene.admit(resource=GPU)

        node.rename(node.with_name("acme1"))
        await scene.until_allocatable(0, GPU, capacity=2)
        told = {id_: device.reason for id_, device in scene.daemon.inventory.offers[GPU].ids.items()}
        (held,) = (id_ for id_, reason in told.items() if reason == "it is unplugged")
        assert sorted(told.values()) == [f"a pod may still hold it as {held}", "it is unplugged"]
        other = await scene.admit(resource=GPU, name="other")
        assert other.phase is Phase.FAILED

        node.with_name("acme1").rename(node)
        await scene.until_allocatable(1, GPU)
        status = await scene.kubelet.restart_container(pod, "main")
        assert nodes_in(status) == [("/dev/acme0", UNKNOWN_MAJOR, 1)]


async def until_reason(scene: Scene, id_: str, reason: str) -> None:
    await scene.service.wait_until(lambda: scene.daemon.inventory.offers[GPU].ids[id_].reason == reason)


@pytest.mark.parametrize("restart", [False, True])
async def test_a_container_whose_node_the_rules_no_longer_name_is_not_stopped(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    async with a_scene(short_dir) as scene:
        dev = scene.udev.dev
        for n in range(2):
            make_node(dev / f"acme{n}", n)
        rule = f'[[resource]]\nname = "gpu"\nmatch.DEVNAME = ["{dev}/acme0", "{dev}/acme1"]\n'
        rule += 'on_unplug = "stop"\ndebounce = "0s"\n'
        scene.edit_rules(rule)
        await scene.until_allocatable(2, GPU)
        pod = await scene.admit(resource=GPU)
        ((_, _, minor),) = nodes_in(pod.container("main"))
        node = dev / f"acme{minor}"
        (id_,) = scene.daemon.memory.held

        if restart:
            await scene.service.stop()
            scene.rules.become(rule.replace(f'"{node}"', '"/dev/null"'))
            await scene.service.start()
        else:
            scene.edit_rules(rule.replace(f'"{node}"', '"/dev/null"'))
        await until_reason(scene, id_, "the rules no longer match it")
        assert next_case(scene.daemon._comeback._plugs) is None
        node.unlink()
        await until_reason(scene, id_, "it is unplugged")
        await scene.kubelet.wait_until(lambda: scene.kubelet.container_runtime.stops)


async def test_a_container_whose_node_is_in_a_directory_that_others_can_change_is_not_stopped(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir) as scene:
        directory = scene.udev.dev / "cards"
        directory.mkdir()
        make_node(directory / "acme0", 0)
        rule = f'[[resource]]\nname = "gpu"\nmatch.DEVNAME = "{directory}/acme*"\n'
        scene.edit_rules(rule)
        await scene.until_allocatable(1, GPU)
        (id_,) = scene.kubelet.devices(GPU)

        directory.chmod(0o775)
        reason = f"others than root can change '{directory}', so genericdp does not look into it"
        scene.udev.tell(NodeChange(str(directory)))
        await until_reason(scene, id_, reason)
        await scene.service.stop()
        await scene.service.start()
        await until_reason(scene, id_, reason)

        directory.chmod(0o755)
        scene.udev.tell(NodeChange(str(directory)))
        await until_reason(scene, id_, "")
