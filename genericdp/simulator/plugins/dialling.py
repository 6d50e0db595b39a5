"""What grpc-go dials when a kubelet gives it the path of a plugin's socket: the path of a URL.

The rules of this file:

* `grpc.DialContext` reads its target as a URL. The path of a socket has no scheme, so that grpc-go puts
  "passthrough:///" in front, and its resolver passes on the URL's path: decoded, without query and fragment.
* The texts are those of grpc-go and of Go's net/url and strconv.
"""

import os
import re
from urllib.parse import quote, unquote_to_bytes

from genericdp.simulator.errors import DeviceError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_ESCAPES = {char: f"\\{name}" for char, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def dialled_path(socket_path: str) -> str:
    """The path that is really dialled. DeviceError, with the kubelet's text, for one that is not a URL's."""
    url = f"passthrough:///{socket_path}"
    rest, _, fragment = socket_path.partition("#")
    if _CONTROL.search(rest):
        raise _refused(url, "net/url: invalid control character in URL")
    path = rest.partition("?")[0]
    for part in (path, fragment):
        bad = _BAD_ESCAPE.search(os.fsencode(part))
        if bad is not None:
            raise _refused(url, f"invalid URL escape {_quoted(os.fsdecode(bad[0]))}")
    return os.fsdecode(unquote_to_bytes(os.fsencode(path)))


def target(path: str) -> str:
    """The target with which C-core dials exactly this path; it decodes targets as well."""
    return f"unix:{quote(os.fsencode(path))}"


def _refused(url: str, why: str) -> DeviceError:
    return DeviceError(f"failed to dial device plugin: parse {_quoted(url)}: {why}")


def _quoted(text: str) -> str:
    """`strconv.Quote`."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
