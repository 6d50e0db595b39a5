"""genericdp: a generic Kubernetes device plugin driven by udev properties.

Read `core` first, where everything is decided, then `daemon`, which carries it out: `Daemon.step`.

    core                      the decisions: values in, values out
    daemon, inputs            an event, the inventory after it, and what follows; what the daemon reads
    forgetting                asks the kubelet which unplugged devices nobody holds
    standby, watchdog         only one daemon serves a node; one that is stuck is restarted
    files, udev, kubelet      the rest of the machine, one folder for each
    status                    the sockets on which the daemon is asked
    cli                       what an operator can type
    simulator                 a kubelet without a cluster
    log, outlet               what is logged, and how it is written
    systemd, usb, unixsocket, watch    one door each: the service manager, USB, sockets, directories
    errors                    what can go wrong, as values

Does not belong here: decisions (`core`), and what only one folder needs.
"""

VERSION = "0.1.0"

#: The day of this version, for the manual pages.
RELEASED = "2026-11-21"
