"""What a container gets: for people, and for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.core.explain.container import Container
from genericdp.core.rules.settings import AnswerBy


class _Device(Protocol):
    @property
    def container_path(self) -> str: ...
    @property
    def host_path(self) -> str: ...
    @property
    def permissions(self) -> str: ...


class _Mount(Protocol):
    @property
    def container_path(self) -> str: ...
    @property
    def host_path(self) -> str: ...
    @property
    def read_only(self) -> bool: ...


class Contents(Protocol):
    """What an answer to the kubelet and a created container have in common besides their devices."""

    @property
    def mounts(self) -> Sequence[_Mount]: ...
    @property
    def envs(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def cdi_devices(self) -> Sequence[str]: ...


def show(container: Container, output: Output) -> None:
    """For people."""
    gets = "gets" if container.healthy else "would get"
    output.paragraph(Styled(f"A container that is allocated {container.id} {gets}", Style.STRONG))
    output.table((), list(_rows(container)), indent=2)


def _rows(container: Container) -> Iterator[Row]:
    if container.by is AnswerBy.CDI:
        yield from _rows_by_cdi(container)
    else:
        for spec in container.allocation.devices:
            node = container.targets.get(spec.host_path, "")
            yield ("device", f"{spec.container_path} ({spec.permissions}) from {spec.host_path}, now {node}")
        yield from rows_of(container.allocation)
        if container.needs.advice:
            yield ("access", container.needs.advice)
    for text in container.unfound:
        yield ("caution", text)
    if container.by is AnswerBy.AUTO:
        yield ("by CDI", f"{container.named.cdi_devices[0]}, if the container runtime reads CDI")
    elif container.by is AnswerBy.DEVICES and container.stale:
        what = ", ".join(container.stale)
        yield ("caution", f'after a re-plug, only answer = "cdi" keeps this right: {what}')
    if container.renamed:
        # runc binds a device into a user namespace from its path in the container.
        paths = ", ".join(container.renamed)
        where = f"in a pod with hostUsers: false, runc looks for {paths} on the host"
        yield ("caution", f'{where}; container_path = "{{link}}" works in every pod')


def _rows_by_cdi(container: Container) -> Iterator[Row]:
    for name in container.named.cdi_devices:
        yield ("CDI device", name)
    for spec in container.allocation.devices:
        node = container.targets.get(spec.host_path, "")
        yield ("device", f"{spec.container_path} ({spec.permissions}) from {node} now")
    for group in container.groups:
        yield ("group", f"{group}, for its process")
    yield from rows_of(replace(container.allocation, cdi_devices=()))


def rows_of(contents: Contents) -> Iterator[Row]:
    """Mounts, envs, annotations and CDI devices."""
    for mount in contents.mounts:
        rights = "read-only" if mount.read_only else "writable"
        yield ("mount", f"{mount.container_path} ({rights}) from {mount.host_path}")
    for name, value in sorted(contents.envs.items()):
        yield ("env", f"{name}={value}")
    for name, value in sorted(contents.annotations.items()):
        yield ("annotation", f"{name}={value}")
    for name in contents.cdi_devices:
        yield ("CDI device", name)


def as_json(container: Container) -> dict[str, object]:
    """For programs. Keys are only ever added."""
    by_devices = container.by is not AnswerBy.CDI
    return {
        "devices": [device_as_json(spec) for spec in container.allocation.devices],
        **contents_as_json(container.allocation),
        "answer": str(container.by),
        "cdiDevices": list((container.allocation if by_devices else container.named).cdi_devices),
        "additionalGids": [] if by_devices else list(container.groups),
        "staleAfterReplug": list(container.stale) if by_devices else [],
        "supplementalGroups": list(container.needs.groups),
        "onlyForRoot": list(container.needs.closed),
        "notWithUserNamespaces": list(container.renamed),
        "notFoundByLibraries": list(container.unfound),
    }


def device_as_json(device: _Device) -> dict[str, object]:
    """A device node in a container."""
    return {
        "containerPath": device.container_path,
        "hostPath": device.host_path,
        "permissions": device.permissions,
    }


def contents_as_json(contents: Contents) -> dict[str, object]:
    """Mounts, envs, annotations and CDI devices."""
    return {
        "mounts": [
            {
                "containerPath": mount.container_path,
                "hostPath": mount.host_path,
                "readOnly": mount.read_only,
            }
            for mount in contents.mounts
        ],
        "envs": dict(contents.envs),
        "annotations": dict(contents.annotations),
        "cdiDevices": list(contents.cdi_devices),
    }
