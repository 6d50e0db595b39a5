"""Text for man(7): what every formatter, groff and mandoc, shows as it was meant.

The rules of this file:

* Nothing but ASCII is written; a hyphen that somebody may copy is a minus.
"""

import re
import textwrap

_LITERAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", '"': "\\(dq", "^": "\\(ha", "`": "\\(ga", "~": "\\(ti"}
#: What is typed, in a sentence: options, paths, command lines in quotes.
_TYPED = re.compile(r"`[^`]*`|'[^']*'|--[a-z][a-z-]*|(?<![\w/])/[\w./-]+[\w/]")


def literal(text: str) -> str:
    """Something that is typed: every character as it is."""
    return _line_start("".join(_LITERAL.get(char, char) if char.isascii() else _named(char) for char in text))


def prose(text: str) -> str:
    """A sentence. What is typed in it stays together and as it is."""
    shown, at = "", 0
    for typed in _TYPED.finditer(text):
        shown += _plain(text[at : typed.start()]) + _typed(typed.group(0))
        at = typed.end()
    return _line_start(shown + _plain(text[at:]))


def _typed(text: str) -> str:
    return bold(text.strip("`")) if text.startswith("`") else literal(text)


def bold(text: str) -> str:
    return f"\\fB{literal(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{literal(text)}\\fR"


def sentence(text: str) -> str:
    """A short text of ours, which begins small and ends without a stop, as a sentence."""
    capital = text[:1].upper() + text[1:]
    return prose(capital if capital.endswith((".", "…")) else f"{capital}.")


def example(text: str) -> str:
    """Lines as they are."""
    lines = [literal(line) for line in text.rstrip("\n").split("\n")]
    return "\n".join([".PP", ".EX", *lines, ".EE"])


def entry(tag: str, *paragraphs: str) -> str:
    """A tagged paragraph; the tag and the paragraphs are roff already."""
    return "\n".join([".TP", tag, *("\n.IP\n".join(paragraphs).split("\n"))])


def short_lines(text: str) -> str:
    """The same page with sentences in lines that a reviewer can read; tags and examples stay as they are."""
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
