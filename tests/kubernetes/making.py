"""Renders the manifests and the chart with the tools that operators use."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.kubernetes.renderings import ROOT, in_order, kustomizations, objects_of

KUSTOMIZE = ROOT / ".cache" / "kustomize"


def renderings() -> Iterator[tuple[str, str]]:
    """The name of each rendering, and its text."""
    for name, folder in kustomizations():
        yield f"kustomize-{name}.yaml", normal(kustomize(folder))


def kustomize(folder: Path) -> str:
    """What `kubectl apply -k` would apply."""
    done = subprocess.run([KUSTOMIZE, "build", folder], check=False, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise SystemExit(f"{folder}: {done.stderr}")
    return done.stdout


def normal(text: str) -> str:
    """The same objects, in the same order and form whatever the tool."""
    return yaml.dump_all(in_order(objects_of(text)), Dumper=_Dumper, width=110, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """Writes texts of several lines as such, so that people can read what differs."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
