"""The caret below a source line points at the mistake, however long the line and narrow the screen."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.errors import Location, Problem

SOURCES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=300)


@given(SOURCES, st.integers(0, 299), st.integers(1, 40), st.integers(1, 200))
def test_the_caret_points_at_the_mistake(source: str, at: int, length: int, width: int) -> None:
    at %= len(source)
    problem = Problem(Location("a.toml", 7, at + 1, length), "wrong", source=source)
    _, line, carets = problem.render(width).split("\n")
    shown, below = line.removeprefix("    7 | "), carets.removeprefix("      | ")
    assert len(shown) <= max(20, width - 8)
    assert shown.replace("…", "") in source
    place = below.index("^")
    assert set(below[place:]) == {"^"}
    assert len(below) <= len(shown)
    assert shown[place] == source[at]


@given(SOURCES, st.integers(0, 299))
def test_a_line_that_fits_is_shown_whole(source: str, at: int) -> None:
    problem = Problem(Location("a.toml", 7, at % len(source) + 1), "wrong", source=source)
    assert problem.render(len(source) + 8) == problem.render() or len(source) < 20


@given(st.integers(1001, 3000), st.integers(0, 2999))
def test_of_a_very_long_line_only_what_is_around_the_mistake_is_shown(length: int, at: int) -> None:
    source = "".join(chr(0x4E00 + number) for number in range(length))
    problem = Problem(Location("a.toml", 7, at % length + 1), "wrong", source=source)
    _, line, carets = problem.render().split("\n")
    shown = line.removeprefix("    7 | ")
    assert len(shown) == 1000
    assert shown[carets.removeprefix("      | ").index("^")] == source[at % length]
