"""Metrics as Prometheus reads them, with its own parser."""

from prometheus_client.parser import text_string_to_metric_families


def read(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Sample name -> (labels, value) of each, as Prometheus reads it."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found
