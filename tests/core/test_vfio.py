"""Which function an IOMMU group is known by, and when its node is of use."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.vfio import functions_of, why_not_viable, with_first
from tests.scenes.builders import a_device, a_function, a_fuse, a_vfio_group

UUID = "c2177883-f1bb-47f0-914d-32a22e3a8804"


def a_mediated_device(driver: str) -> UdevDevice:
    above = a_function(driver="i915")
    return a_device(f"{above.sys_path}/{UUID}", subsystem="mdev", driver=driver, parent=above)


def test_a_group_is_known_by_its_first_function_that_is_no_bridge() -> None:
    functions = [
        a_function("10000:01:00.0"),
        a_function("0000:81:00.1"),
        a_function("0000:81:00.0", kind="0x060400"),
        a_function("0000:81:00.2"),
    ]
    assert [each.sys_name for each in with_first(functions)] == [
        "0000:81:00.1",
        "0000:81:00.2",
        "10000:01:00.0",
        "0000:81:00.0",
    ]


def test_only_the_nodes_of_vfio_devices_hand_over_functions() -> None:
    gpu, audio = a_function("0000:81:00.0"), a_function("0000:81:00.1")

    assert functions_of(a_vfio_group(51, gpu, audio)) == (gpu, audio)
    assert functions_of(a_fuse()) == ()
    assert functions_of(a_device("/sys/devices/virtual/vfio/51", subsystem="vfio")) == ()


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ([a_function("0000:81:00.0"), a_function("0000:81:00.1")], ""),
        ([a_function("0000:81:00.0"), a_function("0000:80:01.0", driver="pcieport", kind="0x060400")], ""),
        ([a_function("0000:81:00.0"), a_function("0000:80:01.0", driver="", kind="0x060401")], ""),
        ([a_function("0000:81:00.0", driver="mlx5_vfio_pci")], ""),
        ([a_mediated_device("vfio_mdev")], ""),
        ([a_mediated_device("intel_vgpu_mdev")], ""),
        (
            [a_mediated_device("")],
            f"{UUID} of its IOMMU group is bound to no driver, not to a vfio driver",
        ),
        (
            [a_function("0000:81:00.0"), a_function("0000:81:00.1", driver="snd_hda_intel")],
            "0000:81:00.1 of its IOMMU group is bound to snd_hda_intel, not to a vfio driver",
        ),
        (
            [a_function("0000:81:00.0", driver="nvidia"), a_function("0000:81:00.1")],
            "0000:81:00.0 of its IOMMU group is bound to nvidia, not to a vfio driver",
        ),
        (
            [a_function("0000:81:00.0"), a_function("0000:81:00.1", driver="")],
            "0000:81:00.1 of its IOMMU group is bound to no driver, not to a vfio driver",
        ),
    ],
)
def test_every_function_but_a_bridge_is_bound_to_a_vfio_driver(
    functions: list[UdevDevice], reason: str
) -> None:
    assert why_not_viable(a_vfio_group(51, *functions)) == reason
