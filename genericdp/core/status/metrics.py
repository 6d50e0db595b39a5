"""The metrics: which there are, and what they say now.

The rules of this file:

* Names and labels are as Kubernetes has them: base units, `_total` for what only grows, `namespace`,
  `pod` and `container` for those, details in an `_info` of the value 1. What the node is called is
  known to whoever asks.
* docs/metrics.md, the dashboard and the alerts name what is declared here, and a test holds them to it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from genericdp.core.inventory.offer import Health
from genericdp.core.status.exposition import Family, Samples
from genericdp.core.status.history import ALLOCATION_BOUNDS_S, Counts, History
from genericdp.core.status.report import Facts, Held, held_devices

FAMILIES = (
    Family("genericdp_build_info", "gauge", ("version", "python"), "Which genericdp it is; always 1."),
    Family("genericdp_standby", "gauge", (), "1 while another genericdp serves the node."),
    Family("genericdp_kubelet_up", "gauge", (), "1 while a kubelet listens."),
    Family("genericdp_kubelet_restarts_total", "counter", (), "How often another kubelet followed one."),
    Family("genericdp_pod_resources_up", "gauge", (), "1 when the kubelet says who holds what."),
    Family("genericdp_registered", "gauge", ("resource",), "1 while the kubelet has it and listens."),
    Family("genericdp_stuck", "gauge", ("resource",), "1 while nothing tries to register it."),
    Family(
        "genericdp_registrations_total",
        "counter",
        ("resource", "result"),
        "Tries to register; result is success or error.",
    ),
    Family(
        "genericdp_registrations_lost_total", "counter", ("resource",), "Registrations that came to an end."
    ),
    Family("genericdp_lists_sent_total", "counter", ("resource",), "Lists that the kubelet was sent."),
    Family("genericdp_devices", "gauge", ("resource", "health"), "Devices, by their health."),
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
        "Which container holds which device, as the kubelet says; how many ids of it, with replicas.",
    ),
    Family(
        "genericdp_nodes_not_offered",
        "gauge",
        ("resource",),
        "Device nodes that its rules take and that are not offered.",
    ),
    Family("genericdp_allocations_total", "counter", ("resource",), "Containers that were given devices."),
    Family(
        "genericdp_allocation_errors_total",
        "counter",
        ("resource", "reason"),
        "Containers that were refused.",
    ),
    Family("genericdp_allocation_duration_seconds", "histogram", (), "How long an answer to Allocate took."),
    Family("genericdp_udev_up", "gauge", (), "1 while events of udev are heard."),
    Family("genericdp_uevents_total", "counter", ("action", "subsystem"), "Uevents that were heard."),
    Family("genericdp_uevent_overflows_total", "counter", (), "How often uevents were lost."),
    Family("genericdp_rescans_total", "counter", ("reason",), "Looks at every device."),
    Family("genericdp_config_reloads_total", "counter", ("result",), "Readings of the rule files."),
    Family(
        "genericdp_config_last_reload_success_timestamp_seconds",
        "gauge",
        (),
        "When all rule files were last without a mistake (Unix time).",
    ),
    Family("genericdp_config_problems", "gauge", (), "Mistakes in rule files now."),
    Family(
        "genericdp_rule_file_info",
        "gauge",
        ("file", "digest"),
        "The version of each rule file that is in force; 0 when none is.",
    ),
    Family(
        "genericdp_rule_file_outdated",
        "gauge",
        ("file",),
        "1 while the text on disk has a mistake and an earlier version is in force.",
    ),
    Family("genericdp_samples_left_out", "gauge", ("metric",), "Samples of a metric that were one too many."),
    Family("process_start_time_seconds", "gauge", (), "When the process began (Unix time)."),
    Family("process_resident_memory_bytes", "gauge", (), "Resident memory."),
    Family("process_cpu_seconds_total", "counter", (), "Processor time, of the user and the system."),
    Family("process_open_fds", "gauge", (), "Open file descriptors."),
)


#: What is counted from nought for every resource: Prometheus sees no increase in what begins with one.
_FROM_ZERO: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "genericdp_registrations_total": (("success",), ("error",)),
    "genericdp_registrations_lost_total": ((),),
    "genericdp_lists_sent_total": ((),),
    "genericdp_allocations_total": ((),),
    "genericdp_allocation_errors_total": (("unknown device",),),
}


#: So many devices of one resource make a step.
STEP = 50


@dataclass(frozen=True, slots=True)
class Process:
    """What the system knows about the process; None where it does not say."""

    python: str
    cpu_s: float
    resident_bytes: int | None
    open_files: int | None


def metrics(facts: Facts, process: Process) -> str:
    """The metrics as text."""
    samples = Samples(FAMILIES)
    for _ in fill(samples, facts, process):
        pass
    return samples.render()


def fill(samples: Samples, facts: Facts, process: Process) -> Iterator[None]:
    """Add every sample, in short steps: with a thousand devices it takes a while, and a pod may be waiting.

    The inventory of the facts does not change meanwhile; a count may.
    """
    _of_the_daemon(samples, facts, process)
    yield from _of_what_happened(samples, facts)
    held = held_devices(facts)
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
    samples.add("genericdp_build_info", 1, facts.version, process.python)
    samples.add("genericdp_standby", bool(facts.standing_by))
    samples.add("genericdp_kubelet_up", facts.kubelet)
    samples.add("genericdp_kubelet_restarts_total", max(0, history.kubelets - 1))
    samples.add("genericdp_pod_resources_up", facts.holdings is not None)
    samples.add("genericdp_udev_up", not history.deaf.what)
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
    """Metric -> what is counted in it, by its labels."""
    return {
        "genericdp_registrations_total": history.registrations,
        "genericdp_registrations_lost_total": history.lost,
        "genericdp_lists_sent_total": history.lists,
        "genericdp_allocations_total": history.allocations,
        "genericdp_allocation_errors_total": history.refusals,
        "genericdp_uevents_total": history.uevents,
        "genericdp_rescans_total": history.rescans,
        "genericdp_config_reloads_total": history.reloads,
    }


def why_not_healthy(facts: Facts) -> str:
    """What only a restart of the daemon would mend, as `/healthz` says it; "" when nothing is."""
    return "".join(f"{name} is stuck: nothing tries to register it\n" for name in facts.stuck)


def why_not_ready(facts: Facts) -> str:
    """Why pods cannot be given everything that is offered, as `/readyz` says it; "" when they can.

    One that stands by is ready: a rollout waits for it before it ends the one that serves.
    """
    if facts.standing_by:
        return ""
    if not facts.kubelet:
        return f"there is no kubelet at '{facts.settings.kubelet_dir}'\n"
    lines = []
    for name in facts.inventory.offers:
        standing = facts.standings.get(name)
        if standing is None or not standing.registered:
            why = "" if standing is None else standing.error or standing.phase
            lines.append(f"{name} is not registered{': ' if why else ''}{why}\n")
    return "".join(lines)
