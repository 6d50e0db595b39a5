"""QEMU's machine protocol (qemu-qmp-ref(7)): how things are plugged into the guest from outside."""

import time
from typing import Any

from tests.vm.channel import Channel, Document

_PATIENCE_S = 30.0


class QmpError(Exception):
    """QEMU refused a command."""


class Qmp:
    """Commands, and events that were not waited for yet."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._events: list[Document] = []

    def greet(self) -> None:
        """What has to be said before any command."""
        self._hear("the greeting")
        self.do("qmp_capabilities")

    def do(self, command: str, **arguments: Any) -> Any:
        """Do a command; `_` in the names of arguments is `-`. Raises QmpError, ChannelError."""
        names = {name.replace("_", "-"): value for name, value in arguments.items()}
        self._channel.say({"execute": command, "arguments": names})
        while True:
            document = self._hear(f"the answer to {command}")
            if "event" in document:
                self._events.append(document)
            elif "error" in document:
                raise QmpError(f"{command} {names}: {document['error']['desc']}")
            else:
                return document["return"]

    def wait_for(self, event: str, **data: Any) -> None:
        """Return once this event with (at least) this data has come. Raises ChannelError."""
        while True:
            for document in self._events:
                if document["event"] == event and data.items() <= document.get("data", {}).items():
                    self._events.remove(document)
                    return
            document = self._hear(f"{event} {data}")
            if "event" in document:
                self._events.append(document)

    def _hear(self, what: str) -> Document:
        return self._channel.hear(time.monotonic() + _PATIENCE_S, what)
