"""What it costs to be asked, on a crowded node: the daemon's loop is busy meanwhile."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.status.exposition import Samples
from genericdp.core.status.facts import Facts
from genericdp.core.status.holdings import Holder, Holdings
from genericdp.core.status.metrics import FAMILIES, Process, fill
from genericdp.core.status.report import report
from tests.bench.rebuild import DOMAIN, best, machine, many_rules
from tests.bench.row import Row
from tests.scenes.facts import facts_of


def rows() -> Iterator[Row]:
    facts = crowded(Builder(many_rules(), DOMAIN).build(machine()))
    count = sum(len(offer.devices) for offer in facts.inventory.offers.values())
    size = f"{count} devices, {len(facts.inventory.offers)} resources"
    yield Row(f"a scrape: {size}", f"{best(lambda: scrape(facts)):.1f} ms")
    longest = min(max(steps(facts)) for _ in range(7))
    yield Row("  its longest step, after which everything else has its turn", f"{longest:.1f} ms")
    told = best(lambda: json.dumps(report(facts)))
    yield Row("genericdp status, within the daemon", f"{told:.1f} ms")


def crowded(inventory: Inventory) -> Facts:
    """Every device is held."""
    holdings: Holdings = {
        (name, id_): (Holder("default", f"pod-{id_}", "main"),)
        for name, offer in inventory.offers.items()
        for id_ in offer.ids
    }
    return replace(facts_of(inventory), holdings=holdings)


def scrape(facts: Facts) -> str:
    samples = Samples(FAMILIES)
    for _ in fill(samples, facts, Process("3", 0.0, 1, 1)):
        pass
    return samples.render()


def steps(facts: Facts) -> Iterator[float]:
    """How long each step took, in milliseconds; the rendering is the last one."""
    samples = Samples(FAMILIES)
    began = time.perf_counter()
    for _ in fill(samples, facts, Process("3", 0.0, 1, 1)):
        yield (time.perf_counter() - began) * 1000
        began = time.perf_counter()
    samples.render()
    yield (time.perf_counter() - began) * 1000
