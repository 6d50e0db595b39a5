"""Keeps the CDI spec files as they should be, for as long as genericdp serves.

The rules of this file:

* What cannot be written is tried again, and a file that somebody else changed is restored.
* While the files cannot be written, the devices of resources that are answered by CDI are Unhealthy: a
  container with them would not start. So is a device with which the rule lets no container start.
* None is written before the directory is noted: after an edit of `cdi_dir`, only the note leads to what a
  killed daemon left.
* What an earlier process left in a directory that appears later goes at once, whether or not there is
  anything to write: it is watched as soon as a container may look for a CDI device.
* What the udev rule took out of a file stays out until its device is read again, as with links.
* A step writes the files at most twice. If links die each time meanwhile, those files that name their devices
  are removed, and a later step writes them: no step lasts as long as a storm of unplugs, and no runtime reads
  what may lead to another device.
* The files go when genericdp stops serving. Nobody would correct them, so the runtime refuses meanwhile.
* While another genericdp serves the kubelet, the files are that one's: this one has none. What an earlier
  process left goes, too: a runtime may read this directory and that of the other one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from genericdp import log
from genericdp.core.cdi import SpecTexts, by_cdi, file_name
from genericdp.core.inventory.inventory import Inventory, without_links
from genericdp.core.memory.answered import Answered
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.cdi.specs import LOCK, UNTIL_THEN, CdiSpecs
from genericdp.retry import Retry
from genericdp.watch import DirectoryWatch

#: The longest pause before files are written again that could not be written, in seconds. Also: when the
#: directory is replaced, they are written at once, but not more than once in this time.
AGAIN_S = 10.0

#: How often a step writes files if links die meanwhile.
_WRITES = 2

_log = log.get(__name__)


class CdiUpkeep:
    """The CDI spec files of one daemon.

    why_not   why resources with `answer = "auto"` are answered without CDI; "" if they are not
    again     called when they have to be written again; it must call `apply`
    on_tried  called after each try, with the error or None
    rival     whether another genericdp serves the kubelet
    dead      returns the links that the udev rule has pointed at themselves, because their nodes have gone
    """

    def __init__(
        self,
        settings: Settings,
        again: Callable[[], None],
        on_tried: Callable[[GenericdpError | None], None] = lambda _: None,
        rival: Callable[[], bool] = lambda: False,
        dead: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.why_not = "the container runtime has not been asked yet"
        self._settings = settings
        self._specs = CdiSpecs(settings.cdi_dir)
        self._texts = SpecTexts(settings.link_dir)
        self._again = again
        self._retry = Retry(self._restore, longest_s=AGAIN_S)
        self._on_tried = on_tried
        self._rival = rival
        self._dead = dead
        # What the last files leave out although it is in the inventory.
        self._left_out: frozenset[str] = frozenset()
        self._note: Callable[[], None] = lambda: None
        self._watch: DirectoryWatch | None = None
        self._failed = False
        self._restored = float("-inf")
        # Whether none is left of an earlier process, as long as another genericdp serves the kubelet.
        self._is_withdrawn = False

    def answers(self, resource: Resource) -> bool:
        """Whether Allocate answers for this resource by CDI."""
        return by_cdi(resource, self._settings.answer, runtime_reads_cdi=not self.why_not)

    def apply(self, inventory: Inventory, answered: Answered) -> Inventory:
        """Write what changed. Returns the inventory without the devices that no container could get."""
        offers = inventory.offers.values()
        if self._watch is None and (answered or any(self.answers(offer.resource) for offer in offers)):
            self._watch = DirectoryWatch(self._settings.cdi_dir, self._hear)
            self._is_withdrawn = False
        if self._rival():
            self._give_up()
            return inventory
        self._is_withdrawn = False
        wanted, error = self._make(inventory, answered)
        if error is not None:
            self._failed = True
            self._retry.failed()
            self._on_tried(error)
            failed = {
                link: str(error)
                for offer in offers
                if self.answers(offer.resource) and not self._stands(file_name(offer.resource.name), wanted)
                for device in offer.devices
                # Not the links to shared nodes, which devices of other resources have as well.
                for link in device.links[:1]
            }
            return without_links(inventory, {**failed, **self._texts.refused})
        self._failed = False
        self._retry.succeeded()
        self._on_tried(None)
        return without_links(inventory, self._texts.refused)

    def see_answered(self, inventory: Inventory, answered: Answered) -> bool:
        """Write what a new answer names. False if a step has to do it, because some files are missing.

        Their devices are Unhealthy in this inventory, and it is `apply` in a step that makes them Healthy.
        """
        if not self._failed:
            self.apply(inventory, answered)
        return not self._failed

    def see_runtime(self, why_not: str) -> None:
        """Take into account why the container runtime does not read CDI; "" if it does."""
        before, self.why_not = self.why_not, why_not
        if bool(before) != bool(why_not):
            self._again()

    @contextmanager
    def serving(self, note: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Keep the files up within the block, and remove them at its end.

        note  called before files are written, to note the directory; raises GenericdpError if it cannot be
        """
        self._note = note
        try:
            yield
        finally:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            self._failed = False
            self._retry.succeeded()
            try:
                self._specs.withdraw()
            except GenericdpError as error:
                _log.warning(str(error), hint=error.hint)

    def _make(
        self, inventory: Inventory, answered: Answered
    ) -> tuple[Mapping[str, str], GenericdpError | None]:
        """Write the files without the devices whose links are dead. Returns the files, and what failed."""

        def files_without(dead: frozenset[str]) -> Mapping[str, str]:
            gone = dict.fromkeys(dead, "the device node has gone")
            return self._texts.of(without_links(inventory, gone).offers.values(), answered, self.answers)

        # The udev rule changes the links first, then the files. So a file that it has changed tells of a dead
        # link, and a link that dies while files are written is seen afterwards.
        looks = bool(self._left_out) or not self._specs.intact()
        dead = frozenset(self._dead()) if looks else frozenset[str]()
        error: GenericdpError | None = None
        wanted = right = files_without(dead)
        for _ in range(_WRITES):
            wanted = right
            error, is_written = self._write(wanted)
            late = frozenset(self._dead()) - dead if is_written else frozenset[str]()
            if late:
                dead |= late
                right = files_without(dead)
            if right == wanted:
                break
        else:
            stands = {name: text for name, text in wanted.items() if right.get(name) == text}
            behind = self._remove(wanted.keys() - stands.keys())
            error = error or behind
            wanted = stands
        self._left_out = dead
        return wanted, error

    def _write(self, wanted: Mapping[str, str]) -> tuple[GenericdpError | None, bool]:
        """Write these files. Returns what failed, and whether any may have changed."""
        try:
            return None, self._apply(wanted)
        except GenericdpError as error:
            return error, True

    def _remove(self, names: Collection[str]) -> GenericdpError:
        """Remove these files. Returns why they are not there."""
        try:
            self._specs.remove(names)
        except GenericdpError as error:
            return error
        directory = self._settings.cdi_dir
        what = f"devices are unplugged faster than the CDI spec files in '{directory}' are written"
        return GenericdpError(what, hint=UNTIL_THEN)

    def _apply(self, wanted: Mapping[str, str]) -> bool:
        if wanted:
            try:
                self._note()
            except GenericdpError:
                # An earlier process may have left files there.
                self._specs.apply({})
                raise
        return self._specs.apply(wanted)

    def _give_up(self) -> None:
        """Leave no file to the runtime while another genericdp serves the kubelet."""
        self._failed, failure = False, None
        if not self._is_withdrawn:
            try:
                self._is_withdrawn = self._specs.withdraw()
            except GenericdpError as error:
                failure = error
        self._retry.tried(self._is_withdrawn)
        self._on_tried(failure)

    def _stands(self, name: str, wanted: Mapping[str, str]) -> bool:
        """Whether the spec file of this name was written before the failure, and as it should be."""
        return name in wanted and self._specs.says(name, wanted[name])

    def _hear(self, names: frozenset[str]) -> None:
        # Changes by this process arrive here, too, and what the udev rule removes at an unplug. The next step
        # corrects that. What it does not, a second later: a program may change them again and again. But
        # other files, and those in a directory that replaced this one, may lead to other devices.
        if self._specs.waits and LOCK in names:
            # The other genericdp may have ended.
            self._again()
        elif self._is_withdrawn:
            if not names:
                self._is_withdrawn = False
                self._give_up()
        elif (are_foreign := self._specs.notice_foreign(names)) or not self._is_right(names):
            now = asyncio.get_running_loop().time()
            if (names and not are_foreign) or now - self._restored < AGAIN_S:
                self._retry.failed()
            else:
                self._restored = now
                self._restore()

    def _is_right(self, names: frozenset[str]) -> bool:
        """Whether there is what was written, those of these names or all of it, and nothing of before."""
        return self._specs.keeps_lock() and self._specs.intact(names) and not self._specs.leads_elsewhere()

    def _restore(self) -> None:
        if self._rival():
            self._give_up()
            return
        if self._specs.keeps_lock() and not self._specs.intact():
            _log.warning("the CDI spec files were changed, restoring them", directory=self._settings.cdi_dir)
        self._again()
