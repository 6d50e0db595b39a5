"""The life of connected plugins, from registration to disconnection.

The rules of this file:

* The client table decides which connection to close; this file closes it and updates the ledger.
* Every list that counts is reported to `on_list`, which writes the checkpoint as a kubelet does.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from genericdp.simulator.clock import Clock
from genericdp.simulator.devices.ledger import Ledger
from genericdp.simulator.devices.resource import Device
from genericdp.simulator.errors import DeviceError
from genericdp.simulator.gates import Gates, Point
from genericdp.simulator.plugins.client_table import Client, Ended, Generation, table_of
from genericdp.simulator.plugins.connection import Connection
from genericdp.simulator.plugins.dialling import dialled_path


class Plugins:
    """The plugins of one kubelet process."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        generation: Generation,
        clock: Clock,
        gates: Gates,
        watchdog_s: float,
        on_change: Callable[[], None],
        on_list: Callable[[str, set[str]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.messages: dict[str, int] = {}
        self._ledger = ledger
        self._table = table_of(generation)
        self._clock = clock
        self._gates = gates
        self._watchdog_s = watchdog_s
        self._on_change = on_change
        self._on_list = on_list
        self._on_failure = on_failure
        self._connections: dict[Client, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, resource: str, socket_path: str) -> None:
        """Connect to a plugin, as Register does before it answers. DeviceError with the reason."""
        client = Client(resource, socket_path)
        refusal = self._table.add(client)
        if refusal is not None:
            raise DeviceError(refusal)
        try:
            path = dialled_path(socket_path)
        except DeviceError:
            self._table.failed(client)
            raise
        connection = Connection(
            resource,
            path,
            clock=self._clock,
            gates=self._gates,
            watchdog_s=self._watchdog_s,
        )
        self._connections[client] = connection
        self._on_change()
        try:
            options = await connection.connect()
            await self._gates.passes(Point.ANSWER)
        except BaseException:
            # Also when the caller's deadline passes while the kubelet is still dialling.
            self._table.failed(client)
            self._start(self._drop(client))
            raise
        client.connected = True
        self._ledger.connected(resource, connection, options)
        self._on_change()
        self._start(self._run(client, connection))

    def deregister(self, resource: str, socket_path: str) -> None:
        """Disconnect a plugin whose socket the plugin watcher found gone."""
        self._follow(resource, self._table.removed(resource, socket_path))

    def streams(self, resource: str) -> int:
        """The number of open ListAndWatch streams of a resource."""
        return sum(1 for one in self._of(resource) if one.streaming)

    def connections(self, resource: str) -> int:
        """The number of open connections to plugins of a resource, with or without a stream."""
        return len(self._of(resource))

    def end_streams(self, resource: str) -> None:
        """Break every stream of a resource from the kubelet's side."""
        for connection in self._of(resource):
            connection.cancel_stream()

    async def close(self) -> None:
        """Break every connection without telling the plugins, as the end of the process does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))
        self._connections.clear()

    async def _run(self, client: Client, connection: Connection) -> None:
        await connection.stream(lambda devices: self._hear(client, devices), self._on_change)
        self._follow(client.resource, self._table.ended(client))

    def _hear(self, client: Client, devices: tuple[Device, ...]) -> None:
        self.messages[client.resource] = self.messages.get(client.resource, 0) + 1
        if self._table.feeds(client):
            self._on_list(client.resource, self._ledger.receive(client.resource, devices))
        self._on_change()

    def _follow(self, resource: str, ended: Ended) -> None:
        """Carry out what the client table decided."""
        if ended.promoted is not None:
            survivor = self._connections[ended.promoted]
            self._ledger.endpoints[resource].calls = survivor
            if survivor.last_list is not None:
                self._on_list(resource, self._ledger.receive(resource, survivor.last_list))
        if ended.stopped:
            self._ledger.stopped(resource, self._clock.now())
        if ended.close is not None:
            self._start(self._drop(ended.close))
        self._on_change()

    async def _drop(self, client: Client) -> None:
        connection = self._connections.get(client)
        # While it is still dialling there is nothing to close, and the dialling continues.
        if connection is not None and not connection.dialling:
            del self._connections[client]
            await connection.close()
            self._on_change()

    def _of(self, resource: str) -> list[Connection]:
        return [one for one in self._connections.values() if one.resource == resource]

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)
