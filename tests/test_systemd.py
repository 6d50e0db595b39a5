"""What the service manager hears, on a real datagram socket."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from genericdp.systemd import Notify
from tests.scenes.shortage import descriptors_left
from tests.scenes.waiting import idle


@contextmanager
def a_service_manager(address: str) -> Iterator[socket.socket]:
    """A socket that hears what a service says, as systemd's does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address)
        sock.settimeout(5)
        yield sock


def test_each_state_is_one_datagram(short_dir: Path) -> None:
    address = str(short_dir / "notify")
    with a_service_manager(address) as manager:
        notify = Notify(address, clock=lambda: 12.5)
        notify.extend(20.0)
        notify.ready("3 resources, 7 devices")
        notify.reloading()
        notify.ready()
        notify.status("waiting for the kubelet")
        notify.watchdog()
        notify.stopping()
        heard = [manager.recv(4096) for _ in range(7)]
    assert heard == [
        b"EXTEND_TIMEOUT_USEC=20000000",
        b"READY=1\nSTATUS=3 resources, 7 devices",
        b"RELOADING=1\nMONOTONIC_USEC=12500000",
        b"READY=1",
        b"STATUS=waiting for the kubelet",
        b"WATCHDOG=1",
        b"STOPPING=1",
    ]


def test_an_abstract_socket_is_written_with_an_at_sign() -> None:
    name = f"genericdp-test-{os.getpid()}"
    with a_service_manager(f"\0{name}") as manager:
        Notify.from_environment({"NOTIFY_SOCKET": f"@{name}"}).ready()
        assert manager.recv(4096) == b"READY=1"


def test_a_status_cannot_smuggle_in_another_assignment(short_dir: Path) -> None:
    address = str(short_dir / "notify")
    with a_service_manager(address) as manager:
        Notify(address).status("serial 1\nMAINPID=1")
        assert manager.recv(4096) == rb"STATUS=serial 1\nMAINPID=1"


def test_a_status_is_sent_only_when_it_changes(short_dir: Path) -> None:
    address = str(short_dir / "notify")
    with a_service_manager(address) as manager:
        notify = Notify(address)
        notify.ready("0")
        for text in ("0", "a", "a", "b", "a"):
            notify.status(text)
        notify.watchdog()
        assert [manager.recv(4096) for _ in range(5)] == [
            b"READY=1\nSTATUS=0",
            b"STATUS=a",
            b"STATUS=b",
            b"STATUS=a",
            b"WATCHDOG=1",
        ]


async def test_a_status_is_made_once_for_all_changes_of_a_moment(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.systemd._STATUS_WITHIN_S", 0.0)
    address, made = str(short_dir / "notify"), list[str]()

    def line() -> str:
        made.append("1 resource")
        return made[-1]

    with a_service_manager(address) as manager:
        manager.setblocking(False)
        notify, loop = Notify(address), asyncio.get_running_loop()
        for _ in range(3):
            notify.status_soon(line)
        assert await loop.sock_recv(manager, 4096) == b"STATUS=1 resource"
        notify.status_soon(line)
        notify.stopping()
        assert await loop.sock_recv(manager, 4096) == b"STOPPING=1"
    Notify().status_soon(line)
    await idle()
    assert made == ["1 resource"]


def fill_queue(notify: Notify) -> None:
    for number in range(2000):  # more than any queue holds
        notify.status(str(number))


async def test_a_service_manager_that_does_not_read_does_not_hold_us_up(short_dir: Path) -> None:
    address = str(short_dir / "notify")
    with a_service_manager(address):
        notify = Notify(address)
        started = time.monotonic()
        fill_queue(notify)
        for _ in range(1000):
            notify.reloading()
            notify.ready()
        notify.stopping()
        assert time.monotonic() - started < 1.0


async def test_a_service_manager_that_reads_again_hears_the_latest_state(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.retry.FIRST_S", 0.001)
    address = str(short_dir / "notify")
    with a_service_manager(address) as manager:
        notify = Notify(address)
        fill_queue(notify)
        notify.reloading()
        notify.ready("3 resources")
        manager.setblocking(False)
        with suppress(BlockingIOError):
            while manager.recv(4096).startswith(b"STATUS="):
                pass
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(manager, 4096) == b"READY=1\nSTATUS=3 resources"


async def test_what_a_shortage_keeps_from_the_service_manager_it_hears_later(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.retry.FIRST_S", 0.001)
    address = str(short_dir / "notify")
    with a_service_manager(address) as manager:
        with descriptors_left(0):
            Notify(address).ready("3 resources")
        manager.setblocking(False)
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(manager, 4096) == b"READY=1\nSTATUS=3 resources"


def test_without_a_service_manager_nothing_happens() -> None:
    notify = Notify.from_environment({})
    notify.ready("fine")
    assert notify.watchdog_interval_s is None


def test_a_service_manager_that_is_gone_does_not_stop_us(short_dir: Path) -> None:
    Notify(str(short_dir / "nobody")).ready()


@pytest.mark.parametrize(
    ("environment", "interval"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_it_must_be(
    environment: dict[str, str], interval: float | None
) -> None:
    assert Notify.from_environment(environment).watchdog_interval_s == interval


@pytest.mark.parametrize("value", ["soon", "", "-1", "1", "9" * 20, "9" * 400, "9" * 5000, "\u0663"])
def test_a_watchdog_time_that_is_no_sensible_number_is_ignored_with_a_warning(
    value: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert Notify.from_environment({"WATCHDOG_USEC": value}).watchdog_interval_s is None
    (record,) = caplog.records
    assert record.message == "WATCHDOG_USEC is ignored: it is no sensible number of microseconds"
