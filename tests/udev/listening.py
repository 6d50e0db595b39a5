"""Hears the hints of a monitor, and waits for one."""

import asyncio
from collections.abc import Callable

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Deafness, Hint, Resync, Uevent
from genericdp.core.status.wording import why_rescan, why_silent
from genericdp.udev import UdevDevices


class Heard:
    """A sink that keeps what it hears, and keeps `devices` current if it is given some."""

    def __init__(self, devices: UdevDevices | None = None) -> None:
        self.hints: list[Hint] = []
        self._devices = devices
        self._more = asyncio.Event()

    def __call__(self, hint: Hint) -> None:
        self.hints.append(hint)
        if self._devices is not None:
            self._devices.apply(hint)
        self._more.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds, asking at every hint (the test's watchdog ends the wait)."""
        try:
            while not condition():
                self._more.clear()
                await self._more.wait()
        except asyncio.CancelledError as error:
            error.add_note(f"waited in vain; {len(self.hints)} hints, the last: {self.hints[-5:]}")
            raise

    async def event(self, action: str, sys_path: str, source: str = "udev") -> Uevent:
        """Wait for an event, past or to come."""
        await self.until(lambda: self.events(action, sys_path, source))
        return self.events(action, sys_path, source)[0]

    def events(self, action: str, sys_path: str, source: str = "udev") -> list[Uevent]:
        """The events heard so far."""
        wanted = (action, sys_path, source)
        return [
            hint
            for hint in self.hints
            if isinstance(hint, Uevent) and (hint.action, hint.sys_path, hint.source) == wanted
        ]

    def resyncs(self) -> list[str]:
        """The reasons of all Resync so far, in words."""
        return [why_rescan(hint) for hint in self.hints if isinstance(hint, Resync)]

    def deafness(self) -> list[str]:
        """The reasons of all Deafness so far, in words; "" for its end."""
        return [
            why_silent(hint.silence) if hint.silence else ""
            for hint in self.hints
            if isinstance(hint, Deafness)
        ]


def by_node(devices: UdevDevices) -> dict[str, UdevDevice]:
    """The devices by their node, which is what a person would call them."""
    return {device.device_node: device for device in devices.devices.values() if device.device_node}
