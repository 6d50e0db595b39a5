"""The machine of a family: recorded devices, as umockdev writes them, and the bare nodes beside them.

`tests/data/devices/families/NAME.umockdev` is in umockdev's format, so that a person can look at the machine
with `umockdev-run --device FILE -- genericdp list`. Device nodes that udev does not know have no place in
that format. They are in `NAME.nodes`, a line each: the name below /dev and the number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.scenes.recording import Lines, attributes_of, blocks, pairs, properties_of
from tests.udev.gadgets import Entry, Gadget
from tests.udev.testbed import Testbed

FOLDER = Path(__file__).parents[1] / "data" / "devices" / "families"

#: The properties of a recorded device that udev's rules add begin like this; the kernel sends the others.
_OF_UDEV = ("ID_", "DEVLINKS", "TAGS", "CURRENT_TAGS")

#: Those that follow from the other fields of an entry.
_DERIVED = frozenset(
    {
        "SUBSYSTEM",
        "DEVPATH",
        "DEVNAME",
        "MAJOR",
        "MINOR",
        "DEVTYPE",
        "DRIVER",
        "DEVLINKS",
        "TAGS",
        "CURRENT_TAGS",
    }
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine to be plugged into a testbed.

    devices  parents first
    groups   the number of an IOMMU group -> the functions in it
    bare     the nodes that udev does not know: name below /dev -> device number
    """

    devices: Gadget
    groups: Mapping[int, Gadget]
    bare: Mapping[str, str]

    def plug_into(self, bed: Testbed) -> None:
        """Make a testbed this machine."""
        bed.plug(self.devices)
        for number, functions in self.groups.items():
            bed.group(number, *functions)
        for node, number_of_node in self.bare.items():
            bed.add_bare_node(node, number_of_node)

    def node(self, name: str) -> Entry:
        """The device with this node."""
        return next(entry for entry in self.devices if entry.node == name)


def machine(name: str) -> Machine:
    """The machine of a family."""
    text = (FOLDER / f"{name}.umockdev").read_text(encoding="utf-8")
    recorded = tuple(blocks(text))
    devices = tuple(entry_of(lines) for lines in recorded)
    groups: dict[int, Gadget] = {}
    for lines, entry in zip(recorded, devices, strict=True):
        group = pairs(lines.get("L", ())).get("iommu_group")
        if group is not None:
            number = int(group.rpartition("/")[2])
            groups[number] = (*groups.get(number, ()), entry)
    nodes = FOLDER / f"{name}.nodes"
    bare = nodes.read_text(encoding="utf-8").splitlines() if nodes.exists() else []
    return Machine(devices, groups, dict(line.split() for line in bare if not line.startswith("#")))


def entry_of(lines: Lines) -> Entry:
    """A recorded device, to be plugged into a testbed."""
    properties = properties_of(lines)
    others = {name: value for name, value in properties.items() if name not in _DERIVED}
    (path,) = lines["P"]
    return Entry(
        path,
        properties["SUBSYSTEM"],
        node=lines.get("N", [""])[0],
        number=f"{properties['MAJOR']}:{properties['MINOR']}" if "MAJOR" in properties else "",
        devtype=properties.get("DEVTYPE", ""),
        driver=properties.get("DRIVER", ""),
        attributes=attributes_of(lines),
        kernel={name: value for name, value in others.items() if not name.startswith(_OF_UDEV)},
        udev={name: value for name, value in others.items() if name.startswith(_OF_UDEV)},
        devlinks=tuple(f"/dev/{link}" for link in lines.get("S", ())),
        tags=tuple(tag for tag in properties.get("TAGS", "").split(":") if tag),
    )
