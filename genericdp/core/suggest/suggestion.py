"""The smallest rule that matches exactly one device, with its reasons.

The rules of this file:

* What is printed has been tried: each candidate is written as text and read by the parser, and the first that
  matches exactly these nodes is the suggestion.
* Candidates go from lasting clues to others, and from few conditions to more.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, is_dangerous
from genericdp.core.inventory.identity import natural
from genericdp.core.suggest import rule_text
from genericdp.core.suggest.alternatives import Alternative, alternatives, lines_of, rest_of
from genericdp.core.suggest.cautions import can_be_shared, consoles_of, what_it_can_do
from genericdp.core.suggest.clues import (
    By,
    Clue,
    by_arrival,
    clues,
    details_of_all,
    identity_of,
    kind_of,
    lasting_place,
    names_of,
)
from genericdp.core.suggest.conditions import Conditions, joined, joined_all
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.quoting import exactly, toml
from genericdp.core.suggest.reasons import is_for_libusb, of_drivers, reasons
from genericdp.core.suggest.title import in_kernels_case, name_of, title_of
from genericdp.core.suggest.units.camera import (
    all_sensors,
    has_pictures,
    is_stream,
    is_subdevice,
    processor_of,
    sensors_beside,
)
from genericdp.core.suggest.units.companions import companions_of
from genericdp.core.suggest.units.disks import is_part_of_drive
from genericdp.core.suggest.units.siblings import Siblings, alone, siblings_of
from genericdp.errors import GenericdpError

#: At most this many details of a node: each more makes eight times as many candidates.
_MOST_DETAILS = 3

#: Programs are told the path of one of these. For anything else, libraries look for the kernel's name.
_TAKES_A_PATH = frozenset({"tty", "macvtap", "ipvtap", "printer"})

#: What tells the ports of a modem apart, for as long as its firmware is the same.
_INTERFACE = "ID_USB_INTERFACE_NUM"

#: Where to save a suggestion, unless the operator knows better.
DIRECTORY = "/etc/genericdp/rules.d"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule for one device.

    name     the resource's, without its domain
    group    the device nodes that it takes
    by       the kind of clue that it knows them by; ARRIVAL does not last
    rivals   the device nodes that no better clue than `by` tells it apart from
    table    the lines of the resource table
    instead  what the operator may want instead
    beside   the device nodes that programs may open as well, and that the rule does not take
    rest     the other device nodes of its unit
    consoles the kernel's names of those of its nodes that are consoles of the kernel
    others   the device nodes of the model that a detail tells apart from its own
    drivers  (name, the network interfaces and Bluetooth adapters that it has made) of each driver of the
             kernel that has the USB device without a device node
    """

    name: str
    group: Siblings
    by: By
    rivals: tuple[str, ...]
    table: tuple[str, ...]
    domain: str
    instead: tuple[Alternative, ...] = ()
    beside: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    consoles: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    drivers: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def file(self) -> str:
        """Where to save it."""
        return f"{DIRECTORY}/50-{self.name}.toml"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What it takes and why it is written so, a paragraph each."""
        more = {"beside": self.beside, "rest": self.rest, "consoles": self.consoles, "others": self.others}
        return (*reasons(self.group, self.by, self.rivals, **more), *of_drivers(self.drivers))

    def remarks(self, claims: Claims) -> tuple[str, ...]:
        """How existing rules are affected, a sentence each."""
        takers: dict[str, list[str]] = {}
        for node in self.group.nodes:
            for claim in claims.on(node)[:1]:
                takers.setdefault(claim.resource.name, []).append(node.device_node or "")
        return tuple(
            f"{name} already matches {', '.join(paths)}; if two rules match a node, the first in file "
            "order gets it"
            for name, paths in takers.items()
        )

    @property
    def text(self) -> str:
        """The rule file, with comments."""
        title = f"{title_of(self.group.nodes[0])}: {', '.join(self.group.paths)}"
        own = (*self.table, "").index("")
        table = (*self.table[:own], *lines_of(self.group, self.instead), *self.table[own:])
        lines = [*rule_text.comments((self.file, title, *self.reasons)), "", *table]
        return "".join(f"{line}\n" for line in lines)


def suggest(
    node: UdevDevice, present: Present, *, taken: Collection[str] = (), by_itself: bool = False
) -> Suggestion:
    """The rule for the device that a device node belongs to, or, `by_itself`, for the node alone.

    taken  names that the resource must not have

    Raises GenericdpError for a node that udev has not finished with, that no rule can offer, or that shares
    its name with another.
    """
    if not node.initialized:
        raise GenericdpError(
            f"udev has not finished with '{node.device_node}' yet",
            hint="try again in a moment; if udevd started after the device, 'udevadm trigger' makes it look",
        )
    if node.refusal:
        raise GenericdpError(f"no rule can offer '{node.device_node}': {node.refusal}")
    whole = siblings_of(node, present.nodes)
    group = alone(node) if by_itself else whole
    is_data = is_stream(node) and not has_pictures(node)
    part = group != whole or is_part_of_drive(node) or is_data or _brings_more(node, present)
    suggestion = suggest_for(group, present, name_of(group, taken, present.nodes, part=part))
    rest = () if by_itself else rest_of(group, suggestion.instead, present.nodes)
    return replace(suggestion, rest=rest, consoles=consoles_of(group.nodes, present.nodes))


def _brings_more(node: UdevDevice, present: Present) -> bool:
    """Whether it is the raw node of a USB device that brings other nodes as well."""
    return node.usb_device is node and any(
        each is not node and (usb := each.usb_device) is not None and usb.sys_path == node.sys_path
        for each in present.nodes
    )


def suggest_for(group: Siblings, present: Present, name: str) -> Suggestion:
    """The rule for these nodes, which make one device. Raises GenericdpError when there is none."""
    wanted = group.sys_paths
    more = (*_each_required(group), *with_companions(group, present))
    tried: dict[By, frozenset[str]] = {}
    for clue, conditions in _candidates(group, present):
        table = (*table_of(name, group, conditions, present.domain, clue.by), *more)
        taken = present.taken_by_rule("\n".join(table))
        if taken == wanted:
            instead = alternatives(group, conditions, present.nodes, present.taken_by)
            # Nodes of the same camera that only the details of this clue exclude are not twins.
            same = tried.pop(clue.by, ())
            others = _paths(same, present) if clue.by is By.MODEL else ()
            rivals = reduce(_nearest, tried.values(), frozenset[str]())
            paths = _paths(rivals, present)
            known = all_sensors(group.nodes, present.nodes)
            beside = () if known else sensors_beside(group.nodes, present.nodes)
            return Suggestion(
                name, group, clue.by, paths, table, present.domain, instead, beside, others=others
            )
        tried[clue.by] = _nearest(tried.get(clue.by, frozenset()), taken - wanted)
    raise GenericdpError(
        f"no rule can distinguish {', '.join(group.paths)} from the other device nodes",
        hint="udev gives one name to several of them; 'udevadm trigger' makes it look again",
    )


def _nearest(before: frozenset[str], now: frozenset[str]) -> frozenset[str]:
    """The rivals that are hardest to exclude: the fewest, and of two equal sets the later."""
    return now if now and (not before or len(now) <= len(before)) else before


def _candidates(group: Siblings, present: Present) -> Iterator[tuple[Clue, Conditions]]:
    """Conditions that hold for the group, the best first; if any take nothing else, these are among them.
    An early one is mostly right, so the later ones are made only when needed.
    """
    kind = kind_of(group)
    if group.is_one_timer:
        yield Clue(By.NAME, {}), names_of(group.nodes)
    elif group.folder:
        yield Clue(By.KIND, {}), joined(kind, {"DEVNAME": f"{exactly(group.folder)}/*"})
    for clue in (*clues(group.nodes[0]), lasting_place(group)):
        if not present.lasts(clue.conditions):
            continue
        # A name is enough by itself.
        conditions = clue.conditions if "DEVNAME" in clue.conditions else joined(kind, clue.conditions)
        yield clue, conditions
        yield from ((clue, joined_all(conditions, more)) for more in _telling(group, conditions, present))
    last = by_arrival(group)
    yield last, last.conditions


def _telling(group: Siblings, conditions: Conditions, present: Present) -> Iterator[Sequence[Conditions]]:
    """Details that distinguish nodes from everything else that these conditions match, few before many;
    last, those that leave the fewest others.
    """
    taken = present.taken_by(conditions)
    details = filter(present.lasts, details_of_all(group.nodes))
    known = [(detail, present.taken_by(detail)) for detail in details]
    nearest: tuple[int, Sequence[Conditions]] = (len(taken), ())
    for count in range(1, min(_MOST_DETAILS, len(known)) + 1):
        for chosen in combinations(known, count):
            left = taken.intersection(*(holds_for for _, holds_for in chosen))
            some = [detail for detail, _ in chosen]
            if left == group.sys_paths:
                yield some
            elif len(left) < nearest[0]:
                nearest = len(left), some
    if nearest[1]:
        yield nearest[1]


def table_of(
    name: str, group: Siblings, conditions: Conditions, domain: str, by: By = By.MODEL
) -> tuple[str, ...]:
    """The resource table, line by line; last, commented out, what an operator may want to add."""
    named = rule_text.key_lines("name", name, f"pods request {domain}/{name}")
    lines = ["[[resource]]", *named, *rule_text.match_lines(conditions)]
    if group.group_by != "node":
        by_match = group.group_by.startswith("{")
        grouping = f"group_by = {group.group_by if by_match else toml(group.group_by)}"
        lines += rule_text.remarked(grouping, "all nodes of a unit make one device")
    identity, why = identity_of(group, conditions, by)
    if identity:
        lines += rule_text.remarked(f"identity = {identity}", why)
    dangerous = any(map(is_dangerous, group.nodes))
    if dangerous:
        lines += rule_text.remarked("allow_dangerous = true", "it gives control of the host")
    if dangerous or what_it_can_do(group.nodes[0]):
        return tuple(lines)
    is_software = by is By.NAME and all(node.is_virtual for node in group.nodes)
    if can_be_shared(group.nodes, is_software=is_software):
        lines.append(rule_text.option("replicas = 10", "how many containers can share it"))
    elif is_for_libusb(group.nodes[0]):
        lines.append(rule_text.option('answer = "cdi"', "its path follows a re-plug"))
    elif by is not By.NAME and all(map(_takes_a_path, group.nodes)):
        numbers = {node.properties.get(_INTERFACE, "") for node in group.nodes}
        path = f"/dev/{in_kernels_case(name, group.nodes[0])}"
        if group.group_by == "node":
            lines.append(rule_text.option(f"container_path = {toml(path)}", "a fixed name in the container"))
        elif len(numbers - {""}) == len(group.nodes):
            lines.append(
                rule_text.option(f"container_path = {toml(f'{path}-if{{{_INTERFACE}}}')}", "fixed names")
            )
    return tuple(lines)


def _takes_a_path(node: UdevDevice) -> bool:
    """Whether programs are told the path of a device node, so that it may have another name."""
    if node.subsystem == "video4linux":
        # Programs look for all decoders, and libcamera for sensors, by the kernel's names.
        return has_pictures(node) and not is_subdevice(node)
    return node.subsystem in _TAKES_A_PATH or node.devname.startswith("usb/lp")


def _each_required(group: Siblings) -> Iterator[str]:
    """A node table for each of several names of one thing: none of them may be missing."""
    for node in group.nodes if group.is_one_timer else ():
        yield from ("", "[[resource.node]]", *rule_text.match_lines(names_of([node])))


def with_companions(group: Siblings, present: Present) -> Iterator[str]:
    """The node tables of what goes along with a device, line by line."""
    for path in companions_of(group.nodes, present.paths):
        yield from ("", "[[resource.node]]", *rule_text.match_lines({"DEVNAME": path}))
        yield from rule_text.remarked("shared = true", "goes along with every device and belongs to none")
    for conditions, remark in (
        (all_sensors(group.nodes, present.nodes), "its sensor, and what is in between"),
        (processor_of(group.nodes, present.nodes), "its image processor"),
    ):
        if conditions:
            yield from ("", "[[resource.node]]", *rule_text.match_lines(conditions))
            yield from rule_text.remarked("shared = true", remark)


def _paths(sys_paths: Iterable[str], present: Present) -> tuple[str, ...]:
    wanted = frozenset(sys_paths)
    paths = (node.device_node or "" for node in present.nodes if node.sys_path in wanted)
    return tuple(sorted(paths, key=natural))
