"""Laws of the OCI specs: what is read from the spec of a container is what its low-level runtime makes."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.comeback.container import inside
from genericdp.core.device import DeviceNumber
from genericdp.simulator import CONTAINERD, CRIO, LowLevel, Runtime
from genericdp.simulator.runtimes.creation import create
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runc import make_nodes
from genericdp.simulator.runtimes.runtime import ContainerConfig, CreateContainerError, RequestedDevice

RUNTIMES = st.builds(replace, st.sampled_from([CONTAINERD, CRIO]), low_level=st.sampled_from(LowLevel))
PATHS = st.sampled_from(["/dev/null", "/dev/zero", "/dev/full", "/dev/gdp-x", "/dev/gdp-y/z"])
REQUESTS = st.lists(
    st.builds(RequestedDevice, st.sampled_from(["/dev/null", "/dev/zero", "/dev/full"]), PATHS, st.just("rw"))
)
DEVICES = st.lists(
    st.builds(
        lambda path, kind, minor: OciDevice(path, kind, 1, minor, 0o660, 0, 0, "rw", path, path),
        PATHS,
        st.sampled_from("cb"),
        st.integers(0, 3),
    )
)


def read(devices: tuple[OciDevice, ...]) -> dict[str, DeviceNumber]:
    """Container path -> device number, from a spec with these devices."""
    spec = {"linux": {"devices": [each.entry() for each in devices]}}
    found = inside(json.dumps({"runtimeSpec": spec}))
    assert found is not None
    return dict(found.nodes)


@given(runtime=RUNTIMES, devices=DEVICES)
def test_a_spec_is_read_as_it_is_carried_out_whatever_paths_are_repeated(
    runtime: Runtime, devices: list[OciDevice]
) -> None:
    made = make_nodes(runtime, ContainerConfig(), devices)
    assert read(tuple(devices)) == {
        node.container_path: DeviceNumber(node.kind, node.major, node.minor) for node in made
    }


@given(runtime=RUNTIMES, requests=REQUESTS, privileged=st.booleans())
def test_what_is_read_from_the_spec_of_a_container_is_what_it_finds(
    runtime: Runtime, requests: list[RequestedDevice], privileged: bool
) -> None:
    try:
        created = create(runtime, ContainerConfig(tuple(requests), privileged=privileged))
    except CreateContainerError:
        return
    assert read(created.spec_devices) == {
        node.container_path: DeviceNumber(node.kind, node.major, node.minor) for node in created.nodes
    }
