"""What an operator may want instead of a whole device, or instead of the one node of several that was named.

The rules of this file:

* An alternative is a match to be written instead of the rule's own. Every other line of the rule stays.
* What is offered has been tried, like the rule: it takes exactly the nodes that its remark names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.camera import has_pictures, is_infrared, is_stream, streams_of
from genericdp.core.suggest.clues import Conditions, details, joined
from genericdp.core.suggest.reasons import listed
from genericdp.core.suggest.siblings import Siblings

#: More alternatives than this are no help.
_MOST = 8

#: What a part of a device is for, by the beginning of the names of its nodes.
_FOR = {
    "dri/renderD": "to compute and to encode, without the display",
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
    kept = {
        key: value for key, value in conditions.items() if key in ("SUBSYSTEM", "usb", "parent", "DEVPATH")
    }
    if isinstance(usb, dict):
        kept["usb"] = {key: value for key, value in usb.items() if key != "interface"}
    if "SUBSYSTEM" in detail:
        kept.pop("SUBSYSTEM", None)
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
    ports = kinds.get("tty", ())
    for port in ports if len(ports) > 1 else ():
        yield (port,), [{"SUBSYSTEM": "tty", **detail} for detail in details(port)]
    if first.subsystem == "drm":
        renders = tuple(node for node in group.nodes if node.sys_name.startswith("renderD"))
        yield renders, [{"DEVNAME": "/dev/dri/renderD*"}]


def _about(part: Sequence[UdevDevice], group: Siblings) -> str:
    """What a part of a device is for; "" when its names say it."""
    first = part[0]
    if is_stream(first):
        return "infrared" if is_infrared(first) else "" if has_pictures(group.nodes[0]) else "the pictures"
    ttys = [node for node in group.nodes if node.subsystem == "tty"]
    if first.subsystem == "tty" and len(part) < len(ttys):
        words = [word for name, word in _PORTS.items() if first.properties.get(name) == "1"]
        return words[0] if words else ""
    return next((text for name, text in _FOR.items() if first.devname.startswith(name)), "")
