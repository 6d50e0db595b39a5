"""What becomes certain once it has lasted a minute.

The rules of this file:

* Until then, two units may be one that has just left and comes back: the kernel may announce it at its new
  port before it is gone from the old one.
* Nothing may be looked at while the time passes. So what was there a minute ago and is there now counts.
* A unit of which nothing can be read is there, too. What was there beside it for a minute is another unit. It
  is taken for the one that was last at its port, unless that was seen to leave or was there beside it for a
  minute; and for any other one once it answers. Nobody knows what has come or left while the daemon was not
  running.
* That it has a twin is a guess until both have been read. Until then, the link of a pod does not lead to the
  supposed twin, and no other pod gets it. The guess is wrong if the unit that hangs turns out to have a
  different serial number. Whatever hangs there later, or after a restart, proves nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from genericdp.core.buses.port import model_of, port_on_a_bus
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.naming.links import short_name
from genericdp.core.inventory.past import WHOLE, Twin, Twins, as_whole
from genericdp.core.inventory.place import USB_NODE, Spot, locate, may_be_model
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.inventory.twins import SideBySide
from genericdp.core.memory.given.ports import ports_of
from genericdp.core.memory.given.units import Apart
from genericdp.core.memory.memory import Memory, Unit
from genericdp.core.memory.remembered import Remembered
from genericdp.core.usb_port import Pairs

#: How long two units are there before they are not one that comes back, in seconds.
TWO_AFTER_S = 60.0


def with_lasting(memory: Memory, now: float) -> Memory:
    """The memory before a step at `now`, with what has lasted a minute.

    Sockets that have held two units are apart, and units that have been side by side are twins. Nothing may
    be looked at until they leave, so the time counts that they were there by then.
    """
    twins = [twin for twin, since in memory.beside.items() if now - since >= TWO_AFTER_S]
    if twins:
        memory = replace(memory, twins=memory.twins.union(twins))
    lasting = {
        slow: replace(pair, new="")
        for slow, (since, pair) in memory.two.items()
        if now - since >= TWO_AFTER_S
    }
    if not lasting:
        return memory
    two = {slow: each for slow, each in memory.two.items() if slow not in lasting}
    return replace(memory, apart={**memory.apart, **lasting}, two=two)


def with_apart(memory: Memory, before: Memory, two: Pairs, now: float) -> Memory:
    """The memory after a step, with the sockets that are apart, and those that may become so.

    before  the memory with which the step began
    """
    # A tie of twins says nothing about a socket.
    ports = ports_of(memory.devices.values())
    apart = {slow: pair for slow, pair in before.apart.items() if {slow, pair.fast} & ports}
    since = {slow: before.two[slow][0] if slow in before.two else now for slow in two}
    return replace(memory, apart=apart, two={slow: (since[slow], pair) for slow, pair in two.items()})


def with_beside(memory: Memory, before: Memory, twins: Twins, now: float) -> Memory:
    """The memory after a step that began with another one, with the units side by side that may be twins."""
    since = {twin: before.beside.get(twin, now) for twin in twins - memory.twins}
    # Of too many, some are not remembered. They have another minute.
    return replace(memory, beside={each: then for each, then in since.items() if now - then < TWO_AFTER_S})


def with_guesses(memory: Memory, before: Memory, suspects: Twins, side_by_side: SideBySide) -> Memory:
    """The memory after a step, with the twins that may be one unit: nobody has read both of them at once.

    suspects  see `twins_of_unread`
    """
    guesses = before.guesses.union(suspects - before.twins)
    guesses = guesses.intersection([*memory.twins, *memory.beside])
    # Both have been read if they had the same device node. When a unit moves, that on USB may go last.
    read = [twin for twin in memory.twins if guesses and twin.within not in (WHOLE, USB_NODE)]
    return replace(memory, guesses=guesses.difference(map(as_whole, (*read, *side_by_side.twins))))


def with_answered(memory: Memory, devices: Mapping[str, UdevDevice], now: float) -> Memory:
    """The memory before a step, with the twins of the units that answer at last, as guesses.

    Each is the twin of a unit of its model, with its serial number, that was there beside it for a minute.
    What answers with another one shows that a unit was not there.
    """
    refuted = _refuted(memory, devices)
    unread = {
        path: {unit: since for unit, since in beside.items() if unit not in refuted}
        for path, beside in memory.unread.items()
    }
    twins: set[Twin] = set()
    for path in unread.keys() & devices.keys():
        this = devices[path]
        serial, model, port = _serial_of(this), model_of(this), port_on_a_bus(this).exact
        for unit, since in unread[path].items():
            is_alike = unit.serial == serial and may_be_model(unit.model, model)
            if is_alike and unit.port != port and now - since >= TWO_AFTER_S:
                twins.add(unit.as_twin)
    guesses = memory.guesses.union(twins - memory.twins)
    return replace(memory, unread=unread, guesses=guesses, twins=memory.twins.union(twins))


def without_guesses(memory: Memory, devices: Mapping[str, UdevDevice]) -> Memory:
    """The memory before a step, without the guesses that are wrong, and those that do not matter any more.

    One is wrong if what hung answers with another serial number. But an id that a pod has got stays. None
    matters while no pod holds such a unit.
    """
    known = (memory.devices[id_] for id_ in memory.held_devices & memory.devices.keys())
    held = {*_units_of(known)}
    needless = memory.guesses.difference(unit.as_twin for unit in held)
    wrong = {
        unit.as_twin
        for unit in memory.refutable.intersection(_refuted(memory, devices))
        if not any(each.as_twin == unit.as_twin and each.port != unit.port for each in held)
    }
    return _without_twins(memory, needless | (memory.guesses & wrong))


def _refuted(memory: Memory, devices: Mapping[str, UdevDevice]) -> frozenset[Unit]:
    """The units that are not what hung, as the serial number says with which it answers."""
    may_be, others = set[Unit](), set[Unit]()
    for path, units in memory.maybe.items():
        serial = _serial_of(devices[path]) if path in devices else ""
        # Without one, it may be the unit in another mode, also as another model.
        for unit in units:
            (may_be if serial in ("", unit.serial) else others).add(unit)
    return frozenset(others - may_be)


def _without_twins(memory: Memory, twins: Twins) -> Memory:
    """The memory without these twins and their ties. Units of other models may need the same ties."""
    if not twins:
        return memory
    names, others = set[str](), set[str]()
    for known in memory.devices.values():
        device = known.device
        for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False):
            mine = names if Unit(spot.port, spot.serial, model).as_twin in twins else others
            mine.update((link, short_name(link)))
            if spot.port == device.port:
                mine.add(device.unit)
    ties = {name: port for name, port in memory.ties.items() if name not in names - others}
    return replace(memory, ties=ties, twins=memory.twins - twins)


def _serial_of(unit: UdevDevice) -> str:
    return unit.attributes.get("serial", "").strip()


def with_unread(memory: Memory, before: Memory, unread: Mapping[str, str], now: float) -> Memory:
    """The memory after a step, with the remembered units that are beside those that cannot be read.

    unread  the units on USB of which nothing is known in this step, see `Unit.among`
    """
    units = {*_units_of(memory.devices.values())} if unread else set[Unit]()
    maybe = {
        unit: {path for path, may_be in memory.maybe.items() if unit in may_be}
        for unit in units
        if unit[:2] not in memory.there
    }
    beside: dict[str, Mapping[Unit, float]] = {}
    moved = _moved(memory, before) if before.unread else {}
    for path in unread:
        since = before.unread.get(path, {})
        # A unit that has moved has been beside it for as long as it was before.
        since = {**{unit: since[was] for unit, was in moved.items() if was in since}, **since}
        here = [unit for unit in units if unit not in maybe or not maybe[unit] <= {path}]
        # What has left since stays if it was there for a minute.
        stayed = {unit: then for unit, then in since.items() if now - then >= TWO_AFTER_S and unit in units}
        beside[path] = {**stayed, **{unit: since.get(unit, now) for unit in here}}
    return replace(memory, unread=beside)


def _moved(memory: Memory, before: Memory) -> Mapping[Unit, Unit]:
    """The units of devices that are at another port than before a step -> what they were there."""
    moved: dict[Unit, Unit] = {}
    for id_, known in memory.devices.items():
        was = before.devices.get(id_)
        if was is None or was is known:
            continue
        now, then = {*_units_of([known])}, {*_units_of([was])}
        left = {unit[1:]: unit for unit in then - now}
        # Of several that are alike, nobody can tell which one has moved where.
        if len(left) == len(then - now):
            moved.update((unit, left[unit[1:]]) for unit in now - then if unit[1:] in left)
    return moved


def apart_from_unread(memory: Memory, now: float) -> Apart:
    """The remembered units that are not what cannot be read: each was there beside it for a minute."""
    return {
        path: frozenset(unit[:2] for unit, since in beside.items() if now - since >= TWO_AFTER_S)
        for path, beside in memory.unread.items()
    }


def with_maybe(
    memory: Memory,
    before: Memory,
    unread: Mapping[str, str],
    devices: Collection[str],
    now: float,
) -> Memory:
    """The memory after a step, with the remembered units that those which cannot be read may be.

    unread   the units on USB of which nothing is known in this step, see `Unit.among`
    devices  the sys paths of what could be read
    """
    maybe: dict[str, set[Unit]] = {path: set() for path in unread}
    left: set[Unit] = set()
    for unit in _units_of(memory.devices.values()):
        is_there, was_there = unit[:2] in memory.there, unit[:2] in before.there
        for path in unit.among(unread):
            since = before.unread.get(path, {}).get(unit, now)
            is_another = now - since >= TWO_AFTER_S
            has_hung = was_there and not is_there and not is_another
            stays = unit in before.maybe.get(path, ()) and not (is_there and is_another)
            if has_hung or stays:
                maybe[path].add(unit)
            elif not is_there:
                left.add(unit)
    # It may be at either port of its socket.
    hang = set[Unit]().union(*maybe.values())
    return replace(
        memory,
        maybe={path: frozenset(units) for path, units in maybe.items()},
        left=frozenset(left - hang),
        refutable=_refutable(before, hang, {*unread, *devices}),
    )


def _refutable(before: Memory, hang: Collection[Unit], there: Collection[str]) -> frozenset[Unit]:
    """`Memory.refutable` after a step.

    hang   the units that may be what hangs now
    there  the paths of what hangs now, and of what could be read
    """
    new = (unit for unit in hang if unit.as_twin not in before.guesses)
    left = (units for path, units in before.maybe.items() if path not in there)
    return before.refutable.union(new).intersection(hang).difference(*left)


def twins_of_unread(memory: Memory, plugged: Plugged) -> Twins:
    """What units would have in common that are plugged in while another one may be what cannot be read."""
    units = frozenset[Unit]().union(*memory.maybe.values())
    there: dict[str, list[Spot]] = {}
    for spot in plugged.groups if units else ():
        there.setdefault(spot.serial, []).append(spot)
    return frozenset(
        unit.as_twin
        for unit in units
        if any(
            spot.port != unit.port and may_be_model(locate(node).model, unit.model)
            for spot in there.get(unit.serial, ())
            for node in plugged.groups[spot]
        )
    )


def _units_of(devices: Iterable[Remembered]) -> Iterator[Unit]:
    """The units of remembered devices, with a serial number of their own, and those that a kit has lost."""
    for known in devices:
        for spot, model in (*known.device.spots_with_models, *known.earlier.items()):
            if not why_filler(spot.serial):
                yield Unit(spot.port, spot.serial, model)
