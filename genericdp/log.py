"""The log of the daemon: one event, one line, for a terminal, for the journal, or as JSON.

    log = genericdp.log.get(__name__)
    log.info("device is back", resource="example.com/ftdi", id="ftdi_A50285BI")

The rules of this file:

* A message is a fixed text; whatever varies is a field.
* Every message and value passes through `hostile.for_log`: no device can write a line of its own, and no
  client a line without end. They are cut before anything else is done with them.
* A reader that stops reading does not stop the daemon (`outlet`).
* An identical warning is logged once a minute, with the number of repetitions.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO, TypeAlias

from genericdp.core.hostile import for_log
from genericdp.core.rules.settings import LogFormat
from genericdp.core.status.logged import Logged
from genericdp.outlet import Outlet

#: How long a repeated warning is held back, in seconds.
REPEAT_S = 60.0
#: How many different warnings are remembered: a storm of different ones must not use up memory.
_REMEMBERED = 256

#: Libraries whose debug and info lines concern only themselves.
_CHATTY = ("asyncio", "grpc")

#: The journal's priorities, see sd-daemon(3).
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}

_Event: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class Log:
    """The log of one part of the daemon; `fields` are added to each line."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: Mapping[str, object] | None = None) -> None:
        self._logger = logger
        self._fields = dict(fields or {})

    def bind(self, **fields: object) -> "Log":
        """The same log, with these fields in each line, too."""
        return Log(self._logger, {**self._fields, **fields})

    def debug(self, message: str, /, **fields: object) -> None:
        self._say(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        self._say(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        self._say(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        self._say(logging.ERROR, message, fields)

    def bug(self, message: str, error: BaseException, /, **fields: object) -> None:
        """A bug in genericdp: the traceback follows the line."""
        self._say(logging.ERROR, message, fields, error)

    def _say(
        self, level: int, message: str, fields: Mapping[str, object], error: BaseException | None = None
    ) -> None:
        if self._logger.isEnabledFor(level):
            shown = {**self._fields, **fields}
            if not shown.get("hint", True):
                del shown["hint"]  # the message says it all
            self._logger.log(level, "%s", message, extra={"fields": shown}, exc_info=error)


def get(name: str) -> Log:
    """The log of a module; `name` is its `__name__`."""
    return Log(logging.getLogger(name))


def configure(
    form: LogFormat = LogFormat.AUTO,
    level: str = "info",
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Log everything from `level` up ("debug", "info", "warning", "error") to `stream` (stderr).

    Replaces the configuration of an earlier call. The logs of libraries are included.
    """
    stream = stream or sys.stderr
    output = Outlet(stream)
    output.setFormatter(_formatter(form, stream, environment))
    output.addFilter(Repeats(clock))
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(level.upper())
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def leave_out(messages: Iterable[str]) -> None:
    """Log no line with one of these messages until the next `configure`: they were printed already."""
    known = frozenset(messages)
    for output in logging.getLogger().handlers:
        output.addFilter(lambda record: record.getMessage() not in known)


def _formatter(form: LogFormat, stream: TextIO, environment: Mapping[str, str]) -> logging.Formatter:
    if form is LogFormat.JSON:
        return JsonLines()
    if form is LogFormat.AUTO and _is_journal(stream, environment):
        return JournalLines()
    return TextLines("%H:%M:%S" if stream.isatty() else "%Y-%m-%d %H:%M:%S")


def _is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether systemd connected the stream to the journal (systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class Repeats(logging.Filter):
    """Passes an identical warning or error once in REPEAT_S, then with its count as `repeated`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._held_back: dict[_Event, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        event = _event(record)
        now = self._clock()
        passed, count = self._held_back.pop(event, (None, 0))
        if passed is not None and now - passed < REPEAT_S:
            self._held_back[event] = (passed, count + 1)
            return False
        self._held_back[event] = (now, 0)
        if len(self._held_back) > _REMEMBERED:
            del self._held_back[next(iter(self._held_back))]
        if count:
            record.fields = {**_fields(record), "repeated": count}
        return True


class Recent(logging.Handler):
    """The last warnings and errors, each once, the latest last, for the report."""

    def __init__(self, most: int = 20) -> None:
        super().__init__(logging.WARNING)
        self._most = most
        self._events: dict[_Event, Logged] = {}

    @property
    def events(self) -> tuple[Logged, ...]:
        return tuple(self._events.values())

    def emit(self, record: logging.LogRecord) -> None:
        event = _event(record)
        known = self._events.pop(event, None)
        count = 1 if known is None else known.count + 1
        message, fields = event
        self._events[event] = Logged(record.created, record.levelname.lower(), message, dict(fields), count)
        if len(self._events) > self._most:
            del self._events[next(iter(self._events))]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Collect what is logged within the block."""
        logger = logging.getLogger("genericdp")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


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
    """One object per line, as Kubernetes components write it: ts, level, msg, then lowerCamelCase keys."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "ts": rfc3339(record.created),
            "level": record.levelname.lower(),
            "msg": for_log(record.getMessage()),
        }
        entry |= {_camel_case(name): _plain(value) for name, value in _fields(record).items()}
        stack = _traceback(record)
        if stack:
            entry["stack"] = "\n".join(stack)
        return json.dumps(entry)


def rfc3339(unix: float) -> str:
    """A moment in RFC 3339, in UTC, to the millisecond."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix))
    return f"{seconds}.{int(unix * 1000) % 1000:03d}Z"


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    """The fields of an event; a record of a library has none."""
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}


def _event(record: logging.LogRecord) -> _Event:
    """What is the same in records of the same event: the message, and the fields as text."""
    fields = ((name, _text(value)) for name, value in _fields(record).items())
    return for_log(record.getMessage()), tuple(fields)


def _sentence(record: logging.LogRecord) -> str:
    words = " ".join(f"{name}={_quoted(value)}" for name, value in _fields(record).items())
    message = for_log(record.getMessage())
    return f"{message}  {words}" if words else message


def _quoted(value: object) -> str:
    text = _text(value)
    if text and not set(text) & set(" ='\""):
        return text
    if "'" in text and '"' not in text:
        return f'"{text}"'  # a command in a hint can still be copied to a shell
    return f"'{text}'"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | set | frozenset):
        return for_log(",".join(_text(item) for item in _in_order(value)))
    return for_log(str(value))


def _plain(value: object) -> object:
    """The value for JSON: numbers, booleans and lists are kept."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in _in_order(value)]
    return _text(value)


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
