"""The blocks of a page, which a manual page and a page of docs/ both show.

The rules of this file:

* The text in a block is a subset of Markdown: `typed`, *placeholder*, [words](target).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """Level 1 is the title of a page; 2 and 3 are its sections."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list. `tag` is what it is about, or ""."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """Lines that are shown unchanged."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """Something that the program declares: a key, an option, a condition, a field.

    value     what can be written for it, or ""
    default   "required", or the default as an operator would write it, or ""
    more      what a page adds to `doc`, in whole sentences, or ""
    """

    name: str
    doc: str
    value: str = ""
    default: str = ""
    more: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of one kind; `kind` is the heading of their column."""

    kind: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and what it does, or ""."""

    line: str
    doc: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Examples of command lines."""

    commands: tuple[Command, ...]


Block = Heading | Paragraph | Item | Example | Terms | Commands
