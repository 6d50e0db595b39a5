"""The history of the node status: capacity and allocatable as the API server got them.

The rules of this file:

* The kubelet publishes changes on its node status tick, every 10 s. What happens between two ticks is
  never seen, and the scheduler lags by up to one tick.
* The key of a resource never disappears; its value becomes 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`node.status` at one moment: resource name -> count."""

    time: float
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)


class NodeStatusHistory:
    """Every status that differed from the previous one, oldest first. It outlives kubelet processes."""

    def __init__(self) -> None:
        self._history: list[NodeStatus] = [NodeStatus(0.0)]

    @property
    def now(self) -> NodeStatus:
        """The last published status."""
        return self._history[-1]

    def __iter__(self) -> Iterator[NodeStatus]:
        return iter(self._history)

    def __len__(self) -> int:
        return len(self._history)

    def __getitem__(self, index: int) -> NodeStatus:
        return self._history[index]

    def publish(
        self,
        time: float,
        capacity: Mapping[str, int],
        allocatable: Mapping[str, int],
        removed: Iterable[str],
    ) -> bool:
        """Publish on a tick. Returns whether anything changed."""
        new_capacity = {**self.now.capacity, **capacity, **dict.fromkeys(removed, 0)}
        new_allocatable = {**new_capacity, **allocatable}
        if new_capacity == self.now.capacity and new_allocatable == self.now.allocatable:
            return False
        self._history.append(NodeStatus(time, new_capacity, new_allocatable))
        return True

    def reset(self, time: float) -> None:
        """Set every resource to 0, as a kubelet does that starts without a checkpoint."""
        self.publish(time, {}, {}, list(self.now.capacity))
