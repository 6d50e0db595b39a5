"""`genericdp explain DEVICE`: where a device goes, and why, condition by condition."""

import argparse
import sys
from collections.abc import Iterator

from genericdp.cli.access import Access
from genericdp.cli.find import find, nodes_below
from genericdp.cli.list import model
from genericdp.cli.machine import Machine, look
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.core.allocate import Allocation, allocate
from genericdp.core.device import UdevDevice
from genericdp.core.explain import Explanation, Judged, Opinion, explain, holds
from genericdp.core.match import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain a device: which resource it goes to and why the others do not take it, each "
        "condition with what it wants and what is there, and what a container would get. "
        "Needs neither the daemon nor root. Status 1 when no resource offers it."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp explain /dev/ttyUSB0\n"
        "  genericdp explain /dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0\n"
        "  genericdp explain /sys/bus/usb/devices/1-2\n"
        "  genericdp explain --rules my.toml ttyUSB0"
    )
    parser.add_argument("device", metavar="DEVICE", help="a path below /dev or /sys, or a kernel name")
    add_json_option(parser)
    add_rule_options(parser)


def run(*, device: str, json: bool, rules: list[str], config: str | None, domain: str | None) -> int:
    """Print the explanation. Returns 0 when a resource offers the device, else 1."""
    machine = look(rules=rules, config=config, domain=domain)
    subject = find(device, machine.devices, machine.settings.link_dir)
    explanation = explain(subject, machine.claims, machine.inventory)
    output = Output(sys.stdout)
    if json:
        output.json(as_json(explanation, machine))
    else:
        show(explanation, machine, output, Access.of(subject))
    status = machine.say_reservations(Output(sys.stderr))
    return status if explanation.device is not None else 1


def show(explanation: Explanation, machine: Machine, output: Output, access: Access | None = None) -> None:
    """The explanation for people: the answer, the facts, the consequences, the reasons."""
    _show_answer(explanation, machine, output)
    output.line()
    output.table((), list(_facts(explanation.subject, access)), indent=2)
    if explanation.device is not None:
        output.line()
        _show_container(explanation, machine, output, access)
    for opinion in explanation.opinions:
        output.line()
        _show_opinion(opinion, explanation, output)


def _show_answer(explanation: Explanation, machine: Machine, output: Output) -> None:
    subject = explanation.subject
    name = subject.device_node or subject.sys_path
    if explanation.offer is not None and explanation.device is not None:
        device = explanation.device
        part = "a part of device" if len(device.nodes) > 1 else "device"
        style = Style.GOOD if device.healthy else Style.BAD
        output.line(
            Styled(f"{name} goes to {explanation.offer.resource.name} as {part} {device.id}", Style.STRONG)
        )
        output.line(Styled(str(device.health), style), f": {device.reason}" if device.reason else "")
        return
    output.line(Styled(f"{name} is not offered", Style.STRONG))
    output.paragraph(Styled(_why_not(explanation, machine), Style.BAD))


def _why_not(explanation: Explanation, machine: Machine) -> str:
    subject = explanation.subject
    if subject.device_node is None:
        below = nodes_below(subject.sys_path, machine.devices.values())
        text = "it has no device node, and only device nodes can be offered"
        return f"{text}; below it are {', '.join(below)}" if below else text
    if not subject.initialized:
        return "udev has not finished with it yet"
    if explanation.taken_by:
        return f"{explanation.taken_by[0].name} takes it, but {explanation.refusal}"
    return "no resource takes it" if explanation.opinions else "no rule file names a resource"


def _facts(device: UdevDevice, access: Access | None) -> Iterator[Row]:
    if device.device_node is not None:
        yield ("device node", f"{device.device_node} ({device.number})")
    if access is not None:
        yield ("access", str(access))
    yield ("sys path", device.sys_path)
    yield ("subsystem", device.subsystem or "-")
    said = model(device)
    if said:
        yield ("model", said)
    for devlink in sorted(device.devlinks):
        yield ("devlink", devlink)


def _show_opinion(opinion: Opinion, explanation: Explanation, output: Output) -> None:
    name, location = opinion.resource.name, opinion.resource.location
    first = explanation.taken_by[:1]
    if not opinion.takes:
        text = f"{name} does not take it"
    elif first == (opinion.resource,):
        text = f"{name} takes it"
    else:
        text = f"{name} would take it, but {first[0].name} comes first"
    output.paragraph(Styled(text, Style.STRONG))
    output.line(Styled(f"  {location.file}:{location.line}", Style.FAINT))
    _show_match(opinion.match, output, indent=2)
    for number, (table, judged) in enumerate(opinion.tables, start=1):
        output.line(f"  [[resource.node]] {number}, {table.container_paths[0].text}:")
        _show_match(judged, output, indent=4)


def _show_match(judged: Judged, output: Output, *, indent: int) -> None:
    if not judged:
        output.line(" " * indent, Styled("yes", Style.GOOD), "  no conditions")
    for number, verdicts in enumerate(judged):
        if len(judged) > 1:
            output.line(" " * indent, "either" if number == 0 else "or")
        output.table((), [_verdict(verdict) for verdict in verdicts], indent=indent)


def _verdict(verdict: Verdict) -> Row:
    holds_ = Styled("yes", Style.GOOD) if verdict.holds else Styled("no", Style.BAD)
    actual = "is not there" if verdict.actual is None else f"is '{verdict.actual}'"
    return (holds_, verdict.key, actual, f"wanted: {verdict.wanted}")


def _show_container(
    explanation: Explanation, machine: Machine, output: Output, access: Access | None
) -> None:
    allocation, id_ = _allocation(explanation, machine)
    output.line(Styled(f"A container that is given {id_} gets", Style.STRONG))
    rows = list(_given(allocation, explanation))
    if access is not None and access.advice:
        rows.append(("access", access.advice))
    output.table((), rows, indent=2)


def _allocation(explanation: Explanation, machine: Machine) -> tuple[Allocation, str]:
    """What a container would get that is given this device alone, and the id that it is given."""
    offer, device = explanation.offer, explanation.device
    assert offer is not None and device is not None  # noqa: S101, PT018  (only asked about what is offered)
    id_ = next(id_ for id_, each in offer.ids.items() if each is device)
    return allocate(offer, [id_], machine.settings.link_dir), id_


def _given(allocation: Allocation, explanation: Explanation) -> Iterator[Row]:
    now = {}
    if explanation.device is not None:
        now = {node.link: node.path for node in explanation.device.nodes}
    for spec in allocation.devices:
        node = now.get(spec.host_path.rpartition("/")[2], "")
        yield ("device", f"{spec.container_path} ({spec.permissions}) from {spec.host_path}, now {node}")
    for mount in allocation.mounts:
        rights = "read-only" if mount.read_only else "writable"
        yield ("mount", f"{mount.container_path} ({rights}) from {mount.host_path}")
    for name, value in allocation.envs.items():
        yield ("env", f"{name}={value}")
    for name, value in allocation.annotations.items():
        yield ("annotation", f"{name}={value}")
    for name in allocation.cdi_devices:
        yield ("CDI device", name)


def as_json(explanation: Explanation, machine: Machine) -> dict[str, object]:
    """The explanation for programs. Keys are only ever added."""
    subject = explanation.subject
    document: dict[str, object] = {
        "sysPath": subject.sys_path,
        "node": subject.device_node,
        "number": None if subject.number is None else str(subject.number),
        "subsystem": subject.subsystem,
        "devlinks": sorted(subject.devlinks),
        "resource": None,
        "id": None,
        "health": None,
        "reason": "",
        "container": None,
        "opinions": [_opinion_json(opinion) for opinion in explanation.opinions],
    }
    if explanation.offer is None or explanation.device is None:
        return {**document, "reason": _why_not(explanation, machine)}
    allocation, _ = _allocation(explanation, machine)
    return {
        **document,
        "resource": explanation.offer.resource.name,
        "id": explanation.device.id,
        "health": str(explanation.device.health),
        "reason": explanation.device.reason,
        "container": _container_json(allocation),
    }


def _opinion_json(opinion: Opinion) -> dict[str, object]:
    return {
        "resource": opinion.resource.name,
        "file": opinion.resource.location.file,
        "line": opinion.resource.location.line,
        "takes": opinion.takes,
        "match": _judged_json(opinion.match),
        "nodeTables": [_judged_json(judged) for _, judged in opinion.tables],
    }


def _judged_json(judged: Judged) -> dict[str, object]:
    return {
        "holds": holds(judged),
        "alternatives": [
            [
                {"key": each.key, "wanted": each.wanted, "actual": each.actual, "holds": each.holds}
                for each in verdicts
            ]
            for verdicts in judged
        ],
    }


def _container_json(allocation: Allocation) -> dict[str, object]:
    return {
        "devices": [
            {
                "containerPath": spec.container_path,
                "hostPath": spec.host_path,
                "permissions": spec.permissions,
            }
            for spec in allocation.devices
        ],
        "mounts": [
            {
                "containerPath": mount.container_path,
                "hostPath": mount.host_path,
                "readOnly": mount.read_only,
            }
            for mount in allocation.mounts
        ],
        "envs": dict(allocation.envs),
        "annotations": dict(allocation.annotations),
        "cdiDevices": list(allocation.cdi_devices),
    }
