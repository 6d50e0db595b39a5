"""Renders the manifests and the chart with the tools that operators use."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from helm_python.chart import Chart, lint
from helm_python.errors import HelmError

from tests.kubernetes.renderings import (
    DATA,
    KUBERNETES,
    NULLS,
    PATH_SEPARATOR,
    ROOT,
    Object,
    in_order,
    kustomizations,
    objects_of,
    value_paths,
)

KUSTOMIZE = ROOT / ".cache" / "kustomize"
CHART = KUBERNETES / "chart"
NOTES = "genericdp/templates/NOTES.txt"


def renderings() -> Iterator[tuple[str, str]]:
    """The name of each rendering, and its text."""
    for name, folder in kustomizations():
        yield f"kustomize-{name}.yaml", normal(kustomize(folder))
    with Chart.load(CHART) as chart:
        for path in sorted((DATA / "values").iterdir()):
            made = helm(chart, path)
            yield f"chart-{path.stem}.txt", made.pop(NOTES).lstrip()
            yield f"chart-{path.stem}.yaml", normal("".join(f"---\n{text}\n" for text in made.values()))
        for path in sorted((DATA / "refused").iterdir()):
            yield f"refused-{path.stem}.txt", why_refused(chart, path)
        yield NULLS.name, "".join(f"{each}: {what_null_does(chart, each)}\n" for each in value_paths())
    yield "lint.txt", "".join(f"{each['path']}: {each['error']}\n" for each in lint(CHART)["messages"])


def helm(chart: Chart, values: Path) -> dict[str, str]:
    """What `helm install genericdp` would apply, file by file."""
    return rendered(chart, yaml.safe_load(values.read_text(encoding="utf-8")))


def rendered(chart: Chart, values: Object) -> dict[str, str]:
    """What `helm install genericdp` would apply with these values, file by file."""
    return dict(chart.render(values, name="genericdp", namespace="genericdp"))


def why_refused(chart: Chart, values: Path) -> str:
    """What Helm says about values that are a mistake."""
    try:
        helm(chart, values)
    except HelmError as error:
        return f"{error}\n"
    raise SystemExit(f"{values}: Helm accepts it")


def what_null_does(chart: Chart, path: str) -> str:
    """What Helm does with null for a value: "accepted", or its error."""
    value: Any = None
    for name in reversed(path.split(PATH_SEPARATOR)):
        value = {name: value}
    try:
        rendered(chart, value)
    except HelmError as error:
        return str(error).rpartition("): ")[2]
    return "accepted"


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
