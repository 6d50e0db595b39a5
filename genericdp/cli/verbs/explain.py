"""`genericdp explain DEVICE`: where a device goes, and why; or why it is not there."""

import argparse
import re
import sys
from collections.abc import Sequence

from genericdp.cli import absent
from genericdp.cli.explanation import as_json, show, where_to
from genericdp.cli.find import find
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.cli.output import Output
from genericdp.cli.survey import Machine, look
from genericdp.cli.usage import UsageError
from genericdp.core.device import UdevDevice
from genericdp.core.explain.explanation import Explanation, explain
from genericdp.core.explain.query import Sought
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.offer import Device
from genericdp.core.rules.pattern import hex_id
from genericdp.errors import GenericdpError

_USB = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,4})(?::(?:(?:0x)?([0-9A-Fa-f]{1,4})|\\*)?)?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain a device: which resource it goes to and why the others do not take it, each "
        "condition with what it wants and what is there, and what a container would get. A device "
        "that is not there is explained by what is known of it, what comes near it, and which rules "
        "wait for it. Needs neither the daemon nor root. Status 1 when no resource offers it."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp explain /dev/ttyUSB0\n"
        "  genericdp explain /dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0\n"
        "  genericdp explain 1-2                the USB device at port 2 of bus 1\n"
        "  genericdp explain --serial A50285BI  plugged in or not\n"
        "  genericdp explain --usb 0403:6001\n"
        "  genericdp explain ftdi_A50285BI      by the id that pods know it by\n"
        "  genericdp explain ftdi               a resource: what it nearly takes\n"
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
    sought = _sought(serial, usb)
    if (device is None) is (sought is None):
        raise UsageError(
            "explain takes one of DEVICE, --serial and --usb",
            hint="'genericdp list --all' shows the device nodes of this machine",
        )
    machine = look(rules=rules, config=config, domain=domain)
    output = Output(sys.stdout)
    found = named(device, machine) if device is not None else described(sought or Sought(), machine)
    if isinstance(found, absent.Absent):
        output.json(absent.as_json(found, machine)) if json else absent.show(found, machine, output)
        return machine.say_reservations(Output(sys.stderr)) or (0 if found.is_offered else 1)
    several = not isinstance(found, UdevDevice)
    subjects = found if not isinstance(found, UdevDevice) else (found,)
    explanations = [explain(each, machine.claims, machine.inventory) for each in subjects]
    if json:
        documents = [as_json(each, machine) for each in explanations]
        output.json({"devices": documents} if several else documents[0])
    else:
        show_all(explanations, machine, output)
    status = machine.say_reservations(Output(sys.stderr))
    return status if any(each.device is not None for each in explanations) else 1


def _sought(serial: str | None, usb: str | None) -> Sought | None:
    if serial is None and usb is None:
        return None
    vendor = product = None
    if usb is not None:
        ids = _USB.fullmatch(usb)
        if ids is None:
            raise UsageError(
                f"'{for_terminal(usb)}' is no USB id", hint="write it as 'lsusb' does: 0403:6001"
            )
        vendor, product = (each and hex_id(each, 4) for each in ids.groups())
    return Sought(serial, vendor, product)


def named(word: str, machine: Machine) -> UdevDevice | Sequence[UdevDevice] | absent.Absent:
    """What a word means: a udev device, all nodes of a USB device, or what is known of one that is not there.

    Raises GenericdpError when it means nothing.
    """
    try:
        found = find(word, machine.devices, machine.settings.link_dir)
    except GenericdpError:
        known = device_of(word, machine) or absent.of_resource(word, machine)
        if known is None:
            raise
        if isinstance(known, absent.Absent):
            return known
        there = (machine.devices.get(node.sys_path) for node in known.nodes)
        return next((node for node in there if node is not None), None) or absent.of_device(known, machine)
    if found.usb_device is found and "bus/usb/" not in word:
        return in_order([node for node in with_nodes(machine) if node.usb_device is found], machine)
    return found


def device_of(word: str, machine: Machine) -> Device | None:
    """The device with this id or link."""
    name = word.removeprefix(f"{machine.settings.link_dir}/")
    for offer in machine.inventory.offers.values():
        for id_, device in offer.ids.items():
            if name in (id_, device.id, *device.links):
                return device
    for known in machine.memory.devices.values():
        if name in (known.device.id, *known.device.links):
            return known.device
    return None


def described(sought: Sought, machine: Machine) -> Sequence[UdevDevice] | absent.Absent:
    """The udev devices that this is true of, those that are offered first; or that there is none."""
    nodes = with_nodes(machine)
    found = sought.among(nodes)
    return in_order(found, machine) if found else absent.of_sought(sought, nodes, machine)


def with_nodes(machine: Machine) -> list[UdevDevice]:
    """The udev devices that have a device node."""
    return [node for node in machine.devices.values() if node.device_node is not None]


def in_order(nodes: Sequence[UdevDevice], machine: Machine) -> Sequence[UdevDevice]:
    """What an operator means most likely comes first: what is offered, then what is no raw USB node."""

    def order(node: UdevDevice) -> tuple[object, ...]:
        return (not machine.claims.on(node), node.usb_device is node, is_dangerous(node), node.sys_path)

    return sorted(nodes, key=order)


def show_all(explanations: Sequence[Explanation], machine: Machine, output: Output) -> None:
    """Of several, each in a line; then everything about the first."""
    if len(explanations) > 1:
        for each in explanations:
            output.paragraph(where_to(each, machine))
        output.line()
    show(explanations[0], machine, output)
