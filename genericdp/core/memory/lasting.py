"""What becomes certain once it has lasted a minute.

The rules of this file:

* Until then, two units may be one that has just left and comes back: the kernel may announce it at its new
  port before it is gone from the old one.
* Nothing may be looked at while the time passes. So what was there a minute ago and is there now counts.
* A unit of which nothing can be read is there, too. What was there beside it for a minute is another unit. It
  is taken for the one that was last at its port, unless that was seen to leave or was there beside it for a
  minute; and for any other one once it answers. Nobody knows what has come or left while the daemon was not
  running.
* That it has a twin is a guess until both have been read. So the link of a pod does not lead to the other,
  nor does another pod get it. If what could not be read has another serial number, there is no twin.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from genericdp.core.buses.port import port_on_a_bus
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.past import Twin, Twins, as_whole
from genericdp.core.inventory.twins import SideBySide
from genericdp.core.memory.given.ports import ports_of
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


def with_guesses(memory: Memory, before: Memory, side_by_side: SideBySide) -> Memory:
    """The memory after a step, with the twins that may be one unit: nobody has read both of them at once."""
    guesses = before.guesses.union(twins_of_unread(memory) - before.twins)
    guesses = guesses.intersection([*memory.twins, *memory.beside])
    return replace(memory, guesses=guesses.difference(map(as_whole, side_by_side.twins)))


def with_answered(memory: Memory, devices: Mapping[str, UdevDevice], now: float) -> Memory:
    """The memory before a step, with the twins of the units that answer at last.

    Each is the twin of a unit with its serial number that was there beside it for a minute. If it has another
    one, what was taken for the twin of a unit that it may have been is that unit.
    """
    twins, others = set[Twin](), set[Unit]()
    for path in memory.unread.keys() & devices.keys():
        serial = devices[path].attributes.get("serial", "").strip()
        port = port_on_a_bus(devices[path]).exact
        for unit, since in memory.unread[path].items():
            if unit.serial == serial and unit.port != port and now - since >= TWO_AFTER_S:
                twins.add(unit.as_twin)
        others.update(unit for unit in memory.maybe.get(path, ()) if serial not in ("", unit.serial))
    may_be = (units for path, units in memory.maybe.items() if path not in devices)
    wrong = {unit for unit in others.difference(*may_be) if unit.as_twin in memory.guesses}
    memory = _without_twins(memory, wrong) if wrong else memory
    return replace(memory, twins=memory.twins.union(twins)) if twins else memory


def _without_twins(memory: Memory, units: Collection[Unit]) -> Memory:
    """The memory without the twins of these units, unless pods have got such a twin since."""
    held = {
        (unit.serial, unit.model, unit.port)
        for id_ in memory.held_devices & memory.devices.keys()
        for unit in _units_of([memory.devices[id_]])
    }
    alone = {
        unit for unit in units if not any(each[:2] == unit[1:] and each[2] != unit.port for each in held)
    }
    names = {
        (name, unit.port)
        for known in memory.devices.values()
        for unit in alone.intersection(_units_of([known]))
        for name in (known.device.unit, *known.device.links)
    }
    twins = memory.twins.difference(unit.as_twin for unit in alone)
    return replace(memory, twins=twins, ties=dict(memory.ties.items() - names))


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
    for path in unread:
        since = before.unread.get(path, {})
        here = [unit for unit in units if unit not in maybe or not maybe[unit] <= {path}]
        # What has left since stays if it was there for a minute.
        stayed = {unit: then for unit, then in since.items() if now - then >= TWO_AFTER_S and unit in units}
        beside[path] = {**stayed, **{unit: since.get(unit, now) for unit in here}}
    return replace(memory, unread=beside)


def with_maybe(memory: Memory, before: Memory, unread: Mapping[str, str], now: float) -> Memory:
    """The memory after a step, with the remembered units that those which cannot be read may be.

    unread  the units on USB of which nothing is known in this step, see `Unit.among`
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
    left.difference_update(*maybe.values())
    return replace(
        memory, maybe={path: frozenset(units) for path, units in maybe.items()}, left=frozenset(left)
    )


def twins_of_unread(memory: Memory) -> Twins:
    """What units would have in common that are plugged in while another one may be what cannot be read."""
    units = frozenset[Unit]().union(*memory.maybe.values())
    ports: dict[str, set[str]] = {}
    for port, serial in memory.there if units else ():
        ports.setdefault(serial, set()).add(port)
    return frozenset(unit.as_twin for unit in units if ports.get(unit.serial, set()) - {unit.port})


def _units_of(devices: Iterable[Remembered]) -> Iterator[Unit]:
    """The units of remembered devices, with a serial number of their own, and those that a kit has lost."""
    for known in devices:
        for spot, model in (*known.device.spots_with_models, *known.earlier.items()):
            if not why_filler(spot.serial):
                yield Unit(spot.port, spot.serial, model)
