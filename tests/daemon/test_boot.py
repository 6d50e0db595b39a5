"""The first start after a boot: READY waits for the devices that were there when the machine went down."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.files.state import BOOT_VARIABLE
from genericdp.service.ready import EXTEND_EVERY_S
from genericdp.simulator import ContainerState, Phase
from genericdp.status import client
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene
from tests.scenes.service import links_in, settings_below
from tests.scenes.waiting import until

STICK = a_usb_serial(0)
OTHER = a_usb_serial(1, serial="B", port="2")
ID = "ftdi_A50285BI"
WAITING = f"waiting for {ID}, there before the reboot; 1 resource, 0 of 1 device healthy; no kubelet"
READY = "1 resource, 1 of 1 device healthy; no kubelet"
UNHEALTHY = "1 resource, 0 of 1 device healthy; no kubelet"


class Machine:
    """A node that boots. Between two boots the daemon does not run; devices stay as they are."""

    def __init__(self, scene: Scene, manager: socket.socket, patch: pytest.MonkeyPatch) -> None:
        self.scene = scene
        self.service = scene.service
        self.time = LoopTime()
        self._manager = manager
        self._patch = patch
        self._boots = count()

    def boot(self) -> None:
        """The next start of the daemon is the first one of a boot."""
        self._patch.setenv(BOOT_VARIABLE, f"boot{next(self._boots)}")
        self.heard()

    def heard(self) -> list[str]:
        """What the service manager has heard since it was asked last, repetitions once."""
        heard: list[str] = []
        while True:
            try:
                text = self._manager.recv(4096).decode()
            except BlockingIOError:
                return heard
            if heard[-1:] != [text]:
                heard.append(text)

    async def power_cut(self) -> None:
        """The daemon ends without a word, after what it had to save was saved."""
        self.service.daemon.ready._presence.save = lambda: None  # type: ignore[method-assign]
        await self.service.stop()
        self.boot()

    async def reboot(self) -> None:
        await self.service.stop()
        self.boot()

    @asynccontextmanager
    async def starting(self) -> AsyncIterator["asyncio.Task[None]"]:
        """The daemon starts, and waits for a device."""
        before = self.service.daemon
        task = asyncio.ensure_future(self.service.start())
        await until(lambda: self.service.daemon is not before and self.service.daemon.ready.returning)
        try:
            yield task
            await task
        finally:
            task.cancel()


@pytest.fixture
def manager(short_dir: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(short_dir / "notify"))
        sock.setblocking(False)
        yield sock


@pytest.fixture
def a_machine(short_dir: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Any:
    @asynccontextmanager
    async def made(
        *devices: UdevDevice, rules: str = FTDI_RULE, kubelet_runs: bool = False, **settings: Any
    ) -> AsyncIterator[Machine]:
        scene = a_scene(
            short_dir,
            *devices,
            rules=rules,
            settings=settings_below(short_dir, **settings),
            kubelet_runs=kubelet_runs,
            daemon_runs=False,
            now=lambda: asyncio.get_running_loop().time(),
            address=str(short_dir / "notify"),
        )
        async with scene as it:
            machine = Machine(it, manager, monkeypatch)
            machine.boot()
            await it.service.start()
            machine.heard()
            yield machine

    return made


async def test_ready_waits_for_the_device_and_comes_with_it(
    a_machine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with a_machine(STICK) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            assert machine.heard()[-2:] == ["EXTEND_TIMEOUT_USEC=20000000", f"STATUS={WAITING}"]
            (device,) = (await client_status(machine))["returning"]
            assert device == {"resource": "example.com/ftdi", "id": ID, "leftSeconds": 15}
            for _ in range(2):
                machine.time.advance(EXTEND_EVERY_S)
                await until(lambda: "EXTEND_TIMEOUT_USEC=20000000" in machine.heard())
            machine.scene.plug(STICK)
        assert machine.heard()[-1] == f"READY=1\nSTATUS={READY}"
        assert (await client_status(machine))["returning"] == []
    said = [text for text in caplog.messages if "reboot" in text]
    assert said == [
        "waiting for devices that were there before the reboot",
        "all devices that were there before the reboot are back",
    ]


async def test_the_wait_ends_in_time_and_is_not_repeated(
    a_machine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_machine(STICK) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            machine.time.advance(14.0)
            await until(lambda: "EXTEND_TIMEOUT_USEC=20000000" in machine.heard())
            assert not machine.service.statuses
            machine.time.advance(2.0)
        assert machine.service.statuses == [UNHEALTHY]
        assert "devices that were there before the reboot are not back" in caplog.messages
        # It is absent now: neither a restart of the daemon nor the next boot waits for it.
        await machine.service.stop()
        await machine.service.start()
        assert not machine.service.daemon.ready._waited
        await machine.reboot()
        await machine.service.start()
        assert not machine.service.daemon.ready._waited


async def test_a_mere_restart_of_the_daemon_waits_for_nothing(a_machine: Any) -> None:
    async with a_machine(STICK) as machine:
        await machine.service.stop()
        machine.scene.unplug(STICK)
        await machine.service.start()
        assert machine.service.statuses == [UNHEALTHY]
        assert not machine.service.daemon.ready._waited


async def test_what_was_already_absent_when_the_machine_went_down_is_not_waited_for(a_machine: Any) -> None:
    async with a_machine(STICK, OTHER) as machine:
        machine.scene.unplug(STICK)
        await machine.service.wait_until(lambda: machine.service.steps > 1)
        await machine.reboot()
        machine.scene.unplug(OTHER)
        async with machine.starting():
            assert [each.id for each in machine.service.daemon.ready.returning] == ["ftdi_B"]
            machine.scene.plug(OTHER)


async def test_after_a_power_cut_what_was_saved_last_counts(a_machine: Any) -> None:
    async with a_machine(STICK) as machine:
        machine.scene.plug(OTHER)
        await machine.service.wait_until(lambda: len(machine.service.daemon.ready._presence._healthy) == 2)
        # The plug is too recent to be saved.
        await machine.power_cut()
        machine.scene.unplug(STICK, OTHER)
        async with machine.starting():
            assert [each.id for each in machine.service.daemon.ready.returning] == [ID]
            machine.scene.plug(STICK)


async def test_a_resource_may_wait_longer_and_the_settings_may_turn_it_off(a_machine: Any) -> None:
    async with a_machine(STICK, rules=f'{FTDI_RULE}boot_wait = "20s"\n', boot_wait_s=0.0) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            machine.time.advance(19.0)
            await until(lambda: "EXTEND_TIMEOUT_USEC=20000000" in machine.heard())
            assert not machine.service.statuses
            machine.time.advance(2.0)
        await machine.scene.service.stop()
        machine.scene.rules.become(FTDI_RULE)
        machine.scene.plug(STICK)
        await machine.service.start()
        await machine.reboot()
        machine.scene.unplug(STICK)
        await machine.service.start()
        assert not machine.service.daemon.ready._waited


async def test_a_device_that_edited_rules_no_longer_offer_ends_the_wait_and_a_reload_does_not(
    a_machine: Any,
) -> None:
    async with a_machine(STICK) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            machine.heard()
            machine.scene.edit_rules(FTDI_RULE + 'description = "FTDI"\n')
            await machine.service.wait_until(lambda: machine.service.steps > 1)
            assert not [text for text in machine.heard() if text.startswith(("READY", "RELOADING"))]
            machine.scene.edit_rules("")
        assert machine.service.statuses == ["0 resources, 0 of 0 devices healthy; no kubelet"]


async def test_a_daemon_that_ends_while_it_waits_leaves_the_wait_to_the_next_one(a_machine: Any) -> None:
    async with a_machine(STICK) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting() as starting:
            await machine.service.stop()
            await starting
        assert machine.service.statuses == []
        async with machine.starting():
            machine.scene.plug(STICK)
        assert machine.service.statuses == [READY]


async def test_while_it_waits_links_are_made_and_a_kubelet_that_runs_gets_what_is_there(
    a_machine: Any,
) -> None:
    async with a_machine(STICK, OTHER, kubelet_runs=True) as machine:
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            await machine.scene.until_allocatable(1, capacity=2)
            assert links_in(machine.scene.settings) == {ID: ID, "ftdi_B": machine.scene.udev.node(OTHER)}
            assert (await machine.scene.admit(1)).phase is Phase.RUNNING
            machine.scene.plug(STICK)
        await machine.scene.until_allocatable(2)


async def test_a_reboot_with_a_slow_stick_keeps_its_pod(a_machine: Any) -> None:
    async with a_machine(STICK, kubelet_runs=True) as machine:
        kubelet = machine.scene.kubelet
        await machine.scene.until_allocatable(1)
        pod = await machine.scene.admit(1)
        await kubelet.stop()
        await machine.reboot()
        machine.scene.unplug(STICK)
        async with machine.starting():
            # The stick comes 10 s after the boot; the unit of the kubelet waits for READY.
            machine.time.advance(10.0)
            machine.scene.plug(STICK)
        await kubelet.reboot(readmit=False)
        await machine.scene.until_allocatable(1)
        await kubelet.readmit()
        assert (pod.phase, pod.container("main").state) == (Phase.RUNNING, ContainerState.RUNNING)


async def client_status(machine: Machine) -> Any:
    return await asyncio.to_thread(client.status, machine.scene.settings)
