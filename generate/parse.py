"""Parsing the text of a page, in `pages/`, into blocks.

The rules of this file:

* A line that begins with `@` stands for declarations of the program, so a page cannot forget or invent a
  verb, an option, a key or a setting.
* `@keys TABLE` is followed by `@ NAME` and more about that key, for keys that need it, up to `@end`.
* A page uses headings, paragraphs, flat lists and fenced blocks, and nothing else of Markdown.
"""

import re
from collections.abc import Iterator, Mapping

from generate.blocks import Block, Example, Heading, Item, Paragraph
from generate.declared import declared, keys

_ITEM_TAG = re.compile(r"((?:`[^`]+`|\*[^*]+\*|, )+): (.*)")


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    lines = iter(text.splitlines())
    prose: list[str] = []
    for line in lines:
        if line.startswith("  ") and prose:
            prose.append(line.strip())
            continue
        if not line or line.startswith(("@", "#", "```", "* ")):
            yield from _prose(prose)
            prose = []
        if line.startswith("@"):
            yield from _directive(line[1:], lines)
        elif line.startswith("#"):
            marks, _, heading = line.partition(" ")
            yield Heading(len(marks), heading)
        elif line.startswith("```"):
            yield Example(line[3:], _up_to("```", lines))
        elif line:
            prose.append(line)
    yield from _prose(prose)


def _prose(lines: list[str]) -> Iterator[Block]:
    text = " ".join(lines)
    if text.startswith("* "):
        tagged = _ITEM_TAG.fullmatch(text[2:])
        yield Item(tagged[1], tagged[2]) if tagged else Item("", text[2:])
    elif text:
        yield Paragraph(text)


def _up_to(end: str, lines: Iterator[str]) -> str:
    found: list[str] = []
    for line in lines:
        if line == end:
            return "\n".join(found)
        found.append(line)
    raise ValueError(f"a page lacks a line '{end}'")


def _directive(line: str, lines: Iterator[str]) -> Iterator[Block]:
    word, _, argument = line.partition(" ")
    if word == "keys":
        yield keys(argument, _more(_up_to("@end", lines)))
    else:
        yield from declared(word, argument)


def _more(text: str) -> Mapping[str, str]:
    """What a page adds to the declarations, by names of keys."""
    _, *parts = re.split(r"^@ (\w+)\n", text, flags=re.MULTILINE)
    return {name: " ".join(more.split()) for name, more in zip(parts[::2], parts[1::2], strict=True)}
