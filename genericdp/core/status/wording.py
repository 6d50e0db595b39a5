"""Causes in words, for the log, the report and `genericdp monitor`.

The rules of this file:

* The words are for people. Programs and metrics go by the value (`core.hint`).
"""

from genericdp.core.hint import RescanCause, Resync, Silence, SilenceCause


def why_silent(silence: Silence) -> str:
    """Why udev's events do not arrive."""
    match silence.cause:
        case SilenceCause.NO_SOCKET:
            return f"no socket for {silence.source} events: {silence.detail}"
        case SilenceCause.NO_UDEV:
            return f"udev is not running ('{silence.detail}' does not exist)"
        case SilenceCause.UNANSWERED:
            return (
                "kernel events arrive without udev's: genericdp is not in udev's network namespace,"
                " or systemd-udevd hangs"
            )
        case SilenceCause.USER_NAMESPACE:
            return "the kernel sends no events to the network namespace of a user namespace"


def why_rescan(resync: Resync) -> str:
    """Why every device is read again."""
    match resync.cause:
        case RescanCause.OVERFLOW:
            return f"the socket for {resync.source} events overflowed"
        case RescanCause.DEAF:
            return "periodic rescan"
        case RescanCause.HEARD_AGAIN:
            return "udev events arrive again" + (
                f", after: {why_silent(resync.silence)}" if resync.silence is not None else ""
            )
        case RescanCause.USB_RESET:
            return "a USB device was reset"
        case RescanCause.TROUBLE if resync.silence is not None:
            return why_silent(resync.silence)
        case RescanCause.TROUBLE:
            return f"the socket for {resync.source} events failed: {resync.detail}"
