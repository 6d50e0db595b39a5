"""Failures on a node: hangs, kills, a kubelet that restarts, is absent or is wiped."""

import json

from tests.package.case import Case
from tests.package.node import FUSE, KUBELET_ROOT, SCREEN, UNIT, Node


async def the_watchdog_ends_a_hung_daemon_and_another_one_starts(node: Node) -> None:
    before = node.registrations(FUSE)
    await node.write_drop_in("short-watchdog.conf", "[Service]\nWatchdogSec=3s\n")
    await node.until_registered_again(FUSE, before)
    hung, before = await node.pid(), node.registrations(FUSE)
    await node.run("kill", "-STOP", str(hung))
    await node.logged("Watchdog timeout", by=f"UNIT={UNIT}")
    await node.until_registered_again(FUSE, before)
    assert await node.pid() not in (0, hung)


async def a_killed_daemon_is_replaced_and_its_pods_keep_their_devices(node: Node) -> None:
    with node.console.plugged():
        await node.until_offered(SCREEN, 1)
        pod = await node.admit(SCREEN)
        held, before, killed = node.kubelet.allocated(SCREEN), node.registrations(SCREEN), await node.pid()
        await node.run("kill", "-KILL", str(killed))
        await node.until_registered_again(SCREEN, before)
        await node.until_offered(SCREEN, 1)
        assert node.kubelet.allocated(SCREEN) == held
        assert node.kubelet.resource_health(pod, "main") == {SCREEN: dict.fromkeys(held, "Healthy")}
        sockets = [path.name for path in node.kubelet.directory.glob("*.sock") if path != node.kubelet.socket]
        assert len(sockets) == 3, f"sockets of the killed daemon are left: {sockets}"
    await node.until_offered(SCREEN, 0)


async def a_restarted_kubelet_gets_everything_again(node: Node) -> None:
    for way in (node.kubelet.restart, node.kubelet.crash):
        before = node.registrations(FUSE)
        await way()
        if not node.kubelet.running:
            await node.kubelet.start()
        await node.until_registered_again(FUSE, before)
        await node.until_offered(FUSE, 100)


async def without_a_kubelet_directory_it_starts_and_waits_for_one(node: Node) -> None:
    await node.kubelet.stop()
    await node.run("systemctl", "stop", UNIT)
    await node.run("rm", "-rf", str(KUBELET_ROOT))
    await node.run("systemctl", "start", UNIT)
    assert not KUBELET_ROOT.exists()
    before = node.registrations(FUSE)
    await node.kubelet.start()
    await node.until_registered_again(FUSE, before)
    await node.until_offered(FUSE, 100)


async def a_kubelet_directory_that_is_created_again_is_served_again(node: Node) -> None:
    pid = await node.pid()
    await node.kubelet.stop()
    await node.run("rm", "-rf", str(KUBELET_ROOT))
    before = node.registrations(FUSE)
    await node.kubelet.start()
    await node.until_registered_again(FUSE, before)
    await node.until_offered(FUSE, 100)
    assert await node.pid() == pid


async def a_restart_of_the_service_takes_no_device_from_a_pod(node: Node) -> None:
    pod = await node.admit(FUSE)
    held, before = node.kubelet.allocated(FUSE), node.registrations(FUSE)
    await node.run("systemctl", "restart", UNIT)
    await node.until_registered_again(FUSE, before)
    await node.until_offered(FUSE, 100)
    assert node.kubelet.allocated(FUSE) == held
    restarted = await node.kubelet.restart_container(pod, "main")
    assert restarted.created is not None
    assert restarted.created.nodes[0].source == "/dev/fuse"


async def the_journal_has_levels_and_no_traceback_after_all_this(node: Node) -> None:
    lines = await node.run("journalctl", "--unit", UNIT, "--output=json", "--no-pager")
    own = [entry for line in lines.splitlines() if (entry := json.loads(line)).get("_COMM") == "genericdp"]
    assert {"3", "4", "6"} <= {entry["PRIORITY"] for entry in own}
    assert not [entry["MESSAGE"] for entry in own if "Traceback" in entry["MESSAGE"]]


CASES: tuple[Case, ...] = (
    the_watchdog_ends_a_hung_daemon_and_another_one_starts,
    a_killed_daemon_is_replaced_and_its_pods_keep_their_devices,
    a_restarted_kubelet_gets_everything_again,
    without_a_kubelet_directory_it_starts_and_waits_for_one,
    a_kubelet_directory_that_is_created_again_is_served_again,
    a_restart_of_the_service_takes_no_device_from_a_pod,
    the_journal_has_levels_and_no_traceback_after_all_this,
)
