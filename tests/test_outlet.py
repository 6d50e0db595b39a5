"""The log on a pipe that somebody reads, reads late, does not read, or has closed."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from genericdp import outlet
from genericdp.outlet import Outlet


class Pipe:
    """A pipe with a log at its end."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.stream = open(writing, "w", encoding="ascii")  # noqa: SIM115  (closed below)
        self.log = logging.getLogger("genericdp.tests.outlet")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        handler = Outlet(self.stream)
        handler.setFormatter(
            logging.Formatter("%(levelname)s %(message)s %(fields)s", defaults={"fields": ""})
        )
        self.log.handlers[:] = [handler]

    def read(self) -> str:
        """What is in the pipe."""
        return os.read(self._reading, 1 << 20).decode("ascii")

    def close(self) -> None:
        os.close(self._reading)
        self.stream.close()

    def stop_reading(self) -> None:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, self._reading)
        os.close(null)


@contextmanager
def a_pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    try:
        yield pipe
    finally:
        pipe.close()


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "PATIENCE_MS", 1)


def test_lines_follow_what_was_printed_before() -> None:
    with a_pipe() as pipe:
        pipe.stream.write("printed\n")
        pipe.log.info("one")
        pipe.log.warning("zwölf")
        assert pipe.read() == "printed\nINFO one \nWARNING zw\\xf6lf \n"


def test_a_line_that_is_longer_than_a_page_is_written_whole() -> None:
    with a_pipe() as pipe:
        pipe.log.info("x" * 10_000)
        assert pipe.read() == "INFO " + "x" * 10_000 + " \n"


def test_what_nobody_reads_is_dropped_and_counted_and_the_next_reader_learns_the_count() -> None:
    with a_pipe() as pipe:
        for number in range(2000):
            pipe.log.info("%s", f"{number:04} {'x' * 100}")
        first = pipe.read().splitlines()
        assert first[0].startswith("INFO 0000 ")
        assert len(first) < 2000
        pipe.log.info("again")
        dropped = 2000 - len(first)
        assert pipe.read() == (
            f"WARNING log lines were lost because nobody read the log {{'lines': {dropped}}}\nINFO again \n"
        )
        pipe.log.info("and on")
        assert pipe.read() == "INFO and on \n"


def test_a_stream_that_may_not_block_is_the_same() -> None:
    with a_pipe() as pipe:
        os.set_blocking(pipe.stream.fileno(), False)
        for _ in range(2000):
            pipe.log.info("x" * 100)
        pipe.read()
        pipe.log.info("again")
        assert "log lines were lost because nobody read the log" in pipe.read()


def test_a_reader_who_has_gone_is_nobody_to_tell() -> None:
    with a_pipe() as pipe:
        pipe.stop_reading()
        pipe.log.info("one")
        pipe.log.info("two")


def test_what_is_no_file_is_written_to() -> None:
    stream = io.StringIO()
    Outlet(stream).handle(logging.makeLogRecord({"msg": "one"}))
    assert stream.getvalue() == "one\n"
