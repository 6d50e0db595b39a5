"""Alerts and dashboard, as the manifests for Kubernetes carry them.

The rules of this file:

* kustomize and Helm read only what is in their own directory. So the files there are made from
  `packaging/prometheus` and `packaging/grafana`, which are for everybody.
"""

from collections.abc import Iterator
from pathlib import Path

_PACKAGING = Path(__file__).resolve().parents[1] / "packaging"
_ALERTS = "packaging/prometheus/genericdp.rules.yml"
_COMPONENT = "packaging/kubernetes/components/monitoring"
_CHART = "packaging/kubernetes/chart/files"

_HEAD = f"""\
# Written by "make generate" from {_ALERTS}: change that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: genericdp
  namespace: genericdp
spec:
"""


def monitoring_files() -> Iterator[tuple[str, str]]:
    """The path of each file in the tree, and its text."""
    dashboard = (_PACKAGING / "grafana" / "genericdp.json").read_text(encoding="utf-8")
    yield f"{_COMPONENT}/prometheusrule.yaml", _HEAD + "".join(_indented(_groups()))
    yield f"{_COMPONENT}/genericdp.json", dashboard
    yield f"{_CHART}/alerts.yaml", f'# Written by "make generate" from {_ALERTS}: change that.\n{_groups()}'
    yield f"{_CHART}/dashboard.json", dashboard


def _groups() -> str:
    """The alerts without the comment at their head, which is for those who copy the file."""
    text = (_PACKAGING.parent / _ALERTS).read_text(encoding="utf-8")
    return text[text.index("groups:") :]


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        yield f"  {line}" if line.strip() else line
