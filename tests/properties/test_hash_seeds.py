"""Python's hashes of texts differ from process to process; nothing that we say may."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SAY_EVERYTHING = """
from genericdp.core.allocate import allocate
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.prefer import prefer
from tests.properties.strategies import DOMAIN, RULES, Boot, Unit, booted

kinds = ["dongle", "quad", "modem", "camera", "keyboard"]
units = [
    Unit(kind, f"{n}.{m}", serial, "a name", rack)
    for n, kind in enumerate(kinds, 1)
    for m, (serial, rack) in enumerate([("S", "left"), ("S", ""), (None, "left")], 1)
]
for boot in (Boot(), Boot(3, 50, 9)):
    for rules in (RULES, RULES[::-1], RULES[5:]):
        inventory = Builder(rules, DOMAIN).build(booted(units, boot))
        inventory, memory = remember(inventory, Memory(), 0.0, None)
        print(inventory.ties, inventory.unsure, inventory.refusals, inventory.overlaps, inventory.links())
        for offer in inventory.offers.values():
            print(allocate(offer, offer.ids, "/dev/genericdp"))
            print(prefer(offer, list(offer.ids), [], 2, {}))
            print([(device.id, device.links, device.values) for device in offer.devices])
"""


def test_another_hash_seed_changes_nothing() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", SAY_EVERYTHING],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(answers) == 1
    assert "tty_S-port-2-1" in answers.pop()
