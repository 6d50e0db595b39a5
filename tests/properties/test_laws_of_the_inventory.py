"""Laws of the inventory, on any machine with any rules."""

import random
import re
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.identity import ID_LIMIT
from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.inventory.offer import Health, Offer
from genericdp.core.inventory.place import Spot, locate
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.rules.resource import Resource
from tests.properties.strategies import (
    DOMAIN,
    Boot,
    Unit,
    booted,
    boots,
    machines,
    physical_ids,
    rules,
)
from tests.scenes.suggestions import matched

Rules = tuple[Resource, ...]
Units = tuple[Unit, ...]


def built(rules_: Rules, units: Units, boot: Boot | None = None) -> Inventory:
    return Builder(rules_, DOMAIN).build(booted(units, boot or Boot()))


@given(rules, machines(), st.randoms(use_true_random=False))
def test_the_order_of_enumeration_does_not_matter(rules_: Rules, units: Units, chance: random.Random) -> None:
    devices = booted(units)
    expected = Builder(rules_, DOMAIN).build(devices)
    order = list(devices)
    chance.shuffle(order)
    assert Builder(rules_, DOMAIN).build({path: devices[path] for path in order}) == expected


@given(rules, machines())
def test_a_device_node_is_offered_at_most_once(rules_: Rules, units: Units) -> None:
    inventory = built(rules_, units)
    offered = [
        node.path for offer in inventory.offers.values() for device in offer.devices for node in device.nodes
    ]
    assert len(set(offered)) == len(offered)
    refused = {refusal.node for refusal in inventory.refusals}
    assert not refused & set(offered)


@given(rules, machines())
def test_every_claimed_node_is_offered_or_refused(rules_: Rules, units: Units) -> None:
    builder, devices = Builder(rules_, DOMAIN), booted(units)
    inventory = builder.build(devices)
    claimed = {device.device_node for device in devices.values() if builder.claims.on(device)}
    offered = {
        node.path for offer in inventory.offers.values() for device in offer.devices for node in device.nodes
    }
    assert claimed == offered | {refusal.node for refusal in inventory.refusals}


@given(rules, machines())
def test_what_no_match_holds_for_changes_nothing_of_which_nodes_are_offered(
    rules_: Rules, units: Units
) -> None:
    """But for the numbers of siblings, which count whatever is plugged in."""
    devices = booted(units)
    every, some = (Builder(rules_, DOMAIN).build(each) for each in (devices, matched(rules_, devices)))
    assert (every.refusals, every.overlaps, every.conflicts) == (
        some.refusals,
        some.overlaps,
        some.conflicts,
    )
    for name, offer in every.offers.items():
        assert nodes_of(offer) == nodes_of(some.offers[name])


def nodes_of(offer: Offer) -> set[tuple[frozenset[str], frozenset[str]]]:
    """The device nodes of each device: those that the resource takes, and those that it shares."""
    return {
        (frozenset(each.path for each in device.nodes), frozenset(each.path for each in device.shared))
        for device in offer.devices
    }


@given(rules, machines())
def test_a_node_that_a_resource_shares_is_none_of_its_own(rules_: Rules, units: Units) -> None:
    for offer in built(rules_, units).offers.values():
        shared = {node.path for node in offer.shared}
        for device in offer.devices:
            assert device.shared is offer.devices[0].shared
            assert not shared & {node.path for node in device.nodes}


@given(rules, machines())
def test_sharing_takes_nothing_from_others_and_changes_no_device(rules_: Rules, units: Units) -> None:
    """But for the nodes that a resource takes and shares: without sharing them, it has them itself."""
    devices = booted(units)
    alone = tuple(replace(rule, nodes=rule.own_nodes) for rule in rules_)
    builders = [Builder(each, DOMAIN) for each in (rules_, alone)]
    sharing, without = (builder.build(devices).offers for builder in builders)
    for device in devices.values():
        shared, taken = builders[0].claims.judged(device).shares, builders[1].claims.on(device)
        assume(not {claim.resource.name for claim in shared} & {claim.resource.name for claim in taken})
    for name, offer in sharing.items():
        bare = [
            replace(each, shared=(), shared_at={}, links=each.links[: len(each.nodes)])
            for each in offer.devices
        ]
        kept = without[name].devices
        assert [replace(each, health=Health.HEALTHY, reason="") for each in bare] == [
            replace(each, health=Health.HEALTHY, reason="") for each in kept
        ]
        assert all(each.healthy <= other.healthy for each, other in zip(bare, kept, strict=True))


@given(rules, machines())
def test_a_link_to_a_shared_node_leads_to_it_whenever_it_is_there(rules_: Rules, units: Units) -> None:
    devices = booted(units)
    inventory = Builder(rules_, DOMAIN).build(devices)
    links = inventory.links()
    for offer in inventory.offers.values():
        for node in offer.shared:
            (device,) = (each for each in devices.values() if each.device_node == node.path)
            assert links[node.link] == (node.path if device.node_is_there else None)
            assert all(link not in node.link for link in offer.ids)


@given(rules, machines())
def test_an_id_is_one_on_the_node_short_and_plain(rules_: Rules, units: Units) -> None:
    inventory = built(rules_, units)
    ids = [id_ for offer in inventory.offers.values() for id_ in offer.ids]
    assert len(set(ids)) == len(ids)
    for id_ in ids:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", id_)
        assert len(id_) <= ID_LIMIT


@given(rules, machines(), boots, boots)
def test_ids_depend_on_nothing_that_another_boot_changes(
    rules_: Rules, units: Units, one: Boot, other: Boot
) -> None:
    first, second = booted(units, one), booted(units, other)
    assert physical_ids(Builder(rules_, DOMAIN).build(first), first) == physical_ids(
        Builder(rules_, DOMAIN).build(second), second
    )


@given(rules, machines(), boots, boots)
def test_a_link_is_of_the_same_node_after_another_boot(
    rules_: Rules, units: Units, one: Boot, other: Boot
) -> None:
    def links(boot: Boot) -> dict[str, str]:
        devices = booted(units, boot)
        inventory = Builder(rules_, DOMAIN).build(devices)
        return {
            node.link: devices[node.sys_path].properties["PHYSICAL"]
            for offer in inventory.offers.values()
            for device in offer.devices
            for node in device.nodes_inside
            if node.sys_path
        }

    assert links(one) == links(other)


@given(rules, machines())
def test_no_two_nodes_have_one_link_and_none_leads_out_of_the_directory(rules_: Rules, units: Units) -> None:
    inventory = built(rules_, units)
    nodes = [
        (node.link, node.path)
        for offer in inventory.offers.values()
        for device in offer.devices
        for node in (*device.nodes, *offer.shared)
    ]
    links = {link for link, _ in nodes}
    assert len(links) == len({*nodes})
    own = [
        node.link for offer in inventory.offers.values() for device in offer.devices for node in device.nodes
    ]
    assert len(set(own)) == len(own)
    for link in links:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+:@=-]*", link)
        assert len(link) <= 255 - len(".new")
    assert set(inventory.links()) == links


@given(machines(), boots)
def test_two_device_nodes_never_have_the_same_spot(units: Units, boot: Boot) -> None:
    nodes = [device for device in booted(units, boot).values() if device.device_node is not None]
    assert len({locate(node).spot for node in nodes}) == len(nodes)


@given(machines(), boots, boots)
def test_another_boot_does_not_change_spots(units: Units, one: Boot, other: Boot) -> None:
    def spots(boot: Boot) -> dict[str, Spot]:
        nodes = [device for device in booted(units, boot).values() if device.device_node is not None]
        return {node.properties["PHYSICAL"]: locate(node).spot for node in nodes}

    first = spots(one)
    assert spots(other) == first


@given(rules, machines(), st.data())
def test_what_is_kept_between_two_rebuilds_never_shows(
    rules_: Rules, units: Units, data: st.DataObject
) -> None:
    builder = Builder(rules_, DOMAIN)
    memory = Memory()
    devices = booted(units)
    for now in range(4):
        # Some leave, some come back as the same snapshots, and sometimes the machine boots.
        if data.draw(st.booleans()):
            present = {path: devices[path] for path in data.draw(st.permutations(sorted(devices)))}
        else:
            gone = data.draw(st.sets(st.sampled_from(sorted(devices)))) if devices else set()
            present = {path: device for path, device in devices.items() if path not in gone}
        inventory = builder.build(present, memory.past(0.0))
        anew = Builder(rules_, DOMAIN)
        assert inventory == anew.build(present, memory.past(0.0))
        assert builder.claims.plugged == anew.claims.plugged
        _, memory = remember(inventory, memory, float(now), plugged=builder.claims.plugged)
        if data.draw(st.booleans()):
            devices = booted(units, data.draw(boots))


@given(rules, machines(), rules, machines())
def test_a_difference_is_empty_exactly_when_the_offers_are_equal(
    rules_: Rules, units: Units, other_rules: Rules, other_units: Units
) -> None:
    one, other = built(rules_, units), built(other_rules, other_units)
    for before, after in (
        (one, one),
        (one, built(rules_, units)),
        (one, other),
        (one, built(rules_, other_units)),
    ):
        changes = diff(before, after)
        assert bool(changes) is (dict(before.offers) != dict(after.offers))
        named = {*changes.added, *changes.removed, *changes.updated}
        assert len(named) == len(changes.added) + len(changes.removed) + len(changes.updated)
        untouched = before.offers.keys() - named
        assert all(before.offers[name] == after.offers[name] for name in untouched)
