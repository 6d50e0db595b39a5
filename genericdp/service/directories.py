"""What is said and done about the directories that pods depend on when the daemon begins to serve."""

from genericdp import log
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import in_force, name_each_other

_log = log.get(__name__)


def begin(configured: Settings, served: Settings) -> None:
    """Say which settings are not in force, and note the directories for the next start.

    The locks are held. Raises GenericdpError if pods got devices elsewhere before that.
    """
    if in_force(configured) != served:
        raise GenericdpError(
            "pods got devices in other directories while this genericdp stood by",
            hint="start it again",
        )
    for key in ("link_dir", "state_dir"):
        if (mine := getattr(served, key)) != getattr(configured, key):
            _log.warning(
                f"'{key}' stays as it was, because pods hold devices",
                directory=mine,
                hint="drain the node and restart genericdp, or set it back",
            )
    name_each_other(served)
