"""A link, and so an id, is the same after a reboot that found everything in another order.

A pod whose device has another id waits for the old one for good. A link of another node is the wrong device.
"""

from collections.abc import Mapping, Sequence

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.rules.resource import Resource
from tests.scenes.builders import resources_of
from tests.scenes.machines import MACHINES, after_reboot, machine

#: Nodes that have a number in their id, by machine and subsystem.
WITH_NUMBER = frozenset(
    {
        # Somebody has chosen it.
        *(("backup-server", each) for each in ("block", "ublk-char")),
        *((each, "tty") for each in ("gadget-board", "service-laptop")),  # rfcomm
        # It is behind the number of the model (`PCI7432W0`).
        ("laboratory-pc", "adl_pci7432"),
        # The serial number of a root hub is the kernel's name of its controller.
        *((board, "usb") for board in ("imx-board", "rockchip-board", "ti-board")),
    }
)

KEYS = {
    "node": "",
    "usb_device": 'group_by = "usb_device"\n',
    "parent": 'group_by = "parent"\n',
    "controller": 'group_by = { SUBSYSTEM = "pci" }\n',
    "all": 'group_by = "all"\n',
    "port": 'identity = "port"\n',
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("name", MACHINES)
def test_links_do_not_depend_on_the_order_in_which_devices_are_found(name: str, keys: str) -> None:
    """They begin with the id."""
    before, after = machine(name), after_reboot(name)
    subsystems = sorted({each.subsystem for each in before.values() if each.number is not None})
    rules = resources_of(
        "".join(
            f'[[resource]]\nname = "r{number}"\nmatch = {{ SUBSYSTEM = "{subsystem}" }}\n'
            f"{keys}allow_dangerous = true\n"
            for number, subsystem in enumerate(subsystems)
        )
    )
    links_before, links_after = links_of(rules, before), links_of(rules, after)
    assert len(links_before) == len(subsystems)
    changed = [
        subsystem
        for subsystem, rule in zip(subsystems, rules, strict=True)
        if links_before[rule.name] != links_after[rule.name]
    ]
    assert [each for each in changed if (name, each) not in WITH_NUMBER] == []


def links_of(rules: Sequence[Resource], devices: Mapping[str, UdevDevice]) -> dict[str, dict[int, str]]:
    """The link of each device node that is offered, by its position among the devices, for each resource."""
    position = {sys_path: number for number, sys_path in enumerate(devices)}
    return {
        name: {position[node.sys_path]: node.link for device in offer.devices for node in device.nodes}
        for name, offer in Builder(rules, "genericdp.io").build(devices).offers.items()
    }
