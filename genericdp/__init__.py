"""genericdp: a generic Kubernetes device plugin driven by udev properties.

The files here are the daemon and the small things that it shares with the folders. Reading order:

    daemon                what starts, and what happens at each event
    inputs                what it reads: rules, devices, hints
    forgetting            when an unplugged device is no longer listed
    log, log_lines        its log, and how one event looks
    outlet                the stream that log lines are written to
    systemd               how the service manager hears that all is well
    usb                   resets a USB device
    retry                 when something that failed is tried again
    lock                  only one genericdp serves a kubelet, and writes CDI spec files
    watch, unixsocket     directories and sockets that may appear and disappear
    messages              declares the messages and calls of gRPC APIs
    errors                mistakes as values, which everything uses

Of the folders, read `core` first: it decides. `cri`, `files`, `kubelet`, `machine`, `status` and `udev` do
the I/O of the daemon. `cli` has the verbs, `simulator` the kubelet that `genericdp simulate` uses.

Does not belong here: decisions, and anything that belongs in one of the folders.
"""

VERSION = "0.1.0"

#: The day of this version, for the manual pages.
RELEASED = "2026-11-21"
