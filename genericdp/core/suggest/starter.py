"""Rules for everything that no rule matches yet: a first draft for a new machine.

The rules of this file:

* Units of one model become one resource. For a single unit, there is `genericdp suggest DEVICE`.
* Everything left out is counted with the reason, see `left_out`.
* It fits on a screen, even for a board with hundreds of device nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import named_unit_of
from genericdp.core.explain.selection import is_hub
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.place import unit_of
from genericdp.core.rules.resource import Resource
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.cautions import consoles_of
from genericdp.core.suggest.clues import By, details_of_all, kind_of
from genericdp.core.suggest.conditions import Conditions, joined, joined_all
from genericdp.core.suggest.left_out import POPULAR, SELDOM, TERMINALS, why_left_out
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.reasons import listed
from genericdp.core.suggest.suggestion import DIRECTORY, suggest_for, table_of, with_companions
from genericdp.core.suggest.title import name_of, taken_by, title_of
from genericdp.core.suggest.units.camera import all_sensors, is_stream, is_subdevice, processor_of, streams_of
from genericdp.core.suggest.units.companions import is_companion
from genericdp.core.suggest.units.models import model_of_any, named_model_of
from genericdp.core.suggest.units.siblings import Siblings, is_printer, others_of, siblings_of
from genericdp.errors import GenericdpError

#: Where to save the file, unless the operator knows better: after the existing rules.
FILE = f"{DIRECTORY}/90-found.toml"

_DRAFT = f"Save it as {FILE}, without what no pod needs."
#: More names than this never fit into a line.
_MOST_NAMES = 12
_FURTHER = "further nodes of cameras and printers"
#: Their rules are long, because several parts of the board belong to them.
_CAMERAS = "cameras with an image processor"
_NOTHING = "No device of this machine needs a rule."
_LEFT_OUT = "Left out; 'genericdp suggest DEVICE' writes a rule for any of these:"


@dataclass(frozen=True, slots=True)
class Starter:
    """A rule file for what no rule matches.

    chapters   the lines of each resource with the comments above it
    left_out   (why, device nodes) of what no rule was written for
    unwritten  of what no rule can be written for, why
    """

    chapters: tuple[tuple[str, ...], ...]
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    unwritten: tuple[str, ...]

    @property
    def text(self) -> str:
        """The rule file, with comments. It is short: an operator reads it on one screen."""
        lines = list(rule_text.comment(_DRAFT)) if self.chapters else []
        for chapter in self.chapters:
            lines += chapter
        for why in self.unwritten:
            lines += rule_text.comment(why)
        lines = lines or list(rule_text.comment(_NOTHING))
        if self.left_out:
            lines += rule_text.comment(_LEFT_OUT)
            lines += (_in_a_line(why, paths) for why, paths in self.left_out)
        return "".join(f"{line}\n" for line in lines)


def _in_a_line(why: str, paths: Sequence[str]) -> str:
    """As many of the device nodes as fit in a line, and how many more there are."""
    popular = [path for path in POPULAR if path in paths]
    names = [*popular, *(path for path in paths if path not in popular)]
    names = [path.removeprefix("/dev/") for path in names]
    lines = [
        for_terminal(f"#   {why}: {listed(names, most)}")
        for most in range(min(len(names), _MOST_NAMES), 0, -1)
    ]
    return next((line for line in lines if len(line) <= rule_text.WIDTH), lines[-1])


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
    offered = {node.device_node or "" for group in groups.values() for node in group.nodes}
    left = {
        why: rest for why, paths in left.items() if (rest := [path for path in paths if path not in offered])
    }
    names = taken_by(resources)
    unwritten: list[str] = []
    chapters = tuple(_chapters(tuple(groups.values()), present, names, unwritten))
    left_out = tuple((why, tuple(paths)) for why, paths in left.items())
    return Starter(chapters, left_out, tuple(unwritten))


def _why_not(group: Siblings, node: UdevDevice, present: Present, claims: Claims) -> str:
    """Why no rule is written for a device node; "" when one is."""
    if why := why_left_out(node):
        return why
    if consoles_of([node], present.nodes):
        return TERMINALS
    if processor_of(group.nodes, present.nodes):
        return _CAMERAS
    if is_companion(node, present.nodes) or _is_of_the_camera(node, present):
        return "go along with other devices"
    if any(claims.on(each) or claims.judged(each).shares for each in group.nodes):
        return "of devices that rules match in part"
    if node.usb_device is node:
        below = f"{node.sys_path}/"
        inside = [each for each in present.nodes if each.sys_path.startswith(below)]
        if inside or is_hub(node):
            return "raw USB nodes of hubs and others"
    streams = streams_of(node, present.nodes)
    if streams and streams[0] is not node and (is_stream(node) or node.subsystem in ("input", "media")):
        return _FURTHER
    if is_subdevice(node) and len(group.nodes) == 1:
        return _FURTHER
    if is_printer(node) and any(_comes_before(each, node) for each in others_of(node, present.nodes)):
        return _FURTHER
    if node.subsystem == "drm" and not any("renderD" in each.sys_name for each in group.nodes):
        return SELDOM
    return ""


def _is_of_the_camera(node: UdevDevice, present: Present) -> bool:
    """Whether it is the node of a sensor that goes along with the only camera of a board."""
    return is_subdevice(node) and any(
        all_sensors(siblings_of(each, present.nodes).nodes, present.nodes)
        for each in present.nodes
        if each.subsystem == "media"
    )


def _comes_before(other: UdevDevice, node: UdevDevice) -> bool:
    """Whether it is the way to the same printer that makers mean, the one with the lower interface."""
    return is_printer(other) and other.sys_path < node.sys_path


def _chapters(
    groups: tuple[Siblings, ...], present: Present, names: set[str], unwritten: list[str]
) -> Iterator[tuple[str, ...]]:
    """A chapter for each kind of group. `unwritten`: where to add why there can be none for a group."""
    told: set[frozenset[str]] = set()
    for alike in _alike(groups):
        chapter = _for_model(alike, present, names)
        if chapter:
            yield chapter
            continue
        for group in alike:
            name = name_of(group, names, present.nodes)
            try:
                suggestion = suggest_for(group, present, name)
            except GenericdpError as error:
                unwritten.append(f"Missing: {error}: {error.hint}.")
                continue
            names.add(name)
            rivals = frozenset({*group.paths, *suggestion.rivals})
            # Of devices that nothing distinguishes, the first one says so.
            caution = suggestion.reasons[:1] if suggestion.by is By.ARRIVAL and rivals not in told else ()
            told.add(rivals)
            yield (*rule_text.comments(caution), *_shortened(suggestion.table, [*_headings((group,))]))


def _alike(groups: tuple[Siblings, ...]) -> list[list[Siblings]]:
    """The groups of units of one model together, in the order of the first ones."""
    found: dict[object, list[Siblings]] = {}
    for group in groups:
        model = model_of_any(group)
        named = joined(kind_of(group), joined(model, named_model_of(group.nodes[0])))
        key: object = (repr(named), group.group_by) if model else group.sys_paths
        found.setdefault(key, []).append(group)
    return list(found.values())


def _for_model(alike: list[Siblings], present: Present, names: set[str]) -> tuple[str, ...]:
    """The one resource for all units of a model; () when a rule for it would take more."""
    first = alike[0]
    model = model_of_any(first)
    everything = frozenset().union(*(group.sys_paths for group in alike))
    name = name_of(first, names, present.nodes, several=len(alike) > 1)
    details: list[Conditions] = [{}]
    if len(alike) == len(everything):
        # Of each unit, the same part.
        details += filter(present.lasts, details_of_all([group.nodes[0] for group in alike]))
    for named, one, other in product(({}, named_model_of(first.nodes[0])), details, details):
        conditions = joined_all(kind_of(first), (model, named, one, other))
        table = (*table_of(name, first, conditions, present.domain), *with_companions(first, present))
        if model and present.taken_by_rule("\n".join(table)) == everything:
            names.add(name)
            return (*_of_ports(alike), *_shortened(table, [*_headings(tuple(alike))]))
    return ()


def _of_ports(alike: Sequence[Siblings]) -> Iterator[str]:
    """A comment for a resource that takes several serial ports of one unit: what they lead to may differ."""
    ports = [group.nodes[0] for group in alike if group.nodes[0].subsystem == "tty"]
    if len(ports) > len({unit_of(port).sys_path for port in ports}):
        yield from rule_text.comment(
            f"A pod gets any of these ports. For one: 'genericdp suggest {ports[0].device_node}'."
        )


def _shortened(table: Sequence[str], headings: Sequence[str]) -> Iterator[str]:
    """A resource table with what it takes, and without what a draft does not need: the other remarks."""
    for line in table:
        key = line.partition("  # ")[0]
        if line.startswith("name = "):
            lines = (f"{key}  # {heading}" for heading in headings)
            fits = next((each for each in lines if len(each) <= rule_text.WIDTH), None)
            yield from rule_text.remarked(key, headings[-1]) if fits is None else (fits,)
        elif line and not line.startswith("#"):
            yield key if line.startswith(("group_by = ", "shared = ")) else line


def _unit_of(group: Siblings) -> UdevDevice:
    node = group.nodes[0]
    return node.usb_device or named_unit_of(node) or node


def _headings(groups: tuple[Siblings, ...]) -> Iterator[str]:
    """What a resource takes, the longest text first: what it is, and the first of its device nodes."""
    paths = [path for group in groups for path in group.paths]
    number, units = len(groups), len({_unit_of(group).sys_path for group in groups})
    # One chip may have several ports.
    several = "" if number == 1 else f", {number} {'units' if units == number else 'devices'}"
    for with_maker in (True, False):
        title = title_of(groups[0].nodes[0], with_maker=with_maker)
        for most in (2, 1):
            yield for_terminal(f"{title}{several}: {listed(paths, most)}")
    yield listed(paths, 2)
    yield listed(paths, 1)
