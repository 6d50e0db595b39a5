"""Which connected plugin a resource belongs to: the kubelet's client table, of both generations.

The rules of this file:

* Decisions only: whom to close, whether the resource has stopped, who takes over. `plugins` acts.
* The quirks are meant: up to 1.36 the end of *any* stream of a resource disconnects the client that
  is current at that moment (kubernetes issues 121994, 127803).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Generation(Enum):
    """Kubelets differ in how they keep plugins apart."""

    #: One client for each resource name.
    LEGACY = "<=1.36"
    #: One client for each resource name and socket (kubernetes pull request 135437).
    NEWER = ">=1.37"


@dataclass(slots=True, eq=False)
class Client:
    """One registration: a resource and the socket that was named for it."""

    resource: str
    socket_path: str
    connected: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """What follows when a stream ended: whom to close, who takes over, or that the resource has stopped."""

    close: Client | None = None
    promoted: Client | None = None
    stopped: bool = False


class ClientTable(Protocol):
    """The table as the rest of the kubelet uses it."""

    def add(self, client: Client) -> str | None:
        """A registration begins. The text with which it is refused, or None."""
        ...

    def failed(self, client: Client) -> None:
        """Connecting to it failed."""
        ...

    def ended(self, client: Client) -> Ended:
        """Its stream ended, for whatever reason."""
        ...

    def removed(self, resource: str, socket_path: str) -> Ended:
        """The plugin watcher says that the socket is gone."""
        ...

    def feeds(self, client: Client) -> bool:
        """Whether lists of this client count."""
        ...


class LegacyTable:
    """Kubelets up to 1.36: the name alone is the key."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def add(self, client: Client) -> str | None:
        # An old entry is overwritten; its connection is neither closed nor told.
        self._clients[client.resource] = client
        return None

    def failed(self, client: Client) -> None:
        # By name: a failed re-registration makes the kubelet forget the plugin that still lives.
        self._clients.pop(client.resource, None)

    def ended(self, client: Client) -> Ended:
        return self.removed(client.resource, client.socket_path)

    def removed(self, resource: str, socket_path: str) -> Ended:
        del socket_path
        victim = self._clients.pop(resource, None)
        return Ended(close=victim, stopped=victim is not None)

    def feeds(self, client: Client) -> bool:
        del client
        return True


class NewerTable:
    """Kubelets from 1.37: several sockets of a resource live side by side, one of them is primary.

    Which one is primary is not promised; here it is the one that connected last, and only its lists
    count. When it ends, the youngest survivor takes over and its last list holds.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Client] = {}

    def add(self, client: Client) -> str | None:
        key = client.resource, client.socket_path
        known = self._clients.get(key)
        if known is not None and known.connected:
            return (
                f'device plugin already connected: resource "{client.resource}", '
                f'socket "{client.socket_path}"'
            )
        self._clients.pop(key, None)
        self._clients[key] = client
        return None

    def failed(self, client: Client) -> None:
        key = client.resource, client.socket_path
        if self._clients.get(key) is client:
            del self._clients[key]

    def ended(self, client: Client) -> Ended:
        key = client.resource, client.socket_path
        if self._clients.get(key) is not client:
            return Ended()
        was_primary = self._primary(client.resource) is client
        del self._clients[key]
        survivor = self._primary(client.resource)
        return Ended(
            close=client,
            promoted=survivor if was_primary else None,
            stopped=survivor is None,
        )

    def removed(self, resource: str, socket_path: str) -> Ended:
        client = self._clients.get((resource, socket_path))
        return self.ended(client) if client is not None else Ended()

    def feeds(self, client: Client) -> bool:
        return self._primary(client.resource) is client

    def _primary(self, resource: str) -> Client | None:
        connected = [
            client for (name, _), client in self._clients.items() if name == resource and client.connected
        ]
        return connected[-1] if connected else None


def table_of(generation: Generation) -> ClientTable:
    """An empty table."""
    return LegacyTable() if generation is Generation.LEGACY else NewerTable()
