"""The directories that pods depend on, as the daemon serves with them (`genericdp.files.directories`).

An edit of `link_dir` or `state_dir` takes effect once no pod can hold a device; one of `cdi_dir`, at once.

The rules of this file:

* A memory that names no holder proves nothing: its disk may have been full. The kubelet's checkpoint has what
  the kubelet answers again for a pod. Other directories take effect only if neither of them names a holder.
* While the daemon serves, the kubelet has to say so, too.
* No CDI spec file is written into a directory that is not noted: after a kill and another edit, nobody would
  remove it.
"""

from collections.abc import Callable

from genericdp import log
from genericdp.core.memory.held import Answer, Held
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import (
    before_edit,
    clear_cdi_dir,
    memory_names_holders,
    name_each_other,
    note_cdi_dirs,
    noted_cdi_dirs,
)
from genericdp.kubelet import checkpoint
from genericdp.kubelet.checkpoint import Checkpoint
from genericdp.retry import Retry

_log = log.get(__name__)


class Directories:
    """Which settings are in force. Raises GenericdpError if it cannot be read which were in force before.

    served   the settings with the directories of before while pods may hold devices
    waits    whether other directories are configured, and wait for the pods
    on_free  called when these can take effect: with the next start
    """

    def __init__(self, configured: Settings, on_free: Callable[[], None]) -> None:
        self.served = in_force(configured)
        self.waits = self.served != configured
        self._configured = configured
        self._on_free = on_free
        self._naming = Retry(self._name)
        self._unnamed = False
        # In which directories there may be CDI spec files, and whether a note says so.
        self._cdi_dirs = {configured.cdi_dir}
        self._are_noted = False
        # Whether the kubelet's checkpoint may name one of our links or CDI devices.
        self._are_saved = True

    def begin(self) -> None:
        """Say which settings are not in force, and note the directories for the next start.

        The locks are held. Raises GenericdpError if other directories are in force by now.
        """
        if in_force(self._configured) != self.served:
            raise GenericdpError(
                "genericdp has served with other directories while this one stood by",
                hint="start it again",
            )
        self._cdi_dirs |= noted_cdi_dirs(self._configured)
        for key in ("link_dir", "state_dir"):
            if (mine := getattr(self.served, key)) != getattr(self._configured, key):
                _log.warning(
                    f"'{key}' stays as it was, because pods may hold devices",
                    directory=mine,
                    hint="drain the node, or set it back; genericdp starts again once no pod holds a device",
                )
        self._name()

    def see_saved(self, found: Checkpoint | None) -> None:
        """Take into account what the kubelet's checkpoint says; None: nobody knows."""
        self._are_saved = found is None or found.names_ours

    def see(self, answer: Answer | None, held: Held) -> None:
        """Take into account what pods hold, after an answer of PodResources."""
        if not self.waits or answer is None or not answer.complete or held or self._are_saved:
            return
        if not memory_names_holders(self.served.state_dir):
            self.waits = False
            _log.info("no pod holds a device any more: starting again, with other directories")
            self._on_free()

    def see_room(self) -> None:
        """Take into account that the memory was saved: note the directories, if there was no room before."""
        if self._unnamed:
            self._name()

    def note_cdi_dir(self) -> None:
        """Make sure that `cdi_dir` is noted before a file is written there. Raises GenericdpError."""
        if not self._are_noted:
            try:
                note_cdi_dirs(self.served, self._cdi_dirs)
            except GenericdpError as error:
                message = f"cannot use the CDI directory '{self.served.cdi_dir}' before it is noted: {error}"
                raise GenericdpError(message, hint=error.hint) from error
            self._are_noted = True

    def close(self) -> None:
        """Try nothing again."""
        self._naming.succeeded()

    def _name(self) -> None:
        failure: GenericdpError | None = None
        try:
            # Before another link directory is named: the note in the one before would be lost.
            self._settle_cdi_dirs()
        except GenericdpError as error:
            failure = error
            if not self._are_noted:
                self._see_failed(str(error), error.hint)
                return
        try:
            name_each_other(self.served, self._configured)
        except GenericdpError as error:
            self._see_failed(f"{error}; until then, an edit of 'link_dir' or 'state_dir' is not noticed", "")
            return
        if failure is not None:
            self._see_failed(str(failure), failure.hint)
            return
        self._unnamed = False
        self._naming.succeeded()

    def _settle_cdi_dirs(self) -> None:
        """Note the directory of the CDI spec files, and clear those of before. Raises GenericdpError."""
        self.note_cdi_dir()
        failures = []
        for each in sorted(self._cdi_dirs - {self.served.cdi_dir}):
            try:
                clear_cdi_dir(each)
            except GenericdpError as error:
                failures.append(error)
            else:
                self._cdi_dirs.discard(each)
        if (failure := note_cdi_dirs(self.served, self._cdi_dirs)) is not None:
            failures.append(failure)
        if failures:
            raise failures[0]

    def _see_failed(self, why: str, hint: str) -> None:
        if not self._unnamed:
            _log.warning(why, hint=hint)
        self._unnamed = True
        self._naming.failed()


def in_force(configured: Settings) -> Settings:
    """The settings with the directories of before while pods may hold devices. Raises GenericdpError."""
    before = before_edit(configured)
    if memory_names_holders(before.state_dir) or checkpoint.names_holders(before):
        return before
    return configured
