"""The report of `genericdp status` as JSON values.

The rules of this file:

* The report is complete: what people see is made from it elsewhere.
* Keys are only ever added; docs/status.md says what each of them means, and a test checks it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from genericdp.core.cdi import by_cdi
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.status import holdings
from genericdp.core.status.complaints import complaints
from genericdp.core.status.facts import Facts, InEffect, Standing
from genericdp.core.status.history import Since
from genericdp.core.status.holdings import Held, Holder
from genericdp.errors import Problem

#: How much of what other clients say about themselves is shown, in characters, and of how many of them.
CLIENT_LIMIT = 100
CLIENTS_LIMIT = 10


def report(facts: Facts) -> dict[str, object]:
    """The report as JSON values."""
    history, wrong = facts.history, complaints(facts)
    held = holdings.by_device(facts.holdings, facts.inventory)
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
            "servedByAnother": facts.rival,
            "since": _since(facts, history.kubelet),
            "directory": facts.settings.kubelet_dir,
        },
        "udev": {
            "heard": not history.silence.what,
            "since": _since(facts, history.silence),
            "reason": history.silence.what,
        },
        "podResources": {
            "answers": facts.holdings is not None,
            "complete": facts.holdings is not None and holdings.are_complete(facts.kubelet_up_s),
            "socket": facts.settings.pod_resources_socket,
        },
        "failing": [
            {
                "what": str(what),
                "since": stamp(facts.unix(failure.at)),
                "reason": failure.why,
                "hint": failure.hint,
            }
            for what, failure in history.failing.items()
        ],
        "returning": [
            {"resource": each.resource, "id": each.id, "leftSeconds": round(each.left_s)}
            for each in facts.returning
        ],
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
        "orphans": [
            {"resource": orphan.resource, "id": orphan.id, "heldBy": _held_by(held_by)}
            for orphan, held_by in holdings.of_orphans(facts.holdings, facts.inventory).items()
        ],
        "said": [
            {
                "time": stamp(facts.unix(each.at)),
                "level": each.level,
                "message": each.message,
                "fields": dict(each.fields),
                "count": each.count,
            }
            for each in facts.logged
        ],
    }


def stamp(unix: float) -> str:
    """A moment in RFC 3339, in UTC, to the second."""
    return datetime.fromtimestamp(round(unix), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _since(facts: Facts, since: Since | None) -> str | None:
    return None if since is None else stamp(facts.unix(since.at))


def _file(facts: Facts, file: InEffect) -> dict[str, object]:
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
        **_answer(facts, offer.resource),
        "registered": standing.registered,
        "since": _since(facts, facts.history.registered.get(name)),
        "phase": standing.phase,
        "error": standing.error,
        "stuck": name in facts.stuck,
        "streams": standing.streams,
        "otherClients": [
            {"userAgent": for_terminal(client[:CLIENT_LIMIT]), "streams": count}
            for client, count in sorted(standing.others.items())[:CLIENTS_LIMIT]
        ],
        "lists": standing.lists,
        "devices": [
            _device(facts, offer, device, known.get(device.id), held.get(device.id, ()))
            for device in offer.devices
        ],
    }


def _answer(facts: Facts, resource: Resource) -> dict[str, str]:
    """How Allocate answers, and why "auto" means device nodes."""
    wanted = resource.answer or facts.settings.answer
    why_not = facts.why_not_cdi if wanted is AnswerBy.AUTO else ""
    is_cdi = by_cdi(resource, wanted, runtime_reads_cdi=not why_not)
    return {"answer": str(AnswerBy.CDI if is_cdi else AnswerBy.DEVICES), "whyNotCdi": why_not}


def _device(
    facts: Facts, offer: Offer, device: Device, since: Since | None, held: Sequence[tuple[str, Holder]]
) -> dict[str, object]:
    link_dir = facts.settings.link_dir
    return {
        "id": device.id,
        "health": str(device.health),
        "reason": device.reason,
        "waiting": offer.why_waiting(device),
        "since": _since(facts, since),
        "numaNode": device.numa,
        "nodes": [
            {"path": node.path, "present": bool(node.sys_path), "link": f"{link_dir}/{node.link}"}
            for node in device.nodes
        ],
        "links": [f"{link_dir}/{link}" for link in device.links],
        "heldBy": _held_by(held),
    }


def _held_by(held: Sequence[tuple[str, Holder]]) -> list[dict[str, str]]:
    return [
        {"id": id_, "namespace": holder.namespace, "pod": holder.pod, "container": holder.container}
        for id_, holder in held
    ]
