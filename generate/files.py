"""The files that are generated from declarations in the program, with their contents.

The rules of this file:

* The files are committed, so that a package needs nothing but the tree. A test compares them with what
  this file makes.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from generate.chart import chart_files
from generate.completions import completions
from generate.families import families_page
from generate.monitoring import monitoring_files
from generate.pages import docs_pages, manual_pages
from genericdp.core.reading.schema import rules_schema, settings_schema

ROOT = Path(__file__).resolve().parents[1]


def files() -> Mapping[str, str]:
    """The text of each file by its path in the tree."""
    return {
        "generated/schema/rules.json": _json(rules_schema()),
        "generated/schema/settings.json": _json(settings_schema()),
        **{f"generated/completions/{name}": text for name, text in completions()},
        **{f"generated/man/{name}": text for name, text in manual_pages()},
        **{f"docs/{name}": text for name, text in docs_pages()},
        "docs/families.md": families_page(),
        **dict(chart_files()),
        **dict(monitoring_files()),
    }


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"
