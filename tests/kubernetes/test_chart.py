"""The Helm chart: its values, and what it makes of them."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from generate.chart import values_of
from genericdp import VERSION
from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.rules.settings import DEFAULT_DOMAIN
from tests.kubernetes.renderings import (
    DATA,
    KUBERNETES,
    NULLS,
    OLDEST,
    PATH_SEPARATOR,
    RENDERINGS,
    objects_of,
    pod_templates,
    read,
    title,
    value_paths,
)

CHART = KUBERNETES / "chart"
VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = Draft7Validator(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))
KEPT = sorted(RENDERINGS.glob("*.yaml"))

#: What marks an object as one of a release of Helm, and the settings of a pod as the current ones.
OF_HELM = {"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/settings"}

each_rendering = pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))


def test_the_chart_installs_what_the_base_does() -> None:
    base = {title(thing): plain(thing) for thing in read(RENDERINGS / "kustomize-base.yaml")}
    chart = {title(thing): plain(thing) for thing in read(RENDERINGS / "chart-default.yaml")}
    del base["Namespace genericdp"]  # Helm makes it, without labels
    del chart["Pod genericdp-test"]  # which only `helm test` starts
    (settings,) = [name for name in base if name.startswith("ConfigMap genericdp-settings-")]
    base["ConfigMap genericdp-settings"] = base.pop(settings)
    assert chart == base


def plain(value: Any) -> Any:
    """An object without what only one of the tools adds; settings as their meaning."""
    match value:
        case {"genericdp.toml": str(text)}:
            return tomllib.loads(text)
        case dict():
            return {key: plain(each) for key, each in value.items() if key not in OF_HELM}
        case list():
            return [plain(each) for each in value]
        case str():
            return re.sub(r"^genericdp-settings-[a-z0-9]{10}$", "genericdp-settings", value)
    return value


def test_the_chart_is_of_this_version_and_of_the_oldest_kubernetes() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (about["version"], about["appVersion"]) == (VERSION, VERSION)
    assert about["kubeVersion"] == f">={OLDEST}.0-0"


def test_every_value_is_used_by_a_template_and_given_in_a_rendering() -> None:
    templates = "".join(path.read_text(encoding="utf-8") for path in (CHART / "templates").rglob("*.*"))
    texts = [path.read_text(encoding="utf-8") for path in (DATA / "values").iterdir()]
    given = {path for text in texts for path in paths_of(yaml.safe_load(text))}
    for value in values_of(VALUES):
        if not value.is_group:
            assert re.search(rf"\.{value.path.rpartition('.')[2]}\b", templates), value.path
            assert value.path in given, f"{value.path} is in no file of tests/data/kubernetes/values"


def paths_of(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Every value that is given, and every group."""
    for name, value in values.items():
        yield above + name
        if isinstance(value, dict):
            yield from paths_of(value, f"{above}{name}.")


def test_a_value_without_a_comment_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"^values.yaml: no comment above b.d$"):
        [*values_of("# It is.\na: 1\nb:\n  # It is.\n  c: 2\n  d: 3\n")]


@pytest.mark.parametrize(
    "path", [CHART / "values.yaml", *sorted((DATA / "values").iterdir())], ids=lambda path: str(path.stem)
)
def test_the_schema_accepts_the_defaults_and_all_values_that_are_rendered(path: Path) -> None:
    values = without_nulls(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert [error.message for error in SCHEMA.iter_errors(values)] == []


def without_nulls(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values as Helm sees them: null removes a default."""
    return {name: value for name, value in values.items() if value is not None}


def test_the_values_of_the_readme_are_accepted_and_its_rules_are_good() -> None:
    text = (CHART / "README.md").read_text(encoding="utf-8")
    (values,) = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    assert [error.message for error in SCHEMA.iter_errors(values)] == []
    rules = [*re.findall(r"^cat >\S+ <<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)]
    rules += [rule for each in (values, *values["pools"]) for rule in each["rules"].values()]
    assert len(rules) == 4
    for rule in rules:
        assert parse_rules("README.md", rule, DEFAULT_DOMAIN)[1] == ()


def settings_of(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each ConfigMap of settings, and the settings."""
    for thing in read(path):
        text = (thing.get("data") or {}).get("genericdp.toml")
        if text is not None:
            assert parse_settings("genericdp.toml", text)[1] == ()
            yield thing["metadata"]["name"], tomllib.loads(text)


@each_rendering
def test_the_daemon_accepts_the_settings_and_every_rule_file(path: Path) -> None:
    assert [*settings_of(path)]
    for thing in read(path):
        for name, text in (thing.get("data") or {}).items():
            if name.endswith(".toml") and name != "genericdp.toml":
                assert parse_rules(name, text, DEFAULT_DOMAIN)[1] == ()


@each_rendering
def test_each_daemon_set_has_its_own_settings_and_listens_where_its_probes_ask(path: Path) -> None:
    settings = dict(settings_of(path))
    for thing in read(path):
        if thing["kind"] != "DaemonSet":
            continue
        spec = thing["spec"]["template"]["spec"]
        (name,) = (each["configMap"]["name"] for each in spec["volumes"] if each["name"] == "settings")
        assert "run_dir" not in settings[name]


@pytest.mark.parametrize("stem", ["chart-default", "chart-pools", "kustomize-base", "kustomize-restart"])
def test_without_monitoring_nothing_listens_on_the_network(stem: str) -> None:
    for _, settings in settings_of(RENDERINGS / f"{stem}.yaml"):
        assert "metrics" not in settings


#: The addresses to listen on that Prometheus reaches.
EVERYWHERE = ("0.0.0.0", "[::]")


@each_rendering
def test_prometheus_asks_the_pods_where_they_listen(path: Path) -> None:
    things = read(path)
    for monitor in (thing for thing in things if thing["kind"] == "PodMonitor"):
        ((_, settings),) = settings_of(path)
        address, _, port = settings["metrics"].rpartition(":")
        assert address in EVERYWHERE
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["honorLabels"] is True
        shown = [
            each["replacement"] for each in endpoint["relabelings"] if each["targetLabel"] == "__address__"
        ]
        assert shown == [f"$1:{port}", f"[$1]:{port}"]
        labels = monitor["spec"]["selector"]["matchLabels"]
        (daemon_set,) = (thing for thing in things if thing["kind"] == "DaemonSet")
        assert labels.items() <= daemon_set["spec"]["template"]["metadata"]["labels"].items()


def test_each_pool_has_its_own_rules_and_nodes() -> None:
    things = {title(thing): thing for thing in read(RENDERINGS / "chart-pools.yaml")}
    rules = {name: things[f"ConfigMap genericdp-{name}-rules"]["data"] for name in ("cameras", "gateways")}
    assert [*rules["gateways"]] == ["10-fuse.toml", "50-modem.toml"]
    assert [*rules["cameras"]] == ["10-fuse.toml"]
    assert "replicas = 7" in rules["cameras"]["10-fuse.toml"]
    for name, role in (("cameras", "camera"), ("gateways", "gateway")):
        spec = things[f"DaemonSet genericdp-{name}"]["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {
            "kubernetes.io/os": "linux",
            "example.com/owner": "edge",
            "example.com/role": role,
        }
        (volume,) = (each for each in spec["volumes"] if each["name"] == "rules")
        assert volume["configMap"] == {"name": f"genericdp-{name}-rules", "optional": True}
    settings = dict(settings_of(RENDERINGS / "chart-pools.yaml"))
    assert settings["genericdp-gateways-settings"]["domain"] == "gateway.example.com"
    assert settings["genericdp-gateways-settings"]["coalesce"] == "20ms"
    assert settings["genericdp-cameras-settings"]["coalesce"] == "200ms"
    assert "DaemonSet genericdp" not in things


def test_what_a_pool_empties_is_empty_and_not_what_all_pools_have() -> None:
    things = {title(thing): thing for thing in read(RENDERINGS / "chart-pools.yaml")}
    assert things["ConfigMap genericdp-spares-rules"]["data"] == {"10-fuse.toml": ""}
    spec = things["DaemonSet genericdp-spares"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "example.com/owner": ""}
    assert {"affinity", "tolerations"}.isdisjoint(spec)
    settings = dict(settings_of(RENDERINGS / "chart-pools.yaml"))
    assert settings["genericdp-spares-settings"]["runtime_socket"] == ""
    assert settings["genericdp-spares-settings"]["coalesce"] == "200ms"


def test_a_null_in_a_pool_leaves_what_all_pools_have() -> None:
    of_all = yaml.safe_load((DATA / "values" / "removed.yaml").read_text(encoding="utf-8"))
    things = {title(thing): thing for thing in read(RENDERINGS / "chart-removed.yaml")}
    assert things["ConfigMap genericdp-all-rules"]["data"] == of_all["rules"]
    spec = things["DaemonSet genericdp-all"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert dict(settings_of(RENDERINGS / "chart-removed.yaml"))["genericdp-all-settings"]["domain"] == (
        DEFAULT_DOMAIN
    )


def test_a_configmap_that_somebody_else_makes_is_not_made_and_has_to_exist() -> None:
    things = read(RENDERINGS / "chart-existing.yaml")
    made = [title(thing) for thing in things if "rules" in thing["metadata"]["name"]]
    assert made == ["ConfigMap genericdp-own-rules"]
    volumes = [
        volume["configMap"]
        for template in pod_templates(things)
        for volume in template["spec"]["volumes"]
        if volume["name"] == "rules"
    ]
    assert {json.dumps(each) for each in volumes} == {
        '{"name": "our-rules"}',
        '{"name": "their-rules"}',
        '{"name": "genericdp-own-rules", "optional": true}',
    }


def test_openshift_permits_what_the_pods_do_in_the_chart_as_in_the_manifests() -> None:
    kinds = ("SecurityContextConstraints", "Role", "RoleBinding")
    for path in (RENDERINGS / "kustomize-openshift.yaml", RENDERINGS / "chart-everything.yaml"):
        found = {thing["kind"]: thing for thing in read(path)}
        scc, role, binding = (found[kind] for kind in kinds)
        assert role["rules"][0]["resourceNames"] == [scc["metadata"]["name"]]
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        (subject,) = binding["subjects"]
        spec = found["DaemonSet"]["spec"]["template"]["spec"]
        assert (subject["name"], subject["namespace"]) == (spec["serviceAccountName"], "genericdp")
        assert spec["hostNetwork"] is scc["allowHostNetwork"] is True
        volumes = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
        assert volumes == {*scc["volumes"]}
    of_base, of_chart = (
        {key: each for key, each in thing.items() if key != "metadata"}
        for path in (RENDERINGS / "kustomize-openshift.yaml", RENDERINGS / "chart-everything.yaml")
        for thing in read(path)
        if thing["kind"] == "SecurityContextConstraints"
    )
    assert of_base == of_chart


def test_the_text_of_a_rule_file_is_carried_as_it_is() -> None:
    (rules,) = (
        thing
        for thing in read(RENDERINGS / "chart-everything.yaml")
        if title(thing) == "ConfigMap devices-rules"
    )
    given = objects_of((DATA / "values" / "everything.yaml").read_text(encoding="utf-8"))[0]["rules"]
    assert rules["data"] == given


def test_null_is_accepted_or_refused_in_one_sentence_for_every_value() -> None:
    found = dict(line.split(": ", 1) for line in NULLS.read_text(encoding="utf-8").splitlines())
    assert [*found] == value_paths()
    for path, outcome in found.items():
        name = path.replace(PATH_SEPARATOR, ".")
        refused = f"{name} has no value: give it one, or remove it from your values to get the default"
        assert outcome in ("accepted", refused)
    # These would be off without a word, and then the restrictions or udev's events.
    for path in ("securityContext", "hostNetwork"):
        assert found[path] != "accepted"
    # These are Kubernetes' own, or off by default.
    for path in ("resources", "livenessProbe", "tolerations", "nodeSelector", "metrics", "openshift scc"):
        assert found[path] == "accepted"
