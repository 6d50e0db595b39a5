"""The request to the container runtime, merged from several plugins' answers."""

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import (
    Container,
)
from genericdp.simulator.node.container_config import container_config
from genericdp.simulator.runtimes.runtime import RequestedDevice, RequestedMount


def test_the_first_answer_wins_for_each_path_and_key() -> None:
    first, second = (
        api.ContainerAllocateResponse(
            annotations={"k": name},
            mounts=[api.Mount(container_path="/m", host_path=f"/{name}", read_only=True)],
            devices=[api.DeviceSpec(container_path="/dev/x", host_path=f"/dev/{name}", permissions="rw")],
            cdi_devices=[api.CDIDevice(name="v/c=same")],
        )
        for name in ("one", "two")
    )
    config = container_config(Container("c"), [first, second])
    assert config.annotations == {"k": "one"}
    assert config.mounts == (RequestedMount("/one", "/m", read_only=True),)
    assert config.devices == (RequestedDevice("/dev/one", "/dev/x", "rw"),)
    assert config.cdi_devices == ("v/c=same",)
