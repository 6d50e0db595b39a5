"""Where a device has the udev properties that its templates name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.group import source_of
from genericdp.core.inventory.offer import Device
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.template import FIELDS, Template


@dataclass(frozen=True, slots=True)
class Origin:
    """A property that a template names, and the udev device that has it.

    is_own  whether that is one of the device nodes; otherwise it is an ancestor
    """

    name: str
    value: str
    source: UdevDevice
    is_own: bool


def origins_of(resource: Resource, device: Device, devices: Mapping[str, UdevDevice]) -> tuple[Origin, ...]:
    """The origin of each property that the templates of a resource name, for one of its devices."""
    nodes = [devices[node.sys_path] for node in device.nodes if node.sys_path in devices]
    found = [*_origins(resource.device_templates, nodes)]
    for node in device.nodes_inside:
        if node.sys_path in devices:
            found += _origins(node.table.container_paths, [devices[node.sys_path]])
    return tuple({(each.name, each.source.sys_path): each for each in found}.values())


def _origins(templates: Sequence[Template], nodes: Sequence[UdevDevice]) -> Iterator[Origin]:
    for name in dict.fromkeys(field.name for template in templates for field in template.fields):
        source = source_of(name, *nodes) if name not in FIELDS else None
        if source is not None:
            yield Origin(name, source.property(name) or "", source, any(source is node for node in nodes))
