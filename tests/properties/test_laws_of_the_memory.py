"""Laws of what is remembered, over any history of plugging, unplugging, rebooting and forgetting."""

import tempfile
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import next_forgetting, remember
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.resource import UNPLUG_GRACE_S, Resource
from genericdp.files.state import StateFile
from tests.properties.strategies import DOMAIN, Boot, Unit, booted, boots, machines, physical_ids, rules
from tests.scenes.inventories import answered
from tests.scenes.state_file import save

Rules = tuple[Resource, ...]


@dataclass(frozen=True)
class Moment:
    """What is plugged in, under which names, when, and what of it pods are known to hold (a share)."""

    units: tuple[Unit, ...]
    boot: Boot
    later_s: float
    knows: bool
    held: frozenset[int]


moments = st.builds(
    Moment,
    machines(max_size=4),
    boots,
    st.sampled_from([0.0, 1.0, 9.0, 11.0, 300.0, 601.0]),
    st.booleans(),
    st.frozensets(st.integers(0, 12), max_size=4),
)
histories = st.lists(moments, min_size=1, max_size=6)


@dataclass
class Node:
    """A daemon's memory through a history."""

    rules: Rules
    memory: Memory
    now: float = 0.0

    def live(self, moment: Moment) -> tuple[Inventory, Inventory, frozenset[str] | None]:
        """Built, remembered, held."""
        self.now += moment.later_s
        built = Builder(self.rules, DOMAIN).build(
            booted(moment.units, moment.boot),
            self.memory.past(0.0),
        )
        known = sorted(self.memory.devices)
        held = frozenset(known[n] for n in moment.held if n < len(known)) if moment.knows else None
        answer = answered(held, self.memory, self.now)
        inventory, self.memory = remember(built, self.memory, self.now, answer)
        return built, inventory, held


def listed(inventory: Inventory) -> dict[str, bool]:
    return {device.id: device.healthy for offer in inventory.offers.values() for device in offer.devices}


@given(rules, histories)
def test_no_id_is_dropped_while_it_is_held_or_its_grace_runs(rules_: Rules, history: list[Moment]) -> None:
    node = Node(rules_, Memory())
    for moment in history:
        before = node.memory
        _, inventory, held = node.live(moment)
        ids = listed(inventory)
        for id_, known in before.devices.items():
            grace_s = inventory.offers[known.resource].resource.unplug_grace_s
            may_go = (
                held is not None
                and id_ not in held
                and known.absent_since is not None
                and node.now - known.absent_since >= grace_s
            )
            assert id_ in ids or may_go


@given(rules, histories)
def test_what_is_there_is_as_it_was_built_and_the_rest_is_unhealthy(
    rules_: Rules, history: list[Moment]
) -> None:
    node = Node(rules_, Memory())
    for moment in history:
        built, inventory, _ = node.live(moment)
        there = listed(built)
        waiting = {id_ for each in inventory.waiting for id_ in (each, each.rpartition(".")[0])}
        for id_, healthy in listed(inventory).items():
            assert healthy is (there.get(id_, False) and id_ not in waiting) or (healthy and id_ in waiting)
        # One id is one device, and every device that is remembered is listed.
        ids = [device.id for offer in inventory.offers.values() for device in offer.devices]
        assert sorted(ids) == sorted(node.memory.devices)


@given(rules, histories)
def test_a_link_stays_as_long_as_its_device_and_points_at_a_node_only_when_that_is_healthy(
    rules_: Rules, history: list[Moment]
) -> None:
    node = Node(rules_, Memory())
    links: dict[str, set[str]] = {}
    for moment in history:
        built, inventory, _ = node.live(moment)
        wanted = inventory.links()
        for id_, known in node.memory.devices.items():
            links[id_] = links.get(id_, set()) | set(known.device.links)
            assert links[id_] <= set(wanted)
        for id_ in links.keys() - node.memory.devices.keys():
            of_others = {link for known in node.memory.devices.values() for link in known.device.links}
            assert not (links.pop(id_) - of_others) & set(wanted)
        lead = {link for link, path in wanted.items() if path}
        would = {link for link, path in built.links().items() if path}
        assert lead == would or (lead < would and inventory.waiting)


@given(rules, st.lists(moments, min_size=2, max_size=8))
def test_a_device_that_stays_keeps_its_id_while_others_come_and_go(
    rules_: Rules, history: list[Moment]
) -> None:
    """Twins above all: nobody's arrival or departure changes, merges or swaps the ids of others."""
    node = Node(rules_, Memory())
    last: dict[tuple[str, str], str] = {}
    stayed: set[Unit] = set()
    for moment in history:
        there, _, _ = node.live(moment)
        now = physical_ids(there, booted(moment.units, moment.boot))
        for (resource, physical), id_ in now.items():
            unit = next(unit for unit in moment.units if physical.partition(" ")[0] == unit.port)
            # A group that spans units is its value; which units are in it does not matter.
            if unit in stayed and (resource, physical) in last:
                assert last[resource, physical] == id_
        last, stayed = now, set(moment.units)


@given(rules, histories)
def test_the_next_forgetting_forgets(rules_: Rules, history: list[Moment]) -> None:
    node = Node(rules_, Memory())
    inventory = Inventory()
    for moment in history:
        _, inventory, _ = node.live(moment)
    due = next_forgetting(node.memory, inventory)
    absent = {id_ for id_, known in node.memory.devices.items() if known.absent_since is not None}
    withdrawn = node.memory.shares.withdrawn.keys()
    assert (due is not None) is bool(absent | withdrawn)
    if due is not None:
        nobody = answered(frozenset(), node.memory, due)
        later, memory = remember(inventory, node.memory, due, nobody)
        del later
        # What is listed here is all that there is, tombstones included: so ask about the rest.
        assert memory.devices.keys() == node.memory.devices.keys()
        bare = Inventory({name: type(offer)(offer.resource) for name, offer in inventory.offers.items()})
        _, memory = remember(bare, node.memory, due, nobody)
        left = {id_ for id_, known in memory.devices.items() if known.absent_since != due}
        # A withdrawn id may be spelled as that of its device.
        assert absent - left or withdrawn - memory.shares.withdrawn.keys()


@given(rules, rules, histories)
def test_a_resource_that_leaves_the_rules_and_comes_back_finds_its_devices(
    rules_: Rules, other: Rules, history: list[Moment]
) -> None:
    node = Node(rules_, Memory())
    for moment in history:
        node.live(moment)
    before = node.memory
    nothing = Moment((), Boot(), 1.0, knows=False, held=frozenset())
    node.rules = other
    _, inventory, _ = node.live(nothing)
    names = {rule.name for rule in other}
    links = {
        link
        for known in before.devices.values()
        if known.resource not in names
        for link in known.device.links
    }
    assert set(inventory.orphaned_links) == links
    node.rules = rules_
    _, inventory, _ = node.live(nothing)
    assert listed(inventory).keys() >= before.devices.keys()
    assert UNPLUG_GRACE_S > 2.0


def health_of(inventory: Inventory) -> dict[str, tuple[str, str]]:
    return {
        device.id: (device.health, device.reason)
        for offer in inventory.offers.values()
        for device in offer.devices
    }


@given(st.lists(st.tuples(rules, moments), min_size=1, max_size=5))
def test_the_saved_memory_shows_what_the_daemon_sees(history: list[tuple[Rules, Moment]]) -> None:
    """`list` beside the daemon: the same ids, the same health, the same reasons, the same links."""
    memory, now = Memory(), 0.0
    with tempfile.TemporaryDirectory() as directory:
        for rules_, moment in history:
            now += moment.later_s
            devices = booted(moment.units, moment.boot)
            inventory, memory = take_inventory(Builder(rules_, DOMAIN), devices, memory, now)
            save(StateFile(directory), memory)
            read, _ = take_inventory(Builder(rules_, DOMAIN), devices, StateFile(directory).load(), 7.0)
            assert health_of(read) == health_of(inventory)
            assert read.links() == inventory.links()
