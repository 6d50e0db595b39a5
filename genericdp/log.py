"""The log of the daemon: one event, one line, for a terminal, for the journal, or as JSON.

    log = genericdp.log.get(__name__)
    log.info("device is back", resource="example.com/ftdi", id="ftdi_A50285BI")

The rules of this file:

* A message is a fixed text; whatever varies is a field.
* Every message and value passes through `hostile.for_log`: no device can write a line of its own, and no
  client a line without end. They are cut before anything else is done with them.
* What reads a pipe or a file is a program, so it gets JSON. In a pod, each of its lines names the node.
* A reader that stops reading does not stop the daemon (`outlet`).
* An identical warning is logged once a minute, and identical news of devices ten times, with the number of
  repetitions: a loose cable does not fill the log. What answers an operator or the kubelet is always logged.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TextIO, TypeAlias

from genericdp.core.hostile import for_log
from genericdp.core.rules.settings import LogFormat
from genericdp.core.status.logged import Logged
from genericdp.log_lines import JournalLines, JsonLines, TextLines, fields_of, text_of
from genericdp.outlet import Outlet

#: For how long repetitions are counted, in seconds, and how many identical lines pass in that time.
REPEAT_S = 60.0
MOST_WARNINGS, MOST_NEWS = 1, 10
#: How many different lines are remembered: a storm of different ones must not use up memory.
_REMEMBERED = 256

#: The log of what devices do.
NEWS = "genericdp.news"

#: Libraries whose debug and info lines concern only themselves.
_CHATTY = ("asyncio", "grpc")

_Event: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class _Repeated(NamedTuple):
    """Since when identical lines are counted, how many passed, and how many did not since the last one."""

    since: float
    passed: int
    held_back: int


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
    if form is LogFormat.AUTO and _is_journal(stream, environment):
        return JournalLines()
    if form is LogFormat.JSON or (form is LogFormat.AUTO and not stream.isatty()):
        return JsonLines(environment.get("NODE_NAME", ""))
    return TextLines("%H:%M:%S" if stream.isatty() else "%Y-%m-%d %H:%M:%S")


def _is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether systemd connected the stream to the journal (systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class Repeats(logging.Filter):
    """Passes so many identical lines in REPEAT_S, and the next one with the number of others (`repeated`)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        # News are many more. They must not make the daemon forget warnings.
        self._warnings: dict[_Event, _Repeated] = {}
        self._news: dict[_Event, _Repeated] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        is_warning = record.levelno >= logging.WARNING
        if not is_warning and record.name != NEWS:
            return True
        known, most = (self._warnings, MOST_WARNINGS) if is_warning else (self._news, MOST_NEWS)
        event, now = _event(record), self._clock()
        since, passed, held_back = known.pop(event, _Repeated(now, 0, 0))
        if now - since >= REPEAT_S:
            since, passed = now, 0
        if passed >= most:
            known[event] = _Repeated(since, passed, held_back + 1)
            return False
        known[event] = _Repeated(since, passed + 1, 0)
        if len(known) > _REMEMBERED:
            del known[next(iter(known))]
        if held_back:
            record.fields = {**fields_of(record), "repeated": held_back}
        return True


class Recent(logging.Handler):
    """The last warnings and errors, each once, the latest last, for the report.

    now  a clock that does not jump, in seconds
    """

    def __init__(self, now: Callable[[], float], most: int = 20) -> None:
        super().__init__(logging.WARNING)
        self._now = now
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
        self._events[event] = Logged(self._now(), record.levelname.lower(), message, dict(fields), count)
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


def _event(record: logging.LogRecord) -> _Event:
    """What is the same in records of the same event: the message, and the fields as text."""
    fields = ((name, text_of(value)) for name, value in fields_of(record).items())
    return for_log(record.getMessage()), tuple(fields)
