"""Laws of nodes that stay plugged in while what tells them changes: their pods keep them, and nobody else.

A driver may ask the device for its serial number each time, and a connection over a network may come from
another address. So an attribute may be empty at one look, and that of another unit at the next one.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory.saved import dump, load
from tests.properties.searching import for_each_of_many
from tests.scenes.builders import a_device, a_usb_serial
from tests.scenes.edits import Node, rule
from tests.scenes.storage import DISK_RULE, an_nvme_controller, below

NQN = "nqn.2014-08.org.example:array1:vol7"


def a_virtio_disk(number: int) -> UdevDevice:
    pci = a_device(f"/sys/devices/pci0000:00/0000:00:0{number + 5}.0", subsystem="pci", driver="virtio-pci")
    virtio = below(pci, f"virtio{number}", "virtio")
    return a_device(
        f"{virtio.sys_path}/block/vd{number}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/vd{number}",
        number=f"b 254:{number}",
        parent=virtio,
        attributes={"serial": ""},
        properties={"ID_SERIAL": ""},
    )


CONTROLLERS = rule("disk", match='{ SUBSYSTEM = "nvme" }')

#: A rule, two units of a kind, and what of them may change.
KINDS = {
    "tty": (
        rule("ftdi"),
        [a_usb_serial(number, port=str(number + 1), serial="A", devnum=number + 3) for number in range(2)],
        "serial",
    ),
    "tty at a port": (
        rule("ftdi", 'identity = "port"'),
        [a_usb_serial(number, port=str(number + 1), serial="A", devnum=number + 3) for number in range(2)],
        "serial",
    ),
    "disk": (DISK_RULE, [a_virtio_disk(number) for number in range(2)], "serial"),
    "disk by its properties": (
        DISK_RULE + 'identity = ["ID_SERIAL"]\n',
        [a_virtio_disk(number) for number in range(2)],
        "ID_SERIAL",
    ),
    "controller": (CONTROLLERS, [an_nvme_controller(number, NQN, "") for number in range(2)], "address"),
    "controller at a port": (
        CONTROLLERS + 'identity = "port"\n',
        [an_nvme_controller(number, NQN, "") for number in range(2)],
        "address",
    ),
}

values = st.sampled_from(["", "A50285BI", "traddr=10.0.1.20,trsvcid=4420"])
looks = st.lists(st.tuples(values, values, st.booleans(), st.booleans()), min_size=1, max_size=8)


def _telling(device: UdevDevice, name: str, value: str) -> UdevDevice:
    """The device when what tells it has a value: its own attribute or property, or that of an ancestor."""
    parent = None if device.parent is None else _telling(device.parent, name, value)
    return replace(
        device,
        parent=parent,
        attributes=_with(device.attributes, name, value),
        properties=_with(device.properties, name, value),
    )


def _with(told: Mapping[str, str], name: str, value: str) -> Mapping[str, str]:
    return {**told, name: value} if name in told else told


@pytest.mark.parametrize("kind", KINDS)
@for_each_of_many
@example([("A50285BI", "", True, False), ("", "", True, False), ("", "A50285BI", True, True)])
@given(looks)
def test_no_pod_gets_a_node_that_another_one_has_whatever_its_unit_says_now(
    kind: str, steps: list[tuple[str, str, bool, bool]]
) -> None:
    rules, units, name = KINDS[kind]
    node, has = Node(), dict[str, str]()
    for *told, takes, restarts in steps:
        if restarts:
            node.memory = load(dump(node.memory))
        plugged = [
            replace(_telling(unit, name, value), incarnation=number + 1)
            for number, (unit, value) in enumerate(zip(units, told, strict=True))
        ]
        health = node.look(rules, *plugged)
        links = node.inventory.links()
        for id_, path in has.items():
            assert links[id_] in (path, None)
        free = {id_: links[id_] for id_ in health.keys() - has if health[id_] == "Healthy"}
        assert not {*free.values()} & {*has.values()}
        if takes and free:
            id_ = min(free)
            node.allocate(id_)
            has[id_] = free[id_] or ""
