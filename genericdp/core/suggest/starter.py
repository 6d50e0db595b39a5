"""Rules for everything that no rule matches yet: a first draft for a new machine.

The rules of this file:

* Units of one model become one resource. For a single unit, there is `genericdp suggest DEVICE`.
* Everything left out is named with the reason: nodes that every container has, nodes that the machine needs
  for itself, and nodes that give control of the host.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, is_dangerous
from genericdp.core.inventory.identity import natural
from genericdp.core.rules.resource import Resource
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.clues import By, joined, kind_of, model_of
from genericdp.core.suggest.companions import is_companion
from genericdp.core.suggest.reasons import listed
from genericdp.core.suggest.siblings import Siblings, siblings_of
from genericdp.core.suggest.suggestion import DIRECTORY, Present, suggest_for, table_of
from genericdp.core.suggest.title import name_of, taken_by, title_of

#: Devices that the runtime gives to every container (OCI runtime specification, default devices).
_IN_EVERY_CONTAINER = frozenset({"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx"})
_CONSOLES = re.compile(r"tty\d+|vcs[au]?\d*")


#: Where to save the file, unless the operator knows better: after the existing rules.
FILE = f"{DIRECTORY}/90-found.toml"

_DRAFT = (
    "A first draft for the devices of this machine that no rule matches yet, with one resource for each "
    "kind of device. Rename the resources as you like, and delete those that no pod needs. For a single "
    "unit: 'genericdp suggest DEVICE'."
)
_NOTHING = "No device of this machine needs a rule."

#: More names of one kind than this do not help.
_NAMES = 12


@dataclass(frozen=True, slots=True)
class Starter:
    """A rule file for what no rule matches.

    chapters  the lines of each resource with the comments above it
    left_out  (why, device nodes) of what no rule was written for
    """

    chapters: tuple[tuple[str, ...], ...]
    left_out: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        """The rule file, with comments."""
        lines = list(rule_text.comments((FILE, _DRAFT) if self.chapters else (_NOTHING,)))
        for chapter in self.chapters:
            lines += ["", *chapter]
        if self.left_out:
            reasons = (f"{why}: {listed(paths, _NAMES)}" for why, paths in self.left_out)
            lines += ["", *rule_text.comments(("Left out:", *reasons))]
        return "".join(f"{line}\n" for line in lines)


def starter(present: Present, resources: Sequence[Resource], claims: Claims) -> Starter:
    """The starter file for the device nodes that these rules leave."""
    left: dict[str, list[str]] = {}
    groups: dict[frozenset[str], Siblings] = {}
    for node in sorted(present.nodes, key=lambda each: natural(each.device_node or "")):
        judged = claims.judged(node)
        if judged.claims or judged.shares or not node.initialized:
            continue
        group = siblings_of(node, present.nodes)
        why = _why_not(group, node, present, claims)
        if why:
            left.setdefault(why, []).append(node.device_node or "")
        else:
            groups[group.sys_paths] = group
    names = taken_by(resources)
    chapters = tuple(_chapters(tuple(groups.values()), present, names))
    return Starter(chapters, tuple((why, tuple(paths)) for why, paths in left.items()))


def _why_not(group: Siblings, node: UdevDevice, present: Present, claims: Claims) -> str:
    """Why no rule is written for a device node; "" when one is."""
    if is_dangerous(node):
        return "Each of these gives control of the host"
    if node.devname in _IN_EVERY_CONTAINER:
        return "Every container has these anyway"
    if node.sys_path.startswith("/sys/devices/virtual/") and _CONSOLES.fullmatch(node.devname):
        return "Consoles of the machine"
    if is_companion(node, present.nodes):
        return "These go along with other devices"
    if any(claims.on(each) for each in group.nodes):
        return "Further nodes of devices that rules match in part"
    if node.usb_device is node:
        below = f"{node.sys_path}/"
        inside = [each for each in present.nodes if each.sys_path.startswith(below)]
        if _is_hub(node) or any(each.usb_device is each for each in inside):
            return "USB hubs"
        if inside:
            return "Raw USB nodes of devices that have other nodes"
    return ""


def _is_hub(usb: UdevDevice) -> bool:
    # TYPE is class/subclass/protocol of a USB device; hubs are class 9.
    return usb.properties.get("TYPE", "").startswith("9/") or usb.attributes.get("idVendor") == "1d6b"


def _chapters(groups: tuple[Siblings, ...], present: Present, names: set[str]) -> Iterator[tuple[str, ...]]:
    """A chapter for each kind of group."""
    for alike in _alike(groups):
        chapter = _for_model(alike, present, names) if alike[0].nodes[0].usb_device is not None else ()
        if chapter:
            yield chapter
            continue
        for group in alike:
            suggestion = suggest_for(group, present, _new_name(group, names))
            why = () if suggestion.by is By.NAME else suggestion.reasons
            yield (*rule_text.comments((_heading((group,)), *why)), *suggestion.table)


def _alike(groups: tuple[Siblings, ...]) -> list[list[Siblings]]:
    """The groups of units of one model together, in the order of the first ones."""
    found: dict[object, list[Siblings]] = {}
    for group in groups:
        usb = group.nodes[0].usb_device
        key: object = group.sys_paths
        if usb is not None:
            key = repr(joined(kind_of(group), model_of(usb))), group.group_by
        found.setdefault(key, []).append(group)
    return list(found.values())


def _for_model(alike: list[Siblings], present: Present, names: set[str]) -> tuple[str, ...]:
    """The one resource for all units of a USB model; () when a rule for it would take more."""
    first = alike[0]
    usb = first.nodes[0].usb_device
    everything = frozenset().union(*(group.sys_paths for group in alike))
    conditions = joined(kind_of(first), model_of(usb) if usb is not None else {})
    name = name_of(first, names)
    table = table_of(name, first, conditions, present.domain)
    if present.taken_by_rule("\n".join(table)) != everything:
        return ()
    names.add(name)
    return (*rule_text.comment(_heading(tuple(alike))), *table)


def _new_name(group: Siblings, names: set[str]) -> str:
    name = name_of(group, names)
    names.add(name)
    return name


def _heading(groups: tuple[Siblings, ...]) -> str:
    title = title_of(groups[0].nodes[0])
    if len(groups) > 1:
        title = f"{title}, {len(groups)} units"
    return f"{title}: {', '.join(path for group in groups for path in group.paths)}"
