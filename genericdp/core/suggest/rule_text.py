"""A resource table as text: conditions, lines with remarks, comments that fit a terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from genericdp.core.hostile import for_terminal
from genericdp.core.suggest.conditions import Conditions
from genericdp.core.suggest.quoting import toml

#: The width of comments; a line of TOML is as long as it has to be.
WIDTH = 80

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def match_lines(conditions: Conditions) -> Iterator[str]:
    """`match = {…}` on one line, or one line for each condition if that is too wide."""
    line = f"match = {_written(conditions)}"
    if len(line) <= WIDTH:
        yield line
        return
    for key, wanted in conditions.items():
        yield f"match.{_key(key)} = {_written(wanted)}"


def _written(wanted: str | tuple[str, ...] | Conditions) -> str:
    if isinstance(wanted, str):
        return toml(wanted)
    if isinstance(wanted, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_written(value)}' for key, value in wanted.items())} }}"
    return f"[{', '.join(toml(value) for value in wanted)}]"


def _key(key: str) -> str:
    return key if _BARE.issuperset(key) else toml(key)


def comment(text: str) -> Iterator[str]:
    """A paragraph as comment lines, harmless whatever the paragraph quotes."""
    for line in textwrap.wrap(for_terminal(text), WIDTH - 2, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


def comments(paragraphs: Iterable[str]) -> Iterator[str]:
    """Paragraphs as comment lines, separated by empty ones."""
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield "#"
        yield from comment(paragraph)


def key_lines(name: str, value: str, remark: str) -> Iterator[str]:
    """`name = "value"  # remark`; or with the remark above it if that is too wide."""
    yield from remarked(f"{name} = {toml(value)}", remark)


def remarked(line: str, remark: str) -> Iterator[str]:
    """A line of TOML and a remark about it."""
    if len(line) + len(remark) + 4 <= WIDTH:
        yield f"{line}  # {remark}"
    else:
        yield from comment(remark)
        yield line


def option(line: str, remark: str) -> str:
    """A line of TOML that is commented out, with its remark if there is room."""
    remarked_line = f"# {line}  # {remark}"
    return remarked_line if len(remarked_line) <= WIDTH else f"# {line}"
