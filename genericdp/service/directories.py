"""The directories that pods depend on, as the daemon serves with them (`genericdp.files.directories`)."""

from collections.abc import Callable

from genericdp import log
from genericdp.core.memory.held import Held
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import in_force, name_each_other

_log = log.get(__name__)


class Directories:
    """Which settings are in force.

    served   the settings with the directories of before while pods hold devices
    waits    whether other directories are configured, and wait for the pods
    on_free  called when these can take effect: with the next start
    """

    def __init__(self, configured: Settings, on_free: Callable[[], None]) -> None:
        self.served = in_force(configured)
        self.waits = self.served != configured
        self._configured = configured
        self._on_free = on_free

    def begin(self) -> None:
        """Say which settings are not in force, and note the directories for the next start.

        The locks are held. Raises GenericdpError if pods got devices elsewhere before that.
        """
        if in_force(self._configured) != self.served:
            raise GenericdpError(
                "pods got devices in other directories while this genericdp stood by",
                hint="start it again",
            )
        for key in ("link_dir", "state_dir"):
            if (mine := getattr(self.served, key)) != getattr(self._configured, key):
                _log.warning(
                    f"'{key}' stays as it was, because pods hold devices",
                    directory=mine,
                    hint="drain the node, or set it back; genericdp starts again once no pod holds a device",
                )
        name_each_other(self.served)

    def see(self, held: Held) -> None:
        """Take into account what pods hold."""
        if self.waits and not held:
            self.waits = False
            _log.info("no pod holds a device any more: starting again, with other directories")
            self._on_free()
