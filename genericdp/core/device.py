"""One udev device, frozen: what sysfs and the udev database say about it at one moment.

The rules of this file:

* Nothing here reads the system. `genericdp.udev` makes these values, everything else only reads them.
* Everything that a device says about itself (serial, product, link names) is untrusted and stays
  exactly as read. On its way into an id, a path, an env or a log line it goes through `hostile`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

#: What tells an image of Ceph: its cluster, its pool and the namespace there, itself and its snapshot.
OF_IMAGE = ("cluster_fsid", "pool_id", "pool_ns", "image_id", "snap_id")

#: sysfs attributes that identity, health and topology need, whatever the rules need.
CORE_ATTRIBUTES = frozenset(
    {
        "authorized",
        "bInterfaceClass",
        "bInterfaceNumber",
        "busnum",
        "class",
        "devnum",
        "idProduct",
        "idVendor",
        "index",
        "line",
        "name",
        "numa_node",
        "port_number",
        "serial",
        "version",
        *OF_IMAGE,
    }
)


#: What the kernel knows no hardware behind.
VIRTUAL = "/sys/devices/virtual/"

#: The attributes that tell a device apart which only devices with such a kernel name have. The name itself
#: follows the order of arrival.
_BY_NAME = (
    # Which port of its controller an ATA port is.
    (re.compile(r"ata\d+"), ("ata_port/{}/port_no",)),
    # What a SCSI target is called on SAS, on Fibre Channel and on iSCSI.
    (re.compile(r"end_device-\d[\d:]*"), ("sas_device/{}/sas_address",)),
    (re.compile(r"rport-\d[\d:-]*"), ("fc_remote_ports/{}/port_name",)),
    (re.compile(r"session\d+"), ("iscsi_session/{}/targetname",)),
    # What a disk calls itself.
    (re.compile(r"\d+:\d+:\d+:\d+"), ("wwid",)),
    (re.compile(r"dm-\d+"), ("dm/uuid", "dm/name")),
    (re.compile(r"md(?:\d+|_.+)"), ("md/uuid",)),
    (re.compile(r"bcache\d+"), ("bcache/backing_dev_uuid",)),
    (re.compile(r"rnbd\d+"), ("rnbd/session", "rnbd/mapping_path")),
    # A namespace of persistent memory, and what is made of it.
    (re.compile(r"(?:namespace|pfn|btt|dax)\d+\.\d+"), ("uuid",)),
    (re.compile(r"fw\d+"), ("guid",)),
    # What an NVMe drive is called, and where a controller over a network is.
    (re.compile(r"nvme-subsys\d+"), ("subsysnqn",)),
    (re.compile(r"nvme\d+"), ("subsysnqn", "address")),
    # What a driver calls an RDMA adapter, a clock and a watchdog.
    (re.compile(r"(?:uverbs|umad|issm)\d+"), ("ibdev",)),
    (re.compile(r"ptp\d+"), ("clock_name",)),
    (re.compile(r"watchdog\d+"), ("identity",)),
    # Where a board of Hailo is that has no parent in sysfs.
    (re.compile(r"hailo\d+"), ("board_location",)),
    # Which namespace of its drive it is. The disk beside a generic node is the same namespace.
    (re.compile(r"nvme\d+(?:c\d+)?n\d+"), ("nsid",)),
    (re.compile(r"ng(\d+n\d+)"), ("../nvme{1}/nsid",)),
)


#: The port of the other root hub that is in the same socket: its sys path. A unit at a root hub has it.
PEER = "port/peer"

_AT_ROOT_HUB = re.compile(r".*/usb(\d+)/\1-\d+(?=/|$)")


def at_root_hub(path: str) -> str:
    """The sys path of the USB device at a root hub that this is, belongs to, or is behind; "" elsewhere."""
    found = _AT_ROOT_HUB.match(path)
    return "" if found is None else found[0]


def attributes_by_name(sys_path: str) -> tuple[str, ...]:
    """The attributes by which a device with this kernel name is told from others, whatever the rules need."""
    name = sys_path.rpartition("/")[2]
    if at_root_hub(sys_path) == sys_path:
        return (PEER,)
    for form, attributes in _BY_NAME:
        if (found := form.fullmatch(name)) is not None:
            return tuple(each.format(name, *found.groups()) for each in attributes)
    return ()


#: The group of nobody. A user namespace shows it for every group that it does not have (user_namespaces(7)).
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class DeviceNumber:
    """The number of a device node: `kind` is "c" or "b", followed by major and minor."""

    kind: str
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.kind} {self.major}:{self.minor}"


@dataclass(frozen=True, slots=True, eq=False)
class UdevDevice:
    """One entry of sysfs/udev with its parents, or a bare node: one that udev does not know.

    sys_path      absolute, below /sys, symlinks resolved; of a bare node its path below /dev
    incarnation   inode number of sys_path: another number at the same path means another device
    device_node   absolute path below /dev, or None
    number        the device number that udev reports, or None without a device node
    node_is_there whether device_node is a node of that number right now (stat, never open)
    gid           the group of that node, None while it is missing
    initialized   udev has finished with it, or there is no udevd to wait for
    properties    udev properties; without a udev database, those of the kernel's uevent
    attributes    its sysfs attributes among CORE_ATTRIBUTES and those that rules need
    tags          udev tags
    parent        the next device up, or None; of a VFIO device, the function that its IOMMU group is known by
    companions    the other functions of that group, which its node hands over as well
    refusal       why it must not be offered whatever the rules say, or ""

    Compared by identity: a new snapshot of the same device is another value, so results can be kept
    for each snapshot.
    """

    sys_path: str
    subsystem: str = ""
    devtype: str = ""
    driver: str = ""
    incarnation: int = 0
    device_node: str | None = None
    number: DeviceNumber | None = None
    node_is_there: bool = True
    gid: int | None = None
    devlinks: tuple[str, ...] = ()
    initialized: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    parent: "UdevDevice | None" = None
    companions: tuple["UdevDevice", ...] = ()
    refusal: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it is a device node that udev does not know."""
        return self.sys_path.startswith("/dev/")

    @property
    def is_virtual(self) -> bool:
        """Whether the kernel knows no hardware behind it."""
        return self.sys_path.startswith(VIRTUAL)

    @property
    def sys_name(self) -> str:
        """The kernel's name, the last component of the sys path (`ttyUSB0`)."""
        return self.sys_path.rpartition("/")[2]

    @property
    def devname(self) -> str:
        """The device node's name below /dev (`ttyUSB0`, `bus/usb/001/004`), "" without one."""
        return (self.device_node or "").removeprefix("/dev/")

    def ancestors(self) -> Iterator["UdevDevice"]:
        """The parents, nearest first."""
        device = self.parent
        while device is not None:
            yield device
            device = device.parent

    def self_and_ancestors(self) -> Iterator["UdevDevice"]:
        """The device, then its parents, nearest first."""
        device: UdevDevice | None = self
        while device is not None:
            yield device
            device = device.parent

    def related(self) -> Iterator["UdevDevice"]:
        """Everything that it consists of: itself and its companions, each with its parents."""
        yield from self.self_and_ancestors()
        for companion in self.companions:
            yield from companion.self_and_ancestors()

    @property
    def usb_device(self) -> "UdevDevice | None":
        """The physical USB device that this one is or hangs off, or None."""
        return self._nearest_usb("usb_device")

    @property
    def usb_interface(self) -> "UdevDevice | None":
        """The USB interface that this one is or hangs off, or None."""
        return self._nearest_usb("usb_interface")

    def _nearest_usb(self, devtype: str) -> "UdevDevice | None":
        # A plain loop, because every rule about USB calls this for every device.
        device: UdevDevice | None = self
        while device is not None:
            if device.devtype == devtype and device.subsystem == "usb":
                return device
            device = device.parent
        return None

    def property(self, name: str) -> str | None:
        """A udev property; SUBSYSTEM, DEVTYPE, DRIVER, DEVNAME and DEVPATH do not need a database."""
        value = self.properties.get(name)
        if value is not None:
            return value
        match name:
            case "SUBSYSTEM":
                return self.subsystem or None
            case "DEVTYPE":
                return self.devtype or None
            case "DRIVER":
                return self.driver or None
            case "DEVNAME":
                return self.device_node
            case "DEVPATH":
                return None if self.is_bare else self.sys_path.removeprefix("/sys")
            case _:
                return None
