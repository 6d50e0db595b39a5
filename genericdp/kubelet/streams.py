"""The ListAndWatch streams of one plugin: who has opened them, and which one is the kubelet's.

Every process of root can connect to the socket of a plugin and follow its list: grpcurl, a monitoring agent.
gRPC tells neither which process is at the other end nor which calls share a connection. A client only says
what program it is, in its user agent.

The rules of this file:

* The kubelet has one stream per registration. It asks for the options over the same connection, just before
  it answers Register (kubelet 1.36, `connectClient`). So the kubelet is the client that asked last before the
  answer, and its stream is the first one with the same user agent that opens after the question.
* Another client may ask in between and follow nothing. If the last one opens no stream in time, the kubelet
  is the one that asked before it.
* Kubelets before 1.25 do not ask. If nobody did, it is the first stream after Register was called.
* From then on, nothing that happens to another stream counts.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(eq=False, frozen=True, slots=True)
class Stream:
    """One call of ListAndWatch. `client`: the user agent that it sent."""

    client: str


class Streams:
    """The open streams of one plugin. Its length is their number."""

    def __init__(self) -> None:
        self._open: set[Stream] = set()
        self._kubelets: Stream | None = None
        self._asked: dict[str, None] = {}
        self._first: dict[str, Stream] = {}
        self._answered = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def kubelet_follows(self) -> bool:
        """Whether the stream of the kubelet is known and open."""
        return self._kubelets in self._open

    def expect_kubelet(self) -> None:
        """Register is about to be called."""
        self._kubelets = None
        self._asked = {}
        self._first = {}
        self._answered = False

    def see_question(self, client: str) -> None:
        """A client has asked for the options."""
        if not self._answered:
            self._first.pop(client, None)
            self._asked.pop(client, None)
            self._asked[client] = None

    @contextmanager
    def opened(self, client: str) -> Iterator[Stream]:
        """A stream, open while the block runs."""
        stream = Stream(client)
        self._open.add(stream)
        if self._kubelets is None:
            self._first.setdefault(client, stream)
        self._wake_up()
        try:
            yield stream
        finally:
            self._open.discard(stream)
            self._wake_up()

    async def find_kubelet(self, patience_s: float) -> None:
        """Register was answered: return once the kubelet's stream has opened. It may have ended by then.

        Raises TimeoutError if no client that may be the kubelet opens one in time.
        """
        self._answered = True
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self.wait_until(lambda: self._candidates()[0] is not None)
        self._kubelets = next((stream for stream in self._candidates() if stream is not None), None)
        if self._kubelets is None:
            raise TimeoutError

    def _candidates(self) -> list[Stream | None]:
        """The first stream of each client that asked, latest client first; if nobody asked, of all."""
        if self._asked:
            return [self._first.get(client) for client in reversed(self._asked)]
        return [next(iter(self._first.values()), None)]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once the condition holds. It is checked when a stream has opened or ended."""
        while not condition():
            await self._changed.wait()

    def is_others(self, stream: Stream) -> bool:
        """Whether a stream is known not to be the kubelet's."""
        return self._kubelets not in (None, stream)

    def others(self) -> Mapping[str, int]:
        """User agent -> how many streams of other clients than the kubelet are open."""
        return Counter(stream.client for stream in self._open if self.is_others(stream))

    def _wake_up(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()
