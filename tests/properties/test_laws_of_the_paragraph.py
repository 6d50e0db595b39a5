"""However a sentence is cut into parts and styles, its lines are those of the sentence."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from genericdp.cli.output import Output, Style, Styled, columns


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


TEXTS = st.text(st.sampled_from("ab/-=@, 日\u0301\x1b"), max_size=40)
PARTS = st.lists(st.builds(Styled, TEXTS, st.sampled_from(Style)), min_size=1, max_size=5)


@given(PARTS, st.integers(8, 60))
def test_styles_change_no_line(parts: list[Styled], width: int) -> None:
    plain, coloured = io.StringIO(), Terminal()
    Output(plain, width=width).paragraph("".join(part.text for part in parts))
    Output(coloured, width=width, environment={}).paragraph(*parts)
    assert re.sub(r"\x1b\[[0-9]*m", "", coloured.getvalue()) == plain.getvalue()


@given(PARTS, st.integers(8, 60))
def test_no_line_is_wider_than_the_screen_and_no_word_is_lost(parts: list[Styled], width: int) -> None:
    stream = io.StringIO()
    Output(stream, width=width).paragraph(*parts)
    lines = stream.getvalue().splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip(" "))
    assert all(columns(line) <= max(width, margin + 8) for line in lines)
    text = "".join(part.text.replace("\x1b", "\\x1b") for part in parts)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
