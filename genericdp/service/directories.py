"""The directories that pods depend on, as the daemon serves with them (`genericdp.files.directories`).

An edit of `link_dir` or `state_dir` takes effect once no pod can hold a device; one of `cdi_dir`, at once.

The rules of this file:

* A memory that names no holder proves nothing: its disk may have been full. The kubelet's checkpoint has what
  the kubelet answers again for a pod. Other directories take effect only if neither of them names a holder.
* While the daemon serves, the kubelet has to say so, too.
"""

from collections.abc import Callable
from dataclasses import replace

from genericdp import log
from genericdp.core.memory.held import Answer, Held
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import before_edit, leave_cdi_dir, memory_names_holders, name_each_other
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
        self._cdi_dir_before = configured.cdi_dir
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
        self._cdi_dir_before = before_edit(self._configured).cdi_dir
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

    def close(self) -> None:
        """Try nothing again."""
        self._naming.succeeded()

    def _name(self) -> None:
        try:
            name_each_other(self.served)
        except GenericdpError as error:
            self._see_failed(f"{error}; until then, an edit of 'link_dir' or 'state_dir' is not noticed", "")
            return
        try:
            leave_cdi_dir(self.served, self._cdi_dir_before)
        except GenericdpError as error:
            self._see_failed(str(error), error.hint)
            return
        self._unnamed = False
        self._naming.succeeded()

    def _see_failed(self, why: str, hint: str) -> None:
        if not self._unnamed:
            _log.warning(why, hint=hint)
        self._unnamed = True
        self._naming.failed()


def in_force(configured: Settings) -> Settings:
    """The settings with the directories of before while pods may hold devices. Raises GenericdpError."""
    before = replace(before_edit(configured), cdi_dir=configured.cdi_dir)
    if memory_names_holders(before.state_dir) or checkpoint.names_holders(before):
        return before
    return configured
