"""What becomes certain once it has lasted a minute.

The rules of this file:

* Until then, two units may be one that has just left and comes back: the kernel may announce it at its new
  port before it is gone from the old one.
* Nothing may be looked at while the time passes. So what was there a minute ago and is there now counts.
* A unit of which nothing can be read is there, too. What was there beside it for a minute is another unit.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from genericdp.core.buses.port import port_on_a_bus, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.past import WHOLE, Twin, Twins
from genericdp.core.memory.memory import Memory, ports_of
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


def with_answered(
    memory: Memory, devices: Mapping[str, UdevDevice], unread: Collection[str], now: float
) -> Memory:
    """The memory before a step, with the units on USB that cannot be read.

    A unit that answers now is the twin of one with its serial number that was there beside it for a minute.

    devices, unread  see `take_inventory`
    """
    units = [unit for unit in map(usb_above, unread) if unit and unit not in devices]
    late = {unit: since for unit, since in memory.unread.items() if unit in devices}
    twins = {
        twin for unit, since in late.items() for twin in _twins_of_late(devices[unit], memory, since, now)
    }
    since = {unit: memory.unread.get(unit, now) for unit in units}
    return replace(memory, unread=since, twins=memory.twins.union(twins) if twins else memory.twins)


def _twins_of_late(unit: UdevDevice, memory: Memory, since: float, now: float) -> Iterator[Twin]:
    serial, port = unit.attributes.get("serial", "").strip(), port_on_a_bus(unit).exact
    if why_filler(serial):
        return
    for known in memory.devices.values():
        until = now if known.absent_since is None else known.absent_since
        for spot, model in known.device.spots_with_models if until - since >= TWO_AFTER_S else ():
            if spot.serial == serial and spot.port != port:
                yield Twin("serial", serial, model, WHOLE)
