"""Which disk a SCSI device is: numbers that follow the order of arrival tell nothing, names do."""

from dataclasses import replace

import pytest

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import Place, locate, unit_of
from tests.scenes.builders import a_bare_node, a_device
from tests.scenes.inventories import inventory_of
from tests.scenes.storage import (
    DISK_RULE,
    HBA,
    PLATFORM,
    a_disk,
    a_host,
    a_sas_disk,
    an_fc_disk,
    an_iscsi_disk,
    below,
)

DISK = "example.com/disk"
WWN = "0x5000c500a1b2c3d4"
IQN = "iqn.2003-01.org.example:store"


def id_of(device: UdevDevice, keys: str = "") -> str:
    (only,) = inventory_of(DISK_RULE + keys, device).offers[DISK].devices
    return only.id


def refusals_of(device: UdevDevice) -> tuple[Refusal, ...]:
    inventory = inventory_of(DISK_RULE, device)
    assert inventory.offers[DISK].devices == ()
    return inventory.refusals


@pytest.mark.parametrize(
    ("one", "later", "other", "within"),
    [
        (
            a_sas_disk(0, WWN, 0),
            a_sas_disk(3, WWN, 2, host=5),
            a_sas_disk(0, "0x5000c500a1b2c3d5", 0),
            "disk-sas5000c500a1b2c3d4",
        ),
        (
            an_fc_disk(0, WWN, 0, lun=2),
            an_fc_disk(3, WWN, 2, host=5, lun=2),
            an_fc_disk(0, WWN, 0, lun=1),
            "disk-fc5000c500a1b2c3d4-lun2",
        ),
        (
            an_iscsi_disk(2, 1, IQN, 0),
            an_iscsi_disk(9, 4, IQN, 2),
            an_iscsi_disk(2, 1, "iqn.2003-01.org.example:other", 0),
            "disk-lun1",
        ),
    ],
    ids=["SAS", "Fibre Channel", "iSCSI"],
)
def test_a_disk_is_told_by_the_name_that_its_transport_has_for_it(
    one: UdevDevice, later: UdevDevice, other: UdevDevice, within: str
) -> None:
    assert locate(one).spot == locate(later).spot
    assert id_of(one) == id_of(later) != id_of(other)
    assert locate(one).spot != locate(other).spot
    assert locate(one).within == within


def test_the_unit_of_a_disk_on_iscsi_is_the_target_never_the_platform_bus() -> None:
    disk = an_iscsi_disk(2, 1, IQN, 0)
    assert locate(disk).port == Port(f"iscsi {IQN}", IQN)
    assert unit_of(an_iscsi_disk(2, 1, "", 0)).sys_name == "host2"


@pytest.mark.parametrize("address", ["", "0x0000000000000000"])
def test_a_disk_that_its_transport_does_not_name_is_told_by_its_own_name(address: str) -> None:
    one, later = (a_sas_disk(target, address, 0, wwid="naa.5000c500a1b2c3d4") for target in (0, 3))
    assert locate(one).within == "disk-naa.5000c500a1b2c3d4"
    assert id_of(one) == id_of(later)


def test_an_array_that_its_controller_has_counted_is_told_by_its_own_name() -> None:
    one, other = (
        a_disk(a_host(), f"0:1:{target}:0", target, wwid=f"naa.600508e0{target}") for target in (0, 1)
    )
    assert [locate(each).within for each in (one, other)] == ["disk-naa.600508e00", "disk-naa.600508e01"]


@pytest.mark.parametrize(
    "disk",
    [
        a_sas_disk(0, "", 0),
        an_iscsi_disk(2, 1, "", 0),
        a_disk(a_host(), "0:1:0:0", 0),
        a_disk(a_host(PLATFORM, 3), "3:0:0:0", 0),
    ],
    ids=["SAS", "iSCSI", "an array", "a host of nothing"],
)
def test_a_disk_that_nothing_tells_is_refused_unless_the_rule_has_an_identity(disk: UdevDevice) -> None:
    reason = 'nothing shows which disk it is; give the resource an identity, such as identity = ["ID_SERIAL"]'
    assert refusals_of(disk) == (Refusal(DISK, "/dev/sda", reason),)
    assert id_of(disk, 'identity = ["DEVNAME"]\n')


@pytest.mark.parametrize(
    "keys",
    [
        'group_by = "all"\n',
        'group_by = { SUBSYSTEM = "pci" }\n',
        'group_by = { SUBSYSTEM = "pci" }\nidentity = ["ID_SERIAL"]\n',
    ],
)
def test_a_disk_that_nothing_tells_is_refused_as_a_part_of_a_group_as_well(keys: str) -> None:
    reason = (
        "nothing shows which disk it is; leave out 'group_by' and give the resource an identity, "
        'such as identity = ["ID_SERIAL"]'
    )
    disks = a_sas_disk(0, "", 0), a_sas_disk(1, "", 1), a_sas_disk(2, WWN, 2)
    built = inventory_of(DISK_RULE + keys, *disks)
    assert built.refusals == (Refusal(DISK, "/dev/sda", reason), Refusal(DISK, "/dev/sdb", reason))
    (device,) = built.offers[DISK].devices
    assert [node.path for node in device.nodes] == ["/dev/sdc"]


def test_disks_of_one_group_are_refused_if_nothing_but_the_group_tells_which_ones_they_are() -> None:
    """The property tells the group. In a group of one disk, it tells the disk, too."""

    def with_rack(disk: UdevDevice, rack: str) -> UdevDevice:
        return replace(disk, properties={**disk.properties, "RACK": rack})

    def paths(*disks: UdevDevice) -> list[list[str]]:
        built = inventory_of(f'{DISK_RULE}group_by = "RACK"\n', *disks)
        return [[node.path for node in device.nodes] for device in built.offers[DISK].devices]

    one, two = a_sas_disk(0, "", 0), a_sas_disk(1, "", 1)
    assert paths(with_rack(one, "left"), with_rack(two, "right")) == [["/dev/sda"], ["/dev/sdb"]]
    assert paths(with_rack(one, "left"), with_rack(two, "left")) == []


def test_a_shared_disk_that_nothing_tells_is_refused() -> None:
    rules = (
        '[[resource]]\nname = "disk"\nmatch = { DEVNAME = "/dev/acme0" }\nallow_dangerous = true\n'
        '[[resource.node]]\nmatch = { SUBSYSTEM = "block" }\nshared = true\n'
    )
    built = inventory_of(rules, a_bare_node(), a_sas_disk(0, "", 0))
    assert built.refusals == (Refusal(DISK, "/dev/sda", "nothing shows which disk it is"),)
    (device,) = built.offers[DISK].devices
    assert device.reason == "the shared node '/dev/sda' is not offered: nothing shows which disk it is"


def test_numbers_that_are_addresses_count() -> None:
    virtio = a_device("/sys/devices/pci0000:00/0000:00:04.0", subsystem="pci", driver="virtio-pci")
    on_virtio = a_disk(a_host(below(virtio, "virtio2", "virtio"), 7), "7:0:3:1", 0)
    assert locate(on_virtio).within == "disk-lun0-3-1"
    raid = a_device("/sys/devices/pci0000:00/0000:00:05.0", subsystem="pci", driver="megaraid_sas")
    assert locate(a_disk(a_host(raid), "0:2:0:0", 0)).within == "disk-lun2-0-0"


def test_the_other_nodes_of_a_disk_are_told_by_the_same_name() -> None:
    disk = a_sas_disk(0, WWN, 0)
    assert disk.parent is not None
    generic = below(disk.parent, "sg4", "scsi_generic")
    first = a_device(f"{disk.sys_path}/sda1", subsystem="block", devtype="partition", parent=disk)
    assert locate(generic).within == "sg-sas5000c500a1b2c3d4"
    assert locate(first).within == "part-sas5000c500a1b2c3d4"
    assert locate(generic).unit is HBA


def test_an_adapter_of_a_network_has_a_host_for_each_target() -> None:
    """ib_srp makes it right below the PCI function, and each target has the number 0 there."""

    def at(pci_class: str, host: int) -> Place:
        adapter = a_device(
            "/sys/devices/pci0000:00/0000:00:06.0", subsystem="pci", properties={"PCI_CLASS": pci_class}
        )
        return locate(a_disk(a_host(adapter, host), f"{host}:0:0:0", 0, wwid=f"naa.{host}"))

    assert at("20700", 7).spot != at("20700", 8).spot
    assert at("20700", 7).within == "disk-naa.7"
    assert at("10700", 7).spot == at("10700", 8).spot
    assert at("C0400", 7).spot == at("C0400", 8).spot
