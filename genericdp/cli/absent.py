"""What is said of a device that is not there: what comes near it, who waits for it, what is remembered."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.survey import Machine
from genericdp.cli.verbs.list import model
from genericdp.core.device import UdevDevice
from genericdp.core.explain.near_misses import NearMiss, near_misses, wants
from genericdp.core.explain.opinion import opinion
from genericdp.core.explain.query import Sought
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device, Refusal
from genericdp.core.rules.resource import Resource

_USB_PORT = re.compile(r"(\S+) usb\d* (\S+)")


@dataclass(frozen=True, slots=True)
class Absent:
    """A device that is not there, or a resource that somebody misses devices of.

    said        what is known first, a sentence
    similar     (device node, what it is instead)
    waiting     the resources that would take it, each with what comes nearest to it
    refused     what a resource takes and does not offer, with the reason
    remembered  (resource, device) as it was when it was there
    is_offered  whether there is a Healthy device after all
    """

    said: str
    similar: tuple[tuple[UdevDevice, str], ...] = ()
    waiting: tuple[tuple[Resource, tuple[NearMiss, ...]], ...] = ()
    refused: tuple[Refusal, ...] = ()
    remembered: tuple[tuple[str, Device], ...] = ()
    is_offered: bool = False


def of_sought(sought: Sought, nodes: Sequence[UdevDevice], machine: Machine) -> Absent:
    """What is looked for by what it is, and not there."""
    resources = [each for each in machine.claims.resources if sought.is_asked_for_by(each)]
    known = sought.remembered(machine.memory, machine.settings.domain)
    names = {each.resource for each in known} - {each.name for each in resources}
    resources += [each for each in machine.claims.resources if each.name in names]
    return Absent(
        f"no {sought} is plugged in",
        similar=tuple(sought.similar(nodes)),
        waiting=_waiting(resources, machine),
        remembered=tuple((each.resource, each.device) for each in known),
    )


def of_device(device: Device, machine: Machine) -> Absent:
    """What the daemon remembers under an id, and not there."""
    name = machine.memory.devices[device.id].resource
    return Absent(
        f"{device.id} is not there: {device.reason or 'it is unplugged'}",
        waiting=_waiting([each for each in machine.claims.resources if each.name == name], machine),
        remembered=((name, device),),
    )


def of_resource(word: str, machine: Machine) -> Absent | None:
    """A resource by its name: what it has, and what it nearly has."""
    for offer in machine.inventory.offers.values():
        resource = offer.resource
        if word in (resource.name, resource.short_name):
            healthy = [device.id for device in offer.devices if device.healthy]
            absent = [
                device for device in offer.devices if not device.healthy and not _nodes_of(device, machine)
            ]
            said = f"{resource.name} offers {', '.join(healthy) or 'no device'}"
            return Absent(
                said,
                waiting=_waiting([resource], machine),
                refused=tuple(each for each in machine.inventory.refusals if each.resource == resource.name),
                remembered=tuple((resource.name, device) for device in absent),
                is_offered=bool(healthy),
            )
    return None


def _nodes_of(device: Device, machine: Machine) -> list[UdevDevice]:
    return [machine.devices[node.sys_path] for node in device.nodes if node.sys_path in machine.devices]


def _waiting(
    resources: Sequence[Resource], machine: Machine
) -> tuple[tuple[Resource, tuple[NearMiss, ...]], ...]:
    nodes = [node for node in machine.devices.values() if node.device_node is not None]
    return tuple(
        (each, near_misses(opinion(each, node, machine.claims) for node in nodes)) for each in resources
    )


def show(absent: Absent, machine: Machine, output: Output) -> None:
    """For people: the answer, near misses, who waits for it, what is remembered."""
    output.paragraph(Styled(absent.said, Style.STRONG))
    for refusal in absent.refused:
        output.paragraph(Styled(f"{refusal.node} is taken, but not offered: {refusal.reason}", Style.BAD))
    for text in dict.fromkeys(text for _, text in absent.similar):
        output.paragraph(
            f"  {', '.join(_name(node) for node, each in absent.similar if each == text)}: {text}"
        )
    if not absent.waiting and not absent.remembered:
        output.paragraph("no rule asks for it, and nothing like it is remembered")
    for resource, misses in absent.waiting:
        output.line()
        nearest = "what comes nearest:" if misses else "nothing that is there comes near"
        output.paragraph(Styled(f"{resource.name} wants this; {nearest}", Style.STRONG))
        output.paragraph(Styled(f"  {resource.location.file}:{resource.location.line}", Style.FAINT))
        for miss in misses:
            output.paragraph(f"  {_name(miss.node)} {miss}")
        for number, wanted in enumerate(() if misses else wants(resource)):
            output.paragraph(f"  {'or' if number else 'it wants'} {wanted}")
    for name, device in absent.remembered:
        output.line()
        output.paragraph(Styled(f"{name} remembers it as {device.id}", Style.STRONG))
        output.table((), list(_facts(device, machine)), indent=2)


def _name(node: UdevDevice) -> str:
    return node.device_node or node.sys_path


def _facts(device: Device, machine: Machine) -> Iterator[Row]:
    yield ("health", Styled(f"{device.health}: {device.reason or 'it is unplugged'}", Style.BAD))
    if device.port:
        yield ("last port", _in_words(device.port))
        yield ("there now", _at_port(device.port, machine))
    for link in sorted(device.links, key=natural):
        yield ("link", f"{machine.settings.link_dir}/{link}, dead until it is back")


def _in_words(port: str) -> str:
    """An exact port (`place.Port`) for people."""
    found = _USB_PORT.fullmatch(port)
    return f"USB port {found.group(2)} of {found.group(1)}" if found else port


def _at_port(port: str, machine: Machine) -> str:
    """What is plugged in at a port."""
    there = [
        node
        for node in machine.devices.values()
        if node.device_node is not None and machine.claims.place(node).port.exact == port
    ]
    if not there:
        return "nothing"
    return f"{', '.join(_name(node) for node in there)} ({model(there[-1]) or there[-1].subsystem})"


def as_json(absent: Absent, machine: Machine) -> dict[str, object]:
    """For programs. Keys are only ever added."""
    return {
        "devices": [],
        "reason": for_terminal(absent.said),
        "similar": [{"node": node.device_node, "is": text} for node, text in absent.similar],
        "waiting": [
            {
                "resource": resource.name,
                "file": resource.location.file,
                "line": resource.location.line,
                "nearMisses": [
                    {
                        "node": miss.node.device_node,
                        "goesTo": miss.elsewhere or None,
                        "failed": [
                            {"key": verdict.key, "wanted": verdict.wanted, "actual": verdict.actual}
                            for verdict in miss.failed
                        ],
                    }
                    for miss in misses
                ],
            }
            for resource, misses in absent.waiting
        ],
        "refused": [{"node": refusal.node, "reason": refusal.reason} for refusal in absent.refused],
        "remembered": [
            {
                "resource": name,
                "id": device.id,
                "health": str(device.health),
                "reason": device.reason,
                "port": device.port,
                "links": [f"{machine.settings.link_dir}/{link}" for link in device.links],
            }
            for name, device in absent.remembered
        ],
    }
