"""Hears the hints of a monitor, and waits for one."""

from collections.abc import Callable

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Deafness, Hint, Resync, Uevent
from genericdp.core.status.wording import why_rescan, why_silent
from genericdp.simulator.changes import Changes
from genericdp.udev import UdevDevices
from tests.scenes.waiting import until


class Heard:
    """A sink that keeps what it hears, and keeps `devices` current if it is given some."""

    def __init__(self, devices: UdevDevices | None = None) -> None:
        self.hints: list[Hint] = []
        self._devices = devices
        self._changes = Changes()

    def __call__(self, hint: Hint) -> None:
        self.hints.append(hint)
        if self._devices is not None:
            self._devices.apply(hint)
        self._changes.notify()

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds, asking at every hint."""

        def describe() -> str:
            return f"{len(self.hints)} hints, the last: {self.hints[-5:]}"

        await until(condition, self._changes, describe=describe)

    async def event(self, action: str, sys_path: str, source: str = "udev") -> Uevent:
        """Wait for an event, past or to come."""
        await self.wait_until(lambda: self.events(action, sys_path, source))
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
