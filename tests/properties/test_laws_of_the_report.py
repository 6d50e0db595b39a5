"""Laws of what is told: the report, the metrics and the events agree with the inventory, whatever it is."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.hint import Uevent
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.rules.resource import Resource
from genericdp.core.status.events import of_changes, of_list, of_uevents
from genericdp.core.status.holdings import Holder, Holdings
from genericdp.core.status.metrics import Process
from genericdp.core.status.news import news
from genericdp.core.status.report import report
from tests.properties.strategies import DOMAIN, Unit, booted, machines, rules
from tests.scenes.facts import facts_of
from tests.scenes.scrape import read, scrape_of

Rules = tuple[Resource, ...]
Units = tuple[Unit, ...]
PROCESS = Process("3.11", 0.0, None, None)

names = st.text(alphabet="abc-.", min_size=1, max_size=8)


def inventories(rules_: Rules, before: Units, after: Units) -> tuple[Inventory, Inventory]:
    """Two that follow each other: what is absent in the second one is still listed."""
    first, memory = remember(Builder(rules_, DOMAIN).build(booted(before)), Memory(), 0.0, None)
    built = Builder(rules_, DOMAIN).build(booted(after), memory.past(0.0))
    second, _ = remember(built, memory, 1.0, None)
    return first, second


def held(inventory: Inventory, chance: st.DataObject) -> Holdings:
    """Some of the ids are held, and some that nobody knows."""
    ids = [(name, id_) for name, offer in inventory.offers.items() for id_ in offer.ids]
    chosen = chance.draw(st.lists(st.sampled_from([*ids, ("x/y", "z")]), unique=True, max_size=5))
    holder = st.builds(Holder, names, names, names)
    return {key: (chance.draw(holder),) for key in chosen}


@given(rules, machines(), machines(), st.data())
def test_the_report_tells_of_every_device_and_is_json(
    rules_: Rules, before: Units, after: Units, chance: st.DataObject
) -> None:
    _, inventory = inventories(rules_, before, after)
    holdings = held(inventory, chance)
    document: Any = json.loads(json.dumps(report(facts_of(inventory, holdings=holdings))))
    told = {
        (resource["name"], device["id"]): device
        for resource in document["resources"]
        for device in resource["devices"]
    }
    devices = {(name, each.id): each for name, offer in inventory.offers.items() for each in offer.devices}
    assert told.keys() == devices.keys()
    for key, device in devices.items():
        assert told[key]["health"] == device.health
        assert told[key]["since"] is not None
    assert document["well"] == all(device.healthy for device in devices.values())
    told_held = {(name, each["id"]) for (name, _), device in told.items() for each in device["heldBy"]}
    assert told_held == {key for key in holdings if key != ("x/y", "z")}


@given(rules, machines(), machines(), st.data())
def test_the_metrics_count_what_is_there_and_prometheus_reads_them(
    rules_: Rules, before: Units, after: Units, chance: st.DataObject
) -> None:
    _, inventory = inventories(rules_, before, after)
    holdings = held(inventory, chance)
    found = read(scrape_of(facts_of(inventory, holdings=holdings), PROCESS))
    counted = {
        (labels["resource"], labels["health"]): value for labels, value in found.get("genericdp_devices", ())
    }
    for name, offer in inventory.offers.items():
        healthy = sum(device.healthy for device in offer.devices)
        assert counted[name, "Healthy"] == healthy
        assert counted[name, "Unhealthy"] == len(offer.devices) - healthy
    allocated = sum(value for _, value in found.get("genericdp_device_allocated", ()))
    assert allocated == len([key for key in holdings if key != ("x/y", "z")])


@given(rules, machines(), machines())
def test_a_resource_whose_list_changed_tells_which_devices_did(
    rules_: Rules, before: Units, after: Units
) -> None:
    first, second = inventories(rules_, before, after)
    for name in diff(first, second).updated:
        event: Any = of_list(first.offers[name], second.offers[name])
        was = {device.id: str(device.health) for device in first.offers[name].devices}
        now = {device.id: str(device.health) for device in second.offers[name].devices}
        changed = {id_: now.get(id_) for id_ in was.keys() | now.keys() if was.get(id_) != now.get(id_)}
        told = {each["device"]: each["health"] for each in event["changes"]}
        assert told.items() <= changed.items()
        assert len(told) + event["moreChanges"] == len(changed)
    json.dumps([*of_changes(news(first, second))])


@given(rules, machines())
def test_a_uevent_of_a_node_that_is_offered_touches_only_its_device_and_those_that_share_it(
    rules_: Rules, units: Units
) -> None:
    inventory, _ = inventories(rules_, units, units)
    for name, offer in inventory.offers.items():
        for device in offer.devices:
            for node in device.nodes:
                (event,) = of_uevents([Uevent("change", node.sys_path, "", "udev")], inventory, inventory)
                touched: Any = event["touched"]
                assert {"resource": name, "device": device.id} in touched
                others = [each for each in touched if each["device"] != device.id]
                # Another one is touched only where a node of it is this one or below it.
                assert all(_at_or_below(node.sys_path, inventory, each) for each in others)


def _at_or_below(sys_path: str, inventory: Inventory, touched: dict[str, str]) -> bool:
    offer = inventory.offers[touched["resource"]]
    (device,) = (each for each in offer.devices if each.id == touched["device"])
    below = any(node.sys_path.startswith(f"{sys_path}/") for node in device.nodes_inside)
    return below or any(node.sys_path == sys_path for node in device.shared)
