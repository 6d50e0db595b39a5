"""Machines and rules for the laws: physical units, and what a kernel makes of them at one boot.

The rules of this file:

* A `Unit` is what is really there. Whatever the kernel hands out in the order of arrival (buses,
  device numbers, ttyUSB3) belongs to a `Boot`, so that one machine can be looked at twice.
* Each device node knows, in its property PHYSICAL, which one it really is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.resource import Resource
from tests.scenes.builders import a_device, a_usb_device, a_usb_interface, resources_of

DOMAIN = "example.com"

#: Each under a name of its own: all ways to group, to identify and to name things inside.
RULES = resources_of(
    """
[[resource]]
name = "tty"
match = { SUBSYSTEM = "tty", usb = { vendor = "*" } }
container_path = "/dev/serial/{ID_SERIAL_SHORT|none}"
devlinks = ["/dev/serial/by-id/*"]
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }
identity = "port"
prefer = "same-hub"
[[resource]]
name = "by-property"
match = { SUBSYSTEM = ["tty", "usbmisc"] }
identity = ["ID_SERIAL_SHORT"]
container_path = "{link}"
prefer = "least-recently-used"
[[resource]]
name = "unit"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
env = { SERIAL = "{ID_SERIAL_SHORT|none}" }
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "01" } }
container_path = "/dev/at"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }
container_path = "/dev/qmi"
optional = true
[[resource]]
name = "composite"
match = { SUBSYSTEM = ["tty", "video4linux", "input"], usb = { vendor = "*" } }
group_by = "usb_device"
mounts = [{ host_path = "/srv/{ID_SERIAL_SHORT|x}", container_path = "/cal" }]
prefer = "spread"
[[resource]]
name = "below"
match = { SUBSYSTEM = "input" }
group_by = "parent"
[[resource]]
name = "nearest"
match = { SUBSYSTEM = ["tty", "input", "hidraw", "misc", "macvtap"] }
group_by = [{ SUBSYSTEM = "input", DEVNAME = { exists = false } }, { SUBSYSTEM = ["usb", "net"] }]
[[resource]]
name = "whole"
match = { SUBSYSTEM = ["tty", "misc", "macvtap"] }
group_by = "all"
[[resource]]
name = "whole.2"
match = { SUBSYSTEM = ["hidraw", "vc"] }
group_by = "all"
replicas = 2
[[resource]]
name = "rack"
match = { RACK = "*" }
group_by = "RACK"
[[resource]]
name = "rack_by_port"
match = { RACK = "*", SUBSYSTEM = { not = "usb" } }
group_by = "RACK"
identity = "port"
[[resource]]
name = "raw.usb"
match = { SUBSYSTEM = "usb" }
replicas = 3
prefer = "numa"
[[resource]]
name = "other.example/tty"
match = { SUBSYSTEM = "tty" }
[[resource]]
name = "everything"
match = { DEVNAME = "*" }
unplug_grace = "10s"
[[resource]]
name = "shared"
match = { SUBSYSTEM = "misc" }
replicas = 2
[[resource]]
name = "with-all"
match = { SUBSYSTEM = ["tty", "misc"] }
container_path = "/dev/fuse"
[[resource.node]]
match = [{ SUBSYSTEM = ["vc", "macvtap"] }, { DEVNAME = "/dev/fuse" }]
shared = true
optional = true
[[resource]]
name = "with-sticks"
match = { SUBSYSTEM = ["tty", "usbmisc"] }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = ["video4linux", "hidraw", "tty"], usb = { port = "1*" } }
shared = true
optional = true
devlinks = "/dev/serial/by-id/*"
"""
)

#: What a maker, or an attacker, calls a thing.
names = st.one_of(
    st.sampled_from(
        [
            *("0001", "A", "1", "01", "A.B", "A_B", "A B", "../..", "..", "a,b", "x" * 200, "9" * 5000),
            *("fuse", "vcs7"),
        ]
    ),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    st.binary(max_size=6).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape")),
)

#: Few ports and few serial numbers, so that twins and moves happen.
ports = st.sampled_from(["1", "2", "3", "1.1", "1.2", "2.4.1"])
serials = st.one_of(st.none(), st.sampled_from(["S", "S", "T", "0001"]), names)


@dataclass(frozen=True)
class Unit:
    """A thing that is plugged in: `kind` says which nodes it brings."""

    kind: str
    port: str
    serial: str | None = None
    name: str = ""
    rack: str = ""
    finished: bool = True
    right_node: bool = True


@dataclass(frozen=True)
class Boot:
    """What is another at every boot: the number of the bus, where counting begins, who comes first."""

    bus: int = 1
    first: int = 0
    order: int = 0


boots = st.builds(Boot, st.integers(1, 9), st.integers(0, 200), st.integers(0, 1000))

usb_units = st.builds(
    Unit,
    st.sampled_from(["dongle", "quad", "modem", "camera", "keyboard"]),
    ports,
    serials,
    names,
    st.sampled_from(["", "", "left", "right", "../x"]),
    st.booleans() | st.just(True),
    st.booleans() | st.just(True),
)
virtual_units = st.builds(Unit, st.sampled_from(["fuse", "vcs", "tap"]), st.just(""))


def machines(max_size: int = 5) -> st.SearchStrategy[tuple[Unit, ...]]:
    """Units, one at a port; of the virtual ones, one of a kind."""
    usb = st.lists(usb_units, max_size=max_size, unique_by=lambda unit: unit.port)
    virtual = st.lists(virtual_units, max_size=3, unique_by=lambda unit: unit.kind)
    return st.tuples(usb, virtual).map(lambda both: (*both[0], *both[1]))


rules = st.lists(st.sampled_from(RULES), min_size=1, max_size=5, unique_by=lambda rule: rule.name).map(tuple)


def booted(units: Sequence[Unit], boot: Boot = Boot()) -> dict[str, UdevDevice]:
    """What udev shows of these units at this boot: sys path -> device, in some order."""
    found: list[UdevDevice] = []
    by_arrival = sorted(units, key=lambda unit: (hash_of(unit.port, boot.order), unit.kind))
    for arrived, unit in enumerate(by_arrival):
        found += _nodes(unit, boot, boot.first + 10 * arrived)
    devices = {each.sys_path: each for node in found for each in node.self_and_ancestors()}
    return {path: devices[path] for path in sorted(devices, key=lambda path: hash_of(path, boot.order))}


def hash_of(text: str, seed: int) -> int:
    """A number that looks like chance and is none."""
    number = seed
    for char in text:
        number = (number * 31 + ord(char) * 7919 + 12345) % 1_000_003
    return number


#: Kind -> its device nodes: (interface, subsystem, kernel name without its number, attributes).
_USB_NODES: dict[str, list[tuple[str, str, str, dict[str, str]]]] = {
    "dongle": [("00", "tty", "ttyUSB", {})],
    "quad": [(f"{n:02x}", "tty", "ttyUSB", {}) for n in range(4)],
    "modem": [("00", "tty", "ttyUSB", {}), ("01", "tty", "ttyUSB", {}), ("04", "usbmisc", "cdc-wdm", {})],
    "camera": [
        ("00", "video4linux", "video", {"index": "0"}),
        ("00", "video4linux", "video", {"index": "1"}),
    ],
    "keyboard": [("00", "input", "event", {}), ("01", "input", "event", {}), ("01", "hidraw", "hidraw", {})],
}


def _nodes(unit: Unit, boot: Boot, first: int) -> list[UdevDevice]:
    if unit.port == "":
        return [_virtual(unit, first)]
    vendor = "2c7c" if unit.kind == "modem" else "0403"
    usb = a_usb_device(
        unit.port,
        bus=boot.bus,
        vendor=vendor,
        serial=unit.serial,
        devnum=first % 120 + 2,
        attributes={"authorized": "1"},
    )
    # As a real one: it has the property, too.
    usb = _marked(usb, unit, "usb")
    nodes = [usb]
    for number, (interface, subsystem, stem, attributes) in enumerate(_USB_NODES[unit.kind], start=first):
        parent = a_usb_interface(usb, interface)
        if subsystem == "input":
            parent = a_device(
                f"{parent.sys_path}/input/input{number}",
                subsystem="input",
                attributes={"name": unit.name},
                parent=parent,
            )
        node = a_device(
            f"{parent.sys_path}/{subsystem}/{stem}{number}",
            subsystem=subsystem,
            node=f"/dev/{stem}{number}",
            number=f"c 188:{number}",
            attributes=attributes,
            properties={
                name: usb.properties[name]
                for name in ("ID_VENDOR_ID", "ID_SERIAL_SHORT")
                if name in usb.properties
            },
            devlinks=[f"/dev/serial/by-id/usb-{unit.name}-if{interface}"],
            parent=parent,
            initialized=unit.finished,
            node_is_there=unit.right_node,
        )
        nodes.append(_marked(node, unit, f"{interface}{subsystem}{attributes}"))
    return nodes


def _marked(device: UdevDevice, unit: Unit, place: str) -> UdevDevice:
    rack = {"RACK": unit.rack} if unit.rack else {}
    return replace(device, properties={**device.properties, **rack, "PHYSICAL": f"{unit.port} {place}"})


def _virtual(unit: Unit, first: int) -> UdevDevice:
    match unit.kind:
        case "fuse":
            device = a_device(node="/dev/fuse", number="c 10:229")
        case "vcs":
            device = a_device(
                "/sys/devices/virtual/vc/vcs7", subsystem="vc", node="/dev/vcs7", number="c 7:7"
            )
        case _:
            net = a_device("/sys/devices/virtual/net/macvtap0", subsystem="net")
            path = f"{net.sys_path}/macvtap/tap{first}"
            node, number = f"/dev/tap{first}", f"c 240:{first}"
            device = a_device(path, subsystem="macvtap", node=node, number=number, parent=net)
    return _marked(device, unit, unit.kind)


def physical_ids(inventory: Inventory, devices: dict[str, UdevDevice]) -> dict[tuple[str, str], str]:
    """(resource, which node it really is) -> the id of the device that it belongs to."""
    return {
        (name, devices[node.sys_path].properties["PHYSICAL"]): device.id
        for name, offer in inventory.offers.items()
        for device in offer.devices
        for node in device.nodes
        if node.sys_path in devices
    }


__all__ = [
    "DOMAIN",
    "RULES",
    "Boot",
    "Resource",
    "Unit",
    "booted",
    "boots",
    "machines",
    "physical_ids",
    "rules",
]
