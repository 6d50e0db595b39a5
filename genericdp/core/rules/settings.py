"""The settings of the daemon itself, `genericdp.toml`, as values in which nothing can be wrong."""

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_DOMAIN = "genericdp.io"


class LogFormat(StrEnum):
    """How log lines look; `auto` is the journal's form under systemd and text elsewhere."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the daemon can be told, with the defaults of a node with a plain kubelet.

    domain                what stands before `/` in a resource name that has no domain of its own
    kubelet_dir           the kubelet's device plugin directory (a constant of the kubelet)
    pod_resources_socket  the PodResources API; follows the kubelet's --root-dir
    link_dir              where our links live, the same path in the container runtime's eyes
    state_dir             what must outlive a reboot
    run_dir               where the daemon can be asked, by `genericdp status` and `monitor`
    metrics               where metrics can be asked for: "unix:/path", "127.0.0.1:9101"; "" for nowhere
    coalesce_s            at most one list per resource is sent in this time (seconds)
    rescan_s              how often a daemon with a deaf monitor looks for itself (seconds)
    """

    domain: str = DEFAULT_DOMAIN
    kubelet_dir: str = "/var/lib/kubelet/device-plugins"
    pod_resources_socket: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    link_dir: str = "/dev/genericdp"
    state_dir: str = "/var/lib/genericdp"
    run_dir: str = "/run/genericdp"
    metrics: str = ""
    coalesce_s: float = 0.1
    rescan_s: float = 10.0
    log_format: LogFormat = LogFormat.AUTO
    log_level: str = "info"
