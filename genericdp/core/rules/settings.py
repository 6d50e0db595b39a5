"""The settings of the daemon itself, `genericdp.toml`, as values in which nothing can be wrong."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_DOMAIN = "genericdp.io"

#: The kubelet waits meanwhile, and with it all pods of the node.
LONGEST_BOOT_WAIT_S = 600.0

#: The directory in the state directory that has the last good rule files. No operator would keep any there.
LAST_GOOD = "last-good"


class LogFormat(StrEnum):
    """How log lines look; `auto` is text on a terminal, the journal's form under systemd, else JSON."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class AnswerBy(StrEnum):
    """How Allocate names device nodes; `auto` is CDI where the container runtime reads it."""

    DEVICES = "devices"
    CDI = "cdi"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set for the daemon; the defaults suit a node with a plain kubelet.

    domain                the domain of resource names without a domain
    kubelet_dir           the kubelet's device plugin directory (a constant of the kubelet)
    pod_resources_socket  the PodResources API; follows the kubelet's --root-dir
    runtime_socket        the container runtime's CRI socket; "" to look where runtimes listen
    link_dir              the directory of the stable links, under the same path for the container runtime
    cdi_dir               the directory of the CDI spec files, one that the container runtime reads
    state_dir             what must survive a reboot
    run_dir               where `genericdp status` and `genericdp monitor` find the daemon
    answer                how Allocate names device nodes, for resources that do not say it themselves
    metrics               where to serve metrics: "unix:/path", "127.0.0.1:9101"; "" for nowhere
    boot_wait_s           how long READY waits after a boot for the devices that were there before, in seconds
    coalesce_s            the minimum time between two device lists of a resource, in seconds
    rescan_s              how often to examine all devices where no udev events arrive, in seconds
    """

    domain: str = DEFAULT_DOMAIN
    kubelet_dir: str = "/var/lib/kubelet/device-plugins"
    pod_resources_socket: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    runtime_socket: str = ""
    link_dir: str = "/dev/genericdp"
    cdi_dir: str = "/run/cdi"
    state_dir: str = "/var/lib/genericdp"
    run_dir: str = "/run/genericdp"
    answer: AnswerBy = AnswerBy.DEVICES
    metrics: str = ""
    boot_wait_s: float = 15.0
    coalesce_s: float = 0.1
    rescan_s: float = 10.0
    log_format: LogFormat = LogFormat.AUTO
    log_level: str = "info"
