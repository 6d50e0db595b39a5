"""A JSON document that is decoded piece by piece, as it is read.

The rules of this file:

* Values are decoded one at a time, and none is kept. A value has a limit, and so has the time that it takes.
* A document that is cut off, or that more follows, is an error, as it is with `json.loads`.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

#: How much is read at once, in bytes.
_AT_ONCE = 1 << 18

#: The longest value that is read, in characters. The entry of a container that has all 20,000 ids of a
#: resource has 3 to 4 MiB.
LONGEST_VALUE = 8 << 20

_SPACE = re.compile(r"[ \t\r\n]*")

_DECODER = json.JSONDecoder()


class Pieces:
    """The document in a file. Take each value, or go through what is inside, before going on.

    Raises OSError, and ValueError or RecursionError if it is not JSON.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._ended = False

    def members(self) -> Iterator[str]:
        """The keys of an object, each when its value is next; none of `null`."""
        for _ in self._inside("{", "}"):
            key = self.value()
            if not isinstance(key, str) or self._next() != ":":
                raise ValueError("a key is missing")
            self._at += 1
            yield key

    def elements(self) -> Iterator[None]:
        """Each element of an array when it is next; none of `null`."""
        return self._inside("[", "]")

    def value(self) -> Any:
        """The next value, whole."""
        self._next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if self._ended:
                    raise
            else:
                # A number may go on in what has not been read.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            if len(self._text) - self._at > LONGEST_VALUE:
                raise ValueError("a value is too long")
            self._read()

    def end(self) -> None:
        """Nothing may follow."""
        if self._next():
            raise ValueError("more follows")

    def _inside(self, opening: str, closing: str) -> Iterator[None]:
        if self._next() != opening:
            if self.value() is not None:
                raise ValueError(f"'{opening}' is missing")
            return
        self._at += 1
        if self._next() != closing:
            yield
            while self._next() == ",":
                self._at += 1
                yield
        if self._next() != closing:
            raise ValueError(f"'{closing}' is missing")
        self._at += 1

    def _next(self) -> str:
        """The next character that means something; "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def _read(self) -> None:
        """Read on: at least as much as is left, so that a long value is not tried too often."""
        left = self._text[self._at :]
        data = self._file.read(max(_AT_ONCE, len(left)))
        self._ended = not data
        self._text, self._at = left + self._decode(data, self._ended), 0
