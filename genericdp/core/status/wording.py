"""Causes in words, for the log, the report and `genericdp monitor`.

The rules of this file:

* The words are for people. Programs and metrics use the value (`core.hint`).
"""

from genericdp.core.hint import RescanCause, Resync, Silence, SilenceCause
from genericdp.core.status.history import Retried

_SILENT = {
    SilenceCause.NO_SOCKET: "no socket for {source} events: {detail}",
    SilenceCause.NO_UDEV: "udev is not running ('{detail}' does not exist)",
    SilenceCause.UNANSWERED: (
        "kernel events arrive without udev's, the first one of '{detail}': genericdp is not in"
        " udev's network namespace, or systemd-udevd hangs, or that device keeps it waiting"
    ),
    SilenceCause.USER_NAMESPACE: "the kernel sends no events to the network namespace of a user namespace",
}

_RESCAN = {
    RescanCause.OVERFLOW: "the socket for {source} events overflowed",
    RescanCause.DEAF: "periodic rescan",
    RescanCause.HEARD_AGAIN: "udev events arrive again",
    RescanCause.USB_RESET: "a USB device was reset",
    RescanCause.RELOAD: "SIGHUP",
    RescanCause.UNREAD: "not everything could be read the last time",
    RescanCause.TROUBLE: "the socket for {source} events failed: {detail}",
}


def why_silent(silence: Silence) -> str:
    """Why udev's events do not arrive."""
    return _SILENT[silence.cause].format(source=silence.source, detail=silence.detail)


_WHAT_TO_DO = {
    SilenceCause.NO_UDEV: "in a pod, mount the host's '/run/udev'; on a host, systemctl start systemd-udevd",
    SilenceCause.UNANSWERED: (
        "in a pod, set 'hostNetwork: true'; on a host, unplug the device if the kernel does not answer for"
        " it, or else systemctl restart systemd-udevd"
    ),
    SilenceCause.USER_NAMESPACE: "in a pod, set 'hostNetwork: true' and remove 'hostUsers: false'",
}


def what_to_do(silence: Silence) -> str:
    """What makes udev's events arrive again; "" when nothing does."""
    return _WHAT_TO_DO.get(silence.cause, "")


def why_rescan(resync: Resync) -> str:
    """Why every device is read again."""
    if resync.silence is None:
        return _RESCAN[resync.cause].format(source=resync.source, detail=resync.detail)
    why = why_silent(resync.silence)
    return f"{_RESCAN[resync.cause]}, after: {why}" if resync.cause is RescanCause.HEARD_AGAIN else why


_WORKS = {
    Retried.DEVICES: "every device can be read again",
    Retried.COLDPLUG: "udevd has looked at the devices now",
    Retried.MEMORY: "the memory is saved again",
    Retried.RULES: "the text of every good rule file is kept again",
    Retried.CHECKPOINT: "the kubelet's checkpoint can be read again",
    Retried.CDI: "the CDI spec files are written again",
    Retried.DIRECTORIES: "the directories are noted, and no CDI spec file is left in a former one",
    Retried.CONTROL: "listening on the control socket now",
    Retried.METRICS: "listening on the address for metrics now",
    Retried.RUNTIME: "the container runtime answers",
    Retried.EVENTS: "events are followed again",
}


def that_works(what: Retried) -> str:
    """The log message for something that works again."""
    return _WORKS[what]


_STOPS = {
    "unplug": "the device is unplugged",
    "replug": "the device has other nodes now",
}


def why_stop(cause: str) -> str:
    """Why a container is stopped, from the `cause` of its event."""
    return _STOPS[cause]
