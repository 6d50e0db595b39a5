"""On a screen of 80 columns, no output is wider, however long the names of a machine are."""

import io
from collections.abc import Callable, Iterator

import pytest

from genericdp.cli.output import Output, columns
from genericdp.cli.survey import survey_of
from genericdp.cli.text import absent, explanation
from genericdp.cli.verbs import list as listing
from genericdp.core.explain.absent import Absent
from genericdp.core.explain.access import Access
from genericdp.core.explain.explanation import explain
from genericdp.core.explain.lookup import look_up
from genericdp.core.explain.query import Query
from genericdp.core.explain.survey import Survey
from genericdp.core.rules.settings import Settings
from tests.scenes.builders import a_fuse, a_modem, a_usb_serial, by_sys_path, resources_of

RULES = """
[[resource]]
name = "a-very-long-domain.of-a-vendor.example.com/serial-adapters-of-the-third-floor"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", serial = "A50285BI-with-a-serial-number-that-goes*" } }
env = { A_VERY_LONG_NAME_OF_AN_ENVIRONMENT_VARIABLE_THAT_SOMEBODY_CHOSE = "{ID_MODEL|none}{ID_MODEL|none}" }

[[resource]]
name = "a-very-long-domain.of-a-vendor.example.com/modems-of-the-third-floor-in-the-left-wing"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = "tty" }
container_path = "/dev/a/directory/that/is/deep/and/has/a/long/name/modem-at-{index}-{devname}"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }

[[resource]]
name = "tty"
match = { SUBSYSTEM = "tty" }
"""
SERIAL = "A50285BI-with-a-serial-number-that-goes-on-and-on"
ACCESS = Access(0o20660, 0, "root", 20, "a-long-group-name-of-somebody")
SETTINGS = Settings(domain="example.com", link_dir="/run/some/where/else/far/away/genericdp/links")


def machines() -> tuple[Survey, Survey]:
    """One with everything plugged in, and the same one after the first adapter was pulled out."""
    first = a_usb_serial(0, serial=SERIAL)
    others = [a_usb_serial(1, port="3.1.4.1.5.9.2", serial=None, devnum=5), *a_modem(), a_fuse()]
    before = survey_of(SETTINGS, resources_of(RULES), by_sys_path(first, *others))
    return before, survey_of(SETTINGS, resources_of(RULES), by_sys_path(*others), before.memory)


def views() -> Iterator[Callable[[Output], None]]:
    machine, after = machines()
    yield lambda output: listing.show(machine, output, everything=True)
    yield lambda output: listing.show(after, output)
    for node in [device for device in machine.devices.values() if device.device_node]:
        explained = explain(node, machine)
        yield lambda output, each=explained: explanation.show(each, SETTINGS, output, lambda _: ACCESS)  # type: ignore[misc]
    found = look_up(Query(serial=SERIAL), after)
    assert isinstance(found, Absent)
    yield lambda output: absent.show(found, SETTINGS.link_dir, output)


@pytest.mark.parametrize("width", [80, 60, 132])
def test_nothing_is_wider_than_the_screen(width: int) -> None:
    widest = 0
    for show in views():
        stream = io.StringIO()
        show(Output(stream, width=width))
        lines = stream.getvalue().splitlines()
        assert [line for line in lines if columns(line) > width] == []
        widest = max(widest, *(columns(line) for line in lines))
    assert widest > width - 10
