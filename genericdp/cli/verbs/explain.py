"""`genericdp explain DEVICE`: where a device goes, and why; or why it is not there."""

import argparse
import os
import sys
from collections.abc import Sequence

from genericdp.cli.access import access_of
from genericdp.cli.find import bare_node, find
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.cli.output import Output
from genericdp.cli.survey import look, show_reservations
from genericdp.cli.text import absent, explanation
from genericdp.cli.usage import UsageError
from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent
from genericdp.core.explain.explanation import explain
from genericdp.core.explain.lookup import expected_by, known_as, look_up, nodes_of_usb
from genericdp.core.explain.query import Query, usb_id
from genericdp.core.explain.survey import Survey
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.node_names import NO_NAMES
from genericdp.errors import GenericdpError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain a device: which resource it goes to, why the other rules do not match it, with the "
        "wanted and the actual value of each condition, and what a container would get. For a device "
        "that is not plugged in: what is known about it, which devices are similar, and which rules "
        "expect it. Needs neither the daemon nor root. Exits with status 1 if no resource offers the "
        "device."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp explain /dev/ttyUSB0\n"
        "  genericdp explain /dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0\n"
        "  genericdp explain 1-2                the USB device at port 2 of bus 1\n"
        "  genericdp explain --serial A50285BI  plugged in or not\n"
        "  genericdp explain --usb 0403:6001\n"
        "  genericdp explain ftdi_A50285BI      by its id, plugged in or not\n"
        "  genericdp explain ftdi               a resource, and devices that almost match\n"
        "  genericdp explain --rules my.toml ttyUSB0"
    )
    parser.add_argument(
        "device",
        metavar="DEVICE",
        nargs="?",
        help="a path below /dev or /sys, a kernel name, the id of a device, or a resource",
    )
    parser.add_argument("--serial", metavar="SERIAL", help="the device with this serial number")
    parser.add_argument("--usb", metavar="VENDOR:PRODUCT", help="USB devices of this model")
    add_json_option(parser)
    add_rule_options(parser)


def run(
    *,
    device: str | None,
    serial: str | None,
    usb: str | None,
    json: bool,
    rules: list[str],
    config: str | None,
    domain: str | None,
) -> int:
    """Print the explanation. Returns 0 when a resource offers the device, else 1."""
    query = _query(serial, usb)
    if device is None and query is None:
        raise UsageError(
            "explain needs exactly one of DEVICE, --serial and --usb",
            hint="'genericdp list --all' shows the device nodes of this machine",
        )
    if device is not None and query is not None:
        options = " and ".join(
            name for name, value in (("--serial", serial), ("--usb", usb)) if value is not None
        )
        raise UsageError(
            "explain takes only one of DEVICE, --serial and --usb",
            hint=f"leave out {options}, or '{for_terminal(device)}'",
        )
    shown = NO_NAMES if device is None else bare_node(device)
    survey = look(rules=rules, config=config, domain=domain, shown=shown)
    output, link_dir = Output(sys.stdout), survey.settings.link_dir
    try:
        found = named(device, survey) if device is not None else look_up(query or Query(), survey)
    except GenericdpError:
        # It may be the name of a resource in a file with a mistake.
        show_reservations(survey, Output(sys.stderr))
        raise
    if isinstance(found, Absent):
        output.json(absent.as_json(found, link_dir)) if json else absent.show(found, link_dir, output)
        return show_reservations(survey, Output(sys.stderr)) or (0 if found.is_offered else 1)
    is_one = isinstance(found, UdevDevice)
    explanations = [explain(each, survey) for each in ((found,) if isinstance(found, UdevDevice) else found)]
    if json:
        documents = [explanation.as_json(each, survey.settings, access_of) for each in explanations]
        output.json(documents[0] if is_one else {"devices": documents})
    else:
        explanation.show_all(explanations, survey.settings, output, access_of)
    status = show_reservations(survey, Output(sys.stderr))
    return status if any(each.is_offered for each in explanations) else 1


def _query(serial: str | None, usb: str | None) -> Query | None:
    if serial is None and usb is None:
        return None
    ids = (None, None) if usb is None else usb_id(usb)
    if ids is None:
        raise UsageError(
            f"'{for_terminal(usb or '')}' is not a USB id", hint="write it as 'lsusb' does: 0403:6001"
        )
    return Query(serial, *ids)


def named(word: str, survey: Survey) -> UdevDevice | Sequence[UdevDevice] | Absent:
    """What a word means: a udev device, all nodes of a USB device, or what is known of an absent device.

    Raises GenericdpError when it means nothing.
    """
    try:
        found = find(word, survey.devices, survey.settings.link_dir)
    except GenericdpError:
        known = known_as(word, survey)
        if known is not None:
            return known
        path = word if word.startswith("/") else f"/dev/{word}"
        if not os.path.lexists(path) and (rule := expected_by(path, survey)):
            raise GenericdpError(f"'{for_terminal(path)}' is missing", hint=rule) from None
        raise
    if found.usb_device is found and "bus/usb/" not in word:
        return nodes_of_usb(found, survey)
    return found
