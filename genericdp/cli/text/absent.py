"""What `explain` shows when it is not about a connected device.

Either a device is described that is not plugged in, or a resource is named.
"""

from collections.abc import Iterator, Sequence

from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent, LastSeen, Waiting
from genericdp.core.explain.model import identification
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.identity import natural
from genericdp.core.usb_port import UsbPort


def show(absent: Absent, link_dir: str, output: Output) -> None:
    """The answer, near misses, the resources that wait for it, what is remembered."""
    output.paragraph(Styled(absent.answer, Style.STRONG))
    for reason in dict.fromkeys(refusal.reason for refusal in absent.refused):
        nodes = [refusal.node for refusal in absent.refused if refusal.reason == reason]
        output.paragraph(Styled(f"matched but not offered: {reason}", Style.BAD))
        output.paragraph(f"  {', '.join(sorted(nodes, key=natural))}")
    for text in dict.fromkeys(text for _, text in absent.similar):
        output.paragraph(f"  {_names([node for node, each in absent.similar if each == text])}: {text}")
    if not absent.waiting and not absent.last_seen:
        mistakes = f"; {absent.mistakes}" if absent.mistakes else ""
        output.paragraph(f"no rule matches it, and the daemon remembers no such device{mistakes}")
        output.paragraph("'genericdp list --all' shows what is plugged in")
    for waiting in absent.waiting:
        output.line()
        _show_waiting(waiting, output, _heading(absent, waiting))
    for last_seen in absent.last_seen:
        output.line()
        heading = f"The daemon remembers {last_seen.device.id} of {last_seen.resource}"
        output.paragraph(Styled(heading, Style.STRONG))
        output.table((), list(_facts(last_seen, link_dir)), indent=2)


def _heading(absent: Absent, waiting: Waiting) -> str:
    if absent.has_nodes and not waiting.near_misses:
        return "Nothing else comes close"
    text = "close matches:" if waiting.near_misses else "no connected device is a close match"
    return text.capitalize() if absent.by_name else f"{waiting.resource.name} expects this device; {text}"


def _show_waiting(waiting: Waiting, output: Output, heading: str) -> None:
    resource, misses = waiting.resource, waiting.near_misses
    output.paragraph(Styled(heading, Style.STRONG))
    output.paragraph(Styled(f"  {resource.location.file}:{resource.location.line}", Style.FAINT))
    for miss in misses:
        output.paragraph(f"  {_names([miss.node])} {miss}")
    for number, wanted in enumerate(() if misses else resource.match.in_words):
        output.paragraph(f"  {'or' if number else 'wanted:'} {wanted}")


def _names(nodes: Sequence[UdevDevice]) -> str:
    return ", ".join(node.device_node or node.sys_path for node in nodes)


def _facts(last_seen: LastSeen, link_dir: str) -> Iterator[Row]:
    device = last_seen.device
    yield ("health", Styled(f"{device.health}: {device.reason or 'it is unplugged'}", Style.BAD))
    if device.port:
        yield ("last port", str(UsbPort.of_exact(device.port) or device.port))
        yield ("there now", _at_port(last_seen.at_port))
    for link in sorted(device.links, key=natural):
        yield ("link", f"{link_dir}/{link}, broken on purpose until the device is Healthy")


def _at_port(nodes: Sequence[UdevDevice]) -> str:
    if not nodes:
        return "nothing"
    return f"{_names(nodes)} ({identification(nodes[-1]) or nodes[-1].subsystem})"


def as_json(absent: Absent, link_dir: str) -> dict[str, object]:
    """For programs. Keys are only ever added."""
    return {
        "devices": [],
        "reason": for_terminal(absent.answer),
        "similar": [{"node": node.device_node, "is": text} for node, text in absent.similar],
        "waiting": [_waiting_as_json(waiting) for waiting in absent.waiting],
        "refused": [{"node": refusal.node, "reason": refusal.reason} for refusal in absent.refused],
        "remembered": [
            {
                "resource": last_seen.resource,
                "id": last_seen.device.id,
                "health": str(last_seen.device.health),
                "reason": last_seen.device.reason,
                "port": last_seen.device.port,
                "links": [f"{link_dir}/{link}" for link in last_seen.device.links],
            }
            for last_seen in absent.last_seen
        ],
    }


def _waiting_as_json(waiting: Waiting) -> dict[str, object]:
    return {
        "resource": waiting.resource.name,
        "file": waiting.resource.location.file,
        "line": waiting.resource.location.line,
        "nearMisses": [
            {
                "node": miss.node.device_node,
                "goesTo": miss.elsewhere or None,
                "failed": [
                    {"key": verdict.key, "wanted": verdict.wanted, "actual": verdict.actual}
                    for verdict in miss.failed
                ],
            }
            for miss in waiting.near_misses
        ],
    }
