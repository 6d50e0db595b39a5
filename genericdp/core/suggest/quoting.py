"""How text of a device is quoted in a rule file: as a TOML string, as a glob.

The rules of this file:

* What is written reads back as the same value, whatever a device calls itself: a quote, a `*` or a line
  feed in a serial number has no meaning.
* TOML cannot hold a byte that is not UTF-8. It becomes a `?`, which takes any character.
"""

import re

#: In a glob, these mean something.
_SPECIAL = re.compile(r"[*?\[\\|]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def toml(text: str) -> str:
    """The text as a TOML string. Characters that are not printable become numbers."""
    return f'"{"".join(_written(char) for char in text)}"'


def _written(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def exactly(value: str) -> str:
    """The glob that holds for this value alone (a byte that is not UTF-8 stands for any)."""
    return _SURROGATE.sub("?", _SPECIAL.sub(lambda found: f"\\{found.group(0)}", value))
