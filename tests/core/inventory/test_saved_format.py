"""Ids and spots are a saved format: an upgrade that changes one takes a held device for another one.

The kubelet saves ids, and the memory of genericdp saves spots. A device of which both have changed is a new
device that a second pod gets while the first one still holds it. So they must stay what they are.
"""

import hashlib
import json
from pathlib import Path

import pytest

from genericdp.core.inventory.build import Builder
from tests.scenes.builders import resources_of
from tests.scenes.machines import MACHINES, machine

#: Machine -> subsystem -> the digest of the ids and spots of its device nodes.
SAVED = Path(__file__).parents[2] / "data" / "saved-format.json"

RULE = '[[resource]]\nname = "{name}"\nmatch = {{ SUBSYSTEM = "{subsystem}" }}\nallow_dangerous = true\n'


def digests_of(name: str) -> dict[str, str]:
    devices = machine(name)
    subsystems = sorted({each.subsystem for each in devices.values() if each.number is not None})
    rules = "".join(RULE.format(name=f"r{n}", subsystem=each) for n, each in enumerate(subsystems))
    offers = Builder(resources_of(rules), "genericdp.io").build(devices).offers
    found: dict[str, str] = {}
    for subsystem, offer in zip(subsystems, offers.values(), strict=True):
        lines = sorted(f"{device.id} {device.port} {device.spots}" for device in offer.devices)
        found[subsystem] = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_the_ids_and_spots_of_a_machine_are_what_earlier_builds_have_saved(name: str) -> None:
    saved = json.loads(SAVED.read_text(encoding="utf-8")).get(name)

    assert digests_of(name) == saved, (
        "an upgrade would give devices that pods hold to other pods; "
        f"only for a new or changed machine, enter in {SAVED.name}: {json.dumps({name: digests_of(name)})}"
    )
