"""Cameras and watchdogs that the kernel counts as it finds them: a pod gets its own after a boot, or none."""

from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState
from tests.scenes.scene import a_scene, minors_in
from tests.scenes.video import a_loopback, a_sensor, a_watchdog

RESOURCE = "example.com/x"
RULE = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "video4linux|watchdog" }\n'
BY_NAME = f'{RULE}identity = ["ID_V4L_PRODUCT"]\n'
LEFT, RIGHT = "vi-output, imx219 9-0010", "vi-output, imx219 10-0010"


def called(device: UdevDevice) -> str:
    return device.attributes.get("name") or device.attributes["identity"]


async def after_a_boot(
    short_dir: Path, before: tuple[UdevDevice, ...], after: tuple[UdevDevice, ...], rules: str
) -> dict[str, str]:
    """What each pod had before a boot, and what its container gets then; "" if it does not start."""
    async with a_scene(short_dir, *before, rules=rules) as scene:
        await scene.until_allocatable(len(before), RESOURCE)
        pods = [await scene.admit(resource=RESOURCE, name=f"pod{number}") for number in range(len(before))]
        at = {device.number.minor: called(device) for device in before if device.number is not None}
        had = [at[minors_in(pod.container("main"))[0]] for pod in pods]
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(*after)
        await scene.service.start()
        await scene.kubelet.wait_until(lambda: RESOURCE in scene.kubelet.allocatable)
        at = {device.number.minor: called(device) for device in after if device.number is not None}
        has = [await scene.kubelet.restart_container(pod, "main") for pod in pods]
        return {
            was: at[minors_in(main)[0]] if main.state is ContainerState.RUNNING else ""
            for was, main in zip(had, has, strict=True)
        }


BOOTS = {
    "sensors found in another order": (
        (a_sensor(LEFT, 0), a_sensor(RIGHT, 1)),
        (a_sensor(RIGHT, 0), a_sensor(LEFT, 1)),
    ),
    "nodes registered in another order": (
        (a_sensor("rkisp_mainpath", 0), a_sensor("rkisp_selfpath", 1)),
        (a_sensor("rkisp_selfpath", 0), a_sensor("rkisp_mainpath", 1)),
    ),
    "virtual cameras behind another camera": (
        (a_loopback("front door", 0), a_loopback("back door", 1)),
        (a_loopback("front door", 1), a_loopback("back door", 2)),
    ),
    "watchdogs without a parent": (
        (a_watchdog("Software Watchdog", 1), a_watchdog("IT87 WDT", 0)),
        (a_watchdog("Software Watchdog", 0), a_watchdog("IT87 WDT", 1)),
    ),
}


@pytest.mark.parametrize(("before", "after"), BOOTS.values(), ids=BOOTS)
async def test_each_pod_has_its_own_after_a_boot_that_numbers_them_in_another_order(
    short_dir: Path, before: tuple[UdevDevice, ...], after: tuple[UdevDevice, ...]
) -> None:
    names = {called(device) for device in before}
    assert await after_a_boot(short_dir, before, after, RULE) == {name: name for name in names}


async def test_the_property_that_a_rule_names_tells_cameras_whatever_their_index(short_dir: Path) -> None:
    before, after = BOOTS["sensors found in another order"]
    assert await after_a_boot(short_dir, before, after, BY_NAME) == {LEFT: LEFT, RIGHT: RIGHT}
    found = await after_a_boot(short_dir, before, (a_sensor(RIGHT, 0),), BY_NAME)
    assert found == {LEFT: "", RIGHT: RIGHT}


async def test_of_two_sensors_at_one_address_the_one_that_is_left_goes_to_no_pod(short_dir: Path) -> None:
    """The bus in its name may have the number of the other one."""
    before, _ = BOOTS["sensors found in another order"]
    assert await after_a_boot(short_dir, before, (a_sensor(RIGHT, 0),), RULE) == {LEFT: "", RIGHT: ""}
