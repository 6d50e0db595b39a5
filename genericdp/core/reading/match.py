"""Reading a `match = {…}` into conditions; and `group_by` and `identity`, which say what a device is.

A new matcher is a class in `genericdp.core.rules.match` and an entry in MATCHERS.
"""

import re
from collections.abc import Callable, Mapping

from genericdp.core.reading.kind import Kind, definition, list_schema, read_non_empty_list
from genericdp.core.reading.pattern import (
    BOUNDS,
    FORM_DOCS,
    PCI_ADDRESS,
    PCI_CLASS,
    PCI_ID,
    Form,
    hex_form,
    wanted,
)
from genericdp.core.reading.scalars import PROPERTY, in_capitals, is_number, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.reading.table import Key
from genericdp.core.rules.glob import split_alternatives
from genericdp.core.rules.grouping import WORDS as GROUP_BY
from genericdp.core.rules.grouping import Grouping, Nearest, SameProperty
from genericdp.core.rules.match import (
    USB_ATTRIBUTES,
    Alternative,
    AttributeCondition,
    Condition,
    Match,
    ParentCondition,
    PropertyCondition,
    TagCondition,
    UsbCondition,
)
from genericdp.core.rules.name import PROPERTY_NAME
from genericdp.core.rules.resource import IDENTITY as _IDENTITIES
from genericdp.core.words import kind_of, listing, nearest

_ATTRIBUTE = re.compile(r"ATTR\{([^{}]+)\}")
_UDEV_PARENT_ATTRIBUTE = re.compile(r"ATTRS\{([^{}]+)\}")
_UDEV_ENV = re.compile(r"ENV\{([^{}]+)\}")

#: Values that are hex ids, with their number of digits.
HEX_PROPERTIES: Mapping[str, int] = {
    "ID_VENDOR_ID": 4,
    "ID_MODEL_ID": 4,
    "ID_USB_VENDOR_ID": 4,
    "ID_USB_MODEL_ID": 4,
    "ID_USB_INTERFACE_NUM": 2,
}
HEX_ATTRIBUTES: Mapping[str, int] = {
    "idVendor": 4,
    "idProduct": 4,
    "vendor": 4,
    "device": 4,
    "subsystem_vendor": 4,
    "subsystem_device": 4,
    "bInterfaceNumber": 2,
    "bInterfaceClass": 2,
    "bDeviceClass": 2,
}
HEX_USB: Mapping[str, int] = {"vendor": 4, "product": 4, "interface": 2, "class": 2}

#: What the kernel says of PCI functions, which is not how lspci(8) prints it.
PCI_PROPERTIES: Mapping[str, Form] = {
    "PCI_ID": PCI_ID,
    "PCI_SUBSYS_ID": PCI_ID,
    "PCI_SLOT_NAME": PCI_ADDRESS,
    "PCI_CLASS": PCI_CLASS,
}

USB_KEYS = (*USB_ATTRIBUTES, "port")

#: What the keys of `usb = { … }` mean.
USB_DOCS: Mapping[str, str] = {
    "vendor": "the vendor's number, hex, as lsusb(8) prints it",
    "product": "the product's number, hex",
    "serial": "the serial number, as the device reports it",
    "port": "the port without the bus: 2.3 for the USB device 1-2.3",
    "interface": "the number of the interface that the node belongs to, hex",
    "class": "the class of that interface, hex",
}

#: The udev properties that rules mostly use; `udevadm info` shows all of them.
PROPERTY_DOCS: Mapping[str, str] = {
    "SUBSYSTEM": "the kernel's subsystem: tty, video4linux, usb, hidraw, gpio, …",
    "DEVNAME": "the path of the device node",
    "DEVTYPE": "the kind of device within its subsystem",
    "DRIVER": "the kernel's driver; usually set for a parent",
    "DEVLINKS": "udev's symlinks to the device node, in one value",
    "ID_BUS": "the bus that it was identified on: usb, pci, ata, …",
    "ID_VENDOR_ID": "the vendor's number, hex",
    "ID_MODEL_ID": "the model's number, hex",
    "ID_VENDOR": "the vendor's name, as the device reports it",
    "ID_MODEL": "the model's name, as the device reports it",
    "ID_SERIAL": "vendor, model and serial number in one value",
    "ID_SERIAL_SHORT": "the serial number alone",
    "ID_PATH": "where it is plugged in",
    "ID_USB_DRIVER": "the driver of the USB interface",
    "ID_USB_INTERFACE_NUM": "the number of the USB interface, hex",
    "PCI_ID": "vendor and device of a PCI function, hex: 8086:1572; of a parent",
    "PCI_SLOT_NAME": "the address of a PCI function: 0000:03:00.0; of a parent",
    "PCI_CLASS": "class, subclass and interface of a PCI function, hex: 030000; of a parent",
}

#: Words of udev's own rules, and what to write here instead.
UDEV_WORDS: Mapping[str, str] = {
    "KERNEL": 'the kernel name is in DEVNAME: DEVNAME = "/dev/ttyUSB*"',
    "KERNELS": "write parent = { … } for what a parent must be",
    "SUBSYSTEMS": 'write parent = { SUBSYSTEM = "…" }',
    "DRIVERS": 'write parent = { DRIVER = "…" }',
    "TAGS": 'write "TAG"',
    "NAME": "the name of the device node is in DEVNAME",
    "SYMLINK": "devlinks are in the property DEVLINKS",
}


def _match(at: At) -> Match:
    """A match: a table of conditions, or a list of tables of which one must hold."""
    if isinstance(at.value, list):
        if not at.value:
            raise Mistake(at, f"'{at.key}' must not be an empty list", "it could never match")
        alternatives = [child.attempt(_alternative) for child in at.children()]
        return Match(tuple(each for each in alternatives if each is not None))
    return Match((_alternative(at),))


def _alternative(at: At) -> Alternative:
    if not isinstance(at.value, dict):
        of_node = isinstance(at.value, str) and at.value.startswith("/dev/")
        hint = (
            f'write {{ DEVNAME = "{at.value}" }}' if of_node else 'write { SUBSYSTEM = "tty" }, for example'
        )
        raise Mistake(at, f"'{at.key}' must be a table of conditions, not {kind_of(at.value)}", hint)
    if not at.value:
        raise Mistake(at, f"'{at.key}' must not be empty", "it would match every device node of the machine")
    conditions: list[Condition] = []
    for key in at.value:
        conditions += at.child(key).attempt(_condition) or ()
    return tuple(conditions)


def _condition(at: At) -> tuple[Condition, ...]:
    key = at.key
    if key in _READERS:
        return _READERS[key](at)
    attribute = _ATTRIBUTE.fullmatch(key)
    if attribute is not None:
        name = attribute.group(1)
        if name.startswith("/") or ".." in name.split("/"):
            raise Mistake(at, f"'{key}' is not an attribute of the device itself", on_key=True)
        return (AttributeCondition(name, wanted(at, hex_form(HEX_ATTRIBUTES.get(name, 0)))),)
    hint = _hint_for(key, at.value)
    if hint or PROPERTY_NAME.fullmatch(key) is None:
        raise Mistake(at, f"unknown condition '{key}'", hint or _CONDITIONS, on_key=True)
    value = wanted(at, PCI_PROPERTIES.get(key) or hex_form(HEX_PROPERTIES.get(key, 0)))
    if key == "DEVNAME":
        _check_device_names(at)
    return (PropertyCondition(key, value),)


def _check_device_names(at: At) -> None:
    """Raises Mistake for a glob that no path of a device node can match, also within a list or `not`."""
    if isinstance(at.value, list):
        for child in at.children():
            _check_device_names(child)
    elif isinstance(at.value, dict):
        if "not" in at.value:
            _check_device_names(at.child("not"))
    elif isinstance(at.value, str):
        for name in split_alternatives(at.value):
            # Another first character may stand for the slash.
            if re.match(r"[\w.-]", name):
                hint = f'write "/dev/{name.removeprefix("dev/")}"'
                raise Mistake(at, f"'{name}' can never match: DEVNAME is the path of the device node", hint)


def _hint_for(key: str, value: object) -> str:
    """What to write for a key that is misspelt or a word of udev's own rules; "" for a good key."""
    if key in BOUNDS:
        number = value if is_number(value) else 85000
        return f'a number belongs to an attribute: {{ "ATTR{{temp}}" = {{ {key} = {number} }} }}'
    if key in FORM_DOCS:
        return f"it belongs to a property: {{ DEVNAME = {{ {key} = … }} }}"
    attribute = key.removeprefix("ATTR.")
    if key == "ATTR":
        attribute = next(iter(value)) if isinstance(value, dict) and value else "name"
    if attribute != key:
        return f'write "ATTR{{{attribute}}}"'
    if key in UDEV_WORDS:
        return UDEV_WORDS[key]
    if found := _UDEV_PARENT_ATTRIBUTE.fullmatch(key):
        return f'write parent = {{ "ATTR{{{found.group(1)}}}" = … }}'
    if found := _UDEV_ENV.fullmatch(key):
        return f"write {found.group(1)}"
    if PROPERTY_NAME.fullmatch(key) is None:
        if close := nearest(key, _READERS):
            return close
        return in_capitals(key)
    return ""


def _usb(at: At) -> tuple[UsbCondition, ...]:
    if not isinstance(at.value, dict):
        raise Mistake(
            at, f"'usb' must be a table, not {kind_of(at.value)}", 'write usb = { vendor = "0403" }'
        )
    if not at.value:
        raise Mistake(at, "'usb' must not be empty", f"the keys are {listing(USB_KEYS)}")
    conditions = [at.child(key).attempt(_usb_condition) for key in at.value]
    return tuple(each for each in conditions if each is not None)


def _usb_condition(at: At) -> UsbCondition:
    if at.key not in USB_KEYS:
        hint = nearest(at.key, USB_KEYS) or f"the keys are {listing(USB_KEYS)}"
        raise Mistake(at, f"unknown key '{at.key}' in 'usb'", hint, on_key=True)
    if at.key == "port" and at.value == "":
        raise Mistake(
            at, "'port' must not be empty: it could never match", "leave it out; a root hub has no port"
        )
    return UsbCondition(at.key, wanted(at, hex_form(HEX_USB.get(at.key, 0))))


def _tag(at: At) -> tuple[TagCondition, ...]:
    return (TagCondition(wanted(at)),)


def _parent(at: At) -> tuple[ParentCondition, ...]:
    return (ParentCondition(_match(at)),)


MATCH = Kind(_match, definition("match"))


def _group_by(at: At) -> Grouping:
    if isinstance(at.value, dict | list):
        return Nearest(MATCH.read(at))
    word = text(at)
    if word in GROUP_BY:
        return GROUP_BY[word]
    if PROPERTY_NAME.fullmatch(word):
        return SameProperty(word)
    words = ", ".join(f"'{each}'" for each in GROUP_BY)
    hint = nearest(word, GROUP_BY) or f"write {words}, the name of a udev property, or a match"
    raise Mistake(at, f"cannot group by '{word}'", hint)


GROUPING = Kind(_group_by, {"anyOf": [{"enum": list(GROUP_BY)}, PROPERTY.schema, MATCH.schema]})


def _identity(at: At) -> str | tuple[str, ...]:
    if isinstance(at.value, list):
        return read_non_empty_list(at, PROPERTY.read)
    word = text(at)
    if word not in _IDENTITIES:
        hint = nearest(word, _IDENTITIES) or 'write "serial", "port" or a list of udev properties'
        if PROPERTY_NAME.fullmatch(word):
            hint = f'write ["{word}"]'
        raise Mistake(at, f"'{word}' is not an identity", hint)
    return word


IDENTITY = Kind(_identity, {"anyOf": [{"enum": list(_IDENTITIES)}, list_schema(PROPERTY.schema, minItems=1)]})

#: The keys of a match that are neither an `ATTR{name}` nor the name of a udev property.
MATCHERS = (
    Key("TAG", Kind(_tag, definition("value")), "a udev tag of the device"),
    Key(
        "usb",
        Kind(_usb, definition("usb")),
        "the USB device and interface of the node, from sysfs; works without a udev database",
    ),
    Key("parent", Kind(_parent, MATCH.schema), "a match that a single ancestor satisfies"),
)

_READERS: Mapping[str, Callable[[At], tuple[Condition, ...]]] = {
    matcher.name: matcher.kind.read for matcher in MATCHERS
}

_CONDITIONS = f'conditions are udev properties in capitals, "ATTR{{name}}", {listing(_READERS)}'

#: What the keys of a match mean, except for the names of udev properties.
CONDITION_DOCS: Mapping[str, str] = {
    "ATTR{name}": "a sysfs attribute of the device itself",
    **{matcher.name: matcher.doc for matcher in MATCHERS},
}
