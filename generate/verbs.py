"""Verbs and options as values, read from the parsers of the command line."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from genericdp.cli.main import VERBS, parser_of

#: The group of the options that select rule files; many verbs have it.
RULE_OPTIONS = "rule files"


@dataclass(frozen=True, slots=True)
class Option:
    """An option or, without flags, an argument.

    flags    `("--json",)`; () for a positional argument
    value    the name of its value, "" if it takes none
    choices  its possible values; () if they are not limited
    nargs    the number of values, as for argparse: None, "?", "*", "+"
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
    """A verb with its arguments and options. `examples` are command lines with explanations."""

    name: str
    summary: str
    description: str
    arguments: tuple[Option, ...]
    options: tuple[Option, ...]
    examples: str

    @property
    def own_options(self) -> tuple[Option, ...]:
        """Its options except those that all verbs with rule files share."""
        return tuple(each for each in self.options if not self.reads_rules or each.group != RULE_OPTIONS)

    @property
    def reads_rules(self) -> bool:
        return any("--rules" in option.flags for option in self.options)


def verbs() -> tuple[Verb, ...]:
    """Every verb, in the order of the help."""
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
    for group in parser._action_groups:  # noqa: SLF001  (argparse has no public way)
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
