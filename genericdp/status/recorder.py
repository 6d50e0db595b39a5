"""Records what the daemon sees and does: as log lines, counts, events.

The rules of this file:

* Recording is cheap: a log line, a count, a time. What costs more is done only while somebody follows
  the events.
* A cause is a value. The log and the events put it into sentences (`core.status.wording`); the counts use the
  value itself.
"""

from collections.abc import Callable, Mapping, Sequence

from genericdp import log
from genericdp.core.hint import Deafness, Hint, NodeChange, Resync, Uevent
from genericdp.core.hostile import for_quote
from genericdp.core.inventory.inventory import Changes, Inventory
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import not_taken
from genericdp.core.memory.memory import Memory
from genericdp.core.status import events
from genericdp.core.status.history import History, Retried
from genericdp.core.status.news import news
from genericdp.core.status.wording import that_works, what_to_do, why_rescan, why_silent, why_stop
from genericdp.cri.comeback import Stop
from genericdp.errors import GenericdpError, Problem
from genericdp.inputs import Rules
from genericdp.kubelet.plugin import Allocated, Listed
from genericdp.kubelet.registration import Phase, Progress
from genericdp.status.broadcast import Broadcast
from genericdp.udev import SeenUevents

#: How many uevents wait for the end of a step, for those who follow events.
UEVENT_LIMIT = 10_000

#: How many ids of an allocation a log line names.
NAMED_LIMIT = 10

#: How many problems of the rule files are logged at a time.
PROBLEM_LIMIT = 20

_log, _news = log.get(__name__), log.get(log.NEWS)


class Recorder:
    """Called by the daemon whenever something happens.

    now      the clock of the history, in seconds
    history  the counts and times so far
    events   the events, for those who follow them
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.history = History(now())
        self.events = Broadcast()
        self._now = now
        self._seen = SeenUevents()
        self._uevents: list[Uevent] = []
        self._problems: frozenset[Problem] = frozenset()
        self._ignored: Mapping[str, int] = {}

    def see_problems(self, problems: Sequence[Problem]) -> None:
        """The rule files have these problems. Those that they had before are not logged again."""
        new = [problem for problem in problems if problem not in self._problems]
        self._problems = frozenset(problems)
        for problem in new[:PROBLEM_LIMIT]:
            _log.error(problem.summary, hint=problem.hint)
        if len(new) > PROBLEM_LIMIT:
            more = len(new) - PROBLEM_LIMIT
            _log.error("the rule files have more mistakes", more=more, hint="genericdp check")

    def see_rules(self, rules: Rules) -> None:
        """The rule files were read."""
        self.see_problems(rules.problems)
        digests = {file.path: file.digest for file in rules.files}
        mistakes = any(problem.severity == "error" for problem in rules.problems)
        self.history.read_rules(digests, mistakes, self._now())
        self.events.tell(events.of_rules(len(digests), len(rules.problems)))

    def see_hint(self, hint: Hint) -> None:
        """There is a hint. That attributes are read again is not worth telling; what it finds is."""
        match hint:
            case Uevent():
                if self._seen.is_new(hint):
                    self.history.heard_uevent(hint.action, hint.subsystem)
                    if self.events and len(self._uevents) < UEVENT_LIMIT:
                        self._uevents.append(hint)
            case NodeChange():
                pass  # what comes of it is recorded
            case Resync():
                _log.debug("reading every device again", why=why_rescan(hint))
                self.history.rescanned(hint.cause)
                self.events.tell(events.of_resync(hint))
            case Deafness(silence=silence):
                why = "" if silence is None else why_silent(silence)
                if silence is None:
                    _log.info("udev events arrive again")
                else:
                    _log.warning(
                        "no udev events; using kernel events and periodic rescans",
                        why=why,
                        hint=what_to_do(silence),
                    )
                self.history.heard_udev(why, self._now())
                self.events.tell(events.of_deafness(hint))

    def see_tried(self, what: Retried, error: GenericdpError | None) -> bool:
        """Something that is tried until it works failed with an error, or worked. True if that is new."""
        if error is None:
            works_again = self.history.works(what)
            if works_again:
                _log.info(that_works(what))
            return works_again
        fails_now = self.history.failed(what, str(error), error.hint, self._now())
        if fails_now:
            _log.warning(str(error), hint=error.hint or "genericdp tries again by itself")
        return fails_now

    def see_begun(self, before: Memory, after: Memory) -> None:
        """The daemon has begun with the first of these memories, and this is what devices and pods add."""
        if before.is_untold and after.held:
            _log.warning(
                "nothing is remembered, but pods hold devices",
                ids=_named(sorted(after.held)),
                hint="units with the same serial number, and units that cannot be told apart, may not be "
                "offered until these pods are deleted; see 'genericdp status'",
            )

    def see_answer(self, answer: Answer | None, inventory: Inventory, memory: Memory) -> None:
        """What PodResources answered was taken into account. What had no room is logged when it changes."""
        if answer is None:
            return
        ignored = not_taken(memory.held, answer, inventory.offers)
        for resource, number in ignored.items():
            if number != self._ignored.get(resource):
                _log.warning(
                    "the kubelet says that pods hold more unknown ids than a resource can list",
                    resource=resource,
                    ignored=number,
                    hint="another plugin may have used this name",
                )
        self._ignored = ignored

    def see_step(self, before: Inventory, after: Inventory, changes: Changes) -> None:
        """All pending hints were followed, and this is the inventory now."""
        found = tuple(news(before, after))
        for each in found:
            (_news.warning if each.warning else _news.info)(each.message, **each.fields)
        self.history.stepped(after, changes, self._now())
        self._tell_uevents(before, after)
        if self.events:
            for event in events.of_changes(found):
                self.events.tell(event)

    def see_no_step(self, inventory: Inventory) -> None:
        """All pending hints were followed, and the inventory did not change."""
        self._tell_uevents(inventory, inventory)

    def see_kubelet(self, socket: str, *, there: bool) -> None:
        """A new kubelet listens on its socket, or the last one has stopped."""
        if there:
            _log.info("kubelet is up", socket=socket)
        else:
            _log.info("kubelet is gone, waiting for it", socket=socket)
        self.history.saw_kubelet(there, self._now())
        self.events.tell(events.of_kubelet(there=there))

    def see_progress(self, progress: Progress) -> None:
        """The registration of a resource got further, or failed."""
        resource, phase, error = progress.resource, progress.phase, progress.error
        registered = phase is Phase.REGISTERED
        if registered:
            _log.info("resource registered", resource=resource)
        elif phase is Phase.WAITING and error:
            _log.warning("resource not registered", resource=resource, why=error)
        self.history.registered_as(resource, registered, error, self._now())
        self.events.tell(events.of_registration(resource, str(phase), registered=registered, error=error))

    def see_list(self, listed: Listed) -> None:
        """A list was sent to the kubelet."""
        self.history.sent_list(listed.offer.resource.name)
        if self.events:
            self.events.tell(events.of_list(listed.before, listed.offer))

    def see_allocated(self, allocated: Allocated) -> None:
        """The kubelet got devices for a container, or a refusal."""
        resource, ids, error = allocated.resource, allocated.ids, allocated.error
        if error:
            _log.warning("allocation refused", resource=resource, ids=_named(ids), why=error)
        else:
            _log.info("allocated", resource=resource, ids=_named(ids))
        self.history.allocated(resource, allocated.refused, allocated.took_s)
        self.events.tell(events.of_allocation(resource, ids, error))

    def see_stop(self, stop: Stop) -> None:
        """The container runtime is asked to stop a container, or could not stop it."""
        fields = {
            "resource": stop.resource,
            "id": stop.device,
            "pod": f"{stop.holder.namespace}/{stop.holder.pod}",
            "container": stop.holder.container,
        }
        if stop.error:
            _log.warning("container not stopped", **fields, why=stop.error)
            self.history.stopping_failed(stop.resource)
        else:
            _log.info("stopping a container", **fields, why=why_stop(stop.cause))
            self.history.stopped(stop.resource, stop.cause)
        self.events.tell(events.of_stop(stop.resource, stop.device, stop.holder, stop.cause, stop.error))

    def _tell_uevents(self, before: Inventory, after: Inventory) -> None:
        uevents, self._uevents = self._uevents, []
        for event in events.of_uevents(uevents, before, after):
            self.events.tell(event)


def _named(ids: Sequence[str]) -> str:
    """The first few ids, and how many more there are."""
    named = [for_quote(id_) for id_ in ids[:NAMED_LIMIT]]
    return ",".join([*named, f"{len(ids) - NAMED_LIMIT} more"] if len(ids) > NAMED_LIMIT else named)
