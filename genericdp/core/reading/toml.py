"""From the text of a file to a TOML document, or to the reason why it is not TOML.

The rules of this file:

* tomli decides what is TOML. What it accepts beyond the standard is refused here.
* What would cost too much to read is refused before tomli sees it.
* The most frequent mistake is a value without quotes, so that is looked for first: what tomli says
  about it ("unclosed inline table") is misleading.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import tomli

from genericdp.core.reading.positions import DEPTH_LIMIT, Path, TooDeepError, find
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
    r"(?:=\s*(?:\[\s*)?|,\s*)"
    r"(?P<word>0[0-9A-Fa-f]+|[0-9]+[A-Za-z_][\w.*-]*|[A-Za-z_/*][\w./:*?-]*)\s*(?:[,\]}#]|$)"
)
#: How much of a word without quotes is quoted in a message, in characters.
_LONGEST_WORD = 60
_TOML_WORDS = ("true", "false", "inf", "nan")

#: How a message of tomli begins -> what to write instead.
_HINTS: Mapping[str, str] = {
    "Illegal character '\\n'": "end the string with the quote that it begins with, on the same line",
    'Expected "\'"': "end the string with the quote that it begins with, on the same line",
    "Unterminated string": "end the string with the three quotes that it begins with",
    "Expected ']]' at": "write the name between two pairs of brackets: [[name]]",
    "Expected ']' at": "write the name between brackets: [name]",
    "Unclosed array": "write ']' at the end of the list, and ',' between its elements",
    "Unclosed inline table": "write '}' at the end of the table, and ',' between its keys",
    "Cannot overwrite a value": "this table has the key already; write it once",
    "Duplicate inline table key": "write the key once",
    "Cannot mutate immutable namespace": "this key has a value already; write it once",
    "Expected '=' after a key": 'write key = value, and strings in quotes: name = "ftdi"',
    "Expected newline or end of": "only a comment may follow a value; write each key on a new line",
    "Invalid statement": "a line is [[table]], key = value or a # comment",
    "Unescaped '\\' in a string": "write '\\\\' for a backslash, or put the string in single quotes",
    "Invalid hex value": "write '\\\\' for a backslash, or put the string in single quotes",
    "Illegal character": "remove the character",
    "Invalid initial character for a key part": "write a table in braces on one line, without ',' at its end",
}


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
        for path in _beyond_64_bits(document):
            at.source.note(Mistake(replace(at, path=path), _TOO_LARGE))
    return (None if at.source.problems else at), at.source.in_order()


def _beyond_64_bits(value: object) -> Iterator[Path]:
    """The paths of the numbers that tomli reads although TOML does not allow them."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        yield ()
    elif isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            for path in _beyond_64_bits(child):
                yield (key, *path)


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
    if words.startswith("Unclosed"):
        line, column = _before(lines, line, column)
    source = lines.at(line)
    for unquoted in _UNQUOTED.finditer(source):
        word = unquoted.group("word")
        if word not in _TOML_WORDS and unquoted.start("word") < column <= unquoted.end("word") + 1:
            place = Location(file, line, unquoted.start("word") + 1, len(word))
            if word.lower() in _TOML_WORDS:
                return Problem(place, f"not TOML: unknown word '{word}'", f"write {word.lower()}", source)
            shown = word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}…"
            return Problem(place, f"not TOML: '{shown}' is not in quotes", f'write "{shown}"', source)
    words = words if found else message
    hint = next((hint for beginning, hint in _HINTS.items() if words.startswith(beginning)), "")
    if words == "Invalid value":
        hint = "write a string in quotes"
        if not source[column - 1 :].split("#")[0].strip():
            hint = "write a value after '='"
        elif source[column - 1] in "“”„‘’":
            hint = 'write straight quotes: "'
    if words.startswith("Cannot declare"):
        name = ".".join(re.findall(r"'([^']*)'", words))
        words, hint = (
            f"[{name}] appears twice",
            f"write it once; where several are allowed, each is [[{name}]]",
        )
    return Problem(Location(file, line, column), f"not TOML: {words[:1].lower()}{words[1:]}", hint, source)


def _before(lines: Lines, line: int, column: int) -> tuple[int, int]:
    """The end of the last word before this place. Some versions of tomli go on to the next word."""
    while line > 1 and not lines.at(line)[: column - 1].strip():
        line -= 1
        column = len(lines.at(line)) + 1
    return line, len(lines.at(line)[: column - 1].rstrip()) + 1
