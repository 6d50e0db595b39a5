"""An HTTP server with the part of HTTP that a scrape needs, on a unix socket or a port.

The rules of this file:

* GET and HEAD, one request per connection. Other methods get 405 and the connection is closed.
* Requests are limited in time, length and number. The plugin never waits for them.
* A page is made only when it is requested. One that takes long should be made seldom (`lasting`).
* Whoever is accepted and asks at once is answered, whatever a crowd of others does: the oldest connection
  ends when there is no room, and there is room for those that are accepted while a request is read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from genericdp.status.listener import Listener, send

#: How long a request may take to arrive, and an answer to be read, in seconds.
PATIENCE_S = 5.0

#: The most connections at a time: those that are accepted in 64 turns of the event loop. It answers in fewer.
CROWD = 64

_PLAIN = "text/plain; charset=utf-8"

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Page:
    """An answer. Many clients may get the same one, so its text is kept as it is sent."""

    text: bytes
    status: int = 200
    kind: str = _PLAIN


Pages = Mapping[str, Callable[[], Awaitable[Page]]]


class Exporter:
    """Serves pages on an address (see `Listener`); `pages`: path -> the function that makes the page."""

    def __init__(self, address: str, pages: Pages) -> None:
        self.listener = Listener(address, self._answer, most=CROWD, oldest_goes=True)
        self._pages = pages

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method = "GET"
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            method, path = _parse(head)
            page = await self._page(method, path)
        except TimeoutError:
            page = Page(b"no request arrived in time\n", 408)
        except asyncio.LimitOverrunError:
            page = Page(b"the request is too long\n", 431)
        except ValueError:
            page = Page(b"this is not HTTP\n", 400)
        await send(writer, _head_of(page), PATIENCE_S)
        if method != "HEAD":
            await send(writer, page.text, PATIENCE_S)

    async def _page(self, method: str, path: str) -> Page:
        if method not in ("GET", "HEAD"):
            return Page(b"only GET and HEAD\n", 405)
        make = self._pages.get(path)
        if make is None:
            return Page(f"try {', '.join(self._pages)}\n".encode(), 200 if path == "/" else 404)
        return await make()


def _parse(head: bytes) -> tuple[str, str]:
    """Method and path of a request. Raises ValueError if it is not HTTP."""
    method, target, version = head.partition(b"\r\n")[0].decode("ascii").split(" ")
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise ValueError(version)
    return method, target.partition("?")[0]


def _head_of(page: Page) -> bytes:
    return (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"Content-Type: {page.kind}\r\n"
        f"Content-Length: {len(page.text)}\r\n"
        + ("Allow: GET, HEAD\r\n" if page.status == 405 else "")
        + "Connection: close\r\n\r\n"
    ).encode("ascii")
