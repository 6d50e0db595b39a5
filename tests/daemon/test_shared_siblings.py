"""Siblings that go along as shared nodes, on a running node."""

from pathlib import Path

from genericdp.simulator import Phase
from tests.core.memory.test_shared_siblings import PORTS, SCOPE
from tests.scenes.builders import a_card
from tests.scenes.scene import a_scene

RESOURCE = "example.com/scope"


async def test_a_device_whose_shared_node_was_in_doubt_is_free_once_the_pod_has_gone(
    short_dir: Path, pods_leave_at_once: None
) -> None:
    card, some = a_card("2", {0: 0, 1: 1}, 100, serial="CARD"), a_card("2", {1: 0}, 200, serial="CARD")
    async with a_scene(short_dir, SCOPE, *card, rules=PORTS) as scene:
        await scene.until_allocatable(1, RESOURCE)
        pod = await scene.admit(name="a", resource=RESOURCE)
        scene.unplug(*card)
        await scene.until_allocatable(0, RESOURCE)
        scene.plug(*some)
        await scene.service.wait_until(lambda: bool(scene.daemon.inventory.waiting))
        scene.kubelet.delete(pod)
        await scene.until_allocatable(1, RESOURCE)
        assert (await scene.admit(name="b", resource=RESOURCE)).phase is Phase.RUNNING
