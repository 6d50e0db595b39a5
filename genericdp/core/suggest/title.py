"""What a device is called: a title for people, a resource name that the kubelet accepts.

The rules of this file:

* A name is what the device calls itself, reduced to `[a-z0-9-]`, or else its kind.
"""

import re
from collections.abc import Container, Iterable, Iterator

from genericdp.core.buses.kernel_name import AUTO_NUMBER, stem_of
from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import model_name, usb_ids
from genericdp.core.inventory.place import unit_of
from genericdp.core.rules.match import usb_value
from genericdp.core.rules.resource import Resource
from genericdp.core.suggest.clues import ON_I2C
from genericdp.core.suggest.fixed_names import has_a_fixed_name
from genericdp.core.suggest.units.camera import has_pictures, is_stream
from genericdp.core.suggest.units.disks import part_name
from genericdp.core.suggest.units.models import driver_of
from genericdp.core.suggest.units.siblings import Siblings

#: Ids begin with the name: a longer one would leave no room for the rest.
_NAME_LENGTH = 32

#: A longer title does not help.
_TITLE_LENGTH = 60

#: What people call a subsystem.
_KINDS = {"video4linux": "video", "i2c-dev": "i2c", "scsi_generic": "sg", "usbmisc": "usb"}

#: What a name does without: the address of a part of a chip, or of a chip on I2C; the version of a firmware.
_NO_NAME = re.compile(rf"^[0-9a-f]{{4,}}\.(?=[a-z])|{ON_I2C.pattern}|[ (]+fw[: v].*$", re.IGNORECASE)

#: More of a phrase has to follow these words.
_NEVER_LAST = frozenset({"", "a", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"})

_NO_WORD = re.compile(r"[^a-z0-9]+")


def name_of(
    group: Siblings,
    taken: Container[str] = (),
    nodes: Iterable[UdevDevice] = (),
    *,
    part: bool = False,
    several: bool = False,
) -> str:
    """The short name of a resource for these nodes, other than those taken.

    nodes    all device nodes of the machine
    part     they are not all that their unit brings, so the name says which they are
    several  the resource takes other units of the model, too, so it is not named after this one
    """
    texts = _names(group, several=several)
    name = _cut(next(word for text in texts if (word := _word(text))), _NAME_LENGTH, "-")
    node = group.nodes[0]
    if part and name != _word(_devname(node)):
        name = f"{name}-{_part(node)}"
    if name not in taken:
        return name
    of_kind = f"{name}-{_word(_KINDS.get(node.subsystem, node.subsystem))}"
    # The nodes of other kinds may have the name. Where there is a second unit, that has it.
    has_kind = of_kind not in taken and _brings_other_kinds(node, nodes)
    has_kind = has_kind and (several or not _has_twin(node, nodes))
    return of_kind if has_kind else _numbered(name, taken)


def _brings_other_kinds(node: UdevDevice, nodes: Iterable[UdevDevice]) -> bool:
    """Whether the unit of a device node has nodes of other kinds, beside its raw USB node."""
    unit = unit_of(node)
    return not has_a_fixed_name(node) and any(
        each.subsystem not in (node.subsystem, "usb") and unit_of(each).sys_path == unit.sys_path
        for each in nodes
    )


def _has_twin(node: UdevDevice, nodes: Iterable[UdevDevice]) -> bool:
    """Whether another unit of the model brings device nodes of the kind of this one."""
    model, unit = model_name(node), unit_of(node).sys_path
    return model != "" and any(
        each.subsystem == node.subsystem and model_name(each) == model and unit_of(each).sys_path != unit
        for each in nodes
    )


def taken_by(resources: Iterable[Resource]) -> set[str]:
    """The names that resources have, in the spelling in which two that share an env are equal."""
    return {_NO_WORD.sub("-", resource.short_name.lower()) for resource in resources}


def _cut(text: str, length: int, between: str) -> str:
    """The beginning of a text, with whole words if it has any; the last one is no "for" or "with"."""
    if len(text) <= length:
        return text
    words = text[: length + 1].split(between)[:-1]
    while words and words[-1].lower() in _NEVER_LAST:
        words.pop()
    return (between.join(words) or text[:length]).strip(between)


def _numbered(name: str, taken: Container[str]) -> str:
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _word(text: str) -> str:
    """A text as a part of a name; "" when nothing is left that could be a name."""
    word = _NO_WORD.sub("-", text.lower()).strip("-")
    return word if re.search(r"[a-z]", word) else ""


def _part(node: UdevDevice) -> str:
    """Names one node of several: its interface if it is a serial port, else its kind."""
    if node.subsystem == "block":
        return _word(part_name(node))
    if is_stream(node) and not has_pictures(node):
        return "metadata"
    interface = usb_value(node, "interface") if node.subsystem == "tty" else None
    if interface:
        return _word(f"if{interface}")
    return _word(stem_of(node)) if node.devtype != "usb_device" else "usb"


def _names(group: Siblings, *, several: bool = False) -> Iterator[str]:
    node = group.nodes[0]
    unit = unit_of(node)
    usb = unit if unit.subsystem == "usb" else None
    if has_a_fixed_name(node) or group.folder:
        yield group.folder.removeprefix("/dev/") or _devname(node)
    for above in node.ancestors():
        if above.subsystem == "net":
            yield f"{node.subsystem}-{above.sys_name}"
    name = _NO_NAME.sub("", _model_of(node))
    name = "" if name == node.subsystem else f"{_kind_of_target(node)} {name}".strip()
    if usb is not None:
        numbers = [usb.attributes.get(name, "") for name in ("idVendor", "idProduct")]
        yield name
        yield f"usb-{'-'.join(filter(None, numbers))}"
    yield name
    if group.group_by == "node" and not several:
        yield _devname(node)
    driver = driver_of(node)
    driver = driver or (unit.sys_name if unit.subsystem == "platform" else "")
    yield driver if driver.startswith(node.subsystem) else f"{node.subsystem} {driver}"
    yield "device"


def in_kernels_case(name: str, node: UdevDevice) -> str:
    """The name of a resource, as the kernel writes it if it is the kernel's name of the device node."""
    devname = _devname(node)
    return devname if devname.lower() == name else name


def _devname(node: UdevDevice) -> str:
    """The name of a device node, with its folder where that says which one (`cpu/0/cpuid`) or what it is
    (`dahdi/ctl`).
    """
    folder, _, name = node.devname.rpartition("/")
    is_kind = folder == node.subsystem and not name.isdigit()
    return node.devname if re.search(r"\d", folder) or is_kind else name


def title_of(node: UdevDevice, *, with_maker: bool = True) -> str:
    """What the unit of a device node is, for people; its maker only where there is room."""
    usb = node.usb_device
    model = _model_of(node)
    maker = _maker_of(node, model) if with_maker or not model else ""
    words = f"{maker} {model}".strip()
    words = words if len(words) <= _TITLE_LENGTH else _cut(model or maker, _TITLE_LENGTH, " ")
    if usb is None:
        if words:
            return f"{_kind_of_target(node)} {words}".strip()
        driver, pci = driver_of(node), unit_of(node).properties.get("PCI_ID", "").lower()
        text = " of ".join(filter(None, (f"{node.subsystem} device".lstrip(), driver)))
        return f"{text} ({pci})" if pci else text
    return f"{words or 'USB device'} ({usb_ids(usb)})"


def _kind_of_target(node: UdevDevice) -> str:
    """The kind of a unit whose model says only what it is served by: an NVMe target calls itself "Linux"."""
    is_nvme = any(each.subsystem == "nvme-subsystem" for each in node.ancestors())
    return "NVMe subsystem" if is_nvme else ""


def _maker_of(node: UdevDevice, model: str) -> str:
    """The maker of the unit of a device node; "" when the name of its model begins with it."""
    unit = unit_of(node)
    says = [each.properties.get("ID_VENDOR", "") for each in (node, unit)]
    maker = next(filter(None, says if unit.subsystem == "usb" else says[:1]), "")
    # udev repeats the number where a USB device says nothing, and where its hardware database does not know a
    # PCI function, it gives the entry of what that hangs off.
    entry = _spaced(unit.properties.get("ID_MODEL_FROM_DATABASE", ""))
    is_known = unit.subsystem == "usb" or (model != "" and model == entry)
    if maker == unit.attributes.get("idVendor", "") and is_known:
        maker = unit.properties.get("ID_VENDOR_FROM_DATABASE", "")
    begins = [_word(text).split("-")[0] for text in (maker, model)]
    return "" if begins[0] == begins[1] or _word(model).startswith(_word(maker)) else _spaced(maker)


def _model_of(node: UdevDevice) -> str:
    """The name of the model of a device node, without a number in the order of arrival."""
    return AUTO_NUMBER.sub("", _spaced(model_name(node)))


def _spaced(text: str) -> str:
    """A text of udev or of a device with one space between two words."""
    return " ".join(text.replace("_", " ").split())
