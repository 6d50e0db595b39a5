"""How one event of the log looks: for a terminal, for the journal, and as JSON.

The rules of this file:

* Every message and value passes through `hostile.for_log`: no device can write a line of its own, and no
  client an endless one.
* The value of a field looks the same in each format, but JSON keeps numbers, booleans and lists.
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping

from genericdp.core.hostile import for_log

#: The journal's priorities, see sd-daemon(3).
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class TextLines(logging.Formatter):
    """`12:34:56.789 warning  message  key=value key=value`."""

    def __init__(self, date_format: str) -> None:
        super().__init__(datefmt=date_format)

    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}"
        lines = [f"{stamp} {record.levelname.lower():<7} {_sentence(record)}", *_traceback(record)]
        return "\n".join(lines)


class JournalLines(logging.Formatter):
    """`<4>message  key=value`: the journal adds time and unit, and reads the priority from the prefix."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"<{_PRIORITIES.get(record.levelno, 5)}>"
        return "\n".join(f"{prefix}{line}" for line in (_sentence(record), *_traceback(record)))


class JsonLines(logging.Formatter):
    """One object per line, as Kubernetes components write it: ts, level, msg, then lowerCamelCase keys.

    node  the name of the node for each line; "" for none
    """

    def __init__(self, node: str = "") -> None:
        super().__init__()
        self._node = {"node": for_log(node)} if node else {}

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "ts": rfc3339(record.created),
            "level": record.levelname.lower(),
            "msg": for_log(record.getMessage()),
            **self._node,
        }
        entry |= {_camel_case(name): _plain(value) for name, value in fields_of(record).items()}
        stack = _traceback(record)
        if stack:
            entry["stack"] = "\n".join(stack)
        return json.dumps(entry)


def rfc3339(unix: float) -> str:
    """A time in the format of RFC 3339, in UTC, to the millisecond."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix))
    return f"{seconds}.{int(unix * 1000) % 1000:03d}Z"


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """The fields of an event; a record of a library has none."""
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}


def _sentence(record: logging.LogRecord) -> str:
    words = " ".join(f"{name}={_quoted(value)}" for name, value in fields_of(record).items())
    message = for_log(record.getMessage())
    return f"{message}  {words}" if words else message


def _quoted(value: object) -> str:
    text = text_of(value)
    if text and not set(text) & set(" ='\""):
        return text
    if "'" in text:
        # A command in a hint can still be copied to a shell, unless it has both.
        if '"' in text or text.endswith("\\"):
            text = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'
    return f"'{text}'"


def text_of(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return for_log(",".join(text_of(item) for item in _in_order(value)))
    return for_log(str(value))


def _plain(value: object) -> object:
    """The value for JSON: numbers, booleans and lists are kept."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in _in_order(value)]
    return text_of(value)


def _in_order(values: Iterable[object]) -> Iterable[object]:
    return sorted(values, key=str) if isinstance(values, set | frozenset) else values


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info:
        return []
    text = logging.Formatter().formatException(record.exc_info)
    return [for_log(line) for line in text.splitlines()]
