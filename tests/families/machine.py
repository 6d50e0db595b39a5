"""The machine of a family: recorded devices, as umockdev writes them, and the bare nodes beside them.

`tests/data/devices/families/NAME.umockdev` is in umockdev's format, so that a person can look at the machine
with `umockdev-run --device FILE -- genericdp list`. Device nodes that udev does not know have no place in
that format. They are in `NAME.nodes`, a line each: the name below /dev and the number.
"""

from pathlib import Path

from tests.udev.gadgets import Entry, Gadget

FOLDER = Path(__file__).parents[1] / "data" / "devices" / "families"

#: The properties of a recorded device that udev's rules add begin like this; the kernel sends the others.
_OF_UDEV = ("ID_", "DEVLINKS", "TAGS", "CURRENT_TAGS")

#: Those that follow from the other fields of an entry.
_DERIVED = frozenset(
    {"SUBSYSTEM", "DEVNAME", "MAJOR", "MINOR", "DEVTYPE", "DRIVER", "DEVLINKS", "TAGS", "CURRENT_TAGS"}
)


def recorded(name: str) -> Gadget:
    """The devices of a family's machine, parents first."""
    text = (FOLDER / f"{name}.umockdev").read_text(encoding="utf-8")
    blocks = [
        [line for line in block.splitlines() if not line.startswith("#")] for block in text.split("\n\n")
    ]
    return tuple(_entry(lines) for lines in blocks if lines)


def bare_nodes(name: str) -> dict[str, str]:
    """The nodes that udev does not know: name below /dev -> device number."""
    path = FOLDER / f"{name}.nodes"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    pairs = [line.split() for line in lines if not line.startswith("#")]
    return dict(pairs)


def _entry(lines: list[str]) -> Entry:
    fields: dict[str, list[str]] = {}
    for line in lines:
        letter, _, value = line.partition(": ")
        fields.setdefault(letter, []).append(value)
    properties = _pairs(fields.get("E", ()))
    attributes = {name: value.removesuffix("\\n") for name, value in _pairs(fields.get("A", ())).items()}
    attributes.pop("dev", None)
    others = {name: value for name, value in properties.items() if name not in _DERIVED}
    (path,) = fields["P"]
    return Entry(
        path,
        properties["SUBSYSTEM"],
        node=fields.get("N", [""])[0],
        number=f"{properties['MAJOR']}:{properties['MINOR']}" if "MAJOR" in properties else "",
        devtype=properties.get("DEVTYPE", ""),
        driver=properties.get("DRIVER", ""),
        attributes=attributes,
        kernel={name: value for name, value in others.items() if not name.startswith(_OF_UDEV)},
        udev={name: value for name, value in others.items() if name.startswith(_OF_UDEV)},
        devlinks=tuple(f"/dev/{link}" for link in fields.get("S", ())),
        tags=tuple(tag for tag in properties.get("TAGS", "").split(":") if tag),
        links=_pairs(fields.get("L", ())),
    )


def _pairs(lines: list[str] | tuple[str, ...]) -> dict[str, str]:
    parts = [line.partition("=") for line in lines]
    return {name: value for name, _, value in parts}
