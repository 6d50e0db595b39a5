"""Options that several verbs share, and the mistake of using a verb wrongly."""

import argparse


class UsageError(Exception):
    """The command line makes no sense. `hint` names what was probably meant, or is ""."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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
    group.add_argument(
        "--config",
        metavar="FILE",
        help="the daemon's settings (default: /etc/genericdp/genericdp.toml)",
    )
    group.add_argument(
        "--domain",
        metavar="DOMAIN",
        help="the domain of resources whose name has none, instead of the one in the settings",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """`--json`: for programs; stable, documented."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
