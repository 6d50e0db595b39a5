"""Makes harmless what a device says about itself, before it reaches anything that trusts it.

A serial number, a product string or a by-id name may hold whatever its maker, or an attacker with a
programmable stick, put there: slashes, newlines, `..`, escape sequences, kilobytes. There is one
function for each destination of such a string, and no other way to get there.
"""

import re
from functools import lru_cache

# No comma: it separates the container paths in the env that lists them.
_NOT_IN_PATH = re.compile(r"[^A-Za-z0-9._+:@=-]")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
_NOT_IN_CDI = re.compile(r"[^A-Za-z0-9._:-]")
_NOT_IN_VALUE = re.compile(r"[^\x20-\x7e]")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9.-]+")

#: What may be within a CDI name, but not at its ends.
_CDI_PUNCTUATION = "._:-"

_SURROGATE = re.compile("[\ud800-\udfff]")

#: Those that stand for no byte (PEP 383). The escapes of JSON can make them.
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")

_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}

PATH_LIMIT = 128
VALUE_LIMIT = 1024
#: A little more than an id of genericdp can have.
QUOTE_LIMIT = 64
#: More of a message or a value nobody reads in a log line.
LOG_LIMIT = 2048


def for_path(value: str) -> str:
    """One path component: no slash, no control or non-ASCII character, never "", "." or ".."."""
    cleaned = _NOT_IN_PATH.sub("_", value[:PATH_LIMIT])
    return cleaned if cleaned.strip(".") else "_" * max(1, len(cleaned))


def for_value(value: str) -> str:
    """The value of an env or an annotation: one line of printable ASCII, of limited length."""
    return _NOT_IN_VALUE.sub("_", value[:VALUE_LIMIT])


def for_label(value: str) -> str:
    r"""The value of a metric's label, of limited length: one line of UTF-8, with escapes such as `\x1b`.

    Values that differ within that length stay different, so a backslash becomes an escape, too.
    """
    value = value[:VALUE_LIMIT]
    if value.isprintable() and "\\" not in value:
        return value
    return "".join(char if char.isprintable() and char != "\\" else _escape(ord(char)) for char in value)


def for_env_name(value: str) -> str:
    """The name of an env, of limited length: letters, digits, `_`, `-` and `.`, as Kubernetes permits."""
    return _NOT_IN_NAME.sub("_", value[:VALUE_LIMIT])


def for_cdi(value: str) -> str:
    """A part of a CDI name, of limited length: nothing that ends such a name or one of its three parts."""
    return _NOT_IN_CDI.sub("_", value[:PATH_LIMIT])


def cdi_name(name: str) -> str:
    """`vendor/class=device` as CDI permits it, if what devices chose in it went through `for_cdi`.

    Each part loses the punctuation at its ends. One that is then empty, too short or begins with a digit is
    made valid, since a runtime that cannot read the name says less than one that does not find it.
    """
    kind, _, device = name.partition("=")
    return f"{_cdi_kind(kind)}={device.strip(_CDI_PUNCTUATION) or 'unknown'}"


# Usually all names of an answer have one kind.
@lru_cache(maxsize=16)
def _cdi_kind(kind: str) -> str:
    vendor, _, class_ = kind.partition("/")
    return f"{_cdi_part(vendor)}/{_cdi_part(class_)}"


def _cdi_part(part: str) -> str:
    # CDI permits no colon here, at least two characters, and a letter first.
    part = part.strip(_CDI_PUNCTUATION).replace(":", "_")
    return part if len(part) > 1 and part[0].isalpha() else f"x{part or 'x'}"


def for_quote(value: str) -> str:
    """An id that a client made up, to be quoted in an answer or a log line: like `for_value`, and short."""
    return for_value(value[:QUOTE_LIMIT]) + ("..." if len(value) > QUOTE_LIMIT else "")


def for_id(value: str) -> str:
    """The readable part of a device id: `[A-Za-z0-9.-]`, with one dash for each run of anything else."""
    return _NOT_IN_ID.sub("-", value).strip("-.")


def for_terminal(value: str) -> str:
    """For people, in a log line or a table: control and non-printing characters become escapes."""
    return "".join(
        char if char.isprintable() else _ESCAPES.get(char) or _escape(ord(char))
        for char in _NO_BYTE.sub(_escaped, value)
        .encode("utf-8", "surrogateescape")
        .decode("utf-8", "replace")
    )


def _escape(code: int) -> str:
    # As the codec "unicode_escape" does it, which Python loads from disk: a shortage may prevent that.
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def for_log(value: str) -> str:
    """For a log line: like `for_terminal`, and cut where nobody reads on."""
    if len(value) > LOG_LIMIT:
        value = f"{value[:LOG_LIMIT]}… ({len(value)} characters)"
    return for_terminal(value)


def for_json(value: str) -> str:
    r"""Text that is valid in JSON: a byte that is not UTF-8 becomes an escape such as `\xff` in the text."""
    return _SURROGATE.sub(_escaped, value)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    # Python reads the byte 0xff as U+DCFF (PEP 383).
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
