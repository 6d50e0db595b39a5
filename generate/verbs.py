"""What can be typed, as values: read from the very parsers that read the command line."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from genericdp.cli.main import VERBS, parser_of

#: The group of the options that say which rule files are meant; many verbs have it.
RULE_OPTIONS = "rule files"


@dataclass(frozen=True, slots=True)
class Option:
    """An option or, without flags, an argument.

    flags    `("--json",)`; () for an argument, which is known by its place
    value    what its value is called, "" when it takes none
    choices  the values that there are; () when there are many
    nargs    argparse's word for how many values there may be: None, "?", "*", "+"
    """

    flags: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str
    nargs: str | None = None
    repeatable: bool = False
    required: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and everything that may stand behind it. `examples` are command lines and what they do."""

    name: str
    summary: str
    description: str
    arguments: tuple[Option, ...]
    options: tuple[Option, ...]
    examples: str

    @property
    def own_options(self) -> tuple[Option, ...]:
        """Those that are not the same for every verb that reads rule files."""
        return tuple(each for each in self.options if not self.reads_rules or each.group != RULE_OPTIONS)

    @property
    def reads_rules(self) -> bool:
        return any("--rules" in option.flags for option in self.options)


def verbs() -> tuple[Verb, ...]:
    """Every verb, in the order in which the help names them."""
    return tuple(_verb(name, summary) for name, summary in VERBS.items())


def _verb(name: str, summary: str) -> Verb:
    parser = parser_of(name)
    options = tuple(_options(parser))
    return Verb(
        name,
        summary,
        " ".join((parser.description or "").split()),
        tuple(option for option in options if not option.flags),
        tuple(option for option in options if option.flags),
        (parser.epilog or "").removeprefix("examples:\n"),
    )


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for group in parser._action_groups:  # noqa: SLF001  (argparse tells nobody otherwise)
        for action in group._group_actions:  # noqa: SLF001
            if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
                continue
            choices = tuple(str(choice) for choice in action.choices or ())
            takes_none = action.nargs == 0
            named = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
            yield Option(
                tuple(action.option_strings),
                "" if takes_none else named,
                choices,
                (action.help or "").replace("%(default)s", str(action.default)),
                action.nargs if isinstance(action.nargs, str) else None,
                isinstance(action, argparse._AppendAction),  # noqa: SLF001
                action.required,
                group.title or "",
            )
