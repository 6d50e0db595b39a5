"""The node that `genericdp simulate` makes, as it is shown."""

import io

from genericdp.cli.output import Output
from genericdp.cli.text.dry_run import Counts, Outcome, Request, show_node, show_outcome
from genericdp.simulator import CreatedContainer, Phase


def shown(offered: Counts, *missing: str) -> str:
    stream = io.StringIO()
    show_node(offered, missing, "no resource was registered", Output(stream, width=80))
    return stream.getvalue()


def test_a_node_without_resources_says_why() -> None:
    assert shown({}) == "The node offers:\n\n  nothing: no resource was registered\n\n"


def test_rules_whose_resources_are_not_registered_are_not_said_to_define_none() -> None:
    assert shown({}, "example.com/a", "example.com/b") == (
        "not registered: example.com/a, example.com/b\n"
        "The node offers:\n\n  nothing: no resource was registered\n\n"
    )


def test_a_usb_reset_that_only_the_daemon_does_is_shown_with_what_the_container_gets() -> None:
    stream = io.StringIO()
    created = CreatedContainer()
    resets = ("/dev/bus/usb/001/004",)
    outcome = Outcome("pod-1", Request("example.com/a", 1), Phase.RUNNING, created=created, resets=resets)
    show_outcome(outcome, Output(stream, width=100))
    assert stream.getvalue() == (
        "pod-1 requests example.com/a=1: Running\n\n"
        "  USB reset  /dev/bus/usb/001/004: not done here; the daemon does it before the container starts\n\n"
    )
