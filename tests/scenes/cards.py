"""Cards of which sysfs shows no parent."""

from genericdp.core.device import UdevDevice
from tests.scenes.builders import a_device


def a_hailo(turn: int, board: str, boot: int = 0) -> UdevDevice:
    """A board of Hailo as its driver for PCIe makes it (hailo_pcie_probe): the turn is that of its firmware.

    board  the PCI address that the driver shows
    """
    return a_device(
        f"/sys/devices/virtual/hailo_chardev/hailo{turn}",
        subsystem="hailo_chardev",
        node=f"/dev/hailo{turn}",
        number=f"c 511:{turn}",
        attributes={"board_location": board} if board else {},
        incarnation=1000 + 100 * boot + turn,
    )


def a_partition_of_a_gpu(turn: int, boot: int = 0) -> UdevDevice:
    """A partition of a GPU as amdgpu_xcp makes it: nothing says of which GPU."""
    above = a_device(f"/sys/devices/platform/amdgpu_xcp_{turn}", subsystem="platform", incarnation=50 + turn)
    return a_device(
        f"{above.sys_path}/drm/renderD{129 + turn}",
        subsystem="drm",
        devtype="drm_minor",
        node=f"/dev/dri/renderD{129 + turn}",
        number=f"c 226:{129 + turn}",
        parent=above,
        incarnation=1000 + 100 * boot + turn,
    )
