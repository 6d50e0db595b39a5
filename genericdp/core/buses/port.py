"""Where a unit is connected: a port of USB, an address on a bus; for what is connected nowhere, its path.

Also the dock that a USB device is behind.

The rules of this file:

* A port is the same after every boot: it has no number of arrival.
"""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from genericdp.core.buses.kernel_name import AUTO_NUMBER, parentless_name, platform_name, stem_of
from genericdp.core.device import PEER, UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.usb_port import Socket, UsbPort

#: Devices that a driver makes of a part of another one. Their names are UUIDs, wherever they are made.
_MEDIATED = "mdev"

#: Buses whose device names are addresses: the same slot has the same name after every boot.
ADDRESSED = frozenset({"pci", "platform", "pnp", "acpi", "amba", "vmbus", "xen", "ccw", "vio", _MEDIATED})

#: The chain of ports of a root hub.
_ROOT_HUB = "0"

#: The generations of the two root hubs of a controller.
_SLOW, _FAST = 2, 3

#: `<controller>/usb<bus>/<bus>-<port>/<bus>-<port>.<port>`
_USB_PATH = re.compile(r"(.*)/usb(\d+)(?:/\2-[\d.]+)*")
_PEER = re.compile(r"(?P<controller>.+)/usb(?P<bus>\d+)/(?P=bus)-0:1\.0/usb(?P=bus)-port(?P<port>\d+)")

#: A device on PCI: all of its path is addresses.
_PCI = re.compile(r"/sys/devices/pci[0-9a-f:]+(?:/[0-9a-f]+:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])+")
_BEHIND_USB = re.compile(r"/usb(\d+)(?=/|$)((?:/\1-[\d.]+(?=/|$))*)")

#: `/<bus>-<port>.<port>:<configuration>.<interface>`, below the unit
_INTERFACE = re.compile(r"/\d+-[\d.]+:\d+\.(\d+)(?=/|$)")


@dataclass(frozen=True, slots=True)
class Port:
    """Where a unit is connected.

    exact     different for any two ports of the node
    readable  for people; two ports may have the same
    hub       different for any two hubs; "" when it is not USB
    is_turn   nothing is plugged in there, and the kernel only counts who comes
    was       what an earlier release saved instead of `exact`; "" if that is the same
    socket    the socket of USB 3 that it belongs to, if it is one
    """

    exact: str
    readable: str
    hub: str = ""
    is_turn: bool = False
    was: str = field(default="", compare=False)
    socket: Socket | None = field(default=None, compare=False)

    @property
    def across(self) -> "Port | None":
        """The other port of its socket; None if it has just one."""
        return None if self.socket is None else _port_at(self.socket.other(self.exact), self.socket)


def port_on_a_bus(unit: UdevDevice, at: str = "") -> Port:
    """Where a unit is connected that no bus gives a name of its own (`told.address_of`).

    at  the port of its socket at which it counts; "" for the one of USB 2
    """
    path = unit.sys_path
    if unit.subsystem == "usb":
        return _usb_port(unit, at)
    if unit.is_bare:
        return Port(path, unit.devname)
    if unit.subsystem == _MEDIATED:
        return Port(f"{_MEDIATED} {unit.sys_name}", unit.sys_name)
    if unit.subsystem in ADDRESSED:
        lasting, was = _lasting_path(unit), AUTO_NUMBER.sub(".auto", path)
        return Port(lasting, f"port-{lasting.rpartition('/')[2]}", was=was if was != lasting else "")
    name = parentless_name(unit)
    if name == unit.sys_name:
        return Port(path, name)
    return Port(f"{path.rpartition('/')[0]}/{name}", name, is_turn=True, was=path)


def model_of(usb: UdevDevice) -> str:
    """The vendor and the product number of a USB device, `0403:6001`. It needs no string to say them."""
    return ":".join(usb.attributes.get(name, "").strip() for name in ("idVendor", "idProduct"))


class Dock(NamedTuple):
    """The nearest hub with a serial number that a USB device is behind.

    model  see `model_of`
    at     the ports from the hub down to the device, `1.2`: the same at both speeds of USB 3
    """

    serial: str
    model: str
    at: str


def dock_of(usb: UdevDevice) -> Dock | None:
    """The dock of a USB device; None if no hub above it says which one it is."""
    for hub in usb.ancestors():
        at = usb.sys_name.removeprefix(f"{hub.sys_name}.")
        serial = hub.attributes.get("serial", "").strip()
        # The serial number of a root hub is the address of its controller.
        if at != usb.sys_name and serial and not why_filler(serial):
            return Dock(serial, model_of(hub), at)
    return None


def may_be_in(usb: UdevDevice, dock: Dock) -> bool:
    """Whether a USB device may be at its place in this dock.

    A hub of its model is there, and no serial number says that it is another one.
    """
    hubs = (hub for hub in usb.ancestors() if usb.sys_name == f"{hub.sys_name}.{dock.at}")
    return not are_two_docks(dock_of(usb), dock) and any(model_of(hub) == dock.model for hub in hubs)


def are_two_docks(one: Dock | None, other: Dock | None) -> bool:
    """Whether both are known, and are not the same one.

    If one is nearer to its device than the other one, the serial number of a hub between may be unread.
    """
    if one is None or other is None or one.serial == other.serial:
        return False
    return one.at.count(".") == other.at.count(".")


def is_usb(device: UdevDevice) -> bool:
    """Whether it is a USB device as a whole."""
    return device.subsystem == "usb" and device.devtype == "usb_device"


def is_hub(usb: UdevDevice) -> bool:
    """Whether a USB device is a hub. The kernel says so: class, subclass and protocol."""
    return usb.properties.get("TYPE", "").startswith("9/")


def _usb_port(unit: UdevDevice, at: str) -> Port:
    found = _USB_PATH.fullmatch(unit.sys_path)
    controller = found.group(1) if found else unit.sys_path.rpartition("/")[0]
    first = root = unit
    for hub in unit.ancestors():
        if hub.subsystem == "usb":
            first, root = root, hub
    # Only the major version: kernels disagree about the minor version of the same root hub.
    generation = root.attributes.get("version", "").strip().partition(".")[0]
    chain = unit.sys_name.partition("-")[2] or _ROOT_HUB
    was = UsbPort(AUTO_NUMBER.sub(".auto", controller), generation, chain)
    if root.parent is not None and controller.startswith(root.parent.sys_path):
        controller = _lasting_path(root.parent) + controller[len(root.parent.sys_path) :]
    port = UsbPort(controller, generation, chain)
    saved = was.exact if was != port else ""
    # A hub of USB 3 is two units, which never change their speed.
    socket = None if is_hub(unit) else _socket(port, unit, first.attributes.get(PEER, ""))
    if socket is None:
        return Port(port.exact, f"port-{chain}", port.hub, was=saved)
    return replace(_port_at(at or socket.slow, socket), was=saved)


def _socket(port: UsbPort, unit: UdevDevice, peer: str) -> Socket | None:
    """The socket of a unit at a port; None if the kernel does not say that the port has a peer.

    peer  the sys path of the peer of the port of its root hub
    """
    found, above = _PEER.fullmatch(peer), _USB_PATH.fullmatch(unit.sys_path)
    # The kernel only pairs the root hubs of one controller, one for each speed.
    if found is None or above is None or found["controller"] != above[1] or not port.generation.isdecimal():
        return None
    is_fast = int(port.generation) >= _FAST
    beside = beside_in_socket(unit.sys_path, peer)
    chain = beside.rpartition("-")[2]
    other = UsbPort(port.controller, str(_SLOW if is_fast else _FAST), chain)
    slow, fast = (other, port) if is_fast else (port, other)
    said = model_of(unit), unit.attributes.get("serial", "").strip()
    return Socket(slow.exact, fast.exact, port.exact, beside, said)


def beside_in_socket(path: str, peer: str) -> str:
    """The sys path that a unit on USB would have at the other port of its socket; "" without a peer.

    path  of the unit, or of a part of it
    peer  `PEER` of what is at the root hub
    """
    found, unit = _PEER.fullmatch(peer), unit_on_usb(path)
    if found is None or unit is None or unit[1] == _ROOT_HUB:
        return ""
    # Below the root hub, the kernel relies on it that the two halves of a hub have the same numbers.
    ports = [found["port"], *unit[1].split(".")[1:]]
    hubs = (f"{found['bus']}-{'.'.join(ports[: depth + 1])}" for depth in range(len(ports)))
    return "/".join((f"{found['controller']}/usb{found['bus']}", *hubs))


def _port_at(exact: str, socket: Socket) -> Port:
    """The port of a socket with this exact form."""
    root, _, chain = exact.rpartition(" ")
    return Port(exact, f"port-{chain}", f"{root} {chain.rpartition('.')[0]}", socket=socket)


def _lasting_path(device: UdevDevice) -> str:
    """The path of a device on a bus with addresses, without numbers of arrival."""
    path = device.sys_path
    for each in device.self_and_ancestors():
        if each.subsystem == "platform":
            name = platform_name(each)
        elif each.subsystem and each.subsystem not in ADDRESSED:
            name = stem_of(each)
        else:
            continue
        path = f"{each.sys_path.rpartition('/')[0]}/{name}{path[len(each.sys_path) :]}"
    return path


def is_place(port: str) -> bool:
    """Whether a port (`Port.exact`) is where something is plugged in, and not what its bus calls it."""
    return port.startswith("/")


def takes_one(port: str, path: str) -> bool:
    """Whether nothing else can be at the port (`Port.exact`) of a device with this sys path.

    That is so at a port of USB, and where a device is called by its path.
    """
    return UsbPort.of_exact(port) is not None or f"{path}/".startswith(f"{port}/")


def usb_above(path: str) -> str:
    """The sys path of the unit on USB that something in sysfs is, or is a part of; "" elsewhere."""
    found = _BEHIND_USB.search(path)
    return "" if found is None else path[: found.end()]


def unit_on_usb(path: str) -> tuple[str, str] | None:
    """Which unit on USB something in sysfs is, or is a part of: bus and chain of ports. None elsewhere."""
    found = _BEHIND_USB.search(path)
    return None if found is None else (found[1], found[2].rpartition("-")[2] or _ROOT_HUB)


def interface_in(path: str) -> str:
    """The number of the interface of USB to which something in sysfs belongs, as in its path; "" at none."""
    found = _INTERFACE.match(path.removeprefix(usb_above(path)))
    return "" if found is None else found[1]


def may_be_at(port: str, path: str) -> bool:
    """Whether something that nobody could read may be what is connected at a port (`Port.exact`).

    path  in sysfs, below /dev, or of a directory that lists devices; or the port itself
    """
    if path == port:
        return True
    if not path.startswith("/sys/devices/"):
        return path.startswith("/sys/")
    usb, unit = UsbPort.of_exact(port), unit_on_usb(path)
    if usb is not None:
        return unit is not None and usb.chain == unit[1] and not _are_two_controllers(usb.controller, path)
    # What is not on USB has numbers in its path that its port has not, or is told by something else.
    return unit is None or not is_place(port)


def _are_two_controllers(controller: str, path: str) -> bool:
    """Whether something on USB is at another controller, as the addresses of the two on PCI say."""
    found = _BEHIND_USB.search(path)
    other = "" if found is None else path[: found.start()]
    return controller != other and all(map(_PCI.fullmatch, (controller, other)))
