"""One explained device: for people, and for programs."""

from collections.abc import Iterator, Sequence

from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.text import container as container_text
from genericdp.core.device import UdevDevice
from genericdp.core.explain.access import AccessOf
from genericdp.core.explain.container import Container, container_of
from genericdp.core.explain.explanation import Explanation
from genericdp.core.explain.model import driver_and_address, identification
from genericdp.core.explain.opinion import Judged, Opinion, holds
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.settings import Settings
from genericdp.core.vfio import functions_of


def show_all(
    explanations: Sequence[Explanation], settings: Settings, output: Output, access_of: AccessOf
) -> None:
    """One line for each of several; then everything about the first."""
    if len(explanations) > 1:
        for each in explanations:
            output.paragraph(where_to(each))
        output.line()
    show(explanations[0], settings, output, access_of)


def show(explanation: Explanation, settings: Settings, output: Output, access_of: AccessOf) -> None:
    """The answer, the facts, the consequences, the reasons."""
    _show_answer(explanation, output)
    output.line()
    facts = (*_facts(explanation.subject, access_of), *_consequences(explanation))
    output.table((), list(facts), indent=2)
    container = _container(explanation, settings, access_of)
    if container is not None:
        output.line()
        container_text.show(container, output)
    for opinion in explanation.opinions:
        output.line()
        _show_opinion(opinion, output)
    # The rule may exist: in a file with a mistake.
    is_new = not any(each.takes or each.shares for each in explanation.opinions) and not explanation.mistakes
    if explanation.subject.device_node is not None and is_new and not explanation.subject.refusal:
        output.line()
        output.paragraph(f"To write a rule for it: genericdp suggest {explanation.subject.device_node}")


def where_to(explanation: Explanation) -> str:
    """The answer in one sentence."""
    answer = _answer(explanation)
    return answer if explanation.is_offered else f"{answer}: {explanation.why_not_offered}"


def _container(explanation: Explanation, settings: Settings, access_of: AccessOf) -> Container | None:
    if explanation.offer is None or explanation.device is None:
        return None
    access = [access_of(node.path) for node in explanation.device.nodes_inside]
    return container_of(explanation.offer, explanation.device, settings, access)


def _answer(explanation: Explanation) -> str:
    name = explanation.subject.device_node or explanation.subject.sys_path
    sharers = " and ".join(resource.name for resource in explanation.shared_by)
    along = f"goes along with every device of {sharers}"
    if explanation.offer is None or explanation.device is None:
        return f"{name} {along if sharers else 'is not offered'}"
    part = "part of device" if len(explanation.device.nodes) > 1 else "device"
    answer = f"{name} goes to {explanation.offer.resource.name} as {part} {explanation.device.id}"
    return f"{answer}, and {along}" if sharers else answer


def _show_answer(explanation: Explanation, output: Output) -> None:
    device = explanation.device
    output.paragraph(Styled(_answer(explanation), Style.STRONG))
    if device is None:
        if not explanation.is_offered:
            output.paragraph(Styled(explanation.why_not_offered, Style.BAD))
        return
    style = Style.GOOD if device.healthy else Style.BAD
    output.paragraph(Styled(str(device.health), style), f": {device.reason}" if device.reason else "")
    waiting = explanation.offer.why_waiting(device) if explanation.offer is not None else ""
    if waiting:
        output.paragraph(Styled(f"New pods have to wait: {waiting}", Style.BAD))


def _facts(device: UdevDevice, access_of: AccessOf) -> Iterator[Row]:
    access = access_of(device.device_node or "")
    if device.device_node is not None:
        yield ("device node", f"{device.device_node} ({device.number})")
    if access is not None:
        yield ("access", str(access))
    if device.is_bare:
        yield ("udev", "does not know this path, which is all that identifies it")
    else:
        yield ("sys path", device.sys_path)
        yield ("subsystem", device.subsystem or "-")
    if functions := functions_of(device):
        yield (
            "IOMMU group",
            ", ".join(f"{each.sys_name} ({each.driver or 'no driver'})" for each in functions),
        )
    if model := identification(device):
        yield ("model", model)
    elif driver := driver_and_address(device):
        yield ("driver", driver)
    for devlink in sorted(device.devlinks):
        yield ("devlink", devlink)


def _consequences(explanation: Explanation) -> Iterator[Row]:
    """Which of its parents decide what it is."""
    if explanation.group is not None:
        yield ("grouped by", _name_of(explanation.group))
    for origin in explanation.origins:
        if not origin.is_own:
            yield ("property", f"{origin.name}={origin.value}, of {_name_of(origin.source)}")


def _name_of(device: UdevDevice) -> str:
    return f"{device.sys_name} ({device.subsystem})" if device.subsystem else device.sys_name


def _show_opinion(opinion: Opinion, output: Output) -> None:
    name, location = opinion.resource.name, opinion.resource.location
    if opinion.shares:
        text = f"{name} shares it"
    elif not opinion.takes or opinion.owner is None:
        text = f"{name} does not match"
    elif opinion.owner == opinion.resource:
        text = f"{name} matches"
    else:
        text = f"{name} matches, but {opinion.owner.name} comes first"
    output.paragraph(Styled(text, Style.STRONG))
    output.paragraph(Styled(f"  {location.file}:{location.line}", Style.FAINT))
    if not opinion.shares:
        _show_match(opinion.match, output, indent=2)
    for number, (table, judged) in enumerate(opinion.tables, start=1):
        output.paragraph(f"  [[resource.node]] {number}, {table.container_paths[0].text}:")
        _show_match(judged, output, indent=4)
    for table, judged in () if opinion.takes else opinion.shared:
        output.paragraph(f"  [[resource.node]] with shared = true, {table.container_paths[0].text}:")
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
    actual = "is missing" if verdict.actual is None else f"is '{verdict.actual}'"
    return (holds_, verdict.key, actual, f"wanted: {verdict.wanted}")


def as_json(explanation: Explanation, settings: Settings, access_of: AccessOf) -> dict[str, object]:
    """For programs. Keys are only ever added."""
    subject, offer, device = explanation.subject, explanation.offer, explanation.device
    access = access_of(subject.device_node or "")
    container = _container(explanation, settings, access_of)
    return {
        "sysPath": subject.sys_path,
        "node": subject.device_node,
        "number": None if subject.number is None else str(subject.number),
        "subsystem": subject.subsystem,
        "model": identification(subject) or None,
        "access": None if access is None else access.as_json(),
        "devlinks": sorted(subject.devlinks),
        "resource": None if offer is None else offer.resource.name,
        "id": None if device is None else device.id,
        "health": None if device is None else str(device.health),
        "sharedBy": [resource.name for resource in explanation.shared_by],
        "reason": explanation.why_not_offered if device is None else device.reason,
        "groupedBy": None if explanation.group is None else explanation.group.sys_path,
        "properties": [
            {"name": origin.name, "value": origin.value, "sysPath": origin.source.sys_path}
            for origin in explanation.origins
        ],
        "container": None if container is None else container_text.as_json(container),
        "opinions": [_opinion_json(opinion) for opinion in explanation.opinions],
    }


def _opinion_json(opinion: Opinion) -> dict[str, object]:
    return {
        "resource": opinion.resource.name,
        "file": opinion.resource.location.file,
        "line": opinion.resource.location.line,
        "takes": opinion.takes,
        "match": _judged_json(opinion.match),
        "nodeTables": [_judged_json(judged) for _, judged in opinion.tables],
        "shares": opinion.shares,
        "sharedTables": [_judged_json(judged) for _, judged in opinion.shared],
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
