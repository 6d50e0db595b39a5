"""Reading from a pseudo-terminal ends, whatever the program at it does."""

import os
import pty
from collections.abc import Iterator

import pytest

from tests.scenes.terminal import read_to_the_end, read_until


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends: where a test reads, where a program writes."""
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)


def test_it_reads_up_to_a_text_that_comes_in_pieces(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one tw")
    os.write(theirs, "o drei…".encode())
    assert read_until(ours, "two").startswith("one two")
    os.close(theirs)


def test_a_text_that_is_never_shown_fails_at_the_end_of_the_program(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one")
    os.close(theirs)
    with pytest.raises(AssertionError, match=r"the terminal did not show 'two', but 'one'"):
        read_until(ours, "two")


def test_a_text_that_is_not_shown_in_time_fails(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one")
    with pytest.raises(AssertionError, match=r"the terminal did not show 'two', but 'one'"):
        read_until(ours, "two", patience_s=0.1)
    os.close(theirs)


def test_a_program_that_shows_something_else_again_and_again_fails(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one")
    with pytest.raises(AssertionError, match=r"the terminal did not show 'two', but ''"):
        read_until(ours, "two", patience_s=-1.0)
    os.close(theirs)


def test_everything_is_read_once_the_program_has_ended(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one\n")
    os.close(theirs)
    assert read_to_the_end(ours) == "one\r\n"


def test_a_program_that_does_not_end_fails(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.write(theirs, b"one")
    with pytest.raises(AssertionError, match=r"did not end, but showed b'one'"):
        read_to_the_end(ours, patience_s=0.1)
    os.close(theirs)
