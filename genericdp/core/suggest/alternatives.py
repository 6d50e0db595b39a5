"""What an operator may want instead of a whole device, or instead of the one node of several that was named.

The rules of this file:

* An alternative is a match to be written instead of the rule's own. Every other line of the rule stays.
* What is offered has been tried, like the rule: it takes exactly the nodes that its remark names.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.clues import details
from genericdp.core.suggest.conditions import Conditions, joined
from genericdp.core.suggest.quoting import exactly
from genericdp.core.suggest.reasons import listed
from genericdp.core.suggest.units.camera import has_pictures, is_infrared, is_stream, streams_of
from genericdp.core.suggest.units.disks import about_rest, commands_of, rest_of_drive
from genericdp.core.suggest.units.siblings import Siblings, is_printer, others_of, siblings_of

#: Of these subsystems, each node of a unit may be for another program.
_PORTS_OF = ("tty", "usbmisc", "wwan")

#: The classes of USB interfaces that programs drive themselves: cameras and scanners, smart cards, updates of
#: firmware, and what the maker has invented.
_OF_PROGRAMS = frozenset({"06", "0b", "fe", "ff"})

#: Conditions that the other nodes of a unit satisfy, too.
_OF_THE_UNIT = frozenset({"SUBSYSTEM", "usb", "parent", "DEVPATH", "ID_SERIAL", "ID_WWN"})

#: More alternatives than this are no help.
_MOST = 12

#: What a part of a device is for, by the beginning of the names of its nodes.
_FOR = {
    "dri/renderD": "enough for programs that show nothing on a display",
    "tpmrm": "through the kernel's resource manager, as most programs do",
    "tpm": "for one program at a time",
    "cdc-wdm": "the control port",
    "gpiochip": "the pins alone",
    "tty": "without the rest",
    "hidraw": "for programs that know the device",
    "input/event": "as the kernel understands it",
}


#: What ModemManager's udev rules say of a modem's ports.
_PORTS = {
    "ID_MM_PORT_TYPE_AT_PRIMARY": "the AT port",
    "ID_MM_PORT_TYPE_AT_SECONDARY": "the second AT port",
    "ID_MM_PORT_TYPE_GPS": "the GPS port",
    "ID_MM_PORT_TYPE_QCDM": "the diagnosis port",
}

#: The same of a modem that is not on USB, by the protocol in the name of the port (driver-api/wwan.rst).
_WWAN_PORT = re.compile(r"wwan\d+([a-z]+)\d+")
_WWAN_PORTS = {
    "at": "an AT port",
    "mbim": "the control port",
    "qmi": "the control port",
    "qcdm": "the diagnosis port",
}


@dataclass(frozen=True, slots=True)
class Alternative:
    """A match for other nodes of the unit.

    paths   the device nodes that it takes
    about   what these are, or ""
    """

    conditions: Conditions
    paths: tuple[str, ...]
    about: str

    @property
    def remark(self) -> str:
        """What it takes, for its comment."""
        return f"{listed(self.paths)}{self.about and f', {self.about}'}:"


def alternatives(
    group: Siblings,
    conditions: Conditions,
    nodes: Sequence[UdevDevice],
    taken_by: Callable[[Conditions], frozenset[str]],
) -> tuple[Alternative, ...]:
    """The alternatives to a match with these conditions that takes a group.

    nodes     all device nodes of the machine
    taken_by  the sys paths of those that a match takes
    """
    found: list[Alternative] = []
    for part, more in _parts(group, nodes):
        paths = frozenset(node.sys_path for node in part)
        for detail in more:
            changed = joined(_without(conditions, detail), detail)
            changed = {"SUBSYSTEM": changed["SUBSYSTEM"], **changed} if "SUBSYSTEM" in changed else changed
            if taken_by(changed) == paths and paths != group.sys_paths:
                names = tuple(node.device_node or "" for node in part)
                found.append(Alternative(changed, names, _about(part, group)))
                break
    return tuple(found[:_MOST])


def _without(conditions: Conditions, detail: Conditions) -> Conditions:
    """The conditions that stay: the detail says the same more closely, or says it of another node."""
    usb = conditions.get("usb")
    kept = {key: value for key, value in conditions.items() if key in _OF_THE_UNIT}
    if isinstance(usb, dict):
        kept["usb"] = {key: value for key, value in usb.items() if key != "interface"}
    if "SUBSYSTEM" in detail:
        kept.pop("SUBSYSTEM", None)
    mine, other = kept.get("parent"), detail.get("parent")
    if isinstance(mine, Mapping) and isinstance(other, Mapping) and mine.keys() == other.keys():
        # Of another disk of the drive.
        kept.pop("parent")
    return kept


def _parts(
    group: Siblings, nodes: Sequence[UdevDevice]
) -> Iterator[tuple[tuple[UdevDevice, ...], Iterable[Conditions]]]:
    """Parts of the unit that make sense alone, with what may tell each from the rest."""
    first = group.nodes[0]
    if is_stream(first):
        for other in streams_of(first, nodes):
            if other is not first and has_pictures(other):
                yield (other,), [joined(one, two) for one in details(other) for two in details(other)]
        yield from _besides(first, nodes)
        return
    if is_printer(first):
        yield from _besides(first, nodes)
        raw = first.usb_device
        if raw is not None and raw.device_node is not None:
            yield (raw,), [{"SUBSYSTEM": "usb"}]
        return
    if first.subsystem == "block":
        yield from (((other,), [which]) for other, which in rest_of_drive(first, nodes))
        return
    if group.group_by in ("node", "all"):
        return
    kinds = {
        node.subsystem: tuple(each for each in group.nodes if each.subsystem == node.subsystem)
        for node in group.nodes
    }
    if len(kinds) > 1:
        for subsystem, part in kinds.items():
            yield part, [{"SUBSYSTEM": subsystem}]
    for subsystem in _PORTS_OF:
        ports = kinds.get(subsystem, ())
        for port in ports if len(ports) > 1 else ():
            yield (port,), _alone(port)
    if first.subsystem == "drm":
        renders = tuple(node for node in group.nodes if node.sys_name.startswith("renderD"))
        if renders:
            yield renders, [{"DEVNAME": "/dev/dri/renderD*"}]


def _alone(node: UdevDevice) -> Iterator[Conditions]:
    """What may tell a node from the rest of its unit."""
    for detail in ({}, *details(node)):
        yield {"SUBSYSTEM": exactly(node.subsystem), **detail}


def _besides(
    node: UdevDevice, nodes: Sequence[UdevDevice]
) -> Iterator[tuple[tuple[UdevDevice, ...], Iterable[Conditions]]]:
    """The other nodes of the unit that are each a device of their own, without the data about pictures."""
    for each in others_of(node, nodes):
        if not is_stream(each) and not is_dangerous(each) and len(siblings_of(each, nodes).nodes) == 1:
            yield (each,), _alone(each)


def rest_of(group: Siblings, instead: Sequence[Alternative], nodes: Sequence[UdevDevice]) -> tuple[str, ...]:
    """The device nodes of the unit that neither the rule nor an alternative takes, but a program may want."""
    shown = {*group.paths, *(path for each in instead for path in each.paths)}
    first = group.nodes[0]
    others = (*others_of(first, nodes), *commands_of(first, nodes))
    raw = [path] if len(group.nodes) == 1 and (path := _raw_beside(first)) else []
    return (*raw, *(path for each in others if (path := each.device_node or "") not in {*shown, *raw}))


def _raw_beside(node: UdevDevice) -> str:
    """The raw USB node that some programs open instead of the one node of a driver; "" if none do.

    Programs for HIDs use either. Else the unit has an interface for programs, beside that of the node.
    """
    usb, own = node.usb_device, node.usb_interface
    if usb is None or usb is node or own is None or node.subsystem in ("block", "printer"):
        return ""
    kinds = set(usb.properties.get("ID_USB_INTERFACES", "").strip(":").split(":"))
    mine = "".join(
        f"{int(number):02x}" for number in own.properties.get("INTERFACE", "").split("/") if number
    )
    has_more = any(kind[:2] in _OF_PROGRAMS for kind in kinds - {mine})
    return (usb.device_node or "") if has_more or node.subsystem == "hidraw" else ""


def lines_of(group: Siblings, instead: Sequence[Alternative]) -> Iterator[str]:
    """The alternatives as the comment below a rule."""
    if not instead:
        return
    yield ""
    these = "one of these" if len(instead) > 1 else "this"
    yield from rule_text.comment(f"For {_what(group.nodes[0], instead)}, replace the match by {these}:")
    for each in instead:
        yield "#"
        yield from rule_text.comment(each.remark)
        yield from (f"# {line}" for line in rule_text.match_lines(each.conditions))


def _what(first: UdevDevice, instead: Sequence[Alternative]) -> str:
    if is_stream(first):
        only_streams = all(each.conditions.get("SUBSYSTEM") == first.subsystem for each in instead)
        return "another stream of the camera" if only_streams else "another part of the camera"
    if is_printer(first):
        return "another way to the printer"
    return "another part of the drive" if first.subsystem == "block" else "a part of it"


def _about(part: Sequence[UdevDevice], group: Siblings) -> str:
    """What a part of a device is for; "" when its names say it."""
    first = part[0]
    if is_stream(first):
        return "infrared" if is_infrared(first) else "" if has_pictures(group.nodes[0]) else "the pictures"
    if is_printer(group.nodes[0]):
        return _about_printer(first)
    if group.nodes[0].subsystem == "block":
        return about_rest(first, group.nodes[0])
    ttys = [node for node in group.nodes if node.subsystem == "tty"]
    if first.subsystem == "tty" and len(part) < len(ttys):
        words = [word for name, word in _PORTS.items() if first.properties.get(name) == "1"]
        return words[0] if words else ""
    if port := _WWAN_PORT.fullmatch(first.sys_name):
        return _WWAN_PORTS.get(port[1], "")
    return next((text for name, text in _FOR.items() if first.devname.startswith(name)), "")


def _about_printer(node: UdevDevice) -> str:
    interface = node.usb_interface
    if node.usb_device is node:
        return "for programs that use libusb, such as those that scan"
    # The USB class of printers, its protocol "IPP over USB".
    over_usb = interface is not None and interface.properties.get("INTERFACE") == "7/1/4"
    return "IPP over USB" if over_usb else ""
