"""The report of `genericdp status`: what is offered, who knows of it, who holds it, and what is wrong.

The rules of this file:

* The report is plain JSON values, told whole: what is shown to people is made from it elsewhere.
* Keys are only ever added; docs/status.md says what each of them means, and a test holds it to that.
* What is wrong is decided here, once: `complaints`. Nothing to complain of means that all is well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import History, Since
from genericdp.core.status.holder import Holder, Holdings
from genericdp.core.status.logged import Logged
from genericdp.errors import Problem

#: Of so many devices of one resource it is said one by one that they are not Healthy.
NAMED_LIMIT = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a resource stands at the kubelet.

    phase    in words; registered when the kubelet knows it and listens
    error    why the last try, or the last registration, came to nothing
    streams  how many lists the kubelet follows: one
    lists    how many it was sent
    """

    phase: str
    registered: bool
    error: str = ""
    streams: int = 0
    lists: int = 0


@dataclass(frozen=True, slots=True)
class InForce:
    """A rule file and the version of it that is in force: its digest, "" for none.

    outdated  the text on disk is another one, and has a mistake
    """

    path: str
    digest: str
    outdated: bool = False
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report is made of.

    now, unix_now  the clock of the history and the wall clock, at one moment
    standing_by    which other genericdp serves the node; "" when this one does
    holdings       None when nobody can say who holds what
    stuck          resources that do not even try to register
    """

    version: str
    pid: int
    settings: Settings
    now: float
    unix_now: float
    history: History
    inventory: Inventory
    standing_by: str = ""
    kubelet: bool = False
    standings: Mapping[str, Standing] = field(default_factory=dict)
    stuck: Sequence[str] = ()
    holdings: Holdings | None = None
    files: Sequence[InForce] = ()
    problems: Sequence[Problem] = ()
    said: Sequence[Logged] = ()

    def unix(self, at: float) -> float:
        """What the wall clock would have shown then."""
        return self.unix_now - (self.now - at)


def report(facts: Facts) -> dict[str, object]:
    """The report as JSON values."""
    history, wrong, held = facts.history, complaints(facts), held_devices(facts)
    return {
        "version": facts.version,
        "pid": facts.pid,
        "since": stamp(facts.unix(history.began)),
        "time": stamp(facts.unix_now),
        "state": "standing by" if facts.standing_by else "serving",
        "standingByFor": facts.standing_by,
        "well": not wrong,
        "complaints": list(wrong),
        "kubelet": {
            "there": facts.kubelet,
            "since": _since(facts, history.kubelet),
            "directory": facts.settings.kubelet_dir,
        },
        "udev": {
            "heard": not history.deaf.what,
            "since": _since(facts, history.deaf),
            "reason": history.deaf.what,
        },
        "podResources": {
            "answers": facts.holdings is not None,
            "socket": facts.settings.pod_resources_socket,
        },
        "rules": {
            "lastGood": None if history.read is None else stamp(facts.unix(history.read)),
            "files": [_file(facts, file) for file in facts.files],
            "problems": [_problem(problem) for problem in facts.problems],
        },
        "linkDirectory": facts.settings.link_dir,
        "resources": [
            _resource(facts, offer, held.get(name, {})) for name, offer in facts.inventory.offers.items()
        ],
        "notOffered": [
            {"node": refusal.node, "resource": refusal.resource, "reason": refusal.reason}
            for refusal in facts.inventory.refusals
        ],
        "said": [
            {
                "time": stamp(said.at),
                "level": said.level,
                "message": said.message,
                "fields": dict(said.fields),
                "count": said.count,
            }
            for said in facts.said
        ],
    }


def complaints(facts: Facts) -> tuple[str, ...]:
    """What is not as it should be, the widest first; () when all is well."""
    return tuple(_complaints(facts))


def _complaints(facts: Facts) -> Iterator[str]:
    for problem in facts.problems:
        yield f"{problem.location}: {problem.message}"
    if facts.standing_by:
        return
    if not facts.kubelet:
        yield f"there is no kubelet at '{facts.settings.kubelet_dir}'"
    if facts.history.deaf.what:
        yield f"udev cannot be heard: {facts.history.deaf.what}"
    for name, offer in facts.inventory.offers.items():
        standing = facts.standings.get(name)
        if name in facts.stuck:
            yield f"{name} is stuck: the kubelet does not listen, and nothing tries to change that"
        elif facts.kubelet and standing is not None and not standing.registered:
            yield f"{name} is not registered: {standing.error or standing.phase}"
        unhealthy = [device for device in offer.devices if not device.healthy]
        for device in unhealthy[:NAMED_LIMIT]:
            yield f"{name}: {device.id} is {device.health}: {device.reason}"
        if len(unhealthy) > NAMED_LIMIT:
            yield f"{name}: {len(unhealthy) - NAMED_LIMIT} more devices are not Healthy"


def stamp(unix: float) -> str:
    """A moment as RFC 3339 has it, in UTC, to the second."""
    return datetime.fromtimestamp(round(unix), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: Device -> (id as the kubelet knows it, who holds it); only what somebody holds.
Held = Mapping[str, Sequence[tuple[str, Holder]]]


def held_devices(facts: Facts) -> Mapping[str, Held]:
    """Resource -> who holds which of its devices; only resources of which somebody holds something."""
    mine: dict[str, dict[str, tuple[Holder, ...]]] = {}
    for (name, id_), holders in (facts.holdings or {}).items():
        mine.setdefault(name, {})[id_] = holders
    return {
        name: _by_device(facts.inventory.offers[name], held)
        for name, held in mine.items()
        if name in facts.inventory.offers
    }


def _by_device(offer: Offer, mine: Mapping[str, tuple[Holder, ...]]) -> Held:
    held: dict[str, list[tuple[str, Holder]]] = {}
    ids = offer.ids
    for id_ in sorted(mine.keys() & ids.keys()):
        held.setdefault(ids[id_].id, []).extend((id_, holder) for holder in mine[id_])
    return held


def _since(facts: Facts, since: Since | None) -> str | None:
    return None if since is None else stamp(facts.unix(since.at))


def _file(facts: Facts, file: InForce) -> dict[str, object]:
    return {
        "path": file.path,
        "digest": file.digest,
        "since": _since(facts, facts.history.files.get(file.path)),
        "outdated": file.outdated,
        "resources": list(file.resources),
    }


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.location.file,
        "line": problem.location.line,
        "column": problem.location.column,
        "severity": problem.severity,
        "message": problem.message,
        "hint": problem.hint,
    }


def _resource(facts: Facts, offer: Offer, held: Held) -> dict[str, object]:
    name = offer.resource.name
    standing = facts.standings.get(name, Standing("", registered=False))
    known = facts.history.devices.get(name, {})
    return {
        "name": name,
        "description": offer.resource.description,
        "replicas": offer.resource.replicas or 1,
        "registered": standing.registered,
        "since": _since(facts, facts.history.registered.get(name)),
        "phase": standing.phase,
        "error": standing.error,
        "stuck": name in facts.stuck,
        "streams": standing.streams,
        "lists": standing.lists,
        "devices": [
            _device(facts, device, known.get(device.id), held.get(device.id, ())) for device in offer.devices
        ],
    }


def _device(
    facts: Facts, device: Device, since: Since | None, held: Sequence[tuple[str, Holder]]
) -> dict[str, object]:
    link_dir = facts.settings.link_dir
    return {
        "id": device.id,
        "health": str(device.health),
        "reason": device.reason,
        "since": _since(facts, since),
        "numaNode": device.numa,
        "nodes": [
            {"path": node.path, "present": bool(node.sys_path), "link": f"{link_dir}/{node.link}"}
            for node in device.nodes
        ],
        "links": [f"{link_dir}/{link}" for link in device.links],
        "heldBy": [
            {"id": id_, "namespace": holder.namespace, "pod": holder.pod, "container": holder.container}
            for id_, holder in held
        ],
    }
