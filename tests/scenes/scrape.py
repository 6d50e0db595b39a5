"""Metrics as Prometheus reads them, with its own parser."""

from prometheus_client.parser import text_string_to_metric_families

from genericdp.core.status.exposition import Samples
from genericdp.core.status.facts import Facts
from genericdp.core.status.metrics import FAMILIES, Process, fill


def scrape_of(facts: Facts, process: Process) -> str:
    """The metrics of these facts as text."""
    samples = Samples(FAMILIES)
    for _ in fill(samples, facts, process):
        pass
    return samples.render()


def read(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Sample name -> (labels, value) of each, as Prometheus reads it."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found
