"""Whether an object is what an API server accepts, as far as schemas can tell.

The schemas of Kubernetes are those that the package kubernetes-validate carries, in the strict form, in
which an unknown field is a mistake. Those of other projects are in tests/data/kubernetes/schemas; they know
the fields that are used here.
"""

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.kubernetes.renderings import DATA, Object


def newest() -> str:
    """The newest release of Kubernetes whose schemas there are."""
    names = [re.match(r"v(\d+)\.(\d+)\.", path.name) for path in _carried().iterdir()]
    major, minor = max((int(found[1]), int(found[2])) for found in names if found)
    return f"{major}.{minor}"


def mistakes(thing: Object, version: str) -> Iterator[str]:
    """What is wrong with an object for a release of Kubernetes ("1.25"), in words."""
    for error in _validator(thing["apiVersion"], thing["kind"], version).iter_errors(thing):
        yield f"{thing['kind']} {'.'.join(str(part) for part in error.path)}: {error.message[:300]}"


@cache
def _validator(api_version: str, kind: str, version: str) -> Draft202012Validator:
    other = DATA / "schemas" / f"{kind.lower()}.json"
    if other.exists():
        return Draft202012Validator(_json(other))
    group, _, release = api_version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], release) if part)
    folder = _carried() / f"v{version}.0-local-strict"
    return Draft202012Validator(_json(folder / f"{name}.json"), registry=_definitions(folder))


@cache
def _definitions(folder: Path) -> Registry[Any]:
    return Resource.from_contents(_json(folder / "_definitions.json")) @ Registry()


@cache
def _carried() -> Path:
    found = importlib.util.find_spec("kubernetes_validate")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "kubernetes-json-schema"


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
