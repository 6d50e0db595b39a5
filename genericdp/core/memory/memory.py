"""The memory: what outlives a device, an edit of the rules, a restart and a reboot."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

from genericdp.core.buses.port import may_be_at
from genericdp.core.inventory.offer import Offer
from genericdp.core.inventory.past import (
    NO_TWINS,
    WHOLE,
    Doubtful,
    Known,
    Past,
    Siblings,
    Ties,
    Twin,
    Twins,
    value_of,
)
from genericdp.core.inventory.place import UNKNOWN, Spot, is_of_node, is_of_path
from genericdp.core.memory.answered import Answered, CdiDevice, answer, resumed_at
from genericdp.core.memory.given.links import GivenLinks
from genericdp.core.memory.given.parts import as_given
from genericdp.core.memory.given.ports import Ports
from genericdp.core.memory.given.shared import known_there, shared_spots
from genericdp.core.memory.held import Held, give
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.withdrawn import Shares
from genericdp.core.usb_port import At, Pair, Pairs


class Unit(NamedTuple):
    """A unit on USB that is remembered with a serial number: its exact port, serial number and model."""

    port: str
    serial: str
    model: str

    @property
    def as_twin(self) -> Twin:
        """What it would have in common with a twin."""
        return Twin("serial", self.serial, self.model, WHOLE)

    def among(self, unread: Mapping[str, str]) -> frozenset[str]:
        """Those of the units that nobody could read that may be at its port.

        unread  the sys path of each, and what it would be at the other port of its socket
        """
        return frozenset(
            path
            for path, beside in unread.items()
            if may_be_at(self.port, path) or may_be_at(self.port, beside)
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered.

    devices  those that were offered, by id
    ties     which of several twins has the plain ids
    shares   how the devices of each resource are shared
    held     the ids that pods may hold
    siblings the numbers of device nodes that nothing but their order tells apart
    answered the CDI devices that answers to pods have named
    renamed  links that an earlier release named otherwise -> what they are called now
    is_of_earlier_release  whether it still has to be taken over, see `renamed`
    is_untold  whether it began with nothing, and nobody has said yet what pods held then
    apart    the sockets of USB 3 in which two units were at once
    two      those that hold two units -> since when, and what they will be if these stay
    twins    what twins have in common that have been seen side by side
    guesses  those of them that have not both been read: there may be only one unit
    beside   what units have in common that are twins if both stay -> since when
    unread   units on USB that cannot be read -> what was there beside each -> since when
    maybe    units on USB that cannot be read -> the remembered units that each may be
    refutable  the units that may be what hangs, without a break since they were first taken for twins
    there    the port and serial number of each unit at the last look, after a restart of all but `left`
    left     units that have left and are not what cannot be read at their ports
    doubtful siblings of which nobody could tell which ones they were
    """

    devices: Mapping[str, Remembered] = field(default_factory=dict)
    ties: Ties = field(default_factory=dict)
    shares: Shares = field(default_factory=Shares)
    held: Held = field(default_factory=dict)
    siblings: Siblings = field(default_factory=dict)
    answered: Answered = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_of_earlier_release: bool = False
    is_untold: bool = False
    apart: Pairs = field(default_factory=dict)
    two: Mapping[str, tuple[float, Pair]] = field(default_factory=dict, compare=False)
    twins: Twins = NO_TWINS
    guesses: Twins = NO_TWINS
    beside: Mapping[Twin, float] = field(default_factory=dict, compare=False)
    unread: Mapping[str, Mapping[Unit, float]] = field(default_factory=dict, compare=False)
    maybe: Mapping[str, frozenset[Unit]] = field(default_factory=dict, compare=False)
    refutable: frozenset[Unit] = field(default=frozenset(), compare=False)
    there: Collection[tuple[str, str]] = field(default=(), compare=False)
    left: frozenset[Unit] = frozenset()
    doubtful: Mapping[Spot, Doubtful] = field(default_factory=dict)

    def past(self, left_before: float) -> Past:
        """What ids depend on. `left_before`: see `Ports`."""
        given = GivenLinks(self.devices, self.ties)
        past = Past(
            self.ties,
            self.known_ports,
            port_of=self._port_of,
            port_at=self._port_at,
            leads_elsewhere=given.leads_elsewhere,
            given_model=given.model_of,
            at=self._at(left_before),
            twins=self.twins,
            bases=frozenset([known.device.basis for known in self.devices.values() if known.device.basis]),
            unoffered=self._unoffered,
            held=self.held_devices,
        )
        if self.is_of_earlier_release:  # It did not number siblings.
            return past
        numbers = _Numbers(self)
        past = replace(past, siblings=self.siblings, doubtful=self.doubtful, spots_of=self._spots_of)
        return replace(past, known_at=numbers, alike=numbers.alike)

    @property
    def held_devices(self) -> frozenset[str]:
        """The devices that pods may hold, by id."""
        return frozenset([holding.device for holding in self.held.values()])

    @property
    def known_ports(self) -> Ties:
        """The port of each unit: the one where it is now, or else where it was last seen."""
        held = self.held_devices

        def rank(known: Remembered) -> tuple[bool, bool, str]:
            id_ = known.device.id
            # A unit that a pod holds keeps the ids without a port, even if another one is there now.
            has_plain_ids = self.ties.get(known.device.unit, known.device.port) == known.device.port
            return has_plain_ids and id_ in held, known.absent_since is None, id_

        return {known.device.unit: known.device.port for known in sorted(self.devices.values(), key=rank)}

    def _at(self, left_before: float) -> At:
        ports = Ports(self.devices, self.ties, self.held, left_before)
        two = {slow: pair for slow, (_, pair) in self.two.items()}
        return At(
            is_known=ports.is_known,
            units=ports.units,
            unseen=ports.unseen,
            held=ports.held,
            ports_of=ports.with_nodes,
            given=ports.given_with,
            apart=self.apart,
            two=two,
        )

    @property
    def _unoffered(self) -> frozenset[Spot]:
        absent = {id_: known for id_, known in self.devices.items() if known.absent_since is not None}
        held = (absent.get(holding.device) for holding in (self.held.values() if absent else ()))
        return frozenset(spot.of_all for known in held if known is not None for spot in known.device.spots)

    def _spots_of(self, id_: str) -> Sequence[Spot]:
        known = self.devices.get(id_)
        return () if known is None else known.device.spots

    def _port_of(self, id_: str) -> str:
        known = self.devices.get(id_)
        return "" if known is None else known.device.port

    def _port_at(self, link: str, spots: Collection[Spot]) -> str:
        known = self.devices.get(link.partition("@")[0])
        if known is None or link not in known.device.links:
            return ""
        leads = dict(zip(known.device.links, known.device.spots, strict=False))
        if link in leads:
            return leads[link].port
        # The unit may be absent and its twin present: then only the port differs.
        places = {spot._replace(port="") for spot in spots}
        left = [spot for spot in known.earlier if spot._replace(port="") in places]
        left = [spot for spot in left if spot in spots] or left
        return left[0].port if len(left) == 1 else ""


class _Numbers:
    """The numbers that remembered devices have, by the spot that siblings share. Rarely asked for."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._held = memory.held_devices

    def __call__(self, spot: Spot) -> Mapping[int, Known]:
        return self._at.get(spot, {})

    def alike(self, *key: str) -> Collection[Spot]:
        """See `Past.alike`."""
        return self._alike.get(key, ())

    @cached_property
    def _alike(self) -> Mapping[tuple[str, ...], Collection[Spot]]:
        found: dict[tuple[str, ...], list[Spot]] = {}
        for spot, numbers in self._at.items():
            found.setdefault(("serial", spot.serial, spot.within), []).append(spot)
            found.setdefault(("port", spot.port, spot.within), []).append(spot)
            if spot.serial:
                found.setdefault(("any serial", spot.within), []).append(spot)
            for id_ in {id_ for known in numbers.values() for id_ in known.ids}:
                found.setdefault(("id", id_, spot.within), []).append(spot)
        for known in self._memory.devices.values():
            for spot, dock in (*known.docks.items(), *known.device.docks.items()):
                found.setdefault(("dock", dock.serial, dock.at, spot.within), []).append(spot.of_all)
        for spot, at in shared_spots(self._memory.devices.values()):
            if at.dock is not None:
                found.setdefault(("dock", at.dock.serial, at.dock.at, spot.within), []).append(spot.of_all)
        return found

    @cached_property
    def _at(self) -> Mapping[Spot, Mapping[int, Known]]:
        found: dict[Spot, dict[int, Known]] = {}
        for spot, more in chain(self._of_devices(), known_there(self._memory.devices, self._held)):
            if spot.number != UNKNOWN:
                mine = found.setdefault(spot.of_all, {})
                one = mine.get(spot.number, Known("", "", is_there=False))
                held, ids = one.held | more.held, {**one.ids, **more.ids}
                is_there, models = one.is_there or more.is_there, one.models | more.models
                path = more[:2] if more.sys_path else one[:2]  # a tombstone has none
                mine[spot.number] = Known(*path, held, ids, is_there, models)
        return found

    def _of_devices(self) -> Iterator[tuple[Spot, Known]]:
        """What is remembered of the nodes that devices have or had."""
        for id_, known in self._memory.devices.items():
            device = known.device
            under = {spot.serial: spot.port for spot in device.also if is_of_node(spot)}
            nodes = ((each.sys_path, under.get(each.link, "")) for each in device.nodes)
            spots, ids = [*device.spots_with_models], {id_: value_of(device.basis, device.key_hash)}
            there = zip((*spots, *known.earlier.items()), chain(nodes, repeat(("", ""))), strict=False)
            for n, ((spot, model), at) in enumerate(there):
                held = self._held.intersection(() if spot in known.not_given else ids)
                yield spot, Known(*at, held, ids, n < len(spots), frozenset({model}))


def after_allocate(
    memory: Memory, offer: Offer, ids: Iterable[str], cdi_device: CdiDevice | None, now: float
) -> Memory:
    """The memory after Allocate gave these ids of a resource at `now`, perhaps as a CDI device."""
    held = give(memory.held, offer, ids, now, by_cdi=cdi_device is not None)
    answered = memory.answered if cdi_device is None else answer(memory.answered, cdi_device, now)
    allocated = {id_: offer.ids[id_].id for id_ in ids if id_ in offer.ids}
    devices = as_given(memory.devices, allocated, memory.held)
    return replace(memory, devices=devices, held=held, answered=answered)


def bare_paths(devices: Mapping[str, Remembered]) -> frozenset[str]:
    """Where the bare nodes of remembered devices are or were."""
    spots = (spot for known in devices.values() for spot in (*known.device.spots, *known.earlier))
    return frozenset(spot.port for spot in spots if is_of_path(spot))


def of_any_boot(memory: Memory) -> Memory:
    """The memory if nobody knows whether its devices were seen in this boot."""
    devices = {id_: replace(known, is_of_this_boot=True) for id_, known in memory.devices.items()}
    return replace(memory, devices=devices)


def resumed(memory: Memory, now: float) -> Memory:
    """The memory with which a daemon starts at `now`."""
    held = memory.held
    if memory.is_untold:
        # The time of Allocate is not saved. An id that was given since the start is not a guess.
        held = {id_: replace(holding, given=now) for id_, holding in held.items()}
    is_untold = memory.is_untold or not memory.devices
    return replace(memory, held=held, answered=resumed_at(memory.answered, now), is_untold=is_untold)
