"""The machine of a family: recorded devices, as umockdev writes them, and the bare nodes beside them.

`tests/data/devices/families/NAME.umockdev` is in umockdev's format, so that a person can look at the machine
with `umockdev-run --device FILE -- genericdp list`. Device nodes that udev does not know have no place in
that format. They are in `NAME.nodes`, a line each: the name below /dev and the number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.udev.gadgets import Entry, Gadget
from tests.udev.testbed import Testbed

FOLDER = Path(__file__).parents[1] / "data" / "devices" / "families"

#: The properties of a recorded device that udev's rules add begin like this; the kernel sends the others.
_OF_UDEV = ("ID_", "DEVLINKS", "TAGS", "CURRENT_TAGS")

#: Those that follow from the other fields of an entry.
_DERIVED = frozenset(
    {"SUBSYSTEM", "DEVNAME", "MAJOR", "MINOR", "DEVTYPE", "DRIVER", "DEVLINKS", "TAGS", "CURRENT_TAGS"}
)

#: A recorded device by the letters of its lines: `E: NAME=value` is under "E".
_Lines = Mapping[str, list[str]]


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
    recorded = [_lines(block) for block in text.split("\n\n")]
    devices = tuple(_entry(lines) for lines in recorded)
    groups: dict[int, Gadget] = {}
    for lines, entry in zip(recorded, devices, strict=True):
        group = _pairs(lines.get("L", ())).get("iommu_group")
        if group is not None:
            number = int(group.rpartition("/")[2])
            groups[number] = (*groups.get(number, ()), entry)
    nodes = FOLDER / f"{name}.nodes"
    bare = nodes.read_text(encoding="utf-8").splitlines() if nodes.exists() else []
    return Machine(devices, groups, dict(line.split() for line in bare if not line.startswith("#")))


def _lines(block: str) -> _Lines:
    lines: dict[str, list[str]] = {}
    for line in block.splitlines():
        letter, _, value = line.partition(": ")
        lines.setdefault(letter, []).append(value)
    return lines


def _entry(lines: _Lines) -> Entry:
    properties = _pairs(lines.get("E", ()))
    attributes = {name: value.removesuffix("\\n") for name, value in _pairs(lines.get("A", ())).items()}
    attributes.pop("dev", None)
    others = {name: value for name, value in properties.items() if name not in _DERIVED}
    (path,) = lines["P"]
    return Entry(
        path,
        properties["SUBSYSTEM"],
        node=lines.get("N", [""])[0],
        number=f"{properties['MAJOR']}:{properties['MINOR']}" if "MAJOR" in properties else "",
        devtype=properties.get("DEVTYPE", ""),
        driver=properties.get("DRIVER", ""),
        attributes=attributes,
        kernel={name: value for name, value in others.items() if not name.startswith(_OF_UDEV)},
        udev={name: value for name, value in others.items() if name.startswith(_OF_UDEV)},
        devlinks=tuple(f"/dev/{link}" for link in lines.get("S", ())),
        tags=tuple(tag for tag in properties.get("TAGS", "").split(":") if tag),
    )


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    parts = [line.partition("=") for line in lines]
    return {name: value for name, _, value in parts}
