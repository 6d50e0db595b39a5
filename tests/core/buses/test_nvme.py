"""Which namespace of an NVMe drive `/dev/nvme0n2` and `/dev/ng0n2` are."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import UNKNOWN, locate
from tests.scenes.storage import NVME_DRIVES, a_generic_namespace, an_nvme_namespace


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
