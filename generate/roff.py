"""Blocks as a manual page in the language of man(7), as groff and mandoc both understand it.

The rules of this file:

* Only ASCII is written. A hyphen that somebody may copy becomes a minus.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator

from generate.blocks import (
    Block,
    Command,
    Commands,
    Example,
    Heading,
    Item,
    Paragraph,
    Term,
    Terms,
)

_LITERAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", '"': "\\(dq", "^": "\\(ha", "`": "\\(ga", "~": "\\(ti"}

#: What a text marks, and what stays literal without a mark: quoted words, options, paths.
_MARKED = re.compile(
    r"`(?P<typed>[^`]*)`"
    r"|(?<![\w*/])\*(?P<placeholder>\w[^*]*\w|\w)\*"
    r"|\[(?P<words>[^][]*)\]\((?P<target>[^()]*)\)"
    r"|\b(?P<page>[a-z][a-z_.-]*)(?P<section>\([1-8]\))"
    r"|(?P<literal>(?<!\w)'[^'`]*'|--[a-z][a-z-]*|(?<![\w/])/[\w./-]+[\w/])"
)


def roff(blocks: Iterable[Block]) -> str:
    """The body of a manual page."""
    lines: list[str] = []
    for block in blocks:
        shown = list(_shown(block))
        if lines[-1:] and lines[-1].startswith((".SH", ".SS")) and shown[:1] == [".PP"]:
            del shown[0]  # a heading begins a paragraph
        lines += shown
    return short_lines("\n".join(lines))


def _shown(block: Block) -> Iterator[str]:
    match block:
        case Heading(2, text):
            yield f".SH {literal(text.upper())}"
        case Heading(_, text):
            yield f".SS {literal(text)}"
        case Paragraph(text):
            yield from (".PP", inline(text))
        case Item("", text):
            yield from (".IP \\(bu 2", inline(text))
        case Item(tag, text):
            yield from _entry(inline(tag), sentence(text))
        case Example(_, text):
            yield from (".PP", ".EX", *(literal(line) for line in text.split("\n")), ".EE")
        case Terms(_, terms):
            for term in terms:
                yield from _term(term)
        case Commands(commands):
            for command in commands:
                yield from _command(command)


def _term(term: Term) -> Iterator[str]:
    tag = f"{inline(term.name)} = {inline(term.value)}" if term.value else inline(term.name)
    doc = sentence(term.doc)
    if term.default == "required":
        doc += " Required."
    elif term.default:
        doc += f" Default: {inline(term.default)}."
    return _entry(tag, doc, *([inline(term.more)] if term.more else []))


def _command(command: Command) -> Iterator[str]:
    return _entry(bold(command.line), *([sentence(command.doc)] if command.doc else []))


def _entry(tag: str, *paragraphs: str) -> Iterator[str]:
    """A tagged paragraph; the tag and the paragraphs are roff already."""
    yield from (".TP", tag)
    yield from "\n.IP\n".join(paragraphs).split("\n") if paragraphs else ()


def literal(text: str) -> str:
    """A text whose characters all stay as they are."""
    return _line_start("".join(_LITERAL.get(char, char) if char.isascii() else _named(char) for char in text))


def inline(text: str) -> str:
    """A text, with its marks as fonts."""
    shown, at = "", 0
    for mark in _MARKED.finditer(text):
        shown += _plain(text[at : mark.start()]) + _marked(mark)
        at = mark.end()
    return _line_start(shown + _plain(text[at:]))


def _marked(mark: re.Match[str]) -> str:
    match mark.lastgroup:
        case "typed":
            return bold(mark["typed"])
        case "placeholder":
            return italic(mark["placeholder"])
        case "target":
            return bold(mark["words"].upper()) if mark["target"].startswith("#") else inline(mark["words"])
        case "section":
            return bold(mark["page"]) + mark["section"]
        case _:
            return literal(mark[0])


def bold(text: str) -> str:
    return f"\\fB{literal(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{literal(text)}\\fR"


def sentence(text: str) -> str:
    """A short text as a sentence, with a capital letter and a full stop."""
    capital = text[:1].upper() + text[1:]
    return inline(capital if capital.endswith((".", "…")) else f"{capital}.")


def short_lines(text: str) -> str:
    """The same page, with text wrapped for reviewers; tags and examples stay unchanged."""
    shown: list[str] = []
    verbatim = False
    for line in text.splitlines():
        verbatim = (verbatim or line == ".EX") and line != ".EE"
        if verbatim or line.startswith(".") or shown[-1:] == [".TP"]:
            shown.append(line)
        else:
            broken = textwrap.wrap(line, 78, break_long_words=False, break_on_hyphens=False)
            shown += [_line_start(each) for each in broken]
    return "\n".join(shown) + "\n"


def _plain(text: str) -> str:
    return "".join("\\e" if char == "\\" else char if char.isascii() else _named(char) for char in text)


def _named(char: str) -> str:
    return f"\\[u{ord(char):04X}]"


def _line_start(text: str) -> str:
    return f"\\&{text}" if text.startswith((".", "'")) else text
