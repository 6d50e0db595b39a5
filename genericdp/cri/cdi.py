"""Whether the kubelet's container runtime reads CDI, for resources with `answer = "auto"`.

The rules of this file:

* Nothing is asked while no resource wants it. What only this needs is loaded when it is first needed.
* It is asked at the start, and again when a kubelet has started: somebody may have upgraded the runtime. It
  is asked once more when the kubelet knows its pods, which tell whether it is the kubelet's.
* A runtime that cannot be asked counts as one that does not read CDI, until it answers. So does one that has
  none of the pods that the kubelet lists: the kubelet's may start containers without their devices.
* Before the first pod, nobody knows which of several runtimes is the kubelet's. So all of them must read CDI.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from genericdp import log
from genericdp.core.cdi import depends_on_runtime, why_not_cdi
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.status import holdings
from genericdp.cri.connection import chosen
from genericdp.cri.sockets import ELSEWHERE, NOT_THAT_ONE
from genericdp.errors import GenericdpError

if TYPE_CHECKING:
    from genericdp.cri.choice import Choice

#: How long the start of the daemon may wait for the first answer, in seconds.
PATIENCE_S = 1.0

#: The first pause before a runtime that did not answer is asked again, and the longest one, in seconds.
FIRST_S = 1.0
LONGEST_S = 60.0

_log = log.get(__name__)


class ReadsCdi:
    """Asks the container runtime. Await `begin` first, and run `run` afterwards.

    resources  those of the rules now
    tell       called with each answer: why the runtime does not read CDI, "" if it does
    """

    def __init__(
        self, settings: Settings, resources: Callable[[], Iterable[Resource]], tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._resources = resources
        self._tell = tell
        self._asked, self._once_more = False, True
        self._told = ("", "")
        self._again = asyncio.Event()

    @property
    def _is_wanted(self) -> bool:
        return depends_on_runtime(self._resources(), self._settings.answer)

    def look_again(self) -> None:
        """Ask again, if anything depends on it."""
        self._asked, self._once_more = False, True
        self._again.set()

    async def begin(self) -> None:
        """Ask for the first time, but do not wait for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._ask()

    async def run(self) -> None:
        """Until cancelled."""
        pause_s = FIRST_S
        while True:
            self._again.clear()
            await self._ask()
            waits = self._is_wanted and not self._asked
            once_more = self._is_wanted and self._once_more
            wait_s = pause_s if waits else holdings.KUBELET_SETTLES_S if once_more else None
            try:
                async with asyncio.timeout(wait_s):
                    await self._again.wait()
            except TimeoutError:
                self._asked, self._once_more = False, self._once_more and waits
            pause_s = min(2 * pause_s, LONGEST_S) if waits else FIRST_S

    async def _ask(self) -> None:
        if self._asked or not self._is_wanted:
            return
        try:
            async with chosen(self._settings) as choice:
                why_not, is_doubtful = await self._why_not(choice)
        except GenericdpError as error:
            self._say(why_not=f"{error}; {error.hint}" if error.hint else str(error))
            return
        # Unless a kubelet has started meanwhile.
        self._asked = not self._again.is_set() and not is_doubtful
        self._say(_names(choice), why_not=why_not)

    async def _why_not(self, choice: "Choice") -> tuple[str, bool]:
        """Why the kubelet's runtime does not read CDI, and whether that may be about another runtime."""
        if choice.lacks_pods:
            return f"none of the kubelet's pods runs in {_names(choice)}; {ELSEWHERE}", True
        for each in choice.runtimes:
            configuration = await each.configuration()
            why_not = why_not_cdi(each.name, each.version, configuration, self._settings.cdi_dir)
            if why_not:
                is_doubtful = len(choice.runtimes) > 1
                hint = f"; {NOT_THAT_ONE}" if is_doubtful else ""
                return f"{each.name} {each.version}: {why_not}{hint}", is_doubtful
        return "", False

    def _say(self, name: str = "", *, why_not: str) -> None:
        if (name, why_not) != self._told:
            self._told = (name, why_not)
            if why_not:
                _log.warning('answer = "auto": containers get device nodes, without CDI', why=why_not)
            else:
                _log.info('answer = "auto": containers get their devices by CDI', why=f"{name} reads it")
        self._tell(why_not)


def _names(choice: "Choice") -> str:
    return " and ".join(f"{each.name} {each.version}" for each in choice.runtimes)
