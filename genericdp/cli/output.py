"""The output of a verb: lines, tables that fit the screen, JSON that stays the same.

The rules of this file:

* Nothing is cut off: a text that does not fit its column continues below, in that column.
* Colour only on a terminal, and not when NO_COLOR is set (no-color.org).
* Every text passes through `hostile.for_terminal`: no device can speak to the terminal.
"""

import json
import os
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TextIO

from genericdp.core.hostile import for_json, for_terminal
from genericdp.errors import Problem

#: The width of a table when the width of the screen is unknown.
UNKNOWN_WIDTH = 80
_GAP = 2
#: A column is not squeezed below this while others have more.
_NARROW = 8


class Style(StrEnum):
    """The meaning of a text, and the SGR parameters that show it."""

    PLAIN = ""
    GOOD = "32"
    BAD = "31"
    NOTE = "33"
    STRONG = "1"
    FAINT = "2"


@dataclass(frozen=True, slots=True)
class Styled:
    """A text with its meaning."""

    text: str
    style: Style = Style.PLAIN


Cell = str | Styled

#: A row of cells, or a paragraph between the rows.
Row = Sequence[Cell] | Styled


class Output:
    """One stream, with its width and whether it shows colour."""

    def __init__(
        self, stream: TextIO, *, width: int | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._terminal = stream.isatty()
        self._stream = stream
        self._colour = (
            self._terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        )
        self.width = width or shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns

    def line(self, *cells: Cell) -> None:
        """One line; the cells follow each other without a gap."""
        self._stream.write("".join(self._shown(cell) for cell in cells) + "\n")

    def table(self, headings: Sequence[str], rows: Sequence[Row], *, indent: int = 0) -> None:
        """A table no wider than the screen if possible. `()` for no headings."""
        texts = [row if isinstance(row, Styled) else [_styled(cell) for cell in row] for row in rows]
        if headings:
            texts.insert(0, [Styled(heading, Style.STRONG) for heading in headings])
        cells = [row for row in texts if not isinstance(row, Styled)]
        natural = [max(columns(cell.text) for cell in column) for column in zip(*cells, strict=True)]
        widths = fit(natural, self.width - indent - _GAP * (len(natural) - 1))
        for row in texts:
            if isinstance(row, Styled):
                self.paragraph(row)
            else:
                self._row(row, widths, " " * indent)

    def paragraph(self, *cells: Cell) -> None:
        """A text over as many lines as it needs, all indented like the first."""
        parts = [_styled(cell) for cell in cells]
        whole = "".join(part.text for part in parts)
        words = whole.lstrip(" ")
        margin = len(whole) - len(words)
        end = margin
        for line in wrap(words, max(_NARROW, self.width - margin)):
            start = whole.index(line, end)
            end = start + len(line)
            self._stream.write(" " * margin + self._painted_between(parts, start, end) + "\n")

    def problem(self, problem: Problem) -> None:
        """A mistake in a file as compilers print it; only tabs stay, or the caret would be off.

        On a terminal, a long line is cut to what is around the mistake.
        """
        # A line feed in one of these would begin a line of its own.
        file, message, hint = map(for_terminal, (problem.location.file, problem.message, problem.hint))
        one_line = replace(problem, location=replace(problem.location, file=file), message=message, hint=hint)
        rendered = one_line.render(self.width if self._terminal else None)
        for number, line in enumerate(rendered.split("\n")):
            shown = "\t".join(for_terminal(part) for part in line.split("\t"))
            if number == 0:
                where, _, what = shown.partition(f" {problem.severity}: ")
                severity = self._painted(f"{problem.severity}:", Style.BAD)
                shown = f"{self._painted(where, Style.STRONG)} {severity} {what}"
            self._stream.write(f"{shown}\n")

    def json(self, value: object) -> None:
        """A JSON document: keys sorted, ASCII only, so that the same facts are the same bytes."""
        self._stream.write(json.dumps(valid_in_json(value), indent=2, sort_keys=True) + "\n")

    def _row(self, row: Sequence[Styled], widths: Sequence[int], margin: str) -> None:
        wrapped = [wrap(cell.text, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(len(lines) for lines in wrapped)):
            line = margin
            for cell, lines, width in zip(row, wrapped, widths, strict=True):
                text = lines[number] if number < len(lines) else ""
                padding = " " * (width - columns(text) + _GAP)
                line += self._painted(text, cell.style) + padding
            self._stream.write(line.rstrip() + "\n")

    def _shown(self, cell: Cell) -> str:
        styled = _styled(cell)
        return self._painted(styled.text, styled.style)

    def _painted_between(self, parts: Sequence[Styled], start: int, end: int) -> str:
        """The part of a text between two positions, each piece in its own style."""
        painted, at = "", 0
        for part in parts:
            piece = part.text[max(0, start - at) : max(0, end - at)]
            painted += self._painted(piece, part.style)
            at += len(part.text)
        return painted

    def _painted(self, text: str, style: Style) -> str:
        if not self._colour or not style or not text:
            return text
        return f"\x1b[{style}m{text}\x1b[0m"


def valid_in_json(value: object) -> object:
    """The same value with texts that every reader of JSON accepts."""
    match value:
        case str():
            return for_json(value)
        case Mapping():
            return {for_json(key): valid_in_json(each) for key, each in value.items()}
        case list() | tuple():
            return [valid_in_json(each) for each in value]
        case _:
            return value


def _styled(cell: Cell) -> Styled:
    styled = cell if isinstance(cell, Styled) else Styled(cell)
    return Styled(for_terminal(styled.text), styled.style)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: East Asian wide characters two, combining none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def fit(natural: Sequence[int], room: int) -> list[int]:
    """The widths of columns that would be `natural` wide if they had room, for the `room` that they have.

    The widest shrink first. The first column, which says what a row is about, stays whole as long as the
    others can shrink.
    """
    widths = list(natural)
    for columns_that_give in (range(1, len(widths)), range(1)):
        while sum(widths) > room and columns_that_give:
            widest = max(columns_that_give, key=lambda column: widths[column])
            if widths[widest] <= _NARROW:
                break
            widths[widest] -= 1
    return widths


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns.

    They are broken at a space, else behind one of `/,=` or before a `@`, else behind a `-`, else
    anywhere. Only a space leaves less than a quarter of a line.
    """
    lines: list[str] = []
    while columns(text) > width:
        head = _first_columns(text, width)
        space = head.rfind(" ") if text[len(head)] != " " else len(head)
        mark = max(*(head.rfind(char) + 1 for char in "/,="), text.rfind("@", 0, len(head) + 1))
        others = (at for at in (mark, head.rfind("-") + 1) if 4 * at >= len(head))
        at = space if space > 0 else next(others, len(head))
        lines.append(text[:at].rstrip())
        text = text[at:].lstrip()
    lines.append(text)
    return lines


def _first_columns(text: str, width: int) -> str:
    """As many characters as fit, but at least one."""
    end, used = 0, 0
    for char in text:
        used += columns(char)
        if used > width and end:
            break
        end += 1
    return text[:end]
