"""What is printed when a verb fails: a mistake of the operator, or a bug in genericdp.

The rules of this file:

* It is imported only when that happens: it loads more than the rest of the command line.
"""

import platform
import sys
import traceback
from collections.abc import Sequence

from genericdp import VERSION
from genericdp.cli.output import Output
from genericdp.core.hostile import for_terminal
from genericdp.errors import ConfigError


def show_mistake(error: Exception | str, hint: str) -> None:
    """Print what is wrong and what to do next; of mistakes in files, each with its place."""
    output = Output(sys.stderr)
    if isinstance(error, ConfigError):
        for problem in error.problems:
            output.problem(problem)
        return
    for line in (f"genericdp: error: {error}", *([f"  hint: {hint}"] if hint else [])):
        if sys.stderr.isatty():
            output.paragraph(line)
        else:
            output.line(line)


def show_bug(arguments: Sequence[str]) -> None:
    """Print the exception that is being handled, and what to report with it."""
    traceback.print_exc()
    command = for_terminal(" ".join(["genericdp", *arguments]))
    print(
        "\ngenericdp: this is a bug in genericdp, not your mistake; please report it with\n"
        "  - the lines above\n"
        f"  - the command: {command}\n"
        f"  - the versions: genericdp {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        "  - your rule files",
        file=sys.stderr,
    )
