"""`genericdp schema`: what rule files and settings can hold, for editors."""

import argparse
import sys

from genericdp.cli.output import Output
from genericdp.core.reading.schema import rules_schema, settings_schema

SCHEMAS = {"rules": rules_schema, "settings": settings_schema}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the JSON Schema of rule files or of the settings. An editor with a TOML language "
        "server (taplo, tombi, Even Better TOML) completes and checks a file whose first line names "
        "the schema: \"#:schema PATH\". 'genericdp check' also finds what a schema cannot."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp schema rules > rules.schema.json\n"
        "  sed -i '1i #:schema ./rules.schema.json' my.toml"
    )
    parser.add_argument("file", choices=tuple(SCHEMAS), help="the kind of file")


def run(*, file: str) -> int:
    """Print it. Returns 0."""
    Output(sys.stdout).json(SCHEMAS[file]())
    return 0
