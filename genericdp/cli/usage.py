"""How a command line is read."""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from genericdp.core.hostile import for_terminal
from genericdp.core.words import listing, nearest

#: Help is laid out for this width: any terminal is that wide, and wider lines are hard to read.
WIDTH = 80


class UsageError(Exception):
    """The command line is wrong. `hint` names what was probably meant, or is ""."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """The options of one verb. A mistake raises UsageError; argparse would print the usage."""

    def __init__(self, verb: str) -> None:
        super().__init__(
            prog=f"genericdp {verb}",
            allow_abbrev=False,  # an abbreviation in a script breaks when an option is added
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=WIDTH),
        )

    def options(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options given. The error for an unknown one names what was probably meant."""
        # The epilog is laid out by hand, so argparse lays out neither.
        if {"-h", "--help"} & {*arguments}:
            import textwrap  # noqa: PLC0415  (only for help; the daemon is to stay small)

            self.description = textwrap.fill(self.description or "", WIDTH)
        for word in arguments:
            if word.startswith("--") and word.endswith("=--"):  # argparse (3.11) stumbles over it
                raise UsageError(f"{for_terminal(word[:-3])} needs a value", hint=self._where_to_look)
        options, unknown = self.parse_known_args(arguments)
        if not unknown:
            return options
        word = unknown[0]
        name = word.partition("=")[0]
        known = [option for action in self._actions for option in action.option_strings]
        if not name.startswith("-"):
            is_rules = word.endswith(".toml") and "--rules" in known
            raise UsageError(
                f"unexpected argument '{for_terminal(word)}'",
                hint=f"did you mean --rules {for_terminal(word)}?" if is_rules else self._where_to_look,
            )
        raise UsageError(
            f"{self.prog} has no option '{for_terminal(name)}'",
            hint=nearest(name, known) or self._where_to_look,
        )

    @property
    def _where_to_look(self) -> str:
        return f"see '{self.prog} --help'"

    def _missing_choices(self, message: str) -> list[str]:
        """What the one missing argument can be; [] when it can be anything, or none is missing."""
        missing = message.removeprefix(_MISSING)
        wanted = [action for action in self._actions if missing in (action.metavar, action.dest)]
        return [str(choice) for action in wanted for choice in action.choices or ()]

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, with the common sentences of argparse reworded."""
        message = for_terminal(message)
        choices = self._missing_choices(message)
        if choices:
            verb = self.prog.partition(" ")[2]
            raise UsageError(f"{verb} takes {listing(choices, 'or')}", hint=f"{self.prog} {choices[0]}")
        for sentence, ours in _SENTENCES:
            found = sentence.fullmatch(message)
            if found:
                raise UsageError(found.expand(ours), hint=self._where_to_look)
        raise UsageError(message, hint=self._where_to_look)


_MISSING = "the following arguments are required: "

_SENTENCES = (
    (re.compile(r"argument (\S+): invalid choice: (.+) \(choose from (.+)\)"), r"\1: \2 is not one of \3"),
    (re.compile(r"argument (\S+): expected one argument"), r"\1 needs a value"),
    (re.compile(rf"{_MISSING}(.+)"), r"\1 is missing"),
    (re.compile(r"argument (?:\S+/)?(\S+): (.+)"), r"\1: \2"),
)
