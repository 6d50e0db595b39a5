"""Which device nodes rules name, so that those are found that udev does not know."""

import pytest

from genericdp.core.rules.node_names import ALL_NAMES, NO_NAMES, names_in
from tests.scenes.builders import resources_of


def rule(match: str, more: str = "") -> str:
    return f'[[resource]]\nname = "gpu"\nmatch = {match}\n{more}'


@pytest.mark.parametrize(
    ("match", "named", "not_named"),
    [
        ('{ DEVNAME = "/dev/nvidia0" }', ["/dev/nvidia0"], ["/dev/nvidia1"]),
        ('{ DEVNAME = "/dev/nvidia[0-9]*" }', ["/dev/nvidia0", "/dev/nvidia10"], ["/dev/nvidiactl"]),
        ('{ DEVNAME = "/dev/a|/dev/b?" }', ["/dev/a", "/dev/b0"], ["/dev/b"]),
        ('{ DEVNAME = ["/dev/a", "/dev/b*"] }', ["/dev/a", "/dev/b0"], ["/dev/c"]),
        ('{ DEVNAME = { regex = "/dev/nvidia[0-9]+" } }', ["/dev/nvidia7"], ["/dev/nvidia"]),
        ('{ DEVNAME = "/dev/nvidia0", MAJOR = "195" }', ["/dev/nvidia0"], []),
        ('{ DEVNAME = "/dev/nvidia0", SUBSYSTEM = { not = "tty" } }', ["/dev/nvidia0"], []),
        ('[{ SUBSYSTEM = "tty" }, { DEVNAME = "/dev/a" }]', ["/dev/a"], ["/dev/ttyS0"]),
    ],
)
def test_a_name_counts_where_a_node_without_a_udev_entry_may_satisfy_the_rest(
    match: str, named: list[str], not_named: list[str]
) -> None:
    names = names_in(resources_of(rule(match)))
    assert [path for path in named + not_named if names.hold_for(path)] == named
    assert names.lead_into("/dev")


@pytest.mark.parametrize(
    "match",
    [
        '{ SUBSYSTEM = "tty" }',
        '{ SUBSYSTEM = "nvidia", DEVNAME = "/dev/nvidia0" }',
        '{ parent = { SUBSYSTEM = "pci" }, DEVNAME = "/dev/nvidia0" }',
        '{ TAG = "seat", DEVNAME = "/dev/nvidia0" }',
        '{ "ATTR{index}" = "0", DEVNAME = "/dev/video0" }',
        '{ usb = { vendor = "0403" }, DEVNAME = "/dev/ttyUSB*" }',
        '{ DEVNAME = { not = "/dev/null" } }',
        "{ DEVNAME = { exists = true } }",
        '{ DEVNAME = ["/dev/a", { not = "/dev/b" }] }',
        '{ MAJOR = "195" }',
    ],
)
def test_other_matches_name_no_node(match: str) -> None:
    assert names_in(resources_of(rule(match))) == NO_NAMES
    assert not names_in(resources_of(rule(match))).lead_into("/dev")


def test_node_tables_name_nodes_too() -> None:
    text = rule(
        '{ DEVNAME = "/dev/nvidia*" }',
        '[[resource.node]]\nmatch = { DEVNAME = "/dev/nvidia-caps/nvidia-cap1" }\n',
    )
    names = names_in(resources_of(text))
    assert names.hold_for("/dev/nvidia-caps/nvidia-cap1")


@pytest.mark.parametrize(
    ("devname", "into", "not_into"),
    [
        ("/dev/nvidia0", ["/dev"], ["/dev/input", "/etc"]),
        ("/dev/dri/card0", ["/dev", "/dev/dri"], ["/dev/dri2", "/dev/d"]),
        # As in every pattern, a star crosses slashes.
        ("/dev/nvidia*", ["/dev", "/dev/nvidia-caps"], ["/dev/input"]),
        ("/dev/*/card0", ["/dev", "/dev/dri", "/dev/dri/by-path"], ["/etc"]),
        ("/dev/dri/card*", ["/dev", "/dev/dri"], ["/dev/input"]),
    ],
)
def test_only_directories_on_the_way_to_a_named_node_are_looked_at(
    devname: str, into: list[str], not_into: list[str]
) -> None:
    names = names_in(resources_of(rule(f'{{ DEVNAME = "{devname}" }}')))
    assert [path for path in into + not_into if names.lead_into(path)] == into


@pytest.mark.parametrize(
    ("regex", "into", "not_into"),
    [
        ("/dev/nvidia[0-9]+", ["/dev", "/dev/nvidia-caps"], ["/dev/input"]),
        (r"/dev/dri/card\d", ["/dev", "/dev/dri"], ["/dev/input"]),
        (r"^/dev/\.acme/x$", ["/dev", "/dev/.acme"], ["/dev/input"]),
        ("/dev/(a|b)/c", ["/dev", "/dev/a", "/dev/x"], []),
        ("(/dev/ab|/dev/ac)/c", ["/dev", "/dev/ab", "/dev/ac"], ["/dev/b"]),
        ("(/dev/a/)+b", ["/dev", "/dev/a"], ["/dev/b"]),
        ("(/dev/a)?.*", ["/dev", "/dev/b"], []),
    ],
)
def test_a_regular_expression_leads_where_its_literal_beginning_does(
    regex: str, into: list[str], not_into: list[str]
) -> None:
    names = names_in(resources_of(rule(f"{{ DEVNAME = {{ regex = '{regex}' }} }}")))
    assert [path for path in into + not_into if names.lead_into(path)] == into


def test_all_names_hold_for_everything_below_dev_and_for_nothing_else() -> None:
    assert ALL_NAMES.hold_for("/dev/a/b")
    assert ALL_NAMES.lead_into("/dev/a")
    assert not ALL_NAMES.hold_for("/etc/passwd")
