"""The watchdog: fed while all is well or the kubelet is at fault, and not when a resource is stuck."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sized
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from genericdp.core.status.watchdog import STUCK_AFTER_S
from genericdp.kubelet.registration import Registration
from genericdp.simulator import Kubelet
from genericdp.systemd import Notify
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import (
    SHORT_PAUSES,
    FixedRules,
    a_daemon,
    a_machine,
    settings_below,
    until_allocatable,
)

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'


def more_than(attempts: Sized, count: int) -> bool:
    return len(attempts) > count


class Watched:
    """A daemon under a service manager that wants a sign of life every hundredth of a second."""

    def __init__(self, manager: socket.socket) -> None:
        self.now = 1000.0
        self._manager = manager

    async def heard(self, count: int) -> None:
        """Return once so many signs of life more have come."""
        loop = asyncio.get_running_loop()
        while count:
            count -= (await loop.sock_recv(self._manager, 4096)) == b"WATCHDOG=1"

    def forget(self) -> None:
        """What has been said so far does not count."""
        while True:
            try:
                self._manager.recv(4096)
            except BlockingIOError:
                return


@asynccontextmanager
async def watched(short_dir: Path, rules: FixedRules) -> AsyncIterator[Watched]:
    address = str(short_dir / "notify")
    with a_machine() as machine, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        machine.plug(a_usb_serial(0))
        state = Watched(manager)
        notify = Notify(address, watchdog_interval_s=0.01)
        async with a_daemon(
            machine,
            rules,
            settings_below(short_dir),
            now=lambda: state.now,
            pauses=SHORT_PAUSES,
            notify=notify,
        ):
            yield state


async def test_it_is_fed_with_a_kubelet_and_without_one_however_long(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet, watched(short_dir, FixedRules(RULES)) as state:
        await until_allocatable(kubelet, FTDI, 1)
        state.now += 10 * STUCK_AFTER_S
        await state.heard(3)
        await kubelet.stop()
        state.now += 10 * STUCK_AFTER_S
        await state.heard(3)
        await kubelet.start()


async def test_it_is_fed_while_a_kubelet_refuses_us(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        kubelet.faults.refuse_registrations("no")
        async with watched(short_dir, FixedRules(RULES)) as state:
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
    said = asyncio.Event()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "stuck" in record.getMessage():
                said.set()

    ear = Ear()
    logging.getLogger("genericdp").addHandler(ear)
    try:
        async with Kubelet(short_dir), watched(short_dir, FixedRules(RULES)) as state:
            await state.heard(3)
            state.now += STUCK_AFTER_S + 1
            await said.wait()
            state.forget()
            said.clear()
            await said.wait()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await state.heard(1)
    finally:
        logging.getLogger("genericdp").removeHandler(ear)
    assert "resources are stuck, the watchdog is not fed" in caplog.text
    assert all(getattr(record, "fields", None) == {"resources": FTDI} for record in caplog.records[-2:])
