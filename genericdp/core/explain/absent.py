"""The answer of `explain` when it is not about a connected device.

Either a device is described that is not plugged in, or a resource is named.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.explain.near_misses import NearMiss, near_misses
from genericdp.core.explain.opinion import opinion
from genericdp.core.explain.query import Query
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.resource import Resource
from genericdp.core.words import counted

#: How many reasons why devices are Unhealthy are shown.
_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """A resource that would take the device, and the device nodes that it nearly takes."""

    resource: Resource
    near_misses: tuple[NearMiss, ...]


@dataclass(frozen=True, slots=True)
class LastSeen:
    """An absent device as it was last seen.

    resource  the name of its resource
    at_port   the device nodes that are now at its port
    """

    resource: str
    device: Device
    at_port: tuple[UdevDevice, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """What is known of a device that is not plugged in, or of a resource.

    answer      one sentence
    by_name     the name of a resource was given; `waiting` then contains only that resource
    similar     (device node, what it is instead)
    waiting     the resources that would take the device
    refused     the device nodes that the resource takes and does not offer
    last_seen   the absent devices that the daemon remembers
    is_offered  whether the resource has a Healthy device
    has_nodes   whether the resource takes a device node that is plugged in
    mistakes    what keeps rule files from being read, or ""
    """

    answer: str
    by_name: bool = False
    similar: tuple[tuple[UdevDevice, str], ...] = ()
    waiting: tuple[Waiting, ...] = ()
    refused: tuple[Refusal, ...] = ()
    last_seen: tuple[LastSeen, ...] = ()
    is_offered: bool = False
    has_nodes: bool = False
    mistakes: str = ""


def of_query(query: Query, survey: Survey) -> Absent:
    """What is known of a device that is described and not plugged in."""
    known = query.remembered(survey.memory, survey.settings.domain)
    names = {each.resource for each in known}
    wanting = [each for each in survey.resources if query.is_wanted_by(each)]
    others = [each for each in survey.resources if each.name in names and each not in wanting]
    return Absent(
        f"no {query} is plugged in",
        similar=tuple(query.similar(survey.nodes)),
        waiting=_waiting((*wanting, *others), survey),
        last_seen=tuple(_last_seen(each.resource, each.device, survey) for each in known),
        mistakes=survey.mistakes,
    )


def of_device(device: Device, survey: Survey) -> Absent:
    """What is known of a device that the daemon remembers."""
    name = survey.memory.devices[device.id].resource
    return Absent(
        f"{device.id} is Unhealthy: {device.reason or 'it is unplugged'}",
        waiting=_waiting((each for each in survey.resources if each.name == name), survey),
        last_seen=(_last_seen(name, device, survey),),
    )


def of_resource(word: str, survey: Survey) -> Absent | None:
    """What a resource has and what it nearly has; None when no resource has this name."""
    for offer in survey.inventory.offers.values():
        resource = offer.resource
        if word in (resource.name, resource.short_name):
            healthy = [device.id for device in offer.devices if device.healthy]
            absent = [each for each in offer.devices if not each.healthy and not _is_there(each, survey)]
            refused = tuple(each for each in survey.inventory.refusals if each.resource == resource.name)
            return Absent(
                f"{resource.name} offers {', '.join(healthy) or 'no device'}{_why_not_all(offer, survey)}",
                by_name=True,
                waiting=_waiting((resource,), survey),
                refused=refused,
                last_seen=tuple(_last_seen(resource.name, device, survey) for device in absent),
                is_offered=bool(healthy),
                has_nodes=bool(refused) or len(absent) < len(offer.devices),
            )
    return None


def _why_not_all(offer: Offer, survey: Survey) -> str:
    """Why devices that are plugged in are Unhealthy; "" if none is."""
    reasons = [each.reason for each in offer.devices if not each.healthy and _is_there(each, survey)]
    if not reasons:
        return ""
    shown = "; ".join(list(dict.fromkeys(reasons))[:_MOST_REASONS])
    return f"; {counted(len(reasons), 'device')} {'is' if len(reasons) == 1 else 'are'} Unhealthy: {shown}"


def _is_there(device: Device, survey: Survey) -> bool:
    return any(node.sys_path in survey.devices for node in device.nodes)


def _waiting(resources: Iterable[Resource], survey: Survey) -> tuple[Waiting, ...]:
    nodes = survey.nodes
    return tuple(
        Waiting(each, near_misses(opinion(each, node, survey.claims) for node in nodes)) for each in resources
    )


def _last_seen(resource: str, device: Device, survey: Survey) -> LastSeen:
    at_port = (node for node in survey.nodes if survey.claims.place(node).port.exact == device.port)
    return LastSeen(resource, device, tuple(at_port) if device.port else ())
