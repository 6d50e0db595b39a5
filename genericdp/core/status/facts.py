"""Everything that the report, the metrics and the probes are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.answered import Answered
from genericdp.core.memory.held import Held
from genericdp.core.returning import Returning
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import History
from genericdp.core.status.holdings import Holdings
from genericdp.core.status.logged import Logged
from genericdp.errors import Problem


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the registration of a resource stands.

    phase    in words; registered while the kubelet knows the resource and follows its list
    error    why the last try, or the last registration, failed
    streams  how many ListAndWatch streams the kubelet has open: normally one
    others   user agent -> how many streams another client has open
    lists    how many lists were sent
    """

    phase: str
    registered: bool
    error: str = ""
    streams: int = 0
    others: Mapping[str, int] = field(default_factory=dict)
    lists: int = 0


@dataclass(frozen=True, slots=True)
class InEffect:
    """A rule file and its version in effect: the digest, "" without one.

    outdated  the text on disk is a newer one, which cannot be used
    """

    path: str
    digest: str
    outdated: bool = False
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """The state of the daemon at one moment.

    now, unix_now  that moment on the clock of the history and on the wall clock
    standing_by    which other genericdp serves the node; "" if this one does
    rival          another genericdp serves the kubelet, and this one waits
    held           what Allocate gave
    answered       what answers by CDI named
    holdings       None if the kubelet does not answer
    returning      the devices that READY waits for after a boot
    why_not_cdi    why resources with `answer = "auto"` are answered without CDI; "" if they are not
    stuck          resources that nothing tries to register
    logged         the last warnings and errors, the latest first
    """

    version: str
    pid: int
    settings: Settings
    now: float
    unix_now: float
    history: History
    inventory: Inventory
    standing_by: str = ""
    kubelet: bool = False
    rival: bool = False
    standings: Mapping[str, Standing] = field(default_factory=dict)
    returning: Sequence[Returning] = ()
    why_not_cdi: str = ""
    stuck: Sequence[str] = ()
    held: Held = field(default_factory=dict)
    answered: Answered = field(default_factory=dict)
    holdings: Holdings | None = None
    files: Sequence[InEffect] = ()
    problems: Sequence[Problem] = ()
    logged: Sequence[Logged] = ()

    def unix(self, at: float) -> float:
        """What the wall clock would have shown at a moment of the history."""
        return self.unix_now - (self.now - at)

    @property
    def kubelet_up_s(self) -> float:
        """How long the kubelet has been up, in seconds; 0 without one."""
        return self.now - self.history.kubelet.at if self.kubelet else 0.0
