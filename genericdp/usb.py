"""Resets a USB device, the one thing that udev and sysfs cannot do.

The rules of this file:

* pyusb is imported only to reset a device: it loads libusb, which costs memory and sometimes a thread.
* This is the only place in the project that opens a device node.
* A reset may hang in the kernel, and nothing can interrupt it. So nothing waits for its thread: neither the
  end of the daemon, nor the reset of another device.
* What another container may have is not reset (`core.comeback.reset`).
"""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Protocol

from genericdp import log
from genericdp.core.comeback.reset import other_holder, with_hubs
from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_quote
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.errors import GenericdpError

#: How long the kernel may take to disconnect a device that the reset turned into another one, in seconds.
DISCONNECT_S = 5.0

#: The numbers (bus, device) of a USB device.
Unit = tuple[int, int]

_log = log.get(__name__)


def reset(busnum: int, devnum: int) -> None:
    """Reset the USB device with these numbers, as if it were unplugged and plugged in again.

    It comes back with the same numbers, or, if its descriptors have changed, as a new device; then this
    returns when the old one is gone. Blocks for about 100 ms. Raises GenericdpError.
    """
    node = node_of(busnum, devnum)
    if not os.path.exists(node):
        raise GenericdpError(f"cannot reset USB device '{node}': it does not exist")
    try:
        if not _reset(busnum, devnum):
            _wait_until_gone(node)
    except (OSError, NotImplementedError) as error:
        raise _failure(node, error) from error


class Node(Protocol):
    """What is known of this node now: the daemon."""

    inventory: Inventory
    memory: Memory


class Devices(Protocol):
    """The udev devices as they are now, by sys path."""

    @property
    def devices(self) -> Mapping[str, UdevDevice]: ...


class Resets:
    """Resets USB devices in threads, because libusb blocks.

    reset  resets the device with these numbers, see `reset`
    """

    def __init__(self, reset: Callable[[int, int], None]) -> None:
        self._reset = reset
        self._running: dict[tuple[int, int], asyncio.Future[None]] = {}

    async def ask(
        self,
        units: Collection[tuple[int, int]],
        ids: Collection[str],
        node: Node,
        devices: Devices,
        ask_kubelet: Callable[[], Awaitable[None]],
        *,
        reset: bool,
    ) -> bool:
        """Reset the devices of the container that has these ids, each once, perhaps with a hub above it.

        Without `reset`, only wait for resets that have begun. Returns whether one was reset. Raises
        GenericdpError.
        """
        if not (reset or self._running):
            return False
        done: set[tuple[int, int]] = set()
        for numbers, hubs in with_hubs(units, devices.devices).items():
            done |= await self._ended(hubs if reset else {numbers, *hubs})
            if not reset:
                continue
            if done.isdisjoint(hubs) and await self._ask(numbers, ids, node, devices, ask_kubelet):
                done.add(numbers)
        return bool(done)

    async def _ended(self, units: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Wait for those of these devices that are being reset. Returns those whose reset did not fail."""
        running = {each: self._running[each] for each in units if each in self._running}
        if running:
            await asyncio.wait(running.values())
        return {each for each, reset in running.items() if reset.exception() is None}

    async def _ask(
        self,
        numbers: tuple[int, int],
        ids: Collection[str],
        node: Node,
        devices: Devices,
        ask_kubelet: Callable[[], Awaitable[None]],
    ) -> bool:
        """Reset a device, unless another container may have a part of it. Returns whether it was reset.

        While it is being reset, that is waited for all the same: the nodes of the container go away, too.
        """

        def holder() -> str:
            if numbers in self._running:
                return ""
            return other_holder(numbers, ids, node.inventory, node.memory, devices.devices)

        if holder():
            # The pod may have gone long ago.
            await ask_kubelet()
            if id_ := holder():
                _log.warning(
                    "a USB device is not reset: another container may have a part of it",
                    device=node_of(*numbers),
                    id=for_quote(id_),
                    hint="it is reset when a container starts while no other container has a part of it",
                )
                return False
        await self.reset(*numbers)
        return True

    async def reset(self, busnum: int, devnum: int) -> None:
        """Reset a device. Raises GenericdpError.

        Whoever asks while it is being reset gets the result of that reset: another thread would hang, too.
        """
        numbers = busnum, devnum
        running = self._running.get(numbers) or self._begin(numbers)
        # Unlike await, it does not cancel the reset for the others who wait.
        await asyncio.wait((running,))
        running.result()

    def close(self) -> None:
        """Say which resets have not ended. They are not waited for."""
        for busnum, devnum in self._running:
            _log.warning(
                "a USB reset has not ended; until it does, the kernel may keep this process",
                device=node_of(busnum, devnum),
            )

    def _begin(self, numbers: tuple[int, int]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        running: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            error: Exception | None = None
            try:
                self._reset(*numbers)
            except Exception as caught:  # noqa: BLE001  (raised where it is awaited)
                error = caught
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_end, running, error)

        # Not the executor of asyncio: the end of the loop, and then of the process, would join its threads.
        try:
            threading.Thread(target=run, name="USB reset", daemon=True).start()
        except RuntimeError as error:  # the unit limits the threads (TasksMax=)
            raise GenericdpError(f"cannot reset USB device '{node_of(*numbers)}': {error}") from error
        self._running[numbers] = running
        running.add_done_callback(lambda _: self._running.pop(numbers))
        # Whoever waited for the error may have gone.
        running.add_done_callback(lambda _: running.exception())
        return running


def _end(running: asyncio.Future[None], error: Exception | None) -> None:
    if error is None:
        running.set_result(None)
    else:
        running.set_exception(error)


def backend() -> object | None:
    """Libusb for pyusb; None if it cannot be loaded.

    Left to itself, pyusb asks ldconfig(8) or a compiler for the file's name; a container image has neither.
    """
    from usb.backend import libusb1  # noqa: PLC0415  (see the rules of this file)

    return libusb1.get_backend(find_library=lambda _: "libusb-1.0.so.0")


def node_of(busnum: int, devnum: int) -> str:
    """The device node of the USB device with these numbers."""
    return f"/dev/bus/usb/{busnum:03}/{devnum:03}"


def _failure(node: str, error: OSError | NotImplementedError) -> GenericdpError:
    number = error.errno if isinstance(error, OSError) else None
    # libusb knows EACCES, but turns the EPERM of DevicePolicy= into EIO.
    if number == errno.EIO and not os.access(node, os.R_OK | os.W_OK):
        number, error = errno.EPERM, PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    is_refused = number in (errno.EACCES, errno.EPERM)
    return GenericdpError(
        f"cannot reset USB device '{node}': {error}",
        hint="under systemd the service needs DeviceAllow=char-usb_device rw" if is_refused else "",
    )


def _reset(busnum: int, devnum: int) -> bool:
    """Whether it is still the same device afterwards. Raises GenericdpError without libusb, OSError."""
    from usb import core, util  # noqa: PLC0415  (see the rules of this file)

    try:
        device = core.find(bus=busnum, address=devnum, backend=backend())
    except core.NoBackendError as error:
        raise GenericdpError(
            f"cannot reset USB device '{node_of(busnum, devnum)}': libusb cannot be loaded",
            hint="install it (Debian: libusb-1.0-0)",
        ) from error
    if device is None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    try:
        device.reset()
    except core.USBError as error:
        # libusb_reset_device: "if re-enumeration is required, or if the device has been disconnected".
        if error.errno != errno.ENOENT:
            raise
        return False
    finally:
        util.dispose_resources(device)
    return True


def _wait_until_gone(node: str) -> None:
    """The kernel disconnects it later, in another thread."""
    deadline = time.monotonic() + DISCONNECT_S
    while os.path.exists(node) and time.monotonic() < deadline:
        time.sleep(0.01)
