"""The options that several verbs share."""

import argparse
import contextlib
import math
import os
import shlex
from dataclasses import replace

from genericdp.cli.usage import UsageError
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.name import why_not_a_resource_name
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.rulefiles import RULE_DIRECTORIES, RuleFiles
from genericdp.files.settings import read_settings


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """`--rules`, `--config`, `--domain`: for every verb that reads rule files."""
    group = parser.add_argument_group("rule files")
    group.add_argument(
        "--rules",
        metavar="DIR_OR_FILE",
        action="append",
        default=[],
        help="read these rules instead of the system's; can be repeated; later ones win",
    )
    add_config_option(group)
    group.add_argument(
        "--domain",
        metavar="DOMAIN",
        help="the domain for resource names that have none, instead of the one in the settings",
    )


def add_config_option(parser: "argparse._ActionsContainer") -> None:
    """`--config`: for every verb that reads the settings."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the daemon's settings (default: /etc/genericdp/genericdp.toml)",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`: for programs. Its form is stable; `docs/json.md` describes it."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def open_rules(rules: list[str], config: str | None, domain: str | None) -> tuple[Settings, RuleFiles]:
    """The settings and rule files that these options mean. Raises ConfigError, GenericdpError, UsageError."""
    settings = read_settings(config)
    if domain is not None:
        settings = replace(settings, domain=_domain(domain))
    for place in rules:
        _check_place(place)
    return settings, RuleFiles(rules or RULE_DIRECTORIES, settings.domain)


def are_all_rules(rules: list[str]) -> bool:
    """Whether these options mean all rules of this machine, and not only some, or others."""
    return not rules or {*RULE_DIRECTORIES} <= {*rules}


def as_typed(rules: list[str], config: str | None, domain: str | None) -> str:
    """These options for a command in a hint, each with a space before it: ` --rules my.toml`."""
    options = [*(("--rules", place) for place in rules), ("--config", config), ("--domain", domain)]
    return "".join(
        f" {name} {for_terminal(shlex.quote(value))}" for name, value in options if value is not None
    )


def _domain(word: str) -> str:
    why = why_not_a_resource_name(f"{word}/x")
    if why:
        raise UsageError(for_terminal(f"--domain: '{word}' cannot be the domain of resources: {why}"))
    return word


def _check_place(place: str) -> None:
    name, hint = for_terminal(place), "give a directory of *.toml files, or one such file"
    if not os.path.exists(place):
        what = "is a dangling link" if os.path.lexists(place) else "does not exist"
        raise GenericdpError(f"'{name}' {what}", hint=hint)
    if not os.path.isdir(place) and not place.endswith(".toml") and place != os.devnull:
        raise GenericdpError(f"'{name}' is neither a directory nor a *.toml file", hint=hint)


def seconds(text: str) -> float:
    """A duration on the command line: a number of seconds, not negative. Raises ArgumentTypeError."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
