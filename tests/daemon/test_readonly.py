"""A device plugin directory that is read-only for a while, as ext4 makes it after an error of its disk."""

import os
from pathlib import Path

import pytest

from genericdp.simulator import Phase
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene
from tests.scenes.service import SHORT_PAUSES
from tests.scenes.shortage import a_file_system_at, read_only
from tests.scenes.waiting import until

OTHER = "example.com/other"
OTHER_RULE = FTDI_RULE.replace('"ftdi"', '"other"').replace("0403", "10c4")
STICK = a_usb_serial(0, serial="A")
OTHER_STICK = a_usb_serial(1, vendor="10c4", serial="X", port="9")


def sockets_of(scene: Scene) -> list[str]:
    return sorted(name for name in os.listdir(scene.kubelet.directory) if name.startswith("gdp-"))


async def test_a_stop_ends_although_no_socket_can_be_removed(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = short_dir / "device-plugins"
    with a_file_system_at(directory):
        async with a_scene(short_dir, STICK, pauses=SHORT_PAUSES) as scene:
            await scene.until_allocatable(1)
            (socket,) = sockets_of(scene)
            caplog.clear()
            with read_only(directory):
                await scene.service.stop()
            assert caplog.messages == ["cannot remove an unused socket"]
            # The next one sweeps it away.
            await scene.service.start()
            await scene.until_allocatable(1)
            assert socket not in sockets_of(scene)


async def test_a_resource_that_leaves_meanwhile_is_offered_no_longer_and_may_return(short_dir: Path) -> None:
    directory = short_dir / "device-plugins"
    with a_file_system_at(directory):
        async with a_scene(
            short_dir, STICK, OTHER_STICK, rules=FTDI_RULE + OTHER_RULE, pauses=SHORT_PAUSES
        ) as scene:
            await scene.until_allocatable(1)
            await scene.until_allocatable(1, OTHER)
            with read_only(directory):
                scene.edit_rules(OTHER_RULE)
                await scene.until_allocatable(0)
            scene.edit_rules(FTDI_RULE + OTHER_RULE)
            await scene.until_allocatable(1)
            scene.unplug(STICK)
            await scene.until_allocatable(0)
            assert (await scene.admit(resource=OTHER)).phase is Phase.RUNNING


async def test_what_could_not_register_registers_when_the_directory_can_be_written(short_dir: Path) -> None:
    directory = short_dir / "device-plugins"
    with a_file_system_at(directory):
        async with a_scene(short_dir, STICK, rules="", pauses=SHORT_PAUSES) as scene:
            with read_only(directory):
                scene.edit_rules(FTDI_RULE)
                await until(lambda: FTDI in scene.daemon.plugins.registrations)
                registration = scene.daemon.plugins.registrations[FTDI]
                await until(lambda: registration.progress.error)
                error = registration.progress.error
                assert error.startswith(f"cannot create the socket '{directory}/gdp-")
                assert error.endswith(".sock': Read-only file system")
            await scene.until_allocatable(1)
