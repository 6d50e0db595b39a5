"""NUMA hints, their merge and the verdict of each topology policy, by values."""

import pytest

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.devices.resource import Device, ResourceDevices
from genericdp.simulator.devices.topology import ANY, Hint, Policy, by_affinity, hints, merge

ZERO, ONE, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})


def listed(**numa: tuple[int, ...] | None) -> ResourceDevices:
    """A resource with healthy devices: id -> NUMA nodes."""
    devices = ResourceDevices()
    devices.receive(Device(id_, api.HEALTHY, nodes) for id_, nodes in numa.items())
    return devices


def test_hints_are_the_masks_with_enough_devices_and_the_smallest_are_preferred() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=None)
    found = hints("r", devices, (0, 1), available={"a", "b", "c", "d"}, reusable=(), request=2)
    assert found == [Hint(ZERO, preferred=True), Hint(BOTH, preferred=False)]
    left = hints("r", devices, (0, 1), available={"b", "c"}, reusable=(), request=2)
    assert left == [Hint(BOTH, preferred=False)]
    lent = hints("r", devices, (0, 1), available={"a", "b"}, reusable={"c", "d"}, request=2)
    assert lent == [Hint(BOTH, preferred=False)]


@pytest.mark.parametrize(
    ("policy", "wish", "expected"),
    [
        (Policy.BEST_EFFORT, [Hint(BOTH, preferred=False)], (Hint(BOTH, preferred=False), True)),
        (Policy.RESTRICTED, [Hint(BOTH, preferred=False)], (Hint(BOTH, preferred=False), False)),
        (Policy.RESTRICTED, [Hint(BOTH, preferred=True)], (Hint(BOTH, preferred=True), True)),
        (Policy.SINGLE_NUMA_NODE, [Hint(BOTH, preferred=True)], (Hint(None, preferred=False), False)),
        (Policy.SINGLE_NUMA_NODE, [Hint(ONE, preferred=True)], (Hint(ONE, preferred=True), True)),
        (Policy.SINGLE_NUMA_NODE, [ANY], (Hint(None, preferred=True), True)),
        (Policy.RESTRICTED, [], (Hint(BOTH, preferred=False), False)),
    ],
)
def test_each_policy_judges_the_merged_hint_in_its_own_way(
    policy: Policy, wish: list[Hint], expected: tuple[Hint, bool]
) -> None:
    assert merge(policy, [wish], (0, 1)) == expected


def test_a_strict_policy_rejects_two_resources_whose_hints_exclude_each_other() -> None:
    wishes = [[Hint(ZERO, preferred=True)], [Hint(ONE, preferred=True)]]
    assert merge(Policy.RESTRICTED, wishes, (0, 1)) == (Hint(BOTH, preferred=False), False)


def test_available_devices_are_split_by_affinity() -> None:
    devices = listed(a=(0,), b=(1,), c=None, d=(0, 1))
    assert by_affinity(devices, set("abcd"), Hint(ONE, preferred=True)) == ({"b", "d"}, {"a"}, {"c"})
    assert by_affinity(devices, set("abcd"), ANY) == (set(), set(), set("abcd"))
    assert by_affinity(listed(a=None), {"a"}, Hint(ONE, preferred=True)) == (set(), set(), {"a"})
