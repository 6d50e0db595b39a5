"""Where container runtimes listen.

The rules of this file:

* Looking opens nothing: whoever may use the socket is as good as root.
"""

import os

from genericdp.errors import GenericdpError

#: A node may have Docker's containerd beside that of its Kubernetes distribution, so that one comes late.
SOCKETS = (
    "/run/k3s/containerd/containerd.sock",  # k3s, RKE2
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
    "/run/crio/crio.sock",
    "/run/containerd/containerd.sock",
    "/run/cri-dockerd.sock",
)


#: What an operator can do if the kubelet's runtime is elsewhere.
ELSEWHERE = (
    "set 'runtime_socket' in genericdp.toml to the kubelet's --container-runtime-endpoint;"
    " in a pod, also mount the socket's directory"
)

#: The same if one of those that were found may be another one.
NOT_THAT_ONE = "if the kubelet has another runtime, set 'runtime_socket' to its socket"


class RuntimeUnavailableError(GenericdpError):
    """There is no runtime, or it does not let us in, or it does not answer."""


def candidates(setting: str) -> tuple[str, ...]:
    """The sockets that exist: that of the setting `runtime_socket` or, if it is "", any of SOCKETS.

    Raises RuntimeUnavailableError without one.
    """
    found: list[str] = []
    hidden: list[str] = []
    for socket in (setting,) if setting else SOCKETS:
        try:
            os.stat(socket)
        except PermissionError:
            hidden.append(socket)
        except OSError:
            continue
        else:
            found.append(socket)
    if hidden and not found:
        raise RuntimeUnavailableError(
            f"not permitted to use the container runtime's socket '{hidden[0]}'",
            hint=(
                "install the drop-in runtime.conf of the systemd unit; "
                "it gives genericdp access equivalent to root"
            ),
        )
    if not found:
        raise RuntimeUnavailableError(
            f"the container runtime's socket '{setting}' does not exist"
            if setting
            else "no container runtime socket was found",
            hint=ELSEWHERE,
        )
    return tuple(found)
