"""From the text of a file to a TOML document, or to the reason why it is not TOML.

The rules of this file:

* tomli decides what is TOML. What it accepts beyond the standard is refused here.
* The most frequent mistake is a value without quotes, so that is looked for first: what tomli says
  about it ("unclosed inline table") is misleading.
"""

import re
from collections.abc import Iterator

import tomli

from genericdp.core.reading.positions import find
from genericdp.core.reading.source import At, Mistake, Source, line_of
from genericdp.errors import Location, Problem

_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOO_LARGE = "not TOML: a whole number has up to 64 bits"
#: More digits than int() reads (sys.int_info.default_max_str_digits).
_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
_UNQUOTED = re.compile(
    r"(?:=\s*\[?|,)\s*(?P<word>0[0-9A-Fa-f]+|[0-9]+[A-Za-z_][\w.*-]*|[A-Za-z_][\w.*-]*)\s*(?:[,\]}#]|$)"
)
_TOML_WORDS = ("true", "false", "inf", "nan")


def parse_toml(file: str, text: str) -> tuple[At | None, tuple[Problem, ...]]:
    """The document of a TOML text, or None with the reasons why it is not TOML."""
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        return None, (_syntax_problem(file, text, str(error)),)
    except ValueError:  # int() refuses a decimal number of so many digits
        return None, (_number_problem(file, text),)
    at = At(Source(file, text, find(text)), (), document)
    for number in _beyond_64_bits(at):
        at.source.note(Mistake(number, _TOO_LARGE))
    return (None if at.source.problems else at), tuple(at.source.problems)


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


def _syntax_problem(file: str, text: str, message: str) -> Problem:
    # tomli 2.0 gives the position only in its message, so every version is read that way.
    found = _POSITION.search(message)
    lines = text.split("\n")
    if found and found.group(1):
        line, column = int(found.group(1)), int(found.group(2))
    else:
        line = max((number for number, each in enumerate(lines, 1) if each.strip()), default=1)
        column = len(lines[line - 1].rstrip()) + 1
    source = line_of(text, line)
    for unquoted in _UNQUOTED.finditer(source):
        word = unquoted.group("word")
        if word not in _TOML_WORDS:
            place = Location(file, line, unquoted.start("word") + 1, len(word))
            return Problem(place, f"not TOML: '{word}' is not in quotes", f'write "{word}"', source)
    words = _POSITION.sub("", message)
    return Problem(Location(file, line, column), f"not TOML: {words[:1].lower()}{words[1:]}", "", source)
