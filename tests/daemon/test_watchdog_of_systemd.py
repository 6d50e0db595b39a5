"""The watchdog: fed while all is well or the kubelet is at fault, and not when a resource is stuck."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from genericdp.core.status.watchdog import STUCK_AFTER_S
from genericdp.kubelet.registration import Registration
from genericdp.watch import DirectoryWatch
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import Scene, a_scene
from tests.scenes.service import SHORT_PAUSES
from tests.scenes.waiting import until


def more_than(attempts: Sized, count: int) -> bool:
    return len(attempts) > count


class Watched:
    """A daemon under a service manager that wants a sign of life every hundredth of a second."""

    scene: Scene

    def __init__(self, manager: socket.socket) -> None:
        self.now = 1000.0
        self._manager = manager

    async def heard(self, count: int) -> None:
        """Return once so many signs of life more have come."""
        loop = asyncio.get_running_loop()
        while count:
            count -= (await loop.sock_recv(self._manager, 4096)) == b"WATCHDOG=1"

    def forget(self) -> None:
        """What has been heard so far does not count."""
        while True:
            try:
                self._manager.recv(4096)
            except BlockingIOError:
                return


@asynccontextmanager
async def watched(
    short_dir: Path, *, refusal: str | None = None, kubelet_runs: bool = True
) -> AsyncIterator[Watched]:
    address = str(short_dir / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        state = Watched(manager)
        async with a_scene(
            short_dir,
            a_usb_serial(0),
            kubelet_runs=kubelet_runs,
            daemon_runs=False,
            now=lambda: state.now,
            pauses=SHORT_PAUSES,
            address=address,
            watchdog_interval_s=0.01,
        ) as state.scene:
            state.scene.kubelet.faults.refuse_registrations(refusal)
            await state.scene.service.start()
            yield state


async def test_it_is_fed_with_a_kubelet_and_without_one_however_long(short_dir: Path) -> None:
    async with watched(short_dir) as state:
        await state.scene.until_allocatable(1)
        state.now += 10 * STUCK_AFTER_S
        await state.heard(3)
        await state.scene.kubelet.stop()
        state.now += 10 * STUCK_AFTER_S
        await state.heard(3)
        await state.scene.kubelet.start()


async def test_each_sign_of_life_looks_for_a_kubelet_that_no_event_tells_of(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a file system was mounted over its directory while mounts cannot be watched."""

    class Deaf(DirectoryWatch):
        def __init__(self, directory: str, on_change: Callable[[frozenset[str]], None]) -> None:
            del on_change
            super().__init__(directory, lambda _: None)

    monkeypatch.setattr("genericdp.kubelet.socket.DirectoryWatch", Deaf)
    async with watched(short_dir, kubelet_runs=False) as state, state.scene.kubelet:
        await state.scene.until_allocatable(1)


async def test_it_is_fed_while_a_kubelet_refuses_us(short_dir: Path) -> None:
    async with watched(short_dir, refusal="no") as state:
        kubelet = state.scene.kubelet
        for _ in range(3):
            tries = len(kubelet.registrations)
            await kubelet.wait_until(partial(more_than, kubelet.registrations, tries))
            state.now += STUCK_AFTER_S - 1
            await state.heard(2)


async def test_it_starves_while_a_resource_is_stuck_and_the_log_names_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def never(registration: Registration) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Registration, "serve", never)

    def complaints() -> int:
        return sum("stuck" in message for message in caplog.messages)

    async with watched(short_dir) as state:
        await state.heard(3)
        state.now += STUCK_AFTER_S + 1
        await until(complaints)
        state.forget()
        before = complaints()
        await until(lambda: complaints() > before)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await state.heard(1)
    assert "resources are stuck; no longer notifying the watchdog" in caplog.text
    assert all(getattr(record, "fields", None) == {"resources": FTDI} for record in caplog.records[-2:])
