"""The topology manager, as it applies to devices: NUMA hints, merged and judged by a policy.

The rules of this file:

* A mask is a frozenset of NUMA node numbers. There are no hints of other resources (CPU, memory).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, product

from genericdp.simulator.devices.resource import ResourceDevices
from genericdp.simulator.errors import KubeletPanicError

Mask = frozenset[int]


class Policy(StrEnum):
    """`topologyManagerPolicy` of the kubelet's configuration."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


@dataclass(frozen=True, slots=True)
class Hint:
    """A sufficient set of NUMA nodes (`mask` None: any); preferred if no smaller set could be sufficient."""

    mask: Mask | None
    preferred: bool


ANY = Hint(None, preferred=True)
IMPOSSIBLE = Hint(None, preferred=False)


def hints(
    resource: str,
    devices: ResourceDevices,
    numa_nodes: Sequence[int],
    *,
    available: Collection[str],
    reusable: Collection[str],
    request: int,
) -> list[Hint]:
    """The masks with enough devices. KubeletPanicError when an id is no longer listed.

    kubelet 1.36, `generateDeviceTopologyHints`: it looks devices up in the list without checking that
    they are there, and the devices that a container already holds may have left the list.
    """
    for id_ in sorted({*available, *reusable}):
        if id_ not in devices.listed:
            raise KubeletPanicError(
                f"nil dereference in generateDeviceTopologyHints: '{id_}' of {resource} is held "
                "by a container and no longer listed"
            )
    smallest = len(numa_nodes)
    found = []
    for mask in _masks(numa_nodes):
        if len(mask) < smallest and _count(devices, devices.listed, mask) >= request:
            smallest = len(mask)
        tied = [id_ for id_ in reusable if devices.listed[id_].numa is not None]
        if _count(devices, tied, mask) < len(tied):
            continue
        if len(tied) + _count(devices, available, mask) >= request:
            found.append(mask)
    return [Hint(mask, preferred=len(mask) == smallest) for mask in found]


def merge(policy: Policy, wishes: Iterable[Sequence[Hint]], numa_nodes: Sequence[int]) -> tuple[Hint, bool]:
    """The best common hint of several resources, and whether the policy admits the container with it."""
    everything = frozenset(numa_nodes)
    lists = [list(wish) or [IMPOSSIBLE] for wish in wishes]
    if policy is Policy.SINGLE_NUMA_NODE:
        lists = [
            [hint for hint in one if hint == ANY or (hint.preferred and hint.mask and len(hint.mask) == 1)]
            for one in lists
        ]
    best = Hint(everything, preferred=False)
    for choice in product(*lists):
        merged = _combine(choice, everything)
        if merged.mask and _better(merged, best):
            best = merged
    admitted = best.preferred or policy is Policy.BEST_EFFORT
    if policy is Policy.SINGLE_NUMA_NODE and best.mask == everything:
        best = Hint(None, best.preferred)
    return best, admitted


def by_affinity(
    devices: ResourceDevices, available: Collection[str], hint: Hint
) -> tuple[set[str], set[str], set[str]]:
    """Split the available ids into aligned with the hint, not aligned, and without a NUMA node."""
    if not devices.aligned or hint.mask is None:
        return set(), set(), set(available)
    aligned, unaligned, without = set(), set(), set()
    for id_ in available:
        numa = devices.numa_of(id_)
        if numa == (-1,):
            without.add(id_)
        elif hint.mask.intersection(numa):
            aligned.add(id_)
        else:
            unaligned.add(id_)
    return aligned, unaligned, without


def _masks(numa_nodes: Sequence[int]) -> Iterable[Mask]:
    for size in range(1, len(numa_nodes) + 1):
        yield from map(frozenset, combinations(numa_nodes, size))


def _count(devices: ResourceDevices, ids: Collection[str] | Mapping[str, object], mask: Mask) -> int:
    return sum(1 for id_ in ids if mask.intersection(devices.numa_of(id_)))


def _combine(choice: Sequence[Hint], everything: Mask) -> Hint:
    masks = [hint.mask for hint in choice if hint.mask is not None]
    preferred = all(hint.preferred for hint in choice) and len(set(masks)) <= 1
    return Hint(everything.intersection(*masks), preferred)


def _better(hint: Hint, than: Hint) -> bool:
    if hint.preferred != than.preferred:
        return hint.preferred
    return len(hint.mask or ()) < len(than.mask or ())
