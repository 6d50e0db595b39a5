"""Blocks in Markdown, for docs/.

The rules of this file:

* Terms become a table. What a page adds to some of them follows as a list.
"""

import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise

from generate.blocks import (
    Block,
    Commands,
    Example,
    Heading,
    Item,
    Paragraph,
    Term,
    Terms,
)

_WIDTH = 110


def markdown(blocks: Iterable[Block]) -> str:
    """The whole page."""
    shown = [(block, "\n\n".join(_shown(block))) for block in blocks]
    text = shown[0][1] if shown else ""
    for (before, _), (block, part) in pairwise(shown):
        text += ("\n" if isinstance(before, Item) and isinstance(block, Item) else "\n\n") + part
    return f"{text}\n"


def _shown(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * level} {text}"
        case Paragraph(text):
            yield _wrapped(text)
        case Item(tag, text):
            yield _item(tag, text)
        case Example(language, text):
            yield f"```{language}\n{text}\n```"
        case Terms(kind, terms):
            yield "\n".join(_table(kind, terms))
            if any(term.more for term in terms):
                yield "\n".join(_item(term.name, term.more) for term in terms if term.more)
        case Commands(commands):
            width = max(len(command.line) for command in commands)
            lines = [f"{each.line:{width}}  # {each.doc}" if each.doc else each.line for each in commands]
            yield "```sh\n" + "\n".join(lines) + "\n```"


def _table(kind: str, terms: tuple[Term, ...]) -> Iterator[str]:
    """A row for each term, without the columns that would be empty."""
    columns = {
        kind: [term.name for term in terms],
        "value": [term.value for term in terms],
        "default": [term.default for term in terms],
        "meaning": [term.doc for term in terms],
    }
    filled = {head: cells for head, cells in columns.items() if any(cells)}
    yield f"| {' | '.join(filled)} |"
    yield f"|{'---|' * len(filled)}"
    for row in zip(*filled.values(), strict=True):
        cells = [cell.replace("|", "\\|") for cell in row]
        yield f"| {' | '.join(cells)} |"


def _item(tag: str, text: str) -> str:
    return _wrapped(f"{tag}: {text}" if tag else text, first="* ", then="  ")


def _wrapped(text: str, first: str = "", then: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )
