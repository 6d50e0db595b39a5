"""What the nodes of VFIO hand over: the functions of an IOMMU group, from sysfs."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Poll, RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices
from tests.udev.gadgets import Entry
from tests.udev.listening import by_node
from tests.udev.testbed import Testbed
from tests.udev.vfio import bridge, function, function_node, group_node, mediated

pytestmark = pytest.mark.testbed

GPU = function("0000:81:00.0")
AUDIO = function("0000:81:00.1", driver="snd_hda_intel", kind="0x040300")
GROUP = group_node(51)


def a_group(bed: Testbed, *functions: Entry, node: Entry = GROUP, number: int = 51) -> UdevDevices:
    """A machine with one group."""
    bed.plug((*functions, node))
    bed.group(number, *functions)
    devices = UdevDevices()
    devices.resync()
    return devices


def changed(entry: Entry, action: str = "change") -> Uevent:
    return Uevent(action, entry.sys_path, entry.subsystem, "udev")


def removed(entry: Entry) -> Uevent:
    return Uevent("remove", entry.sys_path, entry.subsystem, "kernel")


def names(*devices: UdevDevice | None) -> list[tuple[str, str]]:
    return [(each.sys_name, each.driver) for each in devices if each is not None]


def test_the_functions_of_a_group_are_its_parent_and_its_companions(bed: Testbed) -> None:
    node = by_node(a_group(bed, bridge(), AUDIO, GPU))["/dev/vfio/51"]

    assert names(node.parent) == [("0000:81:00.0", "vfio-pci")]
    assert names(*node.companions) == [("0000:81:00.1", "snd_hda_intel"), ("0000:80:01.0", "pcieport")]
    assert [each.sys_name for each in node.ancestors()] == ["0000:81:00.0", "0000:80:01.0"]
    assert node.parent is not None
    assert node.parent.properties["PCI_SLOT_NAME"] == "0000:81:00.0"


def test_the_node_of_a_function_has_the_others_of_the_group_as_companions(bed: Testbed) -> None:
    devices = a_group(bed, bridge(), GPU, AUDIO, node=function_node(AUDIO))
    node = by_node(devices)["/dev/vfio/devices/vfio0"]

    assert names(node.parent) == [("0000:81:00.1", "snd_hda_intel")]
    assert names(*node.companions) == [("0000:81:00.0", "vfio-pci"), ("0000:80:01.0", "pcieport")]


def test_a_mediated_device_is_the_parent_of_its_group_and_hangs_off_its_function(bed: Testbed) -> None:
    mdev = mediated(GPU)
    bed.plug((bridge(), GPU, mdev, GROUP))
    bed.group(51, mdev)
    devices = UdevDevices()
    devices.resync()

    node = by_node(devices)["/dev/vfio/51"]
    assert [each.sys_name for each in node.ancestors()] == [
        "c2177883-f1bb-47f0-914d-32a22e3a8804",
        "0000:81:00.0",
        "0000:80:01.0",
    ]
    assert node.companions == ()


def test_vfio_itself_and_other_devices_have_no_companions(bed: Testbed) -> None:
    vfio = Entry("/devices/virtual/misc/vfio", "misc", node="vfio/vfio", number="10:196")
    devices = a_group(bed, GPU)
    bed.plug((vfio,))
    devices.resync()

    assert by_node(devices)["/dev/vfio/vfio"].companions == ()
    assert by_node(devices)["/dev/vfio/vfio"].parent is None


def test_a_group_without_a_device_is_not_offered(bed: Testbed) -> None:
    devices = a_group(bed)

    assert by_node(devices)["/dev/vfio/51"].refusal == "its IOMMU group has no device"
    bed.attach((GPU,))
    bed.group(51, GPU)
    assert devices.apply(changed(GPU, "add"))
    assert by_node(devices)["/dev/vfio/51"].refusal == ""
    assert names(by_node(devices)["/dev/vfio/51"].parent) == [("0000:81:00.0", "vfio-pci")]


@pytest.mark.parametrize("node", [GROUP, function_node(GPU)], ids=["group", "function"])
def test_another_driver_of_a_companion_is_a_change_of_the_node(bed: Testbed, node: Entry) -> None:
    devices = a_group(bed, GPU, AUDIO, node=node)
    before = by_node(devices)[f"/dev/{node.node}"]

    bed.bind(AUDIO, "")
    assert devices.apply(changed(AUDIO, "unbind"))
    unbound = by_node(devices)[f"/dev/{node.node}"]
    assert names(*unbound.companions) == [("0000:81:00.1", "")]
    bed.bind(AUDIO, "vfio-pci")
    assert devices.apply(changed(AUDIO, "bind"))
    bound = by_node(devices)[f"/dev/{node.node}"]
    assert names(*bound.companions) == [("0000:81:00.1", "vfio-pci")]
    assert len({id(before), id(unbound), id(bound)}) == 3


def test_another_driver_of_the_parent_is_a_change_of_the_node(bed: Testbed) -> None:
    devices = a_group(bed, GPU)
    bed.bind(GPU, "nvidia")

    assert devices.apply(changed(GPU, "bind"))
    assert names(by_node(devices)["/dev/vfio/51"].parent) == [("0000:81:00.0", "nvidia")]


def test_a_function_that_joins_or_leaves_the_group_is_noticed(bed: Testbed) -> None:
    devices = a_group(bed, GPU)
    bed.attach((AUDIO,))
    bed.group(51, GPU, AUDIO)

    assert devices.apply(changed(AUDIO, "add"))
    assert names(*by_node(devices)["/dev/vfio/51"].companions) == [("0000:81:00.1", "snd_hda_intel")]
    bed.group(51, GPU)
    bed.detach(AUDIO)
    assert devices.apply(removed(AUDIO))
    assert by_node(devices)["/dev/vfio/51"].companions == ()
    assert AUDIO.sys_path not in devices.devices


@pytest.mark.parametrize("node", [GROUP, function_node(GPU)], ids=["group", "function"])
def test_an_attribute_of_a_companion_is_polled_with_the_node(bed: Testbed, node: Entry) -> None:
    devices = a_group(bed, GPU, AUDIO, node=node)
    bed.set_attribute(AUDIO, "numa_node", "7")

    ask = Poll({node.sys_path: frozenset({"numa_node"})})
    assert devices.apply(ask)
    (companion,) = by_node(devices)[f"/dev/{node.node}"].companions
    assert companion.attributes["numa_node"] == "7"
    assert not devices.apply(ask)


def test_what_did_not_change_stays_the_same_object(bed: Testbed) -> None:
    other, other_node = function("0000:82:00.0"), group_node(52)
    devices = a_group(bed, bridge(), GPU, AUDIO)
    bed.plug((other, other_node))
    bed.group(52, other)
    devices.resync()
    before = dict(devices.devices)

    for hint in (changed(GPU), changed(AUDIO), changed(GROUP), changed(other), Resync(RescanCause.DEAF)):
        assert not devices.apply(hint)
    assert all(devices.devices[path] is device for path, device in before.items())

    bed.bind(AUDIO, "vfio-pci")
    assert devices.apply(changed(AUDIO, "bind"))
    assert by_node(devices)["/dev/vfio/52"] is before[other_node.sys_path]
    assert devices.devices[GPU.sys_path] is before[GPU.sys_path]


def test_an_event_of_a_bridge_reaches_what_hangs_off_it(bed: Testbed) -> None:
    devices = a_group(bed, bridge(), GPU)
    bed.set_attribute(bridge(), "numa_node", "0")

    assert devices.apply(changed(bridge()))
    node = by_node(devices)["/dev/vfio/51"]
    assert [devices.devices[each.sys_path] is each for each in node.related()] == [True] * 4


def test_the_group_may_get_another_number(bed: Testbed) -> None:
    devices = a_group(bed, GPU)
    again = group_node(7)
    bed.detach(GROUP)
    devices.apply(removed(GROUP))
    assert by_node(devices) == {}
    bed.plug((again,))
    bed.group(7, GPU)

    assert devices.apply(changed(again, "add"))
    assert names(by_node(devices)["/dev/vfio/7"].parent) == [("0000:81:00.0", "vfio-pci")]
