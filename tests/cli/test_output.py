"""Tables that fit, colour that knows where it may go, JSON that stays the same."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.cli.output import Output, Row, Style, Styled, columns, fit, wrap
from genericdp.errors import Location, Problem


class Terminal(io.StringIO):
    """A stream with a person behind it."""

    def isatty(self) -> bool:
        return True


def printed(
    headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, width: int = 80, indent: int = 0
) -> list[str]:
    stream = io.StringIO()
    Output(stream, width=width).table(headings, rows, indent=indent)
    return stream.getvalue().splitlines()


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert printed(("RESOURCE", "ID"), [("a/b", "1"), ("example.com/ftdi", "22")]) == [
        "RESOURCE          ID",
        "a/b               1",
        "example.com/ftdi  22",
    ]


def test_a_table_may_stand_without_headings_and_further_in() -> None:
    assert printed((), [("a", "b")], indent=4) == ["    a  b"]


def test_nothing_to_show_is_no_line() -> None:
    assert printed((), []) == []


def test_what_does_not_fit_goes_on_below_in_its_column() -> None:
    rows = [("ftdi_A50285BI", "/dev/ttyUSB0 -> /dev/genericdp/ftdi_A50285BI")]
    assert printed(("ID", "NODES"), rows, width=40) == [
        "ID             NODES",
        "ftdi_A50285BI  /dev/ttyUSB0 ->",
        "               /dev/genericdp/",
        "               ftdi_A50285BI",
    ]


def test_the_widest_columns_give_first() -> None:
    assert fit([10, 40, 12], 40) == [10, 18, 12]
    assert fit([10, 40, 12], 62) == [10, 40, 12]
    assert fit([12, 40, 30], 50) == [12, 19, 19]


def test_the_first_column_says_what_a_row_is_about_and_stays_whole() -> None:
    assert fit([40, 12, 20], 60) == [40, 10, 10]
    assert fit([40, 12, 20], 50) == [34, 8, 8]


def test_columns_are_not_squeezed_to_nothing() -> None:
    assert fit([30, 40], 3) == [8, 8]


def test_lines_break_at_spaces_then_behind_separators_then_anywhere() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("one two", 3) == ["one", "two"]
    assert wrap("/dev/bus/usb/001/004", 14) == ["/dev/bus/usb/", "001/004"]
    assert wrap("modem_EC25-17@if04-cdc", 20) == ["modem_EC25-17", "@if04-cdc"]
    assert wrap("modem_EC25-17", 12) == ["modem_EC25-", "17"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("", 3) == [""]


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    assert columns("ab") == 2
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert wrap("日本語", 4) == ["日本", "語"]
    assert printed((), [("日", "x"), ("abc", "y")]) == ["日   x", "abc  y"]


def test_a_device_cannot_speak_to_the_terminal() -> None:
    assert printed((), [("\x1b[2J\x07", "x")]) == [r"\x1b[2J\x07  x"]


@pytest.mark.parametrize(
    ("stream", "environment", "shown"),
    [
        (Terminal(), {}, "\x1b[31mUnhealthy\x1b[0m since now\n"),
        (Terminal(), {"NO_COLOR": "1"}, "Unhealthy since now\n"),
        (Terminal(), {"TERM": "dumb"}, "Unhealthy since now\n"),
        (io.StringIO(), {}, "Unhealthy since now\n"),
    ],
)
def test_colour_is_for_a_terminal_that_wants_it(
    stream: io.StringIO, environment: dict[str, str], shown: str
) -> None:
    Output(stream, environment=environment).line(Styled("Unhealthy", Style.BAD), " since now")
    assert stream.getvalue() == shown


def test_colour_needs_no_room_in_a_table() -> None:
    stream = Terminal()
    Output(stream, width=80, environment={}).table((), [(Styled("ab", Style.GOOD), "c"), ("abc", "d")])
    assert stream.getvalue() == "\x1b[32mab\x1b[0m   c\nabc  d\n"


def test_the_same_facts_are_the_same_json() -> None:
    stream = io.StringIO()
    Output(stream).json({"b": [1], "a": "\x1bé"})
    assert stream.getvalue() == '{\n  "a": "\\u001b\\u00e9",\n  "b": [\n    1\n  ]\n}\n'


def test_json_escapes_in_its_texts_what_is_not_text() -> None:
    stream = io.StringIO()
    Output(stream).json({"a\udcff": ["\udc80b", ("\ud800", "\udc7f", 1, None)]})
    assert json.loads(stream.getvalue()) == {"a\\xff": ["\\x80b", ["\\ud800", "\\udc7f", 1, None]]}


def test_a_paragraph_between_the_rows_has_the_whole_width() -> None:
    stream = io.StringIO()
    rows: list[Row] = [("a", "b"), Styled("  a text that is wider than the columns"), ("cc", "d")]
    Output(stream, width=24).table((), rows)
    assert stream.getvalue().splitlines() == [
        "a   b",
        "  a text that is wider",
        "  than the columns",
        "cc  d",
    ]


def test_a_paragraph_keeps_the_style_of_each_of_its_parts_over_its_lines() -> None:
    terminal = Terminal()
    output = Output(terminal, width=20, environment={})
    output.paragraph("  pod-1 asks for ", Styled("example.com/ftdi", Style.STRONG), Styled(": no", Style.BAD))
    assert terminal.getvalue() == (
        "  pod-1 asks for\n"
        "  \x1b[1mexample.com/ftdi\x1b[0m\x1b[31m:\x1b[0m\n"
        "  \x1b[31mno\x1b[0m\n"
    )  # fmt: skip


def test_what_is_not_for_a_terminal_has_no_colour_in_a_paragraph_either() -> None:
    stream = io.StringIO()
    Output(stream, width=20).paragraph("a ", Styled("b", Style.BAD))
    assert stream.getvalue() == "a b\n"


LONG = Problem(
    Location("a.toml", 3, 67, 7),
    "unknown key 'matches' in [[resource]]",
    "did you mean 'match'?",
    "resource = [{ name = 'a-long-name-of-a-resource', group_by = 'x', matches = { TAG = 'tty', A = 'b' } }]",
)


@pytest.mark.parametrize(
    ("column", "line", "caret"),
    [
        (1, "resource = [{ name = 'a-long-name-of-a-resource', g…", "^^^^^^^"),
        (67, "…group_by = 'x', matches = { TAG = 'tty', A = 'b' }…", "                 ^^^^^^^"),
        (97, "…oup_by = 'x', matches = { TAG = 'tty', A = 'b' } }]", f"{' ' * 45}^^^^^^^"),
    ],
)
def test_on_a_terminal_a_long_line_is_shown_around_the_mistake(column: int, line: str, caret: str) -> None:
    terminal = Terminal()
    problem = replace(LONG, location=Location("a.toml", 3, column, 7))
    Output(terminal, width=60, environment={"NO_COLOR": "1"}).problem(problem)
    assert terminal.getvalue() == (
        f"a.toml:3:{column}: error: unknown key 'matches' in [[resource]]\n"
        f"    3 | {line}\n"
        f"      | {caret}\n"
        "  hint: did you mean 'match'?\n"
    )


def test_neither_a_name_nor_a_key_nor_a_hint_begins_a_line_of_a_mistake() -> None:
    stream = io.StringIO()
    forged = "a\n::error::\x1b[31m"
    Output(stream).problem(Problem(Location(f"{forged}.toml", 3, 1, 1), f"'{forged}'", forged, "a = 1"))
    shown = "a\\n::error::\\x1b[31m"
    assert stream.getvalue() == (
        f"{shown}.toml:3:1: error: '{shown}'\n    3 | a = 1\n      | ^\n  hint: {shown}\n"
    )


def test_a_file_gets_the_whole_line() -> None:
    stream = io.StringIO()
    Output(stream, width=60).problem(LONG)
    assert f"    3 | {LONG.source}\n" in stream.getvalue()
