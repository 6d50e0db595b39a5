"""Causes in words."""

import pytest

from genericdp.core.hint import RescanCause, Resync, Silence, SilenceCause
from genericdp.core.status.wording import what_to_do, why_rescan, why_silent

SILENCE = Silence(SilenceCause.UNANSWERED, detail="/sys/devices/usb1/1-4")
UNANSWERED = (
    "kernel events arrive without udev's, the first one of '/sys/devices/usb1/1-4': genericdp is not in"
    " udev's network namespace, or systemd-udevd hangs, or that device keeps it waiting"
)


@pytest.mark.parametrize(
    ("silence", "words"),
    [
        (Silence(SilenceCause.NO_SOCKET, "udev", "no memory"), "no socket for udev events: no memory"),
        (
            Silence(SilenceCause.NO_UDEV, detail="/run/udev/control"),
            "udev is not running ('/run/udev/control' does not exist)",
        ),
        (SILENCE, UNANSWERED),
        (
            Silence(SilenceCause.USER_NAMESPACE),
            "the kernel sends no events to the network namespace of a user namespace",
        ),
    ],
)
def test_why_no_events_of_udev_arrive(silence: Silence, words: str) -> None:
    assert why_silent(silence) == words


@pytest.mark.parametrize(
    ("resync", "words"),
    [
        (Resync(RescanCause.OVERFLOW, "kernel"), "the socket for kernel events overflowed"),
        (Resync(RescanCause.DEAF), "periodic rescan"),
        (Resync(RescanCause.HEARD_AGAIN), "udev events arrive again"),
        (
            Resync(RescanCause.HEARD_AGAIN, silence=SILENCE),
            f"udev events arrive again, after: {UNANSWERED}",
        ),
        (Resync(RescanCause.USB_RESET), "a USB device was reset"),
        (Resync(RescanCause.RELOAD), "SIGHUP"),
        (Resync(RescanCause.UNREAD), "not everything could be read the last time"),
        (Resync(RescanCause.TROUBLE, "udev", "no memory"), "the socket for udev events failed: no memory"),
        (Resync(RescanCause.TROUBLE, silence=SILENCE), UNANSWERED),
    ],
)
def test_why_every_device_is_read_again(resync: Resync, words: str) -> None:
    assert why_rescan(resync) == words


def test_the_labels_of_rescans_are_those_that_dashboards_know() -> None:
    assert [*RescanCause] == [
        "overflow",
        "deaf",
        "heard again",
        "usb reset",
        "reload",
        "unread",
        "trouble",
    ]


def test_what_ends_the_silence_of_udev() -> None:
    hints = {cause: what_to_do(Silence(cause)) for cause in SilenceCause}
    assert hints == {
        SilenceCause.NO_SOCKET: "",
        SilenceCause.NO_UDEV: (
            "in a pod, mount the host's '/run/udev'; on a host, systemctl start systemd-udevd"
        ),
        SilenceCause.UNANSWERED: (
            "in a pod, set 'hostNetwork: true'; on a host, unplug the device if the kernel does not answer"
            " for it, or else systemctl restart systemd-udevd"
        ),
        SilenceCause.USER_NAMESPACE: "in a pod, set 'hostNetwork: true' and remove 'hostUsers: false'",
    }
