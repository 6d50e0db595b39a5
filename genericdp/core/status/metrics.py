"""The metrics of the daemon: declared families, filled with samples.

The rules of this file:

* Names and labels follow Kubernetes: base units, `_total` for counters, `namespace`, `pod` and `container`,
  details in an `_info` with the value 1. No label names the node: the scraper knows it.
* A test compares docs/metrics.md, the dashboard and the alerts with the declarations here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from genericdp.core.allocate import RefusalReason
from genericdp.core.inventory.offer import Health
from genericdp.core.status import holdings
from genericdp.core.status.exposition import Family, Samples
from genericdp.core.status.facts import Facts
from genericdp.core.status.history import ALLOCATION_BOUNDS_S, Counts, History, Retried
from genericdp.core.status.holdings import Held

FAMILIES = (
    Family(
        "genericdp_build_info", "gauge", ("version", "python", "node"), "The version of genericdp; always 1."
    ),
    Family("genericdp_standby", "gauge", (), "1 while another genericdp serves the node."),
    Family("genericdp_kubelet_up", "gauge", (), "1 while a kubelet listens."),
    Family(
        "genericdp_kubelet_restarts_total", "counter", (), "How often the kubelet was replaced by a new one."
    ),
    Family("genericdp_pod_resources_up", "gauge", (), "1 if the kubelet's PodResources API answers."),
    Family("genericdp_registered", "gauge", ("resource",), "1 while the resource is registered."),
    Family(
        "genericdp_stuck",
        "gauge",
        ("resource",),
        "1 while the resource is not registered and nothing tries to register it.",
    ),
    Family(
        "genericdp_registrations_total",
        "counter",
        ("resource", "result"),
        "Attempts to register; the result is success or error.",
    ),
    Family("genericdp_registrations_lost_total", "counter", ("resource",), "Registrations that ended."),
    Family("genericdp_lists_sent_total", "counter", ("resource",), "Device lists sent to the kubelet."),
    Family("genericdp_devices", "gauge", ("resource", "health"), "Devices by health."),
    Family("genericdp_device_healthy", "gauge", ("resource", "device"), "1 while the device is Healthy."),
    Family(
        "genericdp_device_info",
        "gauge",
        ("resource", "device", "node", "link"),
        "The device nodes of each device and the links to them; always 1.",
    ),
    Family(
        "genericdp_device_allocated",
        "gauge",
        ("resource", "device", "namespace", "pod", "container"),
        "The containers that hold each device, according to the kubelet; with replicas, the number of ids.",
    ),
    Family(
        "genericdp_nodes_not_offered",
        "gauge",
        ("resource",),
        "Device nodes that match a rule but are not offered.",
    ),
    Family("genericdp_allocations_total", "counter", ("resource",), "Allocations for containers."),
    Family(
        "genericdp_allocation_errors_total",
        "counter",
        ("resource", "reason"),
        "Allocations that were refused.",
    ),
    Family(
        "genericdp_allocation_duration_seconds",
        "histogram",
        (),
        "How long answers to Allocate took, not counting the wait for the disk.",
    ),
    Family(
        "genericdp_container_stops_total",
        "counter",
        ("resource", "cause"),
        "Containers that the container runtime was asked to stop; the cause is unplug or replug.",
    ),
    Family(
        "genericdp_container_stop_errors_total",
        "counter",
        ("resource",),
        "Containers that the container runtime did not stop.",
    ),
    Family("genericdp_failing", "gauge", ("what",), "1 while something fails and is tried again."),
    Family("genericdp_udev_up", "gauge", (), "1 while udev events arrive."),
    Family("genericdp_uevents_total", "counter", ("action", "subsystem"), "Uevents received."),
    Family("genericdp_uevent_overflows_total", "counter", (), "How often uevents were lost."),
    Family("genericdp_rescans_total", "counter", ("reason",), "Rescans of all devices."),
    Family("genericdp_config_reloads_total", "counter", ("result",), "Reloads of the rule files."),
    Family(
        "genericdp_config_last_reload_success_timestamp_seconds",
        "gauge",
        (),
        "When all rule files were last without a mistake (Unix time).",
    ),
    Family("genericdp_config_problems", "gauge", (), "Mistakes in the rule files at present."),
    Family(
        "genericdp_rule_file_info",
        "gauge",
        ("file", "digest"),
        "The version of each rule file that is in effect; 0 without one.",
    ),
    Family(
        "genericdp_rule_file_outdated",
        "gauge",
        ("file",),
        "1 while the text on disk cannot be used and an earlier version is in effect.",
    ),
    Family(
        "genericdp_samples_left_out", "gauge", ("metric",), "Samples dropped because a metric had too many."
    ),
    Family("process_start_time_seconds", "gauge", (), "Start of the process (Unix time)."),
    Family("process_resident_memory_bytes", "gauge", (), "Resident memory."),
    Family("process_cpu_seconds_total", "counter", (), "User and system CPU time."),
    Family("process_open_fds", "gauge", (), "Open file descriptors."),
)


#: Counters that start at 0 for every resource: Prometheus does not see an increase in one that starts at 1.
_FROM_ZERO: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "genericdp_registrations_total": (("success",), ("error",)),
    "genericdp_registrations_lost_total": ((),),
    "genericdp_lists_sent_total": ((),),
    "genericdp_allocations_total": ((),),
    "genericdp_allocation_errors_total": tuple((reason,) for reason in RefusalReason),
    "genericdp_container_stops_total": (("unplug",), ("replug",)),
    "genericdp_container_stop_errors_total": ((),),
}


#: How many devices of one resource make one step.
STEP = 50


@dataclass(frozen=True, slots=True)
class Process:
    """The process according to the system; None for what it does not say.

    node  the name of the Kubernetes node, "" if the pod of the process does not name it
    """

    python: str
    cpu_s: float
    resident_bytes: int | None
    open_files: int | None
    node: str = ""


def fill(samples: Samples, facts: Facts, process: Process) -> Iterator[None]:
    """Add every sample, in short steps: with a thousand devices it takes a while, and a pod may be waiting.

    Meanwhile the inventory of the facts does not change, but counts may.
    """
    _of_the_daemon(samples, facts, process)
    yield from _of_what_happened(samples, facts)
    held = holdings.by_device(facts.holdings, facts.inventory)
    refused = Counter(refusal.resource for refusal in facts.inventory.refusals)
    yield
    for name in facts.inventory.offers:
        yield from _of_a_resource(samples, facts, name, held.get(name, {}))
        samples.add("genericdp_nodes_not_offered", refused[name], name)
        yield
    for name, count in samples.left_out.items():
        samples.add("genericdp_samples_left_out", count, name)


def _of_the_daemon(samples: Samples, facts: Facts, process: Process) -> None:
    history = facts.history
    samples.add("genericdp_build_info", 1, facts.version, process.python, process.node)
    samples.add("genericdp_standby", bool(facts.standing_by))
    samples.add("genericdp_kubelet_up", facts.kubelet)
    samples.add("genericdp_kubelet_restarts_total", max(0, history.kubelets - 1))
    samples.add("genericdp_pod_resources_up", facts.holdings is not None)
    samples.add("genericdp_udev_up", not history.silence.what)
    for what in Retried:
        samples.add("genericdp_failing", what in history.failing, str(what))
    samples.add("genericdp_config_problems", len(facts.problems))
    if history.read is not None:
        name = "genericdp_config_last_reload_success_timestamp_seconds"
        samples.add(name, round(facts.unix(history.read)))
    for file in facts.files:
        samples.add("genericdp_rule_file_info", bool(file.digest), file.path, file.digest)
        samples.add("genericdp_rule_file_outdated", file.outdated, file.path)
    samples.add("process_start_time_seconds", round(facts.unix(history.began)))
    samples.add("process_cpu_seconds_total", process.cpu_s)
    if process.resident_bytes is not None:
        samples.add("process_resident_memory_bytes", process.resident_bytes)
    if process.open_files is not None:
        samples.add("process_open_fds", process.open_files)


def _of_a_resource(samples: Samples, facts: Facts, name: str, held: Held) -> Iterator[None]:
    offer = facts.inventory.offers[name]
    standing = facts.standings.get(name)
    samples.add("genericdp_registered", standing is not None and standing.registered, name)
    samples.add("genericdp_stuck", name in facts.stuck, name)
    for health in Health:
        count = sum(device.health is health for device in offer.devices)
        samples.add("genericdp_devices", count, name, str(health))
    for number, device in enumerate(offer.devices, 1):
        if number % STEP == 0:
            yield
        samples.add("genericdp_device_healthy", device.healthy, name, device.id)
        for node in device.nodes:
            link = f"{facts.settings.link_dir}/{node.link}"
            samples.add("genericdp_device_info", 1, name, device.id, node.path, link)
    for id_, holders in held.items():
        for holder, count in Counter(holder for _, holder in holders).items():
            labels = (name, id_, holder.namespace, holder.pod, holder.container)
            samples.add("genericdp_device_allocated", count, *labels)


def _of_what_happened(samples: Samples, facts: Facts) -> Iterator[None]:
    history = facts.history
    for name, kinds in _counts(history).items():
        never = [
            (resource, *kind) for resource in facts.inventory.offers for kind in _FROM_ZERO.get(name, ())
        ]
        for kind, count in (dict.fromkeys(never, 0) | kinds.by_kind).items():
            samples.add(name, count, *kind)
        yield
    samples.add("genericdp_uevent_overflows_total", history.overflows)
    samples.add_histogram(
        "genericdp_allocation_duration_seconds",
        ALLOCATION_BOUNDS_S,
        history.allocating.cases,
        history.allocating.sum_s,
    )


def _counts(history: History) -> Mapping[str, Counts]:
    """Metric -> its counts by labels."""
    return {
        "genericdp_registrations_total": history.registrations,
        "genericdp_registrations_lost_total": history.lost,
        "genericdp_lists_sent_total": history.lists,
        "genericdp_allocations_total": history.allocations,
        "genericdp_allocation_errors_total": history.refusals,
        "genericdp_container_stops_total": history.stops,
        "genericdp_container_stop_errors_total": history.failed_stops,
        "genericdp_uevents_total": history.uevents,
        "genericdp_rescans_total": history.rescans,
        "genericdp_config_reloads_total": history.reloads,
    }
