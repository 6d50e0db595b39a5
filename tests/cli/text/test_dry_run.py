"""The node that `genericdp simulate` makes, as it is shown."""

import io

from genericdp.cli.output import Output
from genericdp.cli.text.dry_run import Counts, show_node


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
