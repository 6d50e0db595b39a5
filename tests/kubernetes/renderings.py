"""The renderings of the manifests and of the chart, as they are kept in tests/data/kubernetes/renderings.

The tools that render are too heavy for `make test`. `make renderings` writes these files; `make test` looks
only at them, and `make test-chart` renders again and compares.

The rules of this file:

* The digest of everything that is rendered is kept beside the renderings, so that `make test` notices a
  manifest or a template that was changed without `make renderings`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "packaging" / "kubernetes"
DATA = ROOT / "tests" / "data" / "kubernetes"
RENDERINGS = DATA / "renderings"
DIGEST = RENDERINGS / "SOURCES.sha256"
#: What Helm does with null for each value.
NULLS = RENDERINGS / "null.txt"

#: Between the names of a value's path; label names have dots.
PATH_SEPARATOR = " "

#: What is rendered: manifests and chart, kustomizations of one's own, and values, right and wrong.
SOURCES = (KUBERNETES, *(DATA / name for name in ("all", "elsewhere", "own", "values", "refused")))

#: The oldest Kubernetes that is supported: the first one in which a DaemonSet may always surge.
OLDEST = "1.25"

Object = Mapping[str, Any]


def kustomizations() -> Iterator[tuple[str, Path]]:
    """Each kustomization that is rendered: its name, its directory."""
    yield "base", KUBERNETES / "base"
    for folder in sorted((KUBERNETES / "overlays").iterdir()):
        yield folder.name, folder
    for name in ("all", "elsewhere", "own"):
        yield name, DATA / name


def value_paths() -> list[str]:
    """The path of each value of the chart, groups included."""

    def below(values: Object, path: str) -> Iterator[str]:
        for name, value in values.items():
            yield f"{path}{name}"
            if isinstance(value, dict):
                yield from below(value, f"{path}{name}{PATH_SEPARATOR}")

    text = (KUBERNETES / "chart" / "values.yaml").read_text(encoding="utf-8")
    return [*below(yaml.safe_load(text), "")]


def digest_of_sources() -> str:
    """A digest of everything that is rendered, with the names of the files."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest() + "\n"


@cache
def read(path: Path) -> list[Object]:
    """The objects of a rendering. Nobody may change them."""
    return objects_of(path.read_text(encoding="utf-8"))


def objects_of(text: str) -> list[Object]:
    """The objects in a stream of YAML documents."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def title(thing: Object) -> str:
    """Kind and name of an object."""
    return f"{thing['kind']} {thing['metadata']['name']}"


def in_order(things: list[Object]) -> list[Object]:
    """The objects of a rendering in an order that does not depend on the tool."""
    return sorted(things, key=title)


def pod_templates(things: list[Object]) -> Iterator[Object]:
    """The template of each DaemonSet, and each pod."""
    for thing in things:
        if thing["kind"] == "DaemonSet":
            yield thing["spec"]["template"]
        if thing["kind"] == "Pod":
            yield thing
