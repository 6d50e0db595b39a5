"""Resets in threads. What one reset is: tests/udev/test_usb.py."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.errors import GenericdpError
from genericdp.usb import Resets
from tests.scenes.waiting import idle, until


class Played:
    """A reset that ends when it is told to; `devices`: whose resets have begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.devices: list[tuple[int, int]] = []
        self._error = error
        self._goes_on = threading.Event()

    def __call__(self, busnum: int, devnum: int) -> None:
        self.devices.append((busnum, devnum))
        self._goes_on.wait()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        self._goes_on.set()


async def test_whoever_asks_during_a_reset_of_the_device_gets_its_result_and_the_next_one_another_reset() -> (
    None
):
    played = Played()
    resets = Resets(played)
    asking = [asyncio.ensure_future(resets.reset(1, 4)) for _ in range(3)]
    await until(lambda: played.devices)
    await idle()
    assert played.devices == [(1, 4)]
    played.end()
    assert await asyncio.gather(*asking) == [None, None, None]
    await resets.reset(1, 4)
    assert played.devices == [(1, 4), (1, 4)]


class Untouched:
    """A node whose devices nobody may look at."""

    def __init__(self) -> None:
        self.inventory, self.memory = Inventory(), Memory()

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        raise AssertionError

    async def ask_kubelet(self) -> None:
        raise AssertionError


async def test_whoever_only_waits_looks_at_no_device_while_none_is_being_reset() -> None:
    node = Untouched()
    assert not await Resets(Played()).ask([(1, 4)], ["x"], node, node, node.ask_kubelet, reset=False)


async def test_a_reset_that_hangs_does_not_keep_another_device_waiting() -> None:
    goes_on, ended = threading.Event(), []

    def reset(busnum: int, devnum: int) -> None:
        if devnum < 64:
            goes_on.wait()
        ended.append((busnum, devnum))

    resets = Resets(reset)
    hanging = [asyncio.ensure_future(resets.reset(1, number)) for number in range(64)]
    await resets.reset(1, 64)
    assert ended == [(1, 64)]
    goes_on.set()
    await asyncio.gather(*hanging)


async def test_one_who_no_longer_waits_does_not_end_the_reset_for_the_others() -> None:
    played = Played(GenericdpError("it fell off", hint="pick it up"))
    resets = Resets(played)
    gone, waiting = (asyncio.ensure_future(resets.reset(1, 4)) for _ in range(2))
    await until(lambda: played.devices)
    gone.cancel()
    await idle()
    played.end()
    with pytest.raises(GenericdpError, match=r"^it fell off$"):
        await waiting
    assert gone.cancelled()


async def test_no_thread_for_it_is_a_reset_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resets = Resets(Played())
    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(2):
        with pytest.raises(GenericdpError) as caught:
            await resets.reset(1, 4)
        assert str(caught.value) == "cannot reset USB device '/dev/bus/usb/001/004': can't start new thread"


async def test_only_resets_that_have_not_ended_are_named_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    played = Played()
    resets = Resets(played)
    resetting = asyncio.ensure_future(resets.reset(1, 4))
    await until(lambda: played.devices)
    resets.close()
    (record,) = caplog.records
    assert record.message == "a USB reset has not ended; until it does, the kernel may keep this process"
    assert record.__dict__["fields"] == {"device": "/dev/bus/usb/001/004"}
    played.end()
    await resetting
    resets.close()
    assert len(caplog.records) == 1
