"""While the daemon lacks descriptors, a pod still gets no other device than its own."""

import os
from pathlib import Path

from genericdp.simulator import ContainerState, Runtime
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene, both_runtimes
from tests.scenes.shortage import descriptors_left
from tests.scenes.waiting import until


@both_runtimes
async def test_the_link_of_a_device_that_goes_without_a_descriptor_left_does_not_lead_to_another_one(
    short_dir: Path, runtime: Runtime
) -> None:
    mine, other = a_usb_serial(0, serial="A"), a_usb_serial(0, serial="B", port="3")
    async with a_scene(short_dir, mine, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with descriptors_left(0):
            scene.unplug(mine)
            scene.plug(other)
            await until(lambda: len(scene.daemon.inventory.offers[FTDI].devices) == 2)
            assert os.readlink(f"{scene.settings.link_dir}/ftdi_A") == "ftdi_A"
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING
