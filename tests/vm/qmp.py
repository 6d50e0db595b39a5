"""QEMU's machine protocol (qemu-qmp-ref(7)), by which devices are plugged into the guest."""

import time
from typing import Any

from tests.vm.channel import Channel, Document

_PATIENCE_S = 30.0


class QmpError(Exception):
    """QEMU refused a command."""


class Qmp:
    """Sends commands, and keeps events until they are awaited."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._events: list[Document] = []

    def greet(self) -> None:
        """Do the handshake that precedes all commands."""
        self._receive("the greeting")
        self.do("qmp_capabilities")

    def do(self, command: str, **arguments: Any) -> Any:
        """Run a command; `_` in argument names becomes `-`. Raises QmpError, ChannelError."""
        names = {name.replace("_", "-"): value for name, value in arguments.items()}
        self._channel.send({"execute": command, "arguments": names})
        while True:
            document = self._receive(f"the answer to {command}")
            if "event" in document:
                self._events.append(document)
            elif "error" in document:
                raise QmpError(f"{command} {names}: {document['error']['desc']}")
            else:
                return document["return"]

    def wait_for(self, event: str, **data: Any) -> None:
        """Return once an event with (at least) this data has arrived. Raises ChannelError."""
        while True:
            for document in self._events:
                if document["event"] == event and data.items() <= document.get("data", {}).items():
                    self._events.remove(document)
                    return
            document = self._receive(f"{event} {data}")
            if "event" in document:
                self._events.append(document)

    def _receive(self, what: str) -> Document:
        return self._channel.receive(time.monotonic() + _PATIENCE_S, what)
