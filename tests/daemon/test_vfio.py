"""IOMMU groups that get other numbers while pods hold them: never another group."""

from pathlib import Path

from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState, Phase, Runtime
from tests.scenes.builders import a_function, a_vfio_group
from tests.scenes.rules import DOMAIN
from tests.scenes.scene import a_scene, both_runtimes, minors_in

T4 = f"{DOMAIN}/t4"
RULE = (
    '[[resource]]\nname = "t4"\nmatch = { SUBSYSTEM = "vfio", parent = { PCI_ID = "10DE:1EB8" } }\n'
    'container_path = "/dev/vfio/{index}"\n'
)

ONE, OTHER = a_function("0000:81:00.0"), a_function("0000:82:00.0")


@both_runtimes
async def test_a_pod_keeps_its_function_and_never_gets_another_group(
    short_dir: Path, runtime: Runtime
) -> None:
    mine, theirs = a_vfio_group(51, ONE), a_vfio_group(52, OTHER)
    async with a_scene(short_dir, mine, rules=RULE, runtime=runtime) as scene:
        await scene.until_allocatable(1, T4)
        pod = await scene.admit(resource=T4)
        assert minors_in(pod.container("main")) == [51]

        scene.plug(theirs)
        await scene.until_allocatable(2, T4)
        scene.unplug(mine, theirs)
        scene.plug(a_vfio_group(51, OTHER))
        await scene.until_allocatable(1, T4)
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is not ContainerState.RUNNING

        scene.plug(a_vfio_group(52, ONE))
        await scene.until_allocatable(2, T4)
        status = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(status) == [52]


async def test_a_group_that_another_driver_takes_a_part_of_is_given_to_nobody(short_dir: Path) -> None:
    def group(driver: str) -> UdevDevice:
        return a_vfio_group(51, ONE, a_function("0000:81:00.1", driver=driver))

    async with a_scene(short_dir, group("vfio-pci"), rules=RULE) as scene:
        await scene.until_allocatable(1, T4)
        scene.unplug(group(""))
        scene.plug(group("snd_hda_intel"))
        await scene.until_allocatable(0, T4, capacity=1)
        (device,) = scene.daemon.inventory.offers[T4].devices
        assert (
            device.reason == "0000:81:00.1 of its IOMMU group is bound to snd_hda_intel, not to a vfio driver"
        )
        scene.unplug(group(""))
        scene.plug(group("vfio-pci"))
        await scene.until_allocatable(1, T4)


async def test_a_group_that_a_pod_has_is_given_to_no_other_when_its_first_function_changes(
    short_dir: Path,
) -> None:
    before = a_function("0000:80:00.0")
    async with a_scene(short_dir, a_vfio_group(51, ONE), rules=RULE) as scene:
        await scene.until_allocatable(1, T4)
        pod = await scene.admit(resource=T4)

        scene.unplug(a_vfio_group(51, ONE))
        scene.plug(a_vfio_group(51, before, ONE))
        await scene.until_allocatable(0, T4, capacity=2)
        assert (await scene.admit(resource=T4, name="other")).phase is Phase.FAILED

        scene.unplug(a_vfio_group(51, before, ONE))
        scene.plug(a_vfio_group(51, ONE))
        await scene.until_allocatable(1, T4)
        status = await scene.kubelet.restart_container(pod, "main")
        assert minors_in(status) == [51]
