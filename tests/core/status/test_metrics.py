"""What the metrics say, as Prometheus reads them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from genericdp.core.allocate import RefusalReason
from genericdp.core.hint import RescanCause
from genericdp.core.status.complaints import why_not_healthy, why_not_ready
from genericdp.core.status.exposition import SAMPLE_LIMIT, Samples
from genericdp.core.status.facts import Facts, InEffect, Standing
from genericdp.core.status.holdings import Holder
from genericdp.core.status.metrics import FAMILIES, STEP, Process, fill
from genericdp.errors import Location, Problem
from tests.scenes.builders import a_usb_serial
from tests.scenes.facts import NOON, facts_of
from tests.scenes.inventories import inventory_of
from tests.scenes.scrape import read, scrape_of

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
PROCESS = Process("3.11.2", 1.5, 1 << 20, 9, "edge-7")
WAITING = Standing("waiting for the kubelet", registered=False, error="no")


def braces(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{label}={text}" for label, text in labels.items()) + "}" if labels else ""


def values(facts: Facts, process: Process = PROCESS) -> dict[str, float]:
    """`name{label=value,…}` -> its value."""
    return {
        name + braces(labels): value
        for name, samples in read(scrape_of(facts, process)).items()
        for labels, value in samples
    }


def test_when_all_is_well() -> None:
    facts = facts_of(inventory_of(RULES, a_usb_serial(0)))
    facts.history.read_rules({}, mistakes=False, now=50.0)
    found = values(facts)
    expected = {
        "genericdp_build_info{version=1.2.3,python=3.11.2,node=edge-7}": 1,
        "genericdp_standby": 0,
        "genericdp_kubelet_up": 1,
        "genericdp_kubelet_restarts_total": 0,
        "genericdp_pod_resources_up": 1,
        "genericdp_udev_up": 1,
        f"genericdp_registered{{resource={FTDI}}}": 1,
        f"genericdp_stuck{{resource={FTDI}}}": 0,
        f"genericdp_registrations_total{{resource={FTDI},result=success}}": 1,
        f"genericdp_devices{{resource={FTDI},health=Healthy}}": 1,
        f"genericdp_devices{{resource={FTDI},health=Unhealthy}}": 0,
        f"genericdp_device_healthy{{resource={FTDI},device=ftdi_A50285BI}}": 1,
        (
            f"genericdp_device_info{{resource={FTDI},device=ftdi_A50285BI,node=/dev/ttyUSB0,"
            "link=/dev/genericdp/ftdi_A50285BI}"
        ): 1,
        f"genericdp_nodes_not_offered{{resource={FTDI}}}": 0,
        "genericdp_config_problems": 0,
        "genericdp_config_reloads_total{result=success}": 1,
        "genericdp_config_last_reload_success_timestamp_seconds": NOON - 50,
        "genericdp_uevent_overflows_total": 0,
        "genericdp_allocation_duration_seconds_count": 0,
        "process_start_time_seconds": NOON - 100,
        "process_resident_memory_bytes": 1 << 20,
        "process_cpu_seconds_total": 1.5,
        "process_open_fds": 9,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert not [name for name in found if "allocated" in name]


def test_every_family_is_declared_once_and_says_what_it_is_for() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len({*names})
    for family in FAMILIES:
        assert family.help.endswith(".")
        assert "\n" not in family.help
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert not {"pod_name", "node_name", "instance", "job"} & {*family.labels}


def test_the_holder_of_a_device_is_named_with_the_labels_of_kubernetes() -> None:
    holder = Holder("default", "app", "main")
    facts = facts_of(
        inventory_of(f"{RULES}replicas = 3\n", a_usb_serial(0)),
        holdings={(FTDI, f"ftdi_A50285BI.{n}"): (holder,) for n in range(2)},
    )
    labels = f"resource={FTDI},device=ftdi_A50285BI,namespace=default,pod=app,container=main"
    assert values(facts)[f"genericdp_device_allocated{{{labels}}}"] == 2


def test_when_nothing_is_well() -> None:
    facts = facts_of(
        inventory_of(RULES, replace(a_usb_serial(0), node_is_there=False)),
        kubelet=False,
        holdings=None,
        standings={FTDI: WAITING},
        stuck=(FTDI,),
        files=[InEffect("/a.toml", "abc", outdated=True), InEffect("/b.toml", "")],
        problems=[Problem(Location("/a.toml", 1), "oh")],
    )
    history = facts.history
    history.heard_udev("no udev", 1.0)
    history.saw_kubelet(True, 2.0)
    history.saw_kubelet(True, 3.0)
    history.rescanned(RescanCause.OVERFLOW)
    history.heard_uevent("add", "tty")
    history.allocated(FTDI, RefusalReason.UNKNOWN, 0.1)
    history.allocated(FTDI, None, 0.001)
    history.sent_list(FTDI)
    history.registered_as(FTDI, registered=False, error="gone", now=9.0)
    found = values(facts, Process("3", 0.0, None, None))
    expected = {
        "genericdp_kubelet_up": 0,
        "genericdp_kubelet_restarts_total": 2,
        "genericdp_pod_resources_up": 0,
        "genericdp_udev_up": 0,
        f"genericdp_registered{{resource={FTDI}}}": 0,
        f"genericdp_stuck{{resource={FTDI}}}": 1,
        f"genericdp_registrations_lost_total{{resource={FTDI}}}": 1,
        f"genericdp_lists_sent_total{{resource={FTDI}}}": 1,
        f"genericdp_devices{{resource={FTDI},health=Unhealthy}}": 1,
        f"genericdp_device_healthy{{resource={FTDI},device=ftdi_A50285BI}}": 0,
        f"genericdp_allocations_total{{resource={FTDI}}}": 1,
        f"genericdp_allocation_errors_total{{resource={FTDI},reason=unknown device}}": 1,
        "genericdp_allocation_duration_seconds_bucket{le=0.0005}": 0,
        "genericdp_allocation_duration_seconds_bucket{le=0.001}": 1,
        "genericdp_allocation_duration_seconds_bucket{le=+Inf}": 1,
        "genericdp_rescans_total{reason=overflow}": 1,
        "genericdp_uevent_overflows_total": 1,
        "genericdp_uevents_total{action=add,subsystem=tty}": 1,
        "genericdp_config_problems": 1,
        "genericdp_rule_file_info{file=/a.toml,digest=abc}": 1,
        "genericdp_rule_file_info{file=/b.toml,digest=}": 0,
        "genericdp_rule_file_outdated{file=/a.toml}": 1,
        "genericdp_rule_file_outdated{file=/b.toml}": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert not [
        name for name in found if name.startswith(("process_res", "process_open", "genericdp_config_last"))
    ]


def test_what_may_happen_to_a_resource_is_counted_from_nought() -> None:
    found = values(facts_of(inventory_of(RULES)))
    expected = {
        f"genericdp_registrations_total{{resource={FTDI},result=error}}": 0,
        f"genericdp_registrations_lost_total{{resource={FTDI}}}": 0,
        f"genericdp_lists_sent_total{{resource={FTDI}}}": 0,
        f"genericdp_allocations_total{{resource={FTDI}}}": 0,
        f"genericdp_allocation_errors_total{{resource={FTDI},reason=unknown device}}": 0,
        f"genericdp_allocation_errors_total{{resource={FTDI},reason=unplugged}}": 0,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_samples_that_are_too_many_are_counted() -> None:
    offer = inventory_of(RULES, a_usb_serial(0)).offers[FTDI]
    (device,) = offer.devices
    many = tuple(replace(device, id=f"ftdi_{n}") for n in range(SAMPLE_LIMIT + 5))
    inventory = replace(inventory_of(RULES), offers={FTDI: replace(offer, devices=many)})
    found = values(facts_of(inventory))
    assert found["genericdp_samples_left_out{metric=genericdp_device_healthy}"] == 5
    assert found[f"genericdp_devices{{resource={FTDI},health=Healthy}}"] == SAMPLE_LIMIT + 5


def test_many_devices_are_told_in_many_short_steps() -> None:
    offer = inventory_of(RULES, a_usb_serial(0)).offers[FTDI]
    (device,) = offer.devices
    many = tuple(replace(device, id=f"ftdi_{n}") for n in range(10 * STEP))
    inventory = replace(inventory_of(RULES), offers={FTDI: replace(offer, devices=many)})
    samples = Samples(FAMILIES)
    steps = fill(samples, facts_of(inventory), PROCESS)
    told = [samples.render().count("genericdp_device_healthy{") for _ in steps]
    assert len(told) > 12
    assert max(after - before for before, after in pairwise(told)) == STEP


def test_only_what_a_restart_would_mend_is_unhealthy() -> None:
    inventory = inventory_of(RULES)
    assert why_not_healthy(facts_of(inventory, kubelet=False, standings={FTDI: WAITING})) == ""
    assert why_not_healthy(facts_of(inventory, stuck=(FTDI,))) == (
        f"{FTDI} is stuck: nothing tries to register it\n"
    )


def test_it_is_ready_when_the_kubelet_has_everything() -> None:
    inventory = inventory_of(RULES)
    others: list[dict[str, Any]] = [
        {},
        {"kubelet": False},
        {"standings": {FTDI: WAITING}},
        {"standings": {FTDI: replace(WAITING, error="")}},
        {"standings": {}},
        {"standings": {}, "kubelet": False, "standing_by": "process 1"},
    ]
    assert [why_not_ready(facts_of(inventory, **each)) for each in others] == [
        "",
        "no kubelet listens in '/var/lib/kubelet/device-plugins'\n",
        f"{FTDI} is not registered: no\n",
        f"{FTDI} is not registered: waiting for the kubelet\n",
        f"{FTDI} is not registered\n",
        "",
    ]
