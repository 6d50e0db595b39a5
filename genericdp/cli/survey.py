"""Surveys this machine: its devices and what the rules do with them, without a daemon and without root.

The rules of this file:

* It uses what the daemon uses: the same rules, the same udev, the same pure core and, if it is permitted to
  read them, the daemon's memory and what it keeps of rule files that have a mistake now. So `list` shows what
  the daemon would offer.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from genericdp.cli.options import open_rules
from genericdp.cli.output import Output
from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import NAME_ATTRIBUTES
from genericdp.core.explain.selection import TYPE_ATTRIBUTES
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.plugged import ALL_READ
from genericdp.core.memory.absence import WITHOUT_RULE
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.node_names import NO_NAMES, NodeNames, names_in
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.suggest.clues import CLUE_ATTRIBUTES
from genericdp.errors import GenericdpError
from genericdp.files.directories import before_edit
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.state import StateFile, this_boot

#: Why pods would lose a device, if all rules of this machine are known.
NOT_DEFINED = "no rule would define the resource"


def survey_of(
    settings: Settings,
    resources: tuple[Resource, ...],
    devices: Mapping[str, UdevDevice],
    memory: Memory | None = None,
    *,
    unread: Mapping[str, str] = ALL_READ,
) -> Survey:
    """What these rules do with these devices, with what the daemon remembers.

    unread  the paths of what cannot be read
    """
    builder = Builder(resources, settings.domain, settings.answer)
    inventory, after = take_inventory(builder, devices, memory or Memory(), time.monotonic(), unread=unread)
    return Survey(settings, resources, devices, builder.claims, inventory, after)


def look(*, rules: list[str], config: str | None, domain: str | None, shown: NodeNames = NO_NAMES) -> Survey:
    """Read rule files, udev, /dev and the daemon's memory. Raises ConfigError, GenericdpError.

    shown  bare nodes that are looked at although no rule names them

    Problems in rule files are in `problems`; the good files are still used.
    """
    # Here and not above: `--help` should not have to load libudev.
    from genericdp.machine.devices import MachineDevices  # noqa: PLC0415

    settings, files = open_rules(rules, config, domain)
    # Files that are named on the command line need not be those of the daemon.
    kept = () if rules else _resumed(files, settings)
    devices = MachineDevices(
        files.resources, shown=shown, names=NAME_ATTRIBUTES | TYPE_ATTRIBUTES | CLUE_ATTRIBUTES
    )
    memory, remarks = remembered(settings)
    remarks = (*remarks, *kept)
    devices.remember(lambda: memory.devices)
    devices.resync()
    if devices.unread is not None:
        remarks = (*remarks, "; ".join(filter(None, (str(devices.unread), devices.unread.hint))))
    if devices.unseen is not None:
        remarks = (*remarks, f"{devices.unseen}; {devices.unseen.hint}")
    unread = ALL_READ if devices.unread is None else devices.unread.paths
    survey = survey_of(settings, files.resources, devices.devices, memory, unread=unread)
    return replace(survey, problems=files.problems, remarks=remarks)


def _resumed(files: RuleFiles, settings: Settings) -> tuple[str, ...]:
    """Let what the daemon keeps of files with mistakes be in effect; a remark about each of them."""
    if not any(problem.severity == "error" for problem in files.problems):
        return ()
    try:
        files.resume(before_edit(settings).state_dir)
        files.reload()
    except GenericdpError as error:
        return (f"{error}; the daemon may still use the last good version of a rule file with mistakes",)
    return tuple(
        f"the last good version of {file.path} is shown: the daemon keeps it in effect"
        for file in files.files
        if file.digest and not file.is_good
    )


def remembered(settings: Settings) -> tuple[Memory, tuple[str, ...]]:
    """What the daemon remembers, or a remark about the consequences of not knowing it."""
    try:
        before = before_edit(settings)
        return StateFile(before.state_dir, this_boot(), before.link_dir).load(), ()
    except GenericdpError as error:
        return Memory(), (f"{error}; unplugged devices are not shown, and ids of twins may differ",)


@dataclass(frozen=True, slots=True)
class Affected:
    """A device of this machine that some rules keep from pods, and why."""

    resource: str
    id: str
    reason: str


def affected(
    settings: Settings, resources: tuple[Resource, ...], *, are_all: bool
) -> tuple[tuple[Affected, ...], tuple[Affected, ...]]:
    """The devices that would have to wait with these rules, and those that pods would lose.

    A container with a lost device keeps running, but cannot start again. Nothing is known of either if the
    daemon's memory cannot be read.

    are_all  whether these are all of this machine's rules: only then can a resource be called missing
    """
    memory, remarks = remembered(settings)
    if remarks or not memory.held:
        return (), ()
    # Here and not above: `check` runs on machines without libudev.
    from genericdp.machine.devices import MachineDevices  # noqa: PLC0415

    devices = MachineDevices(resources)
    devices.remember(lambda: memory.devices)
    devices.resync()
    inventory = survey_of(settings, resources, devices.devices, memory).inventory
    waiting = tuple(
        Affected(name, id_, reason)
        for name, offer in inventory.offers.items()
        for id_, reason in (
            *((device.id, offer.why_waiting(device)) for device in offer.devices),
            *inventory.refused_until_pods_go(name).items(),
        )
        if reason
    )
    held = {holding.device for holding in memory.held.values()}
    lost = [
        Affected(name, device.id, device.reason)
        for name, offer in inventory.offers.items()
        for device in offer.devices
        if device.reason in WITHOUT_RULE and device.id in held
    ]
    if are_all:
        lost += [Affected(orphan.resource, orphan.id, NOT_DEFINED) for orphan in inventory.orphans]
    return waiting, tuple(lost)


@dataclass(frozen=True, slots=True)
class BareNode:
    """A device node of this machine that some rules take and udev does not know; why it is refused, or ""."""

    node: str
    resource: str
    refusal: str


def bare_nodes(resources: tuple[Resource, ...]) -> tuple[BareNode, ...]:
    """The bare nodes of this machine that these rules take. Needs neither udev nor libudev."""
    names = names_in(resources)
    if not names:
        return ()
    # Here and not above: most rules name no node.
    from genericdp.machine.bare_nodes import BareNodes  # noqa: PLC0415

    bare, claims = BareNodes(names), Claims(resources)
    bare.resync()
    bare.judge({})
    return tuple(
        BareNode(path, claim.resource.name, device.refusal)
        for path, device in bare.devices.items()
        for judged in (claims.judged(device),)
        for claim in (*judged.claims[:1], *judged.shares)
    )


def show_reservations(survey: Survey, output: Output) -> int:
    """Print problems and remarks; the exit status that goes with them, 0 or 1."""
    for problem in survey.problems:
        output.problem(problem)
    for remark in survey.remarks:
        output.paragraph(f"note: {remark}")
    return 1 if any(problem.severity == "error" for problem in survey.problems) else 0
