"""What a container gets that is given a device, and what it takes to use it."""

from collections.abc import Iterator
from dataclasses import dataclass

from genericdp.cli.access import AccessOf, Needs, needs_of
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.core.allocate import Allocation, allocate
from genericdp.core.inventory.offer import Device, Offer


@dataclass(frozen=True, slots=True)
class Given:
    """What a container gets that is given one device alone.

    id       the id that it is given
    now      host path of a link -> the device node that it leads to
    names    what else the device nodes are called on the host
    needs    what a process needs that is not root
    renamed  container paths that are no path of the device on the host
    """

    id: str
    allocation: Allocation
    now: dict[str, str]
    names: frozenset[str]
    needs: Needs

    @property
    def renamed(self) -> tuple[str, ...]:
        return tuple(
            spec.container_path
            for spec in self.allocation.devices
            if spec.container_path not in (spec.host_path, self.now.get(spec.host_path), *self.names)
        )


def given_of(offer: Offer, device: Device, link_dir: str, access_of: AccessOf) -> Given:
    """What a container would get of a device of an offer."""
    id_ = next(id_ for id_, each in offer.ids.items() if each is device)
    now = {f"{link_dir}/{node.link}": node.path for node in device.nodes}
    names = frozenset(devlink for node in device.nodes for devlink in node.devlinks)
    needs = needs_of(device, [access_of(node.path) for node in device.nodes])
    return Given(id_, allocate(offer, [id_], link_dir), now, names, needs)


def show_given(given: Given, output: Output) -> None:
    """For people."""
    output.paragraph(Styled(f"A container that is given {given.id} gets", Style.STRONG))
    output.table((), list(_rows(given)), indent=2)


def _rows(given: Given) -> Iterator[Row]:
    allocation = given.allocation
    for spec in allocation.devices:
        node = given.now.get(spec.host_path, "")
        yield ("device", f"{spec.container_path} ({spec.permissions}) from {spec.host_path}, now {node}")
    for mount in allocation.mounts:
        rights = "read-only" if mount.read_only else "writable"
        yield ("mount", f"{mount.container_path} ({rights}) from {mount.host_path}")
    for name, value in allocation.envs.items():
        yield ("env", f"{name}={value}")
    for name, value in allocation.annotations.items():
        yield ("annotation", f"{name}={value}")
    for name in allocation.cdi_devices:
        yield ("CDI device", name)
    if given.needs.advice:
        yield ("access", given.needs.advice)
    if given.renamed:
        # runc binds a device into a user namespace from its path in the container.
        paths = ", ".join(given.renamed)
        where = f"in a pod with hostUsers: false, runc looks for {paths} on the host"
        yield ("caution", f'{where}; container_path = "{{link}}" is right in every pod')


def given_as_json(given: Given) -> dict[str, object]:
    """For programs. Keys are only ever added."""
    allocation = given.allocation
    return {
        "devices": [
            {
                "containerPath": spec.container_path,
                "hostPath": spec.host_path,
                "permissions": spec.permissions,
            }
            for spec in allocation.devices
        ],
        "mounts": [
            {
                "containerPath": mount.container_path,
                "hostPath": mount.host_path,
                "readOnly": mount.read_only,
            }
            for mount in allocation.mounts
        ],
        "envs": dict(allocation.envs),
        "annotations": dict(allocation.annotations),
        "cdiDevices": list(allocation.cdi_devices),
        "supplementalGroups": list(given.needs.groups),
        "onlyForRoot": list(given.needs.closed),
        "notWithUserNamespaces": list(given.renamed),
    }
