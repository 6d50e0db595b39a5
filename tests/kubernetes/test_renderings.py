"""The renderings that are kept: up to date, and what an API server accepts."""

import copy
import re
from pathlib import Path

import pytest

from genericdp import VERSION
from tests.kubernetes.renderings import (
    DATA,
    DIGEST,
    KUBERNETES,
    OLDEST,
    RENDERINGS,
    ROOT,
    digest_of_sources,
    pod_templates,
    read,
    title,
)
from tests.kubernetes.schemas import mistakes, newest

KEPT = sorted(RENDERINGS.glob("*.yaml"))


def test_the_renderings_are_those_of_the_manifests_and_templates() -> None:
    up_to_date = DIGEST.read_text(encoding="utf-8") == digest_of_sources()
    assert up_to_date, "packaging/kubernetes has changed: run `make renderings` and commit what it writes"


def test_every_overlay_has_a_component_that_a_kustomization_of_ones_own_can_use() -> None:
    overlays = {folder.name for folder in (KUBERNETES / "overlays").iterdir()}
    assert overlays - {"k3s"} == {folder.name for folder in (KUBERNETES / "components").iterdir()}


def test_the_kustomization_in_the_documentation_is_one_that_is_rendered() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    (shown,) = (text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "Kustomization" in text)
    rendered = (DATA / "own" / "kustomization.yaml").read_text(encoding="utf-8")
    assert shown.replace("../packaging", "../../../../packaging") == rendered.partition("\n")[2]


def test_the_lines_in_the_documentation_that_move_everything_are_rendered() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    (shown,) = (
        text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "namespace: devices" in text
    )
    assert (DATA / "elsewhere" / "kustomization.yaml").read_text(encoding="utf-8").endswith(shown)
    things = {thing["kind"]: thing for thing in read(RENDERINGS / "kustomize-elsewhere.yaml")}
    assert things["Namespace"]["metadata"]["name"] == "devices"
    assert things["RoleBinding"]["subjects"][0]["namespace"] == "devices"
    assert things["DaemonSet"]["spec"]["template"]["spec"]["nodeSelector"]["example.com/gateway"] == "true"


@pytest.mark.parametrize("version", [OLDEST, newest()])
@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))
def test_an_api_server_of_the_oldest_and_of_the_newest_release_accepts_every_object(
    path: Path, version: str
) -> None:
    assert [each for thing in read(path) for each in mistakes(thing, version)] == []


def test_a_mistake_in_a_manifest_is_found() -> None:
    base = copy.deepcopy(read(RENDERINGS / "kustomize-base.yaml"))
    (daemon_set,) = (thing for thing in base if thing["kind"] == "DaemonSet")
    daemon_set["spec"]["template"]["spec"]["hostNetwrok"] = True
    assert [*mistakes(daemon_set, OLDEST)] == [
        "DaemonSet spec.template.spec: Additional properties are not allowed ('hostNetwrok' was unexpected)"
    ]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))
def test_every_object_has_a_name_of_its_own_and_the_namespace_of_the_pods(path: Path) -> None:
    things = read(path)
    assert len({title(thing) for thing in things}) == len(things)
    namespace = {"chart-others": "default", "kustomize-elsewhere": "devices"}.get(path.stem, "genericdp")
    assert {thing["metadata"].get("namespace", namespace) for thing in things} == {namespace}
    without = {thing["kind"] for thing in things if "namespace" not in thing["metadata"]}
    assert without <= {"Namespace", "SecurityContextConstraints"}


def test_the_image_is_that_of_this_version() -> None:
    images = {
        container["image"]
        for path in KEPT
        for template in pod_templates(read(path))
        for container in template["spec"]["containers"]
        if path.stem not in ("chart-everything", "chart-others", "kustomize-own")
    }
    assert images == {f"ghcr.io/genericdp/genericdp:{VERSION}"}
