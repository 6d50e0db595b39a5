"""VFIO groups as devices: known by their functions, whatever number a group has."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device
from tests.scenes.builders import a_device, a_function, a_vfio_group
from tests.scenes.inventories import inventory_of

RULE = '[[resource]]\nname = "t4"\nmatch = { SUBSYSTEM = "vfio", parent = { PCI_ID = "10DE:1EB8" } }\n'


def the_device(inventory: Inventory) -> Device:
    (offer,) = inventory.offers.values()
    (device,) = offer.devices
    return device


def test_a_group_has_the_port_and_the_numa_node_of_its_function() -> None:
    gpu = a_function("0000:81:00.0")
    device = the_device(inventory_of(RULE, a_vfio_group(51, gpu)))

    assert device.healthy
    assert device.port == gpu.sys_path
    assert device.numa == 1
    assert device.id.startswith("t4_port-0000-81-00-0-vfio_")


def test_the_id_and_the_link_follow_the_function_and_never_the_number() -> None:
    gpu, other = a_function("0000:81:00.0"), a_function("0000:82:00.0")
    before = inventory_of(RULE, a_vfio_group(51, gpu), a_vfio_group(52, other))
    after = inventory_of(RULE, a_vfio_group(52, gpu), a_vfio_group(51, other))

    ids = {device.port: device.id for device in before.offers["example.com/t4"].devices}
    assert {device.port: device.id for device in after.offers["example.com/t4"].devices} == ids
    assert before.links() == {ids[gpu.sys_path]: "/dev/vfio/51", ids[other.sys_path]: "/dev/vfio/52"}
    assert after.links() == {ids[gpu.sys_path]: "/dev/vfio/52", ids[other.sys_path]: "/dev/vfio/51"}


def test_a_group_is_matched_by_any_of_its_functions() -> None:
    audio = a_function("0000:81:00.0", pci_id="10DE:10F8")
    device = the_device(inventory_of(RULE, a_vfio_group(51, audio, a_function("0000:81:00.1"))))

    assert device.port == audio.sys_path


def test_a_group_is_unhealthy_while_another_driver_has_a_part_of_it() -> None:
    audio = a_function("0000:81:00.1", driver="snd_hda_intel")
    device = the_device(inventory_of(RULE, a_vfio_group(51, a_function(), audio)))

    assert not device.healthy
    assert device.reason == "0000:81:00.1 of its IOMMU group is bound to snd_hda_intel, not to a vfio driver"


def test_a_mediated_device_is_known_by_its_uuid_wherever_it_was_made() -> None:
    uuid = "c2177883-f1bb-47f0-914d-32a22e3a8804"

    def inventory(address: str) -> Inventory:
        above = a_function(address)
        mdev = a_device(f"{above.sys_path}/{uuid}", subsystem="mdev", driver="vfio_mdev", parent=above)
        return inventory_of(RULE, a_vfio_group(77, mdev))

    here, there = the_device(inventory("0000:00:02.0")), the_device(inventory("0000:03:00.0"))
    assert here.healthy
    assert here.id == there.id
    assert here.id.startswith(f"t4_{uuid}-")
    assert here.spots == there.spots


def test_the_group_and_the_node_of_its_function_make_one_device_by_their_parent() -> None:
    gpu = a_function()
    node = a_device(
        f"{gpu.sys_path}/vfio-dev/vfio0",
        subsystem="vfio-dev",
        node="/dev/vfio/devices/vfio0",
        number="c 511:0",
        parent=gpu,
    )
    rule = (
        '[[resource]]\nname = "t4"\ngroup_by = "parent"\n'
        'match = { SUBSYSTEM = "vfio|vfio-dev", parent = { PCI_ID = "10DE:1EB8" } }\n'
    )
    device = the_device(inventory_of(rule, node, a_vfio_group(51, gpu)))

    assert [each.path for each in device.nodes] == ["/dev/vfio/51", "/dev/vfio/devices/vfio0"]
    assert [each.link.partition("@")[2] for each in device.nodes] == ["vfio", "vfio-dev"]


@pytest.mark.parametrize("refusal", ["its IOMMU group has no device"])
def test_a_refused_device_is_not_offered_whatever_the_rules_say(refusal: str) -> None:
    empty: UdevDevice = replace(a_vfio_group(51, a_function()), refusal=refusal)
    inventory = inventory_of(RULE, empty)

    assert inventory.offers["example.com/t4"].devices == ()
    assert [(each.node, each.reason) for each in inventory.refusals] == [("/dev/vfio/51", refusal)]
