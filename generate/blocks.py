"""What a page consists of: the blocks that a manual page and a page of docs/ both show.

The rules of this file:

* The text in a block is Markdown of a small kind: `typed`, *placeholder*, [words](target).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """Level 1 is the title of a page; 2 and 3 are its sections."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list. `tag` is what it is about, or ""."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """Lines to show as they are."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """Something that the program declares: a key, an option, a condition, a field.

    value     what may be written for it, "" when nothing is
    default   "required", or the default as it is written, or ""
    more      what a page adds to `doc`, in whole sentences, or ""
    """

    name: str
    doc: str
    value: str = ""
    default: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """Declared things of one kind; `kind` is what they are."""

    kind: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line as somebody may type it, and what it does, or ""."""

    line: str
    doc: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Examples of command lines."""

    commands: tuple[Command, ...]


Block = Heading | Paragraph | Item | Example | Terms | Commands
