"""Which namespace of persistent memory `/dev/pmem0` is."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import UNKNOWN, locate
from tests.core.buses.test_scsi import id_of
from tests.scenes.builders import a_device
from tests.scenes.storage import below

ONE, TWO = "6f1e0c9a-31b4-4c50-9d5e-000000000001", "6f1e0c9a-31b4-4c50-9d5e-000000000002"


def a_pmem(number: int, uuid: str, above: str = "namespace{}.0") -> UdevDevice:
    bus = a_device("/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00", subsystem="acpi")
    region = below(below(bus, "ndbus0", "nd"), f"region{number}", "nd")
    namespace = below(region, above.format(number), "nd", **({"uuid": uuid} if uuid else {}))
    return a_device(
        f"{namespace.sys_path}/block/pmem{number}",
        subsystem="block",
        devtype="disk",
        node=f"/dev/pmem{number}",
        number=f"b 259:{number}",
        parent=namespace,
    )


@pytest.mark.parametrize("above", ["namespace{}.0", "pfn{}.1", "btt{}.0"])
def test_a_namespace_is_the_same_under_any_number(above: str) -> None:
    first, later, other = a_pmem(0, ONE, above), a_pmem(1, ONE, above), a_pmem(0, TWO, above)
    assert id_of(first) == id_of(later) != id_of(other)
    assert locate(first).spot == locate(later).spot != locate(other).spot


def test_a_namespace_without_a_label_is_what_it_was() -> None:
    assert locate(a_pmem(0, "\n")).spot == locate(a_pmem(0, "")).spot
    assert locate(a_pmem(0, "")).before is None
    assert locate(a_pmem(0, ONE)).before == locate(a_pmem(0, "")).spot._replace(number=UNKNOWN)
