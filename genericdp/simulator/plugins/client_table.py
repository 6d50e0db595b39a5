"""The kubelet's client table, which decides which connected plugin of a resource is current.

The rules of this file:

* It only decides: which client to close, which one takes over, whether the resource has stopped.
  `lifecycle` acts.
* The quirks are intended: up to 1.36 the end of *any* stream of a resource disconnects the client that
  is current at that moment (kubernetes issues 121994, 127803).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Generation(Enum):
    """How a kubelet tells plugins of one resource apart."""

    #: One client for each resource name.
    LEGACY = "<=1.36"
    #: One client for each resource name and socket (kubernetes pull request 135437).
    NEWER = ">=1.37"


@dataclass(slots=True, eq=False)
class Client:
    """One registration: a resource and the plugin's socket."""

    resource: str
    socket_path: str
    connected: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """What follows from the end of a stream.

    close       the client to disconnect
    promoted    the client that takes over
    stopped     whether the resource has no client left
    """

    close: Client | None = None
    promoted: Client | None = None
    stopped: bool = False


class ClientTable(Protocol):
    """What both generations offer."""

    def add(self, client: Client) -> str | None:
        """Begin a registration. Returns the text of a refusal, or None."""
        ...

    def failed(self, client: Client) -> None:
        """Connecting to the client failed."""
        ...

    def ended(self, client: Client) -> Ended:
        """The client's stream ended, for any reason."""
        ...

    def removed(self, resource: str, socket_path: str) -> Ended:
        """The plugin watcher found the socket gone."""
        ...

    def feeds(self, client: Client) -> bool:
        """Whether this client's lists count."""
        ...


class LegacyTable:
    """Kubelets up to 1.36: the name alone is the key."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def add(self, client: Client) -> str | None:
        # An old entry is overwritten; its connection stays open and its plugin is not told.
        self._clients[client.resource] = client
        return None

    def failed(self, client: Client) -> None:
        # By name: after a failed re-registration the kubelet forgets a plugin that is still alive.
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
    """Kubelets from 1.37: a resource may have several sockets side by side, one of which is primary.

    Kubernetes does not specify which one is primary. Here it is the one that connected last, and only
    its lists count. When it ends, the youngest survivor takes over and its last list counts.
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
    """An empty table of that generation."""
    return LegacyTable() if generation is Generation.LEGACY else NewerTable()
