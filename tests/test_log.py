"""What the daemon says, byte by byte."""

import io
import itertools
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator

import pytest

from genericdp import log
from genericdp.core.rules.settings import LogFormat
from genericdp.core.status.logged import Logged
from genericdp.log_lines import rfc3339

DATE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ")
LOG = log.get("genericdp.somewhere")


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(stream: io.StringIO) -> list[str]:
    """The lines, without their date."""
    return [DATE.sub("", line) for line in stream.getvalue().splitlines()]


def listen(form: LogFormat = LogFormat.TEXT, level: str = "info", clock: Clock | None = None) -> io.StringIO:
    stream = io.StringIO()
    log.configure(form, level, stream=stream, clock=clock or Clock(), environment={})
    return stream


def test_an_event_is_one_line_with_its_fields_behind() -> None:
    stream = listen()
    LOG.info("device is back", resource="example.com/ftdi", id="ftdi_A50285BI")
    assert lines_of(stream) == ["info    device is back  resource=example.com/ftdi id=ftdi_A50285BI"]
    assert DATE.match(stream.getvalue())


def test_values_are_written_so_that_one_sees_where_they_end() -> None:
    stream = listen()
    LOG.info("x", none=None, yes=True, list=["b", "a"], set={"b", "a"}, empty="", words="a b", n=0.5)
    assert lines_of(stream) == ["info    x  none=- yes=true list=b,a set=a,b empty='' words='a b' n=0.5"]


def test_a_hint_to_type_stands_as_it_is_typed_and_no_hint_stands_nowhere() -> None:
    stream = listen()
    LOG.error("refused", hint="chmod go-w 'my rules'")
    LOG.error("is not a regular file", hint="")
    LOG.error("both", why="'a' is not \"b\"")
    assert lines_of(stream) == [
        "error   refused  hint=\"chmod go-w 'my rules'\"",
        "error   is not a regular file",
        'error   both  why="\'a\' is not \\"b\\""',
    ]


def test_a_value_ends_where_its_quotes_end() -> None:
    stream = listen()
    LOG.warning("odd", serial="it's \\", also="x")
    assert lines_of(stream) == ['warning odd  serial="it\'s \\\\" also=x']


def test_a_device_cannot_write_a_line_of_its_own() -> None:
    stream = listen()
    LOG.warning("odd serial", serial="1\n2026-01-01 error: \x1b[31mred")
    assert lines_of(stream) == [r"warning odd serial  serial='1\n2026-01-01 error: \x1b[31mred'"]


def test_bound_fields_stand_in_each_line_and_give_way_to_those_of_the_event() -> None:
    stream = listen()
    bound = LOG.bind(resource="a/b", id="1")
    bound.info("one")
    bound.info("two", id="2")
    assert lines_of(stream) == ["info    one  resource=a/b id=1", "info    two  resource=a/b id=2"]


def test_a_percent_sign_in_a_message_is_a_percent_sign() -> None:
    stream = listen()
    LOG.error("100 %s full")
    assert lines_of(stream) == ["error   100 %s full"]


def test_what_is_below_the_level_is_not_said() -> None:
    stream = listen(level="warning")
    LOG.debug("a")
    LOG.info("b")
    LOG.warning("c")
    assert lines_of(stream) == ["warning c"]


def test_a_bug_keeps_its_traceback() -> None:
    stream = listen()
    try:
        int("many")
    except ValueError as error:
        LOG.bug("rebuild failed", error, resource="a/b")
    lines = lines_of(stream)
    assert lines[0] == "error   rebuild failed  resource=a/b"
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: invalid literal for int() with base 10: 'many'"


def test_json_has_the_keys_of_kubernetes_components() -> None:
    stream = listen(LogFormat.JSON)
    LOG.warning("device is gone", host_path="/dev/genericdp/x", count=2, held=None, pods=("a", "b"))
    entry = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("ts"))
    assert entry == {
        "level": "warning",
        "msg": "device is gone",
        "hostPath": "/dev/genericdp/x",
        "count": 2,
        "held": None,
        "pods": ["a", "b"],
    }


def test_json_keeps_a_traceback_in_its_line() -> None:
    stream = listen(LogFormat.JSON)
    LOG.bug("rebuild failed", RuntimeError("impossible"))
    assert json.loads(stream.getvalue())["stack"] == "RuntimeError: impossible"
    assert stream.getvalue().count("\n") == 1


def test_the_journal_gets_priorities_when_stderr_is_connected_to_it() -> None:
    with tempfile.TemporaryFile("w+") as stream:
        status = os.fstat(stream.fileno())
        connected = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        log.configure(LogFormat.AUTO, "debug", stream=stream, environment=connected)
        LOG.debug("d")
        LOG.info("i", id="x")
        LOG.warning("w")
        LOG.bug("e", RuntimeError("impossible"))
        stream.seek(0)
        assert stream.read() == "<7>d\n<6>i  id=x\n<4>w\n<3>e\n<3>RuntimeError: impossible\n"


@pytest.mark.parametrize("form", [LogFormat.AUTO, LogFormat.JSON])
def test_a_program_that_reads_the_log_gets_json_with_the_name_of_the_node(form: LogFormat) -> None:
    with tempfile.TemporaryFile("w+") as stream:
        log.configure(form, stream=stream, environment={"JOURNAL_STREAM": "1:2", "NODE_NAME": "edge-7"})
        LOG.info("i")
        stream.seek(0)
        entry = json.loads(stream.read())
        assert list(entry) == ["ts", "level", "msg", "node"]
        assert entry["node"] == "edge-7"


def test_somebody_at_a_terminal_gets_text() -> None:
    shown, terminal = os.openpty()
    try:
        with open(terminal, "w", encoding="utf-8") as stream:
            log.configure(LogFormat.AUTO, stream=stream, environment={"NODE_NAME": "edge-7"})
            LOG.info("i")
            line = os.read(shown, 1000)
    finally:
        os.close(shown)
    assert re.fullmatch(rb"\d\d:\d\d:\d\d\.\d{3} info    i\r\n", line)


def test_a_repeated_warning_is_logged_once_a_minute_with_its_count() -> None:
    clock = Clock()
    stream = listen(clock=clock)
    for clock.now in range(0, 61, 10):
        LOG.warning("kubelet does not answer", socket="kubelet.sock")
    assert lines_of(stream) == [
        "warning kubelet does not answer  socket=kubelet.sock",
        "warning kubelet does not answer  socket=kubelet.sock repeated=5",
    ]


def test_warnings_that_differ_in_a_field_are_different() -> None:
    stream = listen()
    LOG.warning("w", id="1")
    LOG.warning("w", id="2")
    LOG.warning("w", id="1")
    assert lines_of(stream) == ["warning w  id=1", "warning w  id=2"]


def test_news_of_a_device_are_logged_ten_times_a_minute() -> None:
    clock = Clock()
    stream = listen(clock=clock)
    news = log.get(log.NEWS)
    for clock.now in (0, 59, 60):
        for _ in range(8):
            news.info("device is back", id="1")
        news.info("device is back", id="2")
    one, other = ("info    device is back  id=1", "info    device is back  id=2")
    assert lines_of(stream) == [
        *[one] * 8,
        other,
        *[one] * 2,
        other,
        f"{one} repeated=6",
        *[one] * 7,
        other,
    ]


def test_what_answers_somebody_is_always_logged() -> None:
    stream = listen()
    for _ in range(20):
        LOG.info("rules reloaded")
    assert lines_of(stream) == ["info    rules reloaded"] * 20


def test_news_do_not_make_warnings_forgotten() -> None:
    stream = listen()
    LOG.warning("w")
    for number in range(1000):
        log.get(log.NEWS).info("device is back", id=number)
    LOG.warning("w")
    assert lines_of(stream).count("warning w") == 1


@pytest.mark.parametrize("level", [logging.WARNING, logging.INFO])
def test_a_storm_of_different_lines_uses_no_memory(level: int) -> None:
    repeats = log.Repeats(Clock())
    for number in range(10_000):
        record = logging.LogRecord(log.NEWS, level, "", 0, "w%s", (number,), None)
        assert repeats.filter(record)
    assert len(repeats._warnings) + len(repeats._news) == 256


def test_libraries_that_log_come_along() -> None:
    stream = listen()
    logging.getLogger("grpc").warning("channel %s", "closed")
    assert lines_of(stream) == ["warning channel closed"]


def test_the_latest_warnings_are_remembered_once_each_with_their_count_and_last_time() -> None:
    times = itertools.count(1.0)
    recent = log.Recent(lambda: next(times), most=2)
    logger = log.get("genericdp.somewhere")
    with recent.listening():
        logger.info("fine")
        for _ in range(3):
            logger.warning("a thing", why="so")
        logger.error("worse\x1b", ids=("a", "b"))
        logger.warning("a thing", why="so")
    logger.warning("later")
    assert [*recent.events] == [
        Logged(4.0, "error", r"worse\x1b", {"ids": "a,b"}, 1),
        Logged(5.0, "warning", "a thing", {"why": "so"}, 4),
    ]
    with recent.listening():
        logger.warning("another thing")
    assert [each.message for each in recent.events] == ["a thing", "another thing"]


def test_a_moment_is_written_to_the_millisecond() -> None:
    assert rfc3339(1795262400.0625) == "2026-11-21T12:00:00.062Z"


@pytest.mark.parametrize("form", [LogFormat.TEXT, LogFormat.JSON])
@pytest.mark.parametrize("char", ["x", "\x1b"])
def test_a_value_without_end_is_cut_in_the_line_and_in_what_is_remembered(form: LogFormat, char: str) -> None:
    stream, recent = listen(form), log.Recent(lambda: 7.0)
    giant = char * 100_000
    with recent.listening():
        LOG.warning("allocation refused", ids=giant, all=[giant, giant], why=ValueError(giant))
        LOG.warning(giant)
    assert len(stream.getvalue()) < 100_000
    assert stream.getvalue().count(" (100000 characters)") >= 3
    assert len(repr(recent.events)) < 100_000
