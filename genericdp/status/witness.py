"""Sees what the daemon does, and tells whoever asks: `status`, `monitor`, metrics.

The rules of this file:

* It is told in passing: a count, a time. Everything that costs more is done when somebody asks, and
  loaded then.
* Being unable to listen is said and tried again at the next reload; it never stops the plugin.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from genericdp import VERSION, log
from genericdp.core.inventory.changes import Changes
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.settings import Settings
from genericdp.core.status import events
from genericdp.core.status.history import History
from genericdp.core.status.holder import Holdings
from genericdp.errors import GenericdpError, Problem
from genericdp.files.rulefiles import RuleFile
from genericdp.kubelet import podresources
from genericdp.kubelet.plugin import Allocated, Listed
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import Phase, Progress
from genericdp.status.control import Control, Events
from genericdp.status.listener import Listener
from genericdp.udev import Deafness, Hint, Resync, Uevent
from genericdp.udev.once import Once

if TYPE_CHECKING:
    from genericdp.core.status.metrics import Process
    from genericdp.core.status.report import Facts

#: How long metrics may go by what the kubelet said about who holds what, in seconds: it answers everybody
#: on the node a hundred times a second at the most.
HOLDINGS_LAST_S = 10.0

#: How many uevents wait for the end of a step, for those who listen.
HEARD_LIMIT = 10_000

_log = log.get(__name__)


class Rules(Protocol):
    """The rule files as far as a report tells of them."""

    @property
    def problems(self) -> Sequence[Problem]: ...

    @property
    def files(self) -> Sequence[RuleFile]: ...


class Subject(Protocol):
    """What is looked at when somebody asks: the daemon.

    standing_by  which other genericdp serves the node; "" when this one does
    """

    settings: Settings
    inventory: Inventory
    plugins: Plugins
    standing_by: str

    @property
    def rules(self) -> Rules: ...

    def stuck(self) -> tuple[str, ...]: ...


class Witness:
    """Told by the daemon what happens; answers while `asked` runs."""

    def __init__(self, subject: Subject, *, now: Callable[[], float]) -> None:
        self.history = History(now())
        self._subject = subject
        self._now = now
        self._recent = log.Recent()
        self._events = Events()
        control = Control(
            subject.settings.run_dir, status=self._status, begin=self._begin, events=self._events
        )
        self._listeners = [control.listener]
        if subject.settings.metrics:
            self._listeners.append(self._exporter(subject.settings.metrics))
        self._asking: asyncio.Task[Holdings | None] | None = None
        self._answer: tuple[float, Holdings | None] = (float("-inf"), None)
        self._once = Once()
        self._heard: list[Uevent] = []

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[None]:
        """Remember what goes wrong, and hang up on everybody at the end."""
        with self._recent.listening():
            try:
                yield
            finally:
                for listener in self._listeners:
                    await listener.close()
                if self._asking is not None:
                    self._asking.cancel()
                    await asyncio.wait((self._asking,))

    async def listen(self, *, say: bool = True) -> None:
        """Listen wherever it does not yet; `say` what stands in the way."""
        for listener in self._listeners:
            try:
                await listener.open()
            except GenericdpError as error:
                if say:
                    hint = error.hint or "it is tried again when the rules are read again"
                    _log.warning(str(error), hint=hint)

    # What is told

    def hear(self, hint: Hint) -> None:
        """Something was heard of a device, or of how well devices are heard of."""
        match hint:
            case Uevent():
                if self._once.first(hint):
                    self.history.heard_uevent(hint.action, hint.subsystem)
                    if self._events and len(self._heard) < HEARD_LIMIT:
                        self._heard.append(hint)
            case Resync(reason=reason):
                self.history.looked_at_everything(*_kind(reason))
                self._tell({"event": "resync", "reason": reason})
            case Deafness(reason=reason):
                self.history.heard(reason, self._now())
                self._tell({"event": "udev", "heard": not reason, "reason": reason})

    def see_step(self, before: Inventory, after: Inventory, changes: Changes) -> None:
        """There is another inventory, after what was heard since the last time."""
        self.history.stepped(after, changes, self._now())
        if self._events:
            self._tell_uevents(before, after)
            for event in events.of_step(before, after):
                self._tell(event)

    def see_nothing_more(self) -> None:
        """What was heard was followed; there is no other inventory than the one that was seen."""
        if self._heard:
            self._tell_uevents(self._subject.inventory, self._subject.inventory)

    def see_kubelet(self, there: bool) -> None:
        self.history.saw_kubelet(there, self._now())
        self._tell({"event": "kubelet", "there": there})

    def see_progress(self, progress: Progress) -> None:
        registered = progress.phase is Phase.REGISTERED
        self.history.registered_as(progress.resource, registered, progress.error, self._now())
        phase = str(progress.phase)
        self._tell(
            {
                "event": "registration",
                "resource": progress.resource,
                "registered": registered,
                "phase": phase,
                "error": progress.error,
            }
        )

    def see_list(self, listed: Listed) -> None:
        """The kubelet was sent a list."""
        self.history.sent_list(listed.offer.resource.name)
        if self._events:
            self._tell(events.of_list(listed.before, listed.offer))

    def see_allocated(self, allocated: Allocated) -> None:
        reason = "unknown device" if allocated.error else ""
        self.history.allocated(allocated.resource, reason, allocated.took_s)
        self._tell(
            {
                "event": "allocation",
                "resource": allocated.resource,
                "ids": list(allocated.ids),
                "error": allocated.error,
            }
        )

    def see_rules(self) -> None:
        """The rule files were read."""
        rules = self._subject.rules
        digests = {file.path: file.digest for file in rules.files}
        mistakes = any(problem.severity == "error" for problem in rules.problems)
        self.history.read_rules(digests, mistakes, self._now())
        self._tell({"event": "rules", "files": len(digests), "problems": len(rules.problems)})

    def _tell_uevents(self, before: Inventory, after: Inventory) -> None:
        heard, self._heard = self._heard, []
        for each in heard:
            self._tell(events.of_uevent(each, before, after))

    def _tell(self, event: Mapping[str, object]) -> None:
        if self._events:
            self._events.tell({"time": log.rfc3339(time.time()), **event})

    # What is asked

    async def _status(self) -> Mapping[str, object]:
        from genericdp.core.status.report import report  # noqa: PLC0415  (see the rules of this file)

        return report(self.facts(await self._holdings(0.0)))

    def _exporter(self, address: str) -> Listener:
        from genericdp.status.exporter import Exporter, Page  # noqa: PLC0415  (see the rules of this file)

        async def metrics() -> Page:
            from genericdp.core.status.exposition import CONTENT_TYPE, Samples  # noqa: PLC0415  (as above)
            from genericdp.core.status.metrics import FAMILIES, fill  # noqa: PLC0415  (as above)

            holdings = await self._holdings(HOLDINGS_LAST_S)
            samples = Samples(FAMILIES)
            for _ in fill(samples, self.facts(holdings), this_process()):
                await asyncio.sleep(0)  # whatever else there is to do has its turn
            return Page(samples.render(), kind=CONTENT_TYPE)

        async def health() -> Page:
            from genericdp.core.status.metrics import why_not_healthy  # noqa: PLC0415  (as above)

            return _verdict(why_not_healthy(self.facts(None)))

        async def readiness() -> Page:
            from genericdp.core.status.metrics import why_not_ready  # noqa: PLC0415  (as above)

            return _verdict(why_not_ready(self.facts(None)))

        def _verdict(why_not: str) -> Page:
            return Page(why_not, 503) if why_not else Page("ok\n")

        return Exporter(address, {"/metrics": metrics, "/healthz": health, "/readyz": readiness}).listener

    def _begin(self) -> Mapping[str, object]:
        state = "standing by" if self._subject.standing_by else "serving"
        now = log.rfc3339(time.time())
        return {"time": now, "event": "begin", "version": VERSION, "state": state, "from": "daemon"}

    async def _holdings(self, max_age_s: float) -> Holdings | None:
        """Who holds what, as the kubelet said not longer ago. However many ask, it is asked once."""
        if self._subject.standing_by:
            return None
        asked_at, answer = self._answer
        if self._now() - asked_at <= max_age_s:
            return answer
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask_holders())
        return await asyncio.shield(self._asking)

    async def _ask_holders(self) -> Holdings | None:
        answer = await podresources.ask(self._subject.settings.pod_resources_socket)
        self._answer = (self._now(), answer)
        return answer

    def facts(self, holdings: Holdings | None) -> "Facts":
        """Everything that is told, as it is now; `holdings` is None when nobody can say."""
        from genericdp.core.status.report import Facts, InForce, Standing  # noqa: PLC0415  (as above)

        subject = self._subject
        standings = {
            name: Standing(
                phase=str(each.progress.phase),
                registered=each.progress.phase is Phase.REGISTERED,
                error=each.progress.error,
                streams=each.plugin.streams,
                lists=each.plugin.messages,
            )
            for name, each in subject.plugins.registrations.items()
        }
        files = [
            InForce(file.path, file.digest, file.outdated, tuple(each.name for each in file.resources))
            for file in subject.rules.files
        ]
        return Facts(
            version=VERSION,
            pid=os.getpid(),
            settings=subject.settings,
            now=self._now(),
            unix_now=time.time(),
            history=self.history,
            inventory=subject.inventory,
            standing_by=subject.standing_by,
            kubelet=subject.plugins.kubelet.incarnation is not None,
            standings=standings,
            stuck=subject.stuck(),
            holdings=holdings,
            files=files,
            problems=tuple(subject.rules.problems),
            said=self._recent.events[::-1],
        )


def this_process() -> "Process":
    """What the system knows about this process; /proc may be hidden from it."""
    from genericdp.core.status.metrics import Process  # noqa: PLC0415  (see the rules of this file)

    python = ".".join(str(part) for part in sys.version_info[:3])
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        return Process(python, time.process_time(), None, None)
    return Process(python, time.process_time(), resident, files)


def _kind(reason: str) -> tuple[str, bool]:
    """The reason of a resync as one of few words, and whether events were lost."""
    if reason.endswith("overflowed"):
        return "overflow", True
    kinds = {"rescan": "deaf", "a USB device was reset": "usb reset"}
    word = "heard again" if reason.startswith("heard again") else "trouble"
    return kinds.get(reason, word), False
