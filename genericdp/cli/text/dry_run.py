"""The node that `genericdp simulate` makes, and its pods: for people, and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genericdp.cli.output import Output, Style, Styled
from genericdp.cli.text.container import contents_as_json, device_as_json, rows_of
from genericdp.core.rules.resource import Resource
from genericdp.errors import Problem
from genericdp.simulator import CreatedContainer, DeviceNode, Kubelet, Phase

_NO_RESET = "not done here; the daemon does it before the container starts"

#: Resource -> (capacity, allocatable).
Counts = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Request:
    """A resource and how many devices of it a container requests."""

    resource: str
    count: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pod with a request.

    created  its container, if there is one
    resets   the nodes of USB devices that a daemon would have reset before the container started
    """

    pod: str
    request: Request
    phase: Phase
    message: str = ""
    created: CreatedContainer | None = None
    resets: tuple[str, ...] = ()

    @property
    def is_running(self) -> bool:
        return self.phase is Phase.RUNNING


def counts(kubelet: Kubelet) -> Counts:
    """What the node offers now."""
    return {name: (capacity, kubelet.allocatable.get(name, 0)) for name, capacity in kubelet.capacity.items()}


def why_nothing(resources: Sequence[Resource], problems: Sequence[Problem]) -> str:
    """Why a node with these rule files offers nothing."""
    if resources:
        return "no resource was registered"
    if problems:
        return "the rule files have mistakes (above)"
    return "no rule file defines a resource; 'genericdp suggest' writes one"


def show_node(offered: Counts, missing: Sequence[str], nothing: str, output: Output) -> None:
    """What the node offers, or why `nothing`; `missing` are resources that did not register in time."""
    if missing:
        output.paragraph(Styled(f"not registered: {', '.join(missing)}", Style.BAD))
    output.line("The node offers:")
    output.line()
    rows = [(name, str(capacity), str(free)) for name, (capacity, free) in sorted(offered.items())]
    if rows:
        output.table(("RESOURCE", "CAPACITY", "ALLOCATABLE"), rows, indent=2)
    else:
        output.paragraph(f"  nothing: {nothing}")
    output.line()


def show_outcome(outcome: Outcome, output: Output, options: str = "") -> None:
    """What became of a pod, and what its container finds. `options`: those that `explain` needs, too."""
    text = f"{outcome.phase}, {outcome.message}" if outcome.message else str(outcome.phase)
    if outcome.phase is Phase.FAILED:
        text += f"; see 'genericdp explain{options} {outcome.request.resource}'"
    request = f"{outcome.pod} requests {outcome.request.resource}={outcome.request.count}: "
    output.paragraph(request, Styled(text, Style.GOOD if outcome.is_running else Style.BAD))
    if outcome.created is not None:
        output.line()
        rows = [row for node in outcome.created.nodes for row in _device(node)]
        groups = [("group", f"{group}, for its process") for group in outcome.created.groups]
        resets = [("USB reset", f"{node}: {_NO_RESET}") for node in outcome.resets]
        output.table((), [*rows, *groups, *rows_of(outcome.created), *resets], indent=2)
    output.line()


def _device(node: DeviceNode) -> Iterator[tuple[str, str]]:
    yield "device", f"{node.container_path}  {_number(node)} {node.permissions}"
    yield "  from", node.source if node.host_path == node.source else f"{node.host_path} -> {node.source}"


def _number(node: DeviceNode) -> str:
    return f"{node.kind} {node.major}:{node.minor}"


def show_changes(before: Counts, now: Counts, output: Output) -> None:
    """A line for each resource that the node offers more or less of."""
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, (0, 0)), now.get(name, (0, 0))
        if old != new:
            output.paragraph(
                f"{name}: capacity {_change(old[0], new[0])}, allocatable {_change(old[1], new[1])}"
            )


def _change(old: int, new: int) -> str:
    return f"{new}" if old == new else f"{old} -> {new}"


def as_json(offered: Counts, missing: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, object]:
    """The node and its pods for programs. Keys are only ever added."""
    return {
        "resources": [
            {"name": name, "capacity": capacity, "allocatable": allocatable}
            for name, (capacity, allocatable) in sorted(offered.items())
        ],
        "notRegistered": list(missing),
        "pods": [
            {
                "name": outcome.pod,
                "resource": outcome.request.resource,
                "count": outcome.request.count,
                "phase": str(outcome.phase),
                "message": outcome.message,
                "container": None if outcome.created is None else _container_as_json(outcome.created),
                "usbResets": list(outcome.resets),
            }
            for outcome in outcomes
        ],
    }


def _container_as_json(created: CreatedContainer) -> dict[str, object]:
    devices = [
        {**device_as_json(node), "node": node.source, "number": _number(node)} for node in created.nodes
    ]
    return {"devices": devices, **contents_as_json(created), "additionalGids": list(created.groups)}
