"""What a device says about itself, written into a rule file: as a TOML string, as a glob.

The rules of this file:

* What is written is read back as the very same value, whatever a device calls itself: no quote, no
  `*`, no line feed of a serial number means anything.
* A byte that is no UTF-8 cannot be written in TOML. It becomes a `?`, which takes any character.
"""

import re

#: In a glob, these mean something.
_SPECIAL = re.compile(r"[*?\[\\|]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def toml(text: str) -> str:
    """The text as a TOML string. What is not printable is written as its number."""
    return f'"{"".join(_written(char) for char in text)}"'


def _written(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def exactly(value: str) -> str:
    """The glob that holds for this value alone (for a byte that is no UTF-8: for any in its place)."""
    return _SURROGATE.sub("?", _SPECIAL.sub(lambda found: f"\\{found.group(0)}", value))
