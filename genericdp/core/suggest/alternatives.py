"""What an operator may want instead of a whole device, or instead of the one node of several that was named.

The rules of this file:

* An alternative is a match to be written instead of the rule's own, with its `group_by` if it has one. Every
  other line of the rule stays.
* What is offered has been tried, like the rule: it takes exactly the nodes that its remark names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.identity import natural
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.clues import clues, details
from genericdp.core.suggest.conditions import Conditions, joined, one_or_more
from genericdp.core.suggest.quoting import exactly, toml
from genericdp.core.suggest.reasons import listed
from genericdp.core.suggest.units.camera import (
    has_pictures,
    is_depth_camera,
    is_stream,
    streams_of,
)
from genericdp.core.suggest.units.disks import commands_of, is_disc_drive, rest_of_drive
from genericdp.core.suggest.units.purposes import purpose_of
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


@dataclass(frozen=True, slots=True)
class Alternative:
    """A match for other nodes of the unit.

    paths     the device nodes that it takes
    about     what these are, or ""
    group_by  how the rule says that they make one device, if the rule has only one node; or ""
    """

    conditions: Conditions
    paths: tuple[str, ...]
    about: str
    group_by: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """What replaces the match."""
        grouping = (
            (f"group_by = {self.group_by if self.group_by.startswith('{') else toml(self.group_by)}",)
            if self.group_by
            else ()
        )
        return (*rule_text.match_lines(self.conditions), *grouping)

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
    found = [
        Alternative(changed, whole.paths, about, whole.group_by)
        for whole, about, matches in _whole(group.nodes[0], conditions, nodes)
        for changed in [each for each in matches if taken_by(each) == whole.sys_paths][:1]
    ]
    for part, more in _parts(group, nodes):
        paths = frozenset(node.sys_path for node in part)
        for detail in more:
            changed = _changed(conditions, detail)
            if taken_by(changed) == paths and paths != group.sys_paths:
                names = tuple(node.device_node or "" for node in part)
                found.append(Alternative(changed, names, purpose_of(part, group)))
                break
    return tuple(found[:_MOST])


def _whole(
    node: UdevDevice, conditions: Conditions, nodes: Sequence[UdevDevice]
) -> Iterator[tuple[Siblings, str, Iterable[Conditions]]]:
    """More nodes than the one as one device, for what, and matches that may take them."""
    usb = node.usb_device
    if usb is not None and is_depth_camera(node, nodes):
        every = [
            each
            for each in nodes
            if each.sys_path.startswith(f"{usb.sys_path}/") and each.initialized and not is_dangerous(each)
        ]
        whole = Siblings("usb_device", tuple(sorted(every, key=lambda each: natural(each.device_node or ""))))
        subsystems = one_or_more({each.subsystem for each in every})
        yield (
            whole,
            "all of it, for libraries of depth cameras",
            [_changed(conditions, {"SUBSYSTEM": subsystems})],
        )
    for command in commands_of(node, nodes) if is_disc_drive(node) else ():
        both = {"SUBSYSTEM": one_or_more({node.subsystem, command.subsystem})}
        # udev has the serial number of the drive for one of them.
        matches = [conditions, *(clue.conditions for clue in clues(command))]
        whole = Siblings('{ DEVTYPE = "scsi_device" }', (node, command))
        yield (
            whole,
            "for programs that also send commands to the drive",
            [_changed(each, both) for each in matches],
        )


def _changed(conditions: Conditions, detail: Conditions) -> Conditions:
    """A match with these conditions, for nodes that a detail tells."""
    changed = joined(_without(conditions, detail), detail)
    return {"SUBSYSTEM": changed["SUBSYSTEM"], **changed} if "SUBSYSTEM" in changed else changed


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
    tuners = sorted({node.devname.rpartition("/")[0] for node in kinds.get("dvb", ())}, key=natural)
    for folder in tuners if len(tuners) > 1 else ():
        tuner = tuple(node for node in kinds["dvb"] if node.devname.startswith(f"{folder}/"))
        yield tuner, [{"SUBSYSTEM": "dvb", "DEVNAME": f"/dev/{folder}/*"}]
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
    shown = {*group.paths, *(path for each in instead if not each.group_by for path in each.paths)}
    first = group.nodes[0]
    others = (*others_of(first, nodes), *commands_of(first, nodes))
    raw = [path] if len(group.nodes) == 1 and (path := _raw_beside(first, nodes)) else []
    rest = [each for each in others if each.device_node not in {*shown, *raw}]
    # Further ones of its kind come first.
    rest.sort(key=lambda each: (each.subsystem != first.subsystem, natural(each.device_node or "")))
    return (*raw, *(each.device_node or "" for each in rest))


def _raw_beside(node: UdevDevice, nodes: Iterable[UdevDevice]) -> str:
    """The raw USB node that some programs open instead of the one node of a driver; "" if none do.

    Programs for HIDs and depth cameras use either. Else the unit has an interface for programs, beside that
    of the node.
    """
    usb, own = node.usb_device, node.usb_interface
    if usb is None or usb is node or own is None or node.subsystem in ("block", "printer"):
        return ""
    kinds = set(usb.properties.get("ID_USB_INTERFACES", "").strip(":").split(":"))
    mine = "".join(
        f"{int(number):02x}" for number in own.properties.get("INTERFACE", "").split("/") if number
    )
    has_more = any(kind[:2] in _OF_PROGRAMS for kind in kinds - {mine})
    is_either = node.subsystem == "hidraw" or is_depth_camera(node, nodes)
    return (usb.device_node or "") if has_more or is_either else ""


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
        yield from (f"# {line}" for line in each.lines)


def _what(first: UdevDevice, instead: Sequence[Alternative]) -> str:
    if is_stream(first):
        only_streams = all(each.conditions.get("SUBSYSTEM") == first.subsystem for each in instead)
        if any(each.group_by for each in instead):
            return "more or less of the camera"
        return "another stream of the camera" if only_streams else "another part of the camera"
    if is_printer(first):
        return "another way to the printer"
    if first.subsystem == "block":
        return "more of the drive" if all(each.group_by for each in instead) else "another part of the drive"
    return "a part of it"
