"""Options that several verbs share, and what they mean."""

import argparse
import os
from dataclasses import replace

from genericdp.core.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.rulefiles import RULE_DIRECTORIES, RuleFiles, read_settings


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """`--rules`, `--config`, `--domain`: for every verb that reads rule files."""
    group = parser.add_argument_group("rule files")
    group.add_argument(
        "--rules",
        metavar="DIR_OR_FILE",
        action="append",
        default=[],
        help="read these rules instead of the system's; may be given several times, later ones win",
    )
    add_config_option(group)
    group.add_argument(
        "--domain",
        metavar="DOMAIN",
        help="the domain of resources whose name has none, instead of the one in the settings",
    )


def add_config_option(parser: "argparse._ActionsContainer") -> None:
    """`--config`: for every verb that needs to know where things are."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the daemon's settings (default: /etc/genericdp/genericdp.toml)",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`: for programs; stable, documented."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def open_rules(rules: list[str], config: str | None, domain: str | None) -> tuple[Settings, RuleFiles]:
    """The settings and rule files that these options mean. Raises ConfigError, GenericdpError."""
    settings = read_settings(config)
    if domain is not None:
        settings = replace(settings, domain=domain)
    for place in rules:
        if not os.path.exists(place):
            raise GenericdpError(
                f"there is no '{place}'", hint="--rules takes a directory of *.toml files or one such file"
            )
    return settings, RuleFiles(rules or RULE_DIRECTORIES, settings.domain)
