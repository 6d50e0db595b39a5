"""VFIO devices that a test can plug in: PCI functions, mediated devices, the nodes that hand them over."""

from tests.udev.gadgets import Entry

ROOT = "/devices/pci0000:80/0000:80:01.0"

#: The major numbers that the kernel gave to VFIO.
_GROUPS, _FUNCTIONS = 243, 511


def function(
    address: str = "0000:81:00.0",
    *,
    driver: str = "vfio-pci",
    device: str = "10DE:1EB8",
    kind: str = "0x030200",
    numa_node: int = 1,
    below: str = ROOT,
) -> Entry:
    """A PCI function. `kind`: its class."""
    return Entry(
        f"{below}/{address}",
        "pci",
        driver=driver,
        attributes={"class": kind, "numa_node": str(numa_node)},
        kernel={"PCI_ID": device, "PCI_SLOT_NAME": address, "PCI_CLASS": kind.removeprefix("0x").upper()},
    )


def bridge(address: str = "0000:80:01.0") -> Entry:
    """The root port above the functions."""
    return Entry(
        f"/devices/pci0000:80/{address}",
        "pci",
        driver="pcieport",
        attributes={"class": "0x060400"},
        kernel={"PCI_ID": "8086:4941", "PCI_SLOT_NAME": address},
    )


def group_node(number: int = 51) -> Entry:
    """The node of an IOMMU group, which appears when a vfio driver has one of its devices."""
    return Entry(
        f"/devices/virtual/vfio/{number}", "vfio", node=f"vfio/{number}", number=f"{_GROUPS}:{number}"
    )


def function_node(of: Entry, number: int = 0) -> Entry:
    """The node of one device that a vfio driver has."""
    return Entry(
        f"{of.path}/vfio-dev/vfio{number}",
        "vfio-dev",
        node=f"vfio/devices/vfio{number}",
        number=f"{_FUNCTIONS}:{number}",
    )


def mediated(of: Entry, uuid: str = "c2177883-f1bb-47f0-914d-32a22e3a8804") -> Entry:
    """A mediated device of a function."""
    return Entry(f"{of.path}/{uuid}", "mdev", driver="vfio_mdev")
