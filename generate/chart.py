"""README.md and values.schema.json of the Helm chart, from its values.yaml.

The rules of this file:

* A value is declared in values.yaml alone: its name, its default, and in the comment above it what it is for.
* What a default does not tell about the type is declared here. What Kubernetes defines is left to Kubernetes.
* The keys of genericdp.toml are those that the program knows.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from genericdp.core.reading.schema import settings_schema
from genericdp.core.rules.name import DNS_LABEL

_CHART = "packaging/kubernetes/chart"
_ROOT = Path(__file__).resolve().parents[1]
_README = Path(__file__).with_name("chart.md")

#: Values that Kubernetes defines: their keys are not listed here.
_OF_KUBERNETES = {
    "grafanaDashboard.labels",
    "livenessProbe",
    "nodeSelector",
    "readinessProbe",
    "resources",
    "securityContext",
    "startupProbe",
    "updateStrategy",
}

#: Settings that follow from other values.
_SET_BY_THE_CHART = {
    "cdi_dir",
    "domain",
    "kubelet_dir",
    "link_dir",
    "metrics",
    "pod_resources_socket",
    "run_dir",
    "state_dir",
}

_LABEL = DNS_LABEL.pattern
_NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$"}
_PATH = {"pattern": "^/"}

#: What more is known about values.
_MORE: Mapping[str, Mapping[str, Any]] = {
    "dnsPolicy": {"enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
    "domain": {"pattern": rf"^{_LABEL}(\.{_LABEL})*$"},
    "image.digest": {"pattern": "^(sha256:[0-9a-f]{64})?$"},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "image.repository": {"minLength": 1},
    "image.tag": {"pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"},
    "metrics.address": {"pattern": r"^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]+\])?$"},
    "metrics.port": {"minimum": 1, "maximum": 65535},
    "minReadySeconds": {"minimum": 0},
    "resourceQuota.pods": {"minimum": 1},
    "revisionHistoryLimit": {"minimum": 0},
    "terminationGracePeriodSeconds": {"minimum": 0},
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the chart; `path` is written with dots. `section` is the heading that it stands under."""

    section: str
    path: str
    default: Any
    meaning: str

    @property
    def is_group(self) -> bool:
        """Whether it consists of values that are listed themselves."""
        return bool(self.default) and isinstance(self.default, dict) and self.path not in _OF_KUBERNETES


def chart_files() -> Iterator[tuple[str, str]]:
    """The path of each file in the tree, and its text."""
    text = (_ROOT / _CHART / "values.yaml").read_text(encoding="utf-8")
    values = tuple(values_of(text))
    yield f"{_CHART}/values.schema.json", json.dumps(_schema(values), indent=2) + "\n"
    yield f"{_CHART}/README.md", _readme(values)


def values_of(text: str) -> Iterator[Value]:
    """All values that are declared in values.yaml, in order; groups come before their values.

    Raises ValueError for a value without a comment, unless it is a group.
    """
    defaults = yaml.safe_load(text)
    section = ""
    comment: list[str] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = re.match(r"( *)([A-Za-z0-9_./-]+):(?: |$)", line)
        indent = len(line) - len(line.lstrip())
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.lstrip().startswith("# "):
            comment.append(line.strip().removeprefix("# "))
            continue
        elif found:
            above = [each for each in above if each[0] < indent]
            path = ".".join([*(name for _, name in above), found[2]])
            if not any(path.startswith(f"{group}.") for group in _OF_KUBERNETES):
                value = Value(section, path, _at(defaults, path), " ".join(comment))
                if not comment and not value.is_group:
                    raise ValueError(f"values.yaml: no comment above {path}")
                yield value
            above.append((indent, found[2]))
        comment.clear()


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def _schema(values: tuple[Value, ...]) -> Mapping[str, Any]:
    top: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "the values of the chart genericdp",
        "type": "object",
        "additionalProperties": False,
        "properties": {"global": {"type": "object"}},
    }
    for value in values:
        *groups, name = value.path.split(".")
        at = top
        for group in groups:
            at = at["properties"][group]
        at["properties"][name] = _schema_of(value)
    pool = top["properties"]
    pool["pools"]["items"] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": _NAME,
            **{
                name: _or_null({key: what for key, what in pool[name].items() if key != "default"})
                for name in (
                    "nodeSelector",
                    "affinity",
                    "tolerations",
                    "domain",
                    "settings",
                    "rules",
                    "existingConfigMap",
                )
            },
        },
    }
    return top


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The same or null: in a list, Helm keeps a key whose value is commented out."""
    kinds = schema["type"]
    return {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds[:1]), "null"]}


def _schema_of(value: Value) -> dict[str, Any]:
    text = {"description": value.meaning} if value.meaning else {}
    if value.path == "rules":
        return {**text, "type": "object", **_rules(), "default": {}}
    if value.path == "settings":
        return {**text, **_settings(), "default": {}}
    if value.is_group:
        return {**text, "type": "object", "additionalProperties": False, "properties": {}}
    more = _PATH if value.path.startswith("hostPaths.") else _MORE.get(value.path, {})
    return {**text, "type": _type(value), **more, "default": value.default}


def _rules() -> Mapping[str, Any]:
    return {
        "additionalProperties": False,
        "patternProperties": {r"^[A-Za-z0-9_-][A-Za-z0-9._-]*\.toml$": {"type": "string"}},
    }


def _settings() -> Mapping[str, Any]:
    """Those of the program that no other value sets."""
    known = settings_schema()
    duration = known["definitions"]["duration"]
    properties = {}
    for name, what in known["properties"].items():
        if name not in _SET_BY_THE_CHART:
            alone = {key: each for key, each in what.items() if key != "allOf"}
            properties[name] = {**alone, **duration} if "allOf" in what else alone
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _type(value: Value) -> str | list[str]:
    match value.default:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return ["object", "null"] if value.path in _OF_KUBERNETES else "object"


def _readme(values: tuple[Value, ...]) -> str:
    """The page of the chart, with a table for each section of the values."""
    tables = []
    for section in dict.fromkeys(value.section for value in values):
        rows = [value for value in values if value.section == section and not value.is_group]
        tables += [
            f"### {section}\n",
            "| value | default | meaning |\n|---|---|---|",
            *(f"| `{value.path}` | {_default(value)} | {_cell(value.meaning)} |" for value in rows),
            "",
        ]
    text = _README.read_text(encoding="utf-8")
    head = '<!-- Written by "make generate" from values.yaml and generate/chart.md: change those. -->\n'
    return head + text.replace("VALUES\n", "\n".join(tables).rstrip() + "\n")


def _default(value: Value) -> str:
    if value.path in _OF_KUBERNETES:
        return "see values.yaml" if len(json.dumps(value.default)) > 60 else f"`{json.dumps(value.default)}`"
    return f"`{json.dumps(value.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
