"""One explained device: for people, and for programs."""

from collections.abc import Iterator

from genericdp.cli.access import Access, AccessOf
from genericdp.cli.find import nodes_below
from genericdp.cli.given import given_as_json, given_of, show_given
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.survey import Machine
from genericdp.cli.verbs.list import model
from genericdp.core.device import UdevDevice
from genericdp.core.explain.explanation import Explanation
from genericdp.core.explain.near_misses import near_miss
from genericdp.core.explain.opinion import Judged, Opinion, holds
from genericdp.core.rules.match import Verdict


def show(
    explanation: Explanation, machine: Machine, output: Output, access_of: AccessOf = Access.of_node
) -> None:
    """The explanation for people: the answer, the facts, the consequences, the reasons."""
    _show_answer(explanation, machine, output)
    output.line()
    output.table((), list(_facts(explanation.subject, access_of)), indent=2)
    if explanation.offer is not None and explanation.device is not None:
        output.line()
        given = given_of(explanation.offer, explanation.device, machine.settings.link_dir, access_of)
        show_given(given, output)
    for opinion in explanation.opinions:
        output.line()
        _show_opinion(opinion, explanation, output)
    if explanation.subject.device_node is not None and not explanation.taken_by:
        output.line()
        output.paragraph(f"A rule for it: genericdp suggest {explanation.subject.device_node}")


def where_to(explanation: Explanation, machine: Machine) -> str:
    """The answer in one sentence."""
    answer = _answer(explanation)
    return answer if explanation.device is not None else f"{answer}: {_why_not(explanation, machine)}"


def _answer(explanation: Explanation) -> str:
    name = explanation.subject.device_node or explanation.subject.sys_path
    if explanation.offer is None or explanation.device is None:
        return f"{name} is not offered"
    part = "a part of device" if len(explanation.device.nodes) > 1 else "device"
    return f"{name} goes to {explanation.offer.resource.name} as {part} {explanation.device.id}"


def _show_answer(explanation: Explanation, machine: Machine, output: Output) -> None:
    device = explanation.device
    output.paragraph(Styled(_answer(explanation), Style.STRONG))
    if device is None:
        output.paragraph(Styled(_why_not(explanation, machine), Style.BAD))
        return
    style = Style.GOOD if device.healthy else Style.BAD
    output.paragraph(Styled(str(device.health), style), f": {device.reason}" if device.reason else "")


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
    if not explanation.opinions:
        return "no rule file names a resource"
    nearest = explanation.opinions[0]
    miss = near_miss(nearest)
    hint = "" if miss is None else f"; for {nearest.resource.name} it {miss}"
    return f"no resource takes it{hint}"


def _facts(device: UdevDevice, access_of: AccessOf) -> Iterator[Row]:
    access = access_of(device.device_node or "")
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
    output.paragraph(Styled(f"  {location.file}:{location.line}", Style.FAINT))
    _show_match(opinion.match, output, indent=2)
    for number, (table, judged) in enumerate(opinion.tables, start=1):
        output.paragraph(f"  [[resource.node]] {number}, {table.container_paths[0].text}:")
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


def as_json(
    explanation: Explanation, machine: Machine, access_of: AccessOf = Access.of_node
) -> dict[str, object]:
    """The explanation for programs. Keys are only ever added."""
    subject = explanation.subject
    access = access_of(subject.device_node or "")
    document: dict[str, object] = {
        "sysPath": subject.sys_path,
        "node": subject.device_node,
        "number": None if subject.number is None else str(subject.number),
        "subsystem": subject.subsystem,
        "access": None if access is None else access.as_json(),
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
    given = given_of(explanation.offer, explanation.device, machine.settings.link_dir, access_of)
    return {
        **document,
        "resource": explanation.offer.resource.name,
        "id": explanation.device.id,
        "health": str(explanation.device.health),
        "reason": explanation.device.reason,
        "container": given_as_json(given),
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
