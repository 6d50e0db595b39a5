"""Dashboard and alerts name metrics that there are, and Prometheus' own tool agrees with everything."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from genericdp.core.status.metrics import FAMILIES, Process
from tests.scenes.builders import a_usb_serial
from tests.scenes.facts import facts_of
from tests.scenes.inventories import inventory_of
from tests.scenes.scrape import scrape_of

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging" / "prometheus" / "genericdp.rules.yml"
DASHBOARD = ROOT / "packaging" / "grafana" / "genericdp.json"
ALERT_TESTS = ROOT / "tests" / "data" / "prometheus" / "alerts.yml"

#: What Prometheus itself adds to every sample of a target.
TARGET_LABELS = {"job", "instance"}

#: Grafana's variables, as values that PromQL takes.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*", "$resource": ".*"}

ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))


def labels_by_sample() -> Mapping[str, set[str]]:
    """The name of a sample -> its labels."""
    found = {}
    for family in FAMILIES:
        if family.kind == "histogram":
            found[f"{family.name}_bucket"] = {*family.labels, "le"}
            found |= {f"{family.name}_{part}": {*family.labels} for part in ("sum", "count")}
        else:
            found[family.name] = {*family.labels}
    return found


SAMPLES = labels_by_sample()


def expressions() -> Iterator[tuple[str, str]]:
    """Where it stands -> an expression."""
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]


EXPRESSIONS = dict(expressions())


def promtool(*arguments: str, stdin: str = "") -> str:
    """What promtool prints; fails when it finds something wrong."""
    program = shutil.which("promtool", path=f"{ROOT / '.cache'}:/usr/local/bin:/usr/bin")
    assert program, "promtool is missing: run .ci/promtool, as make test does"
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_and_label_of_an_expression_exists(expression: str) -> None:
    without_texts = re.sub(r'"[^"]*"', '""', expression)
    names = set(re.findall(r"\b(?:genericdp|process)_\w+", without_texts))
    assert names <= SAMPLES.keys()
    for name, matchers in re.findall(r"\b((?:genericdp|process)_\w+)\{([^}]*)\}", without_texts):
        assert set(re.findall(r"(\w+)\s*[=!]", matchers)) <= SAMPLES[name] | TARGET_LABELS, name
    known = TARGET_LABELS.union(*(SAMPLES[name] for name in names))
    for grouped in re.findall(r"\b(?:by|on|ignoring|without)\s*\(([^)]*)\)", without_texts):
        assert set(re.findall(r"\w+", grouped)) <= known


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_says_how_bad_it_is_and_what_to_do(alert: Mapping[str, Any]) -> None:
    assert alert["alert"].startswith("Genericdp")
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert set(alert["annotations"]) == {"summary", "description"}
    names = re.findall(r"\b(?:genericdp|process)_\w+", alert["expr"])
    known = TARGET_LABELS.union(*(SAMPLES[name] for name in names))
    for text in alert["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= known


def test_every_alert_is_tried_when_it_should_be_silent() -> None:
    tests = yaml.safe_load(ALERT_TESTS.read_text(encoding="utf-8"))["tests"]
    silent = {each["alertname"] for each in tests[0]["alert_rule_test"] if "exp_alerts" not in each}
    assert silent == {alert["alert"] for alert in ALERTS}


def test_the_legends_and_variables_of_the_dashboard_name_labels_that_there_are() -> None:
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"\b(?:genericdp|process)_\w+", target["expr"])
            known = TARGET_LABELS.union(*(SAMPLES[name] for name in names))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= known
    queries = [each["query"]["query"] for each in BOARD["templating"]["list"] if each["type"] != "datasource"]
    for query in queries:
        found = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", query)
        assert found is not None
        assert found[2] in SAMPLES[found[1]] | TARGET_LABELS


def test_the_panels_of_the_dashboard_do_not_overlap_and_have_numbers_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len({*numbers}) == len(numbers)


def test_promtool_accepts_the_alerts_and_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", str(RULES))
    recorded = []
    for number, expression in enumerate(EXPRESSIONS.values()):
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)  # noqa: PLW2901  (it becomes what Grafana sends)
        assert "$" not in expression
        recorded.append({"record": f"x:{number}", "expr": expression})
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": recorded}]}))
    assert f"SUCCESS: {len(EXPRESSIONS)} rules found" in promtool(
        "check", "rules", str(tmp_path / "rules.yml")
    )


def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(ALERT_TESTS))


def test_promtool_accepts_the_metrics_and_their_names() -> None:
    rules = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
    facts = facts_of(inventory_of(rules, a_usb_serial(0)))
    facts.history.heard_uevent("add", "tty")
    text = scrape_of(facts, Process("3.11.2", 1.5, 1 << 20, 9))
    assert promtool("check", "metrics", stdin=text) == ""
