"""What is wrong, in sentences for the report or a probe.

The rules of this file:

* This is decided here and nowhere else. No complaint means that all is well.
"""

from collections.abc import Iterable, Iterator

from genericdp.core.inventory.inventory import NO_RULE
from genericdp.core.status import holdings
from genericdp.core.status.facts import Facts
from genericdp.core.status.holdings import Holder, Stranded
from genericdp.core.words import counted

#: For how many devices of one resource each complaint names the device.
NAMED_LIMIT = 5


def complaints(facts: Facts) -> tuple[str, ...]:
    """What is not as it should be, the widest first; () when all is well."""
    return tuple(_complaints(facts))


def _complaints(facts: Facts) -> Iterator[str]:
    for problem in facts.problems:
        yield problem.summary
    if facts.standing_by:
        return
    for failure in facts.history.failing.values():
        yield failure.why
    if not facts.kubelet:
        yield _no_kubelet(facts)
    if facts.history.silence.what:
        yield f"no udev events: {facts.history.silence.what}"
    stranded = holdings.stranded(facts.holdings, facts.held, facts.answered, facts.inventory)
    for name, offer in facts.inventory.offers.items():
        standing = facts.standings.get(name)
        if name in facts.stuck:
            yield f"{name} is stuck: the kubelet does not listen, and nothing tries to register it"
        elif facts.kubelet and standing is not None and not standing.registered:
            yield _not_registered(facts, name)
        unhealthy = [device for device in offer.devices if not device.healthy]
        for device in unhealthy[:NAMED_LIMIT]:
            yield f"{name}: {device.id} is {device.health}: {device.reason}"
        if len(unhealthy) > NAMED_LIMIT:
            yield f"{name}: {len(unhealthy) - NAMED_LIMIT} more devices are not Healthy"
        refused = facts.inventory.refused_until_pods_go(name)
        for id_, reason in [*refused.items()][:NAMED_LIMIT]:
            yield f"{name}: {id_} is not offered: {reason}"
        if len(refused) > NAMED_LIMIT:
            yield f"{name}: {len(refused) - NAMED_LIMIT} more devices are not offered"
        mine = stranded.get(name, ())
        for each in mine[:NAMED_LIMIT]:
            yield f"{name}: {_why_stranded(facts, each)}"
        if len(mine) > NAMED_LIMIT:
            yield f"{name}: containers with {len(mine) - NAMED_LIMIT} more devices cannot start again either"
    orphans = [*_orphans(facts)]
    yield from orphans[:NAMED_LIMIT]
    if len(orphans) > NAMED_LIMIT:
        more = counted(len(orphans) - NAMED_LIMIT, "more device")
        yield f"containers with {more} cannot start again either: {NO_RULE}"


def _orphans(facts: Facts) -> Iterator[str]:
    for orphan, held in holdings.of_orphans(facts.holdings, facts.inventory).items():
        if held or facts.holdings is None:
            who = _named(holder for _, holder in held) or "a container"
            yield (
                f"{orphan.resource}: {who} cannot start again with {orphan.id}: "
                f"{NO_RULE}; put the rule back, or delete the pod"
            )


def _named(holders: Iterable[Holder]) -> str:
    return ", ".join(f"{each.namespace}/{each.pod}/{each.container}" for each in holders)


def _why_stranded(facts: Facts, stranded: Stranded) -> str:
    first, *others = (f"'{facts.settings.link_dir}/{link}'" for link in stranded.links)
    what = f"{first} and {counted(len(others), 'other link')} lead" if others else f"{first} leads"
    return (
        f"{_named(stranded.holders)} cannot start again: {what} nowhere, although {stranded.id} is Healthy; "
        "plug in again what was there, or create the pod again"
    )


def why_not_healthy(facts: Facts) -> str:
    """What only a restart of the daemon would mend, for a liveness probe; "" if nothing."""
    return "".join(f"{name} is stuck: nothing tries to register it\n" for name in facts.stuck)


def why_not_ready(facts: Facts) -> str:
    """Why pods cannot get everything that is offered, for a readiness probe; "" if they can.

    A daemon that stands by is ready: a rollout waits for it before it ends the one that serves.
    """
    if facts.standing_by or facts.rival:
        return ""
    if not facts.kubelet:
        return f"{_no_kubelet(facts)}\n"
    names = (name for name in facts.inventory.offers if not _is_registered(facts, name))
    return "".join(f"{_not_registered(facts, name)}\n" for name in names)


def _is_registered(facts: Facts, name: str) -> bool:
    standing = facts.standings.get(name)
    return standing is not None and standing.registered


def _no_kubelet(facts: Facts) -> str:
    if facts.rival:
        return (
            f"another genericdp serves the kubelet in '{facts.settings.kubelet_dir}'; waiting until it ends; "
            "remove one of the two, or give both the same 'link_dir'"
        )
    return f"no kubelet listens in '{facts.settings.kubelet_dir}'"


def _not_registered(facts: Facts, name: str) -> str:
    standing = facts.standings.get(name)
    why = "" if standing is None else standing.error or standing.phase
    return f"{name} is not registered{': ' if why else ''}{why}"
