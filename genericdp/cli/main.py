"""The table of verbs. Here every mistake becomes an exit status.

The rules of this file:

* A verb is a module with `add_arguments(parser)` and `run(…) -> int`, whose keywords are the options.
  Only the module of the requested verb is imported. What all of them load is little, for `probe`.
* The exit status is one of `exit_status`.
* A usage error says what is wrong and what was probably meant. It does not print the help.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from genericdp import VERSION
from genericdp.cli import streams
from genericdp.cli.exit_status import BROKEN_PIPE, BUG, FINE, INTERRUPTED, NOT_FINE, USAGE
from genericdp.cli.usage import Parser, UsageError
from genericdp.core.hostile import for_terminal
from genericdp.core.words import nearest

#: The verbs in the order in which an operator needs them; each module has the name of its verb.
VERBS = {
    "run": "run the daemon, which offers this machine's devices to the kubelet",
    "check": "check the rule files; print every mistake with its place",
    "list": "list the devices that rules match, and the resource of each",
    "explain": "explain why rules match a device or not, and what a container gets",
    "suggest": "write the rule for a device; with --all, a first draft for all",
    "monitor": "show device events, and what the kubelet is told, as they happen",
    "status": "show what is registered, which pods hold devices, and what is wrong",
    "probe": "ask if the daemon is healthy or ready, as a kubelet's probes do",
    "simulate": "try rules without a cluster: the daemon with a simulated kubelet",
    "schema": "print the JSON Schema of rule files or settings, for editors",
}

#: Verbs that shells call, not people.
_FOR_SHELLS = ("complete",)

_USAGE = """\
usage: genericdp VERB [OPTION…]
       genericdp VERB --help

Offers udev devices to Kubernetes. Rule files say which ones.

verbs:
{verbs}

options:
  --version   print the version
  --help      print this help; after a verb, the help for that verb

examples:
  genericdp check                       every mistake in every rule file
  genericdp list                        which resource each device goes to
  genericdp explain /dev/ttyUSB0        why, condition by condition
  genericdp simulate --rules my.toml    what the kubelet and a container see

rule files:   /etc/genericdp/rules.d/*.toml
settings:     /etc/genericdp/genericdp.toml
"""


class Verb(Protocol):
    """What the module of a verb offers."""

    run: Callable[..., int]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; returns the exit status. Never raises."""
    streams.prepare()
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(error, error.hint, USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        streams.give_up()
        return BROKEN_PIPE
    except streams.OutputError as error:
        streams.give_up()
        return _complain(f"cannot write the output: {error.strerror}", "", NOT_FINE)
    except Exception as error:  # noqa: BLE001  (the one place that turns bugs into an exit status)
        return _fail(error, arguments)
    return status


def _dispatch(arguments: Sequence[str]) -> int:
    match arguments:
        case [] | ["--help" | "-h" | "help"]:
            width = max(len(verb) for verb in VERBS)
            verbs = "\n".join(f"  {verb:<{width}}   {summary}" for verb, summary in VERBS.items())
            print(_USAGE.format(verbs=verbs), end="")
            return FINE if arguments else USAGE
        case ["--version" | "version"]:
            print(f"genericdp {VERSION}")
            return FINE
        case ["help", verb, *_]:
            return _run(verb, ["--help"])
    verb, *rest = arguments
    return _run(verb, rest)


def _run(verb: str, arguments: Sequence[str]) -> int:
    if verb.startswith("-"):
        raise UsageError(
            f"'{for_terminal(verb)}' is not a verb",
            # The options of verbs are not known here, hence only what is very similar.
            hint=nearest(verb, ("--version", "--help"), cutoff=0.75)
            or "the verb comes first: genericdp VERB [OPTION…]; 'genericdp --help' lists the verbs",
        )
    if verb not in VERBS and verb not in _FOR_SHELLS:
        raise UsageError(
            f"unknown verb '{for_terminal(verb)}'",
            hint=nearest(verb, VERBS) or "'genericdp --help' lists the verbs",
        )
    try:
        options = parser_of(verb).options(arguments)
    except SystemExit:  # --help has printed the help
        return FINE
    return _module(verb).run(**vars(options))


def parser_of(verb: str) -> Parser:
    """The parser of a verb's command line; the manual and the completions are generated from it too."""
    parser = Parser(verb)
    _module(verb).add_arguments(parser)
    return parser


def _module(verb: str) -> Verb:
    return cast(Verb, importlib.import_module(f"genericdp.cli.verbs.{verb}"))


def _complain(error: Exception | str, hint: str, status: int) -> int:
    from genericdp.cli.failure import show_mistake  # noqa: PLC0415  (see the rules of that file)

    show_mistake(error, hint)
    return status


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    from genericdp.cli.failure import show_bug  # noqa: PLC0415  (as above)
    from genericdp.errors import (  # noqa: PLC0415  (dataclasses: for `probe`)
        SHORTAGES,
        ConfigError,
        GenericdpError,
        what_is_short,
    )

    match error:
        case ConfigError():
            return _complain(error, "", NOT_FINE)
        case GenericdpError():
            return _complain(error, error.hint, NOT_FINE)
        case OSError() if error.errno in SHORTAGES:
            where = f"'{error.filename}': " if error.filename else ""
            return _complain(f"{where}{error.strerror}", what_is_short(error), NOT_FINE)
    show_bug(arguments)
    return BUG
