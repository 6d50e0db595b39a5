"""udev devices as a machine has them, by their chains of parents, and rules from their text.

What most tests begin with.

The values are those of real units, shortened to what rules, ids and health look at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from genericdp.core.bare_node import Sighting, device_of
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.reading.parse import parse_rules
from genericdp.core.rules.resource import Resource

#: The host controller that every USB device of these builders hangs off.
CONTROLLER = "/sys/devices/pci0000:00/0000:00:14.0"


def a_device(
    sys_path: str = "/sys/devices/virtual/misc/fuse",
    *,
    subsystem: str = "misc",
    node: str | None = None,
    number: str = "",
    devtype: str = "",
    driver: str = "",
    properties: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    devlinks: Iterable[str] = (),
    tags: Iterable[str] = (),
    parent: UdevDevice | None = None,
    initialized: bool = True,
    node_is_there: bool = True,
    gid: int | None = None,
    incarnation: int = 1,
) -> UdevDevice:
    """A udev device. `number` is "c 10:229"; the properties that the kernel always sends are added."""
    kernel = {"DEVPATH": sys_path.removeprefix("/sys"), "SUBSYSTEM": subsystem}
    if devtype:
        kernel["DEVTYPE"] = devtype
    if driver:
        kernel["DRIVER"] = driver
    if node:
        kernel["DEVNAME"] = node
    return UdevDevice(
        sys_path=sys_path,
        subsystem=subsystem,
        devtype=devtype,
        driver=driver,
        incarnation=incarnation,
        device_node=node,
        number=_number(number) if number else None,
        node_is_there=node_is_there,
        gid=gid,
        devlinks=tuple(devlinks),
        initialized=initialized,
        properties={**kernel, **(properties or {})},
        attributes=dict(attributes or {}),
        tags=frozenset(tags),
        parent=parent,
    )


def _number(text: str) -> DeviceNumber:
    kind, _, pair = text.partition(" ")
    major, _, minor = pair.partition(":")
    return DeviceNumber(kind, int(major), int(minor))


def a_fuse() -> UdevDevice:
    """/dev/fuse: a device of no bus at all."""
    return a_device(node="/dev/fuse", number="c 10:229")


def a_terminal(number: int = 20) -> UdevDevice:
    """/dev/vcs20: what real hot-plug tests plug and unplug."""
    return a_device(
        f"/sys/devices/virtual/vc/vcs{number}",
        subsystem="vc",
        node=f"/dev/vcs{number}",
        number=f"c 7:{number}",
    )


def a_usb_device(
    port: str = "2",
    *,
    bus: int = 1,
    vendor: str = "0403",
    product: str = "6001",
    serial: str | None = "A50285BI",
    devnum: int = 4,
    authorized: bool = True,
    attributes: Mapping[str, str] | None = None,
) -> UdevDevice:
    """A physical USB device with its /dev/bus/usb node, on `port` (`2.3` is port 3 of a hub on port 2)."""
    sys_name = f"{bus}-{port}"
    above = [f"{bus}-{port[:end]}" for end in range(len(port)) if port[end] == "."]
    controller = a_device(CONTROLLER, subsystem="pci", driver="xhci_hcd")
    root = a_device(f"{CONTROLLER}/usb{bus}", subsystem="usb", devtype="usb_device", parent=controller)
    minor = (bus - 1) * 128 + devnum - 1
    named = {} if serial is None else {"serial": serial}
    return a_device(
        "/".join([root.sys_path, *above, sys_name]),
        subsystem="usb",
        devtype="usb_device",
        driver="usb",
        node=f"/dev/bus/usb/{bus:03d}/{devnum:03d}",
        number=f"c 189:{minor}",
        properties={
            "BUSNUM": f"{bus:03d}",
            "DEVNUM": f"{devnum:03d}",
            "ID_VENDOR_ID": vendor,
            "ID_MODEL_ID": product,
            **({} if serial is None else {"ID_SERIAL_SHORT": serial}),
        },
        attributes={
            "idVendor": vendor,
            "idProduct": product,
            "busnum": str(bus),
            "devnum": str(devnum),
            "authorized": "1" if authorized else "0",
            **named,
            **(attributes or {}),
        },
        parent=root,
    )


def a_usb_interface(usb: UdevDevice, number: str = "00", *, cls: str = "ff", driver: str = "") -> UdevDevice:
    """An interface of a USB device; `number` and `cls` are two hex digits as in sysfs."""
    return a_device(
        f"{usb.sys_path}/{usb.sys_name}:1.{int(number, 16)}",
        subsystem="usb",
        devtype="usb_interface",
        driver=driver,
        attributes={"bInterfaceNumber": number, "bInterfaceClass": cls},
        parent=usb,
    )


def a_usb_node(
    usb: UdevDevice,
    subsystem: str,
    name: str,
    *,
    interface: str = "00",
    number: str = "c 0:0",
    properties: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    devlinks: Iterable[str] = (),
) -> UdevDevice:
    """A device node that an interface of a USB device brings: /dev/`name`."""
    above = a_usb_interface(usb, interface)
    identity = {
        name: usb.properties[name]
        for name in ("ID_VENDOR_ID", "ID_MODEL_ID", "ID_SERIAL_SHORT")
        if name in usb.properties
    }
    return a_device(
        f"{above.sys_path}/{subsystem}/{name.rpartition('/')[2]}",
        subsystem=subsystem,
        node=f"/dev/{name}",
        number=number,
        properties={**identity, "ID_USB_INTERFACE_NUM": interface, **(properties or {})},
        attributes=attributes,
        devlinks=devlinks,
        parent=above,
    )


def a_usb_serial(
    number: int = 0,
    *,
    port: str = "2",
    bus: int = 1,
    vendor: str = "0403",
    product: str = "6001",
    serial: str | None = "A50285BI",
    devnum: int = 4,
) -> UdevDevice:
    """/dev/ttyUSB`number`: a USB serial dongle of one interface."""
    usb = a_usb_device(port, bus=bus, vendor=vendor, product=product, serial=serial, devnum=devnum)
    by_id = f"/dev/serial/by-id/usb-{vendor}_{serial or product}-if00-port0"
    return a_usb_node(
        usb,
        "tty",
        f"ttyUSB{number}",
        number=f"c 188:{number}",
        properties={"ID_BUS": "usb", "ID_PATH": f"pci-0000:00:14.0-usb-0:{port}:1.0"},
        devlinks=(by_id,),
    )


def a_card(
    port: str, parts: Mapping[int, int], since: int, serial: str | None = "CARD"
) -> tuple[UdevDevice, ...]:
    """A serial card on USB: its own ports, in the order in which they came, with the kernel's numbers.

    since  different for any two plugs: the inodes in sysfs. The properties PART and HALF say which port it is
    """
    usb = replace(a_usb_device(port, serial=serial), incarnation=since)
    nodes = [
        a_usb_node(
            usb,
            "tty",
            f"ttyUSB{number}",
            number=f"c 188:{number}",
            properties={"PART": f"v{part}", "HALF": f"v{part // 2}"},
        )
        for part, number in parts.items()
    ]
    return usb, *(replace(node, incarnation=since + at) for at, node in enumerate(nodes, 1))


def a_modem(port: str = "4", *, serial: str | None = "EC25-17", first: int = 1) -> tuple[UdevDevice, ...]:
    """A composite LTE modem: its USB node, three serial ports and a QMI control port."""
    usb = a_usb_device(port, vendor="2c7c", product="0125", serial=serial, devnum=9)
    ports = [
        a_usb_node(usb, "tty", f"ttyUSB{first + n}", interface=f"{n:02x}", number=f"c 188:{first + n}")
        for n in range(3)
    ]
    control = a_usb_node(usb, "usbmisc", "cdc-wdm0", interface="04", number="c 180:176")
    return (usb, *ports, control)


def a_bare_node(path: str = "/dev/acme0", number: str = "c 195:0", refusal: str = "") -> UdevDevice:
    """A device node that udev does not know."""
    kind, _, numbers = number.partition(" ")
    major, minor = map(int, numbers.split(":"))
    return device_of(Sighting(path, DeviceNumber(kind, major, minor)), refusal)


def a_function(
    address: str = "0000:81:00.0",
    *,
    driver: str = "vfio-pci",
    pci_id: str = "10DE:1EB8",
    kind: str = "0x030200",
    numa_node: int = 1,
) -> UdevDevice:
    """A PCI function; `kind` is its class."""
    return a_device(
        f"/sys/devices/pci0000:80/0000:80:01.0/{address}",
        subsystem="pci",
        driver=driver,
        properties={"PCI_ID": pci_id, "PCI_SLOT_NAME": address},
        attributes={"class": kind, "numa_node": str(numa_node)},
    )


def a_vfio_group(number: int, *functions: UdevDevice) -> UdevDevice:
    """/dev/vfio/`number`: the node of an IOMMU group with these functions, the first one first."""
    node = a_device(
        f"/sys/devices/virtual/vfio/{number}",
        subsystem="vfio",
        node=f"/dev/vfio/{number}",
        number=f"c 243:{number}",
        parent=functions[0],
    )
    return replace(node, companions=functions[1:])


#: Graphics cards that share /dev/kfd.
GPU_RULE = """
[[resource]]
name = "gpu"
match = { SUBSYSTEM = "drm" }
group_by = "parent"
[[resource.node]]
match = { DEVNAME = "/dev/kfd" }
shared = true
"""


def a_gpu(number: int = 0, *, slot: str = "", driver: str = "amdgpu") -> tuple[UdevDevice, ...]:
    """A GPU, of AMD unless its driver is another: the two device nodes of its PCI function."""
    address = f"0000:{slot or f'{3 + number:02x}'}:00.0"
    pci = a_device(
        f"/sys/devices/pci0000:00/0000:00:01.1/{address}",
        subsystem="pci",
        driver=driver,
        properties={"PCI_ID": "1002:740F", "PCI_SLOT_NAME": address},
        attributes={"vendor": "0x1002", "numa_node": "0"},
    )
    return tuple(
        a_device(
            f"{pci.sys_path}/drm/{name}",
            subsystem="drm",
            devtype="drm_minor",
            node=f"/dev/dri/{name}",
            number=f"c 226:{minor}",
            parent=pci,
        )
        for name, minor in ((f"card{number}", number), (f"renderD{128 + number}", 128 + number))
    )


def an_i2c_bus(unit: UdevDevice, number: int, *, inode: int) -> UdevDevice:
    """/dev/i2c-`number`, a bus of a unit: each has an adapter of its own above it."""
    path = f"{unit.sys_path}/i2c-{number}"
    adapter = a_device(path, subsystem="i2c", parent=unit, incarnation=inode)
    return a_device(
        f"{path}/i2c-dev/i2c-{number}",
        subsystem="i2c-dev",
        node=f"/dev/i2c-{number}",
        number=f"c 89:{number}",
        parent=adapter,
        incarnation=inode + 1,
    )


def a_kfd() -> UdevDevice:
    """/dev/kfd, which goes along with every AMD GPU."""
    return a_device("/sys/devices/virtual/kfd/kfd", subsystem="kfd", node="/dev/kfd", number="c 510:0")


def by_sys_path(*devices: UdevDevice) -> dict[str, UdevDevice]:
    """The devices and all their parents as a snapshot of udev holds them: sys path -> device."""
    return {each.sys_path: each for device in devices for each in device.related()}


def resources_of(text: str, *, domain: str = "example.com") -> tuple[Resource, ...]:
    """The resources of the text of a rule file without a mistake."""
    resources, problems = parse_rules("50-test.toml", text, domain)
    assert not problems, "\n".join(problem.render() for problem in problems)
    return resources


def a_chain(*links: tuple[str, str], parent: UdevDevice | None = None, **last: Any) -> UdevDevice:
    """A device below others, each given as (its sys path below the one above, subsystem)."""
    device = parent
    for index, (below, subsystem) in enumerate(links):
        above = device.sys_path if device is not None else "/sys/devices"
        is_last = index == len(links) - 1
        device = a_device(f"{above}/{below}", subsystem=subsystem, parent=device, **(last if is_last else {}))
    assert device is not None
    return device
