"""From the text of a file to a TOML document, or to the reason why it is not TOML.

The rules of this file:

* tomli decides what is TOML. What it accepts beyond the standard is refused here.
* What would cost too much to read is refused before tomli sees it.
* The most frequent mistake is a value without quotes, so that is looked for first: what tomli says
  about it ("unclosed inline table") is misleading.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

import tomli

from genericdp.core.reading.positions import DEPTH_LIMIT, TooDeepError, find
from genericdp.core.reading.source import At, Lines, Mistake, Source, TooManyMistakesError
from genericdp.errors import Location, Problem

#: How tomli ends its messages, behind " (at ".
_POSITION = re.compile(r"(?:line ([0-9]+), column ([0-9]+)|end of document)\)")
_TOO_LARGE = "not TOML: a whole number has up to 64 bits"
#: More digits than int() reads (sys.int_info.default_max_str_digits).
_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
#: A value that should be in quotes. No two of its parts can take the same characters: on a long line,
#: trying the divisions between them would take long.
_UNQUOTED = re.compile(
    r"(?:=\s*(?:\[\s*)?|,\s*)(?P<word>0[0-9A-Fa-f]+|[0-9]+[A-Za-z_][\w.*-]*|[A-Za-z_][\w.*-]*)\s*(?:[,\]}#]|$)"
)
_TOML_WORDS = ("true", "false", "inf", "nan")


def parse_toml(file: str, text: str) -> tuple[At | None, tuple[Problem, ...]]:
    """The document of a TOML text, or None with the reasons why it is not TOML."""
    lines = Lines(text)
    try:
        positions = find(text)
        document = tomli.loads(text)
    except TooDeepError as error:
        span = error.span
        place = Location(file, span.line, span.column, span.length)
        message = f"nested more than {DEPTH_LIMIT} levels deep"
        return None, (Problem(place, message, "no rule needs that", lines.at(span.line)),)
    except tomli.TOMLDecodeError as error:
        return None, (_syntax_problem(file, lines, str(error)),)
    except ValueError:  # int() refuses a decimal number of so many digits
        return None, (_number_problem(file, text),)
    at = At(Source(file, lines, positions), (), document)
    with suppress(TooManyMistakesError):
        for number in _beyond_64_bits(at):
            at.source.note(Mistake(number, _TOO_LARGE))
    return (None if at.source.problems else at), at.source.in_order()


def _beyond_64_bits(at: At) -> Iterator[At]:
    """The numbers that tomli reads although TOML does not allow them."""
    if isinstance(at.value, int) and not -(1 << 63) <= at.value < 1 << 63:
        yield at
    elif isinstance(at.value, dict | list):
        for key in at.value if isinstance(at.value, dict) else range(len(at.value)):
            yield from _beyond_64_bits(at.child(key))


def _number_problem(file: str, text: str) -> Problem:
    found = _LONG_NUMBER.search(text)
    before = text[: found.start()] if found else ""
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return Problem(Location(file, line, column), _TOO_LARGE)


def _syntax_problem(file: str, lines: Lines, message: str) -> Problem:
    # tomli 2.0 gives the position only in its message, so every version is read that way.
    words, _, position = message.rpartition(" (at ")
    found = _POSITION.fullmatch(position)
    if found and found.group(1):
        line, column = int(found.group(1)), int(found.group(2))
    else:
        line = lines.last
        column = len(lines.at(line).rstrip()) + 1
    source = lines.at(line)
    for unquoted in _UNQUOTED.finditer(source):
        word = unquoted.group("word")
        if word not in _TOML_WORDS:
            place = Location(file, line, unquoted.start("word") + 1, len(word))
            return Problem(place, f"not TOML: '{word}' is not in quotes", f'write "{word}"', source)
    words = words if found else message
    return Problem(Location(file, line, column), f"not TOML: {words[:1].lower()}{words[1:]}", "", source)
