"""Real devices that come and go, as pods and the kubelet see them."""

import os

from genericdp.simulator import ContainerState
from tests.package.case import Case
from tests.package.node import FUSE, LINKS, SCREEN, TAP, UNIT, Node
from tests.udev.hotplug import macvtap


async def a_pod_gets_the_device_of_the_rule_file_of_the_install_page(node: Node) -> None:
    assert node.kubelet.capacity[FUSE] == node.kubelet.allocatable[FUSE] == 100
    pod = await node.admit(FUSE)
    created = pod.container("main").created
    assert created is not None
    (found,) = created.nodes
    assert (found.container_path, found.kind, found.major, found.minor) == ("/dev/fuse", "c", 10, 229)
    assert (found.host_path, found.source) == (f"{LINKS}/fuse_fuse", "/dev/fuse")


async def a_console_that_comes_and_goes_is_followed(node: Node) -> None:
    id_ = f"screen_vcs{node.console.number}"
    for _ in range(3):
        with node.console.plugged():
            await node.until_offered(SCREEN, 1)
            assert list(node.kubelet.devices(SCREEN)) == [id_]
            assert node.links()[id_] == node.console.node
        await node.until_offered(SCREEN, 0)
        assert list(node.kubelet.devices(SCREEN)) == [id_]
        assert node.links()[id_] == id_


async def a_tap_that_returns_under_another_number_keeps_its_id(node: Node) -> None:
    seen = []
    for _ in range(2):
        with macvtap("gdp0") as tap:
            await node.until_offered(TAP, 1)
            (id_,) = node.kubelet.devices(TAP)
            assert node.links()[id_] == tap
            seen.append((id_, tap))
        await node.until_offered(TAP, 0)
    (first, first_node), (second, second_node) = seen
    assert first == second
    assert first_node != second_node


async def a_container_waits_for_its_device_and_starts_when_it_returns(node: Node) -> None:
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        pod = await node.admit(SCREEN)
    await node.until_offered(SCREEN, 0)
    status = await node.kubelet.restart_container(pod, "main")
    assert (status.state, status.reason) == (ContainerState.WAITING, "CreateContainerError")
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        await node.kubelet.sync(pod)
        assert pod.container("main").state is ContainerState.RUNNING
    await node.until_offered(SCREEN, 0)


async def no_container_gets_what_comes_next_while_the_service_is_down(node: Node) -> None:
    id_ = f"screen_vcs{node.console.number}"
    refused = 0
    for signal in ("TERM", "KILL"):
        with node.console.plugged():
            await node.until_offered(SCREEN, 1)
            pod = await node.admit(SCREEN)
            await node.run("systemctl", "kill", f"--signal={signal}", UNIT)
            await node.run("systemctl", "stop", UNIT)
            assert node.links()[id_] == node.console.node
        for _ in range(25):
            # Another console under the same name.
            with node.console.plugged():
                await node.run("udevadm", "settle")
                assert node.links()[id_] == id_
                status = await node.kubelet.restart_container(pod, "main")
                refused += (status.state, status.reason) == (ContainerState.WAITING, "CreateContainerError")
                # As the daemon left it.
                (LINKS / ".test").symlink_to(node.console.node)
                (LINKS / ".test").rename(LINKS / id_)
        await node.run("systemctl", "start", UNIT)
        with node.console.plugged():
            await node.until_offered(SCREEN, 1)
            await node.kubelet.sync(pod)
            assert pod.container("main").state is ContainerState.RUNNING
        node.kubelet.delete(pod)
        await node.until_offered(SCREEN, 0)
    assert refused == 50


async def devices_are_followed_after_a_restart_of_udevd(node: Node) -> None:
    await node.run("systemctl", "restart", "systemd-udevd.service")
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        assert os.path.exists(node.console.node)
    await node.until_offered(SCREEN, 0)


CASES: tuple[Case, ...] = (
    a_pod_gets_the_device_of_the_rule_file_of_the_install_page,
    a_console_that_comes_and_goes_is_followed,
    a_tap_that_returns_under_another_number_keeps_its_id,
    a_container_waits_for_its_device_and_starts_when_it_returns,
    no_container_gets_what_comes_next_while_the_service_is_down,
    devices_are_followed_after_a_restart_of_udevd,
)
