"""Makes the answers: the report, the metrics, the probes.

The rules of this file:

* An answer is made when somebody asks for it. This module is loaded then, too (`answers`).
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

from genericdp import VERSION, log
from genericdp.core.status.complaints import why_not_healthy, why_not_ready
from genericdp.core.status.exposition import CONTENT_TYPE, Samples
from genericdp.core.status.facts import Facts, InEffect, Standing
from genericdp.core.status.holdings import Holdings
from genericdp.core.status.metrics import FAMILIES, Process, fill
from genericdp.core.status.report import report
from genericdp.kubelet.registration import Phase
from genericdp.status.exporter import Exporter, Page
from genericdp.status.listener import Listener
from genericdp.status.subject import Subject


class Pages:
    """Looks at the daemon and makes what is answered.

    recent  the last warnings and errors
    now     the clock of the recorder's history, in seconds
    """

    def __init__(self, subject: Subject, recent: log.Recent, now: Callable[[], float]) -> None:
        self._subject = subject
        self._recent = recent
        self._now = now

    def status(self, holdings: Holdings | None) -> Mapping[str, object]:
        """The report of `genericdp status`."""
        return report(self.facts(holdings))

    def why_not_healthy(self) -> str:
        """What only a restart would mend; "" if nothing. Does not ask the kubelet."""
        return why_not_healthy(self.facts(None))

    def why_not_ready(self) -> str:
        """Why pods cannot get everything; "" if they can. Does not ask the kubelet."""
        return why_not_ready(self.facts(None))

    def exporter(self, address: str, metrics: Callable[[], Awaitable[Page]]) -> Listener:
        """Serves metrics and probes on an address."""

        async def health() -> Page:
            return _verdict(self.why_not_healthy())

        async def readiness() -> Page:
            return _verdict(self.why_not_ready())

        return Exporter(address, {"/metrics": metrics, "/healthz": health, "/readyz": readiness}).listener

    async def metrics(self, holdings: Holdings | None) -> Page:
        """The page of the metrics."""
        samples = Samples(FAMILIES)
        for _ in fill(samples, self.facts(holdings), this_process()):
            await asyncio.sleep(0)  # everything else gets its turn
        return Page(samples.render().encode(), kind=CONTENT_TYPE)

    def facts(self, holdings: Holdings | None) -> Facts:
        """The state of the daemon now."""
        subject = self._subject
        standings = {
            name: Standing(
                phase=str(each.progress.phase),
                registered=each.progress.phase is Phase.REGISTERED,
                error=each.progress.error,
                streams=len(each.plugin.streams) - sum(each.plugin.streams.others().values()),
                others=each.plugin.streams.others(),
                lists=each.plugin.messages,
            )
            for name, each in subject.plugins.registrations.items()
        }
        files = [
            InEffect(file.path, file.digest, file.outdated, tuple(each.name for each in file.resources))
            for file in subject.rules.files
        ]
        return Facts(
            version=VERSION,
            pid=os.getpid(),
            settings=subject.settings,
            now=self._now(),
            unix_now=time.time(),
            history=subject.recorder.history,
            inventory=subject.inventory,
            standing_by=subject.standing_by,
            kubelet=subject.plugins.kubelet.incarnation is not None,
            rival=subject.plugins.kubelet.rival,
            standings=standings,
            returning=subject.ready.returning,
            why_not_cdi=subject.cdi.why_not,
            stuck=subject.watchdog.stuck(),
            held=subject.memory.held,
            answered=subject.memory.answered,
            holdings=holdings,
            files=files,
            problems=tuple(subject.rules.problems),
            logged=self._recent.events[::-1],
        )


def _verdict(why_not: str) -> Page:
    return Page(why_not.encode(), 503) if why_not else Page(b"ok\n")


def this_process() -> Process:
    """The daemon's process according to the system, which may hide /proc."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    node = os.environ.get("NODE_NAME", "")
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        return Process(python, time.process_time(), None, None, node)
    return Process(python, time.process_time(), resident, files, node)
