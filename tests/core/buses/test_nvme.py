"""Which NVMe drive and which namespace a device node is: `nvme-subsys0` and `nvme0n2` count arrivals."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import UNKNOWN, Spot, locate
from tests.core.buses.test_scsi import DISK, id_of, refusals_of
from tests.scenes.builders import a_device
from tests.scenes.inventories import inventory_of
from tests.scenes.storage import (
    DISK_RULE,
    NVME_DRIVES,
    a_generic_namespace,
    an_nvme_controller,
    an_nvme_disk,
    an_nvme_namespace,
)

NQN = "nqn.1994-11.com.samsung:nvme:PM9A3:2.5-inch:S64G"
MADE_UP = "nqn.2014.08.org.nvmexpress:144d144d{}      SAMSUNG"
EMPTY_UUID = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("identity", ["serial", "port"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("S64G1", f"{NQN}1"), ("S64G2", f"{NQN}2")),
        (("", f"{NQN}1"), ("", f"{NQN}2")),
        (("0001", f"{NQN}1"), ("0001", f"{NQN}2")),
        (("S64G1", MADE_UP.format("S64G1")), ("S64G2", MADE_UP.format("S64G2"))),
        (("S64G1", EMPTY_UUID), ("S64G2", EMPTY_UUID)),
        (("S64G1", ""), ("S64G2", "")),
    ],
    ids=[
        *("its NQN and its serial number", "its NQN", "its NQN and a filler", "an NQN of its serial number"),
        *("its serial number, with an empty UUID", "its serial number"),
    ],
)
def test_a_drive_with_several_controllers_is_the_same_under_any_number(
    one: tuple[str, str], other: tuple[str, str], identity: str
) -> None:
    rule = f'identity = "{identity}"\n'
    first, later, instead = an_nvme_disk(0, *one), an_nvme_disk(5, *one), an_nvme_disk(0, *other)
    assert id_of(first, rule) == id_of(later, rule) != id_of(instead, rule)
    assert locate(first).spot == locate(later).spot != locate(instead).spot


def test_the_id_of_a_drive_with_a_serial_number_is_that_of_earlier_releases() -> None:
    assert id_of(an_nvme_disk(0, "S64G1", f"{NQN}1")) == "disk_S64G1.disk"


def test_the_memory_of_an_earlier_release_has_a_drive_under_its_number() -> None:
    was = Spot("/sys/devices/virtual/nvme-subsystem/nvme-subsys3", "S64G1", "disk", UNKNOWN)
    assert locate(an_nvme_disk(3, "S64G1", f"{NQN}1")).before == was


@pytest.mark.parametrize("told", [("", ""), ("0001", ""), ("0001", MADE_UP.format("0001")), ("", EMPTY_UUID)])
def test_a_drive_that_nothing_tells_is_refused(told: tuple[str, str]) -> None:
    disk = an_nvme_disk(0, *told)
    reason = 'nothing shows which disk it is; give the resource an identity, such as identity = ["ID_SERIAL"]'
    assert refusals_of(disk) == (Refusal(DISK, "/dev/nvme0n1", reason),)


def _ids(*controllers: UdevDevice) -> dict[str, str]:
    rule = DISK_RULE.replace("block", "nvme") + 'identity = "port"\n'
    devices = inventory_of(rule, *controllers).offers[DISK].devices
    return {node.path: each.id for each in devices for node in each.nodes}


def test_where_the_node_connects_from_tells_nothing() -> None:
    at = "traddr=10.0.1.20,trsvcid=4420,host_iface=eth1"
    away, first, later = (
        _ids(an_nvme_controller(0, NQN, f"{at}{source}"))
        for source in ("", ",src_addr=10.0.1.5", ",src_addr=fd00::5")
    )
    assert away == first == later


def test_each_controller_over_a_network_is_told_by_its_address() -> None:
    at, far = "traddr=10.0.1.20,trsvcid=4420", "traddr=10.0.2.20,trsvcid=4420"
    before = _ids(an_nvme_controller(0, NQN, at), an_nvme_controller(1, NQN, far))
    after = _ids(an_nvme_controller(0, NQN, far), an_nvme_controller(1, NQN, at))
    assert before["/dev/nvme0"] == after["/dev/nvme1"] != before["/dev/nvme1"] == after["/dev/nvme0"]


@pytest.mark.parametrize("drive", NVME_DRIVES, ids=["controller", "subsystem"])
@pytest.mark.parametrize(
    ("of", "name"), [(an_nvme_namespace, "disk"), (a_generic_namespace, "ng")], ids=["disk", "generic"]
)
def test_a_namespace_is_told_by_its_number_on_the_drive(
    drive: UdevDevice, of: Callable[[UdevDevice, int, int], UdevDevice], name: str
) -> None:
    first, second = locate(of(drive, 1, 1)), locate(of(drive, 1, 2))
    assert (first.within, second.within) == (name, f"{name}-ns2")
    assert first.spot == locate(of(drive, 2, 1)).spot != second.spot


def test_what_has_a_generic_node_waits_for_the_pod_that_has_it_from_an_earlier_release() -> None:
    place = locate(a_generic_namespace(NVME_DRIVES[0], 2, 1))
    assert place.before == place.spot._replace(within="ngn2", number=UNKNOWN)


def test_a_generic_node_beside_which_no_disk_says_its_number_has_the_name_of_the_kernel() -> None:
    node = replace(a_generic_namespace(NVME_DRIVES[0], 2, 1), attributes={})
    place = locate(node)
    assert (place.within, place.spot.within, place.before) == ("ngn2", "ngn2", None)


def test_a_drive_without_a_lasting_port_is_refused_where_the_rule_says_port() -> None:
    controller = a_device(
        "/sys/devices/virtual/nvme-fabrics/ctl/nvme2",
        subsystem="nvme",
        node="/dev/nvme2",
        attributes={"serial": "S2"},
    )
    rule = '[[resource]]\nname = "drive"\nmatch = { SUBSYSTEM = "nvme" }\nallow_dangerous = true\n'
    reason = (
        'it has no port, only a number in order of arrival; leave out identity = "port": '
        "its serial number identifies it"
    )
    built = inventory_of(f'{rule}identity = "port"\n', controller)
    assert built.refusals == (Refusal("example.com/drive", "/dev/nvme2", reason),)
    (device,) = inventory_of(rule, controller).offers["example.com/drive"].devices
    assert device.id == "drive_S2"
