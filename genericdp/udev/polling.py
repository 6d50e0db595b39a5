"""Asks for health to be read again: an attribute of sysfs changes without any event.

The rules of this file:

* Only a resource with `health_poll` has its attributes read again. Without one there is no timer.
* Resources with the same interval are read together, so that they wake the daemon once.
"""

import asyncio
from collections.abc import Callable

from genericdp.core.hint import Hint, Poll
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.resource import polled_attributes


class Polling:
    """Calls `sink` with a hint, at the interval of each resource that has one."""

    def __init__(self, sink: Callable[[Hint], None]) -> None:
        self._sink = sink
        self._inventory = Inventory()
        self._timers: dict[float, asyncio.TimerHandle] = {}

    def see(self, inventory: Inventory) -> None:
        """Take into account which resources there are, and which devices they have."""
        self._inventory = inventory
        intervals = {
            offer.resource.health_poll_s
            for offer in inventory.offers.values()
            if offer.resource.health_poll_s is not None
        }
        for interval in self._timers.keys() - intervals:
            self._timers.pop(interval).cancel()
        for interval in intervals - self._timers.keys():
            self._start(interval)

    def close(self) -> None:
        """Ask for nothing any more."""
        self.see(Inventory())

    def _start(self, interval: float) -> None:
        self._timers[interval] = asyncio.get_running_loop().call_later(interval, self._ask, interval)

    def _ask(self, interval: float) -> None:
        self._start(interval)
        attributes: dict[str, frozenset[str]] = {}
        for offer in self._inventory.offers.values():
            if offer.resource.health_poll_s == interval:
                names = polled_attributes(offer.resource)
                attributes |= {
                    node.sys_path: names for device in offer.devices for node in device.nodes if node.sys_path
                }
        if attributes:
            self._sink(Poll(attributes))
