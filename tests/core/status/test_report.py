"""The report of `genericdp status`: what is in it, and what it complains of."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.returning import Returning
from genericdp.core.status.complaints import complaints, why_not_ready
from genericdp.core.status.facts import InEffect, Standing
from genericdp.core.status.history import Retried
from genericdp.core.status.holdings import KUBELET_SETTLES_S, Holder, of_orphans
from genericdp.core.status.logged import Logged
from genericdp.core.status.report import report, stamp
from genericdp.errors import Location, Problem
from tests.scenes.builders import a_usb_serial
from tests.scenes.edits import Node
from tests.scenes.facts import NOON, REGISTERED, facts_of
from tests.scenes.inventories import inventory_of

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'


def the_device(document: Mapping[str, Any]) -> Mapping[str, Any]:
    (resource,) = document["resources"]
    (device,) = resource["devices"]
    assert isinstance(device, dict)
    return device


def test_all_is_well() -> None:
    document: Any = report(facts_of(inventory_of(RULES, a_usb_serial(0))))
    assert (document["well"], document["complaints"]) == (True, [])
    assert (document["state"], document["standingByFor"]) == ("serving", "")
    assert (document["since"], document["time"]) == ("2026-11-21T11:58:20Z", "2026-11-21T12:00:00Z")
    assert document["kubelet"] == {
        "there": True,
        "servedByAnother": False,
        "since": "2026-11-21T11:58:30Z",
        "directory": "/var/lib/kubelet/device-plugins",
    }
    (resource,) = document["resources"]
    assert (resource["registered"], resource["since"]) == (True, "2026-11-21T11:58:50Z")
    assert the_device(document) == {
        "id": "ftdi_A50285BI",
        "health": "Healthy",
        "reason": "",
        "waiting": "",
        "since": "2026-11-21T11:58:40Z",
        "numaNode": None,
        "nodes": [{"path": "/dev/ttyUSB0", "present": True, "link": "/dev/genericdp/ftdi_A50285BI"}],
        "links": ["/dev/genericdp/ftdi_A50285BI"],
        "heldBy": [],
    }


def test_after_a_boot_it_says_what_ready_waits_for() -> None:
    facts = replace(facts_of(inventory_of(RULES)), returning=(Returning(FTDI, "ftdi_A", 11.7),))
    assert report(facts)["returning"] == [{"resource": FTDI, "id": "ftdi_A", "leftSeconds": 12}]
    assert report(facts_of(inventory_of(RULES)))["returning"] == []


def test_the_holder_is_reported_with_the_device_whatever_the_replica() -> None:
    facts = facts_of(
        inventory_of(f"{RULES}replicas = 3\n", a_usb_serial(0)),
        holdings={
            (FTDI, "ftdi_A50285BI.2"): (Holder("default", "b", "main"),),
            (FTDI, "ftdi_A50285BI.0"): (Holder("default", "a", "main"), Holder("default", "a", "side")),
            (FTDI, "ftdi_unknown"): (Holder("default", "c", "main"),),
            ("example.com/other", "ftdi_A50285BI.1"): (Holder("default", "d", "main"),),
        },
    )
    assert the_device(report(facts))["heldBy"] == [
        {"id": "ftdi_A50285BI.0", "namespace": "default", "pod": "a", "container": "main"},
        {"id": "ftdi_A50285BI.0", "namespace": "default", "pod": "a", "container": "side"},
        {"id": "ftdi_A50285BI.2", "namespace": "default", "pod": "b", "container": "main"},
    ]


def test_unknown_holders_are_reported_but_are_not_a_complaint() -> None:
    document: Any = report(facts_of(inventory_of(RULES, a_usb_serial(0)), holdings=None))
    assert document["podResources"] == {
        "answers": False,
        "complete": False,
        "socket": "/var/lib/kubelet/pod-resources/kubelet.sock",
    }
    assert document["well"]


def test_the_holders_are_complete_once_the_kubelet_has_had_time_to_learn_its_pods() -> None:
    facts = facts_of(inventory_of(RULES))
    after_s = [(KUBELET_SETTLES_S - 1, False), (KUBELET_SETTLES_S, True)]
    for up_s, complete in after_s:
        facts.history.saw_kubelet(True, facts.now - up_s)
        document: Any = report(facts)
        assert document["podResources"]["complete"] is complete
    document = report(replace(facts, kubelet=False))
    assert document["podResources"]["complete"] is False


def test_an_unplugged_device_is_complained_of_and_its_node_is_no_longer_present() -> None:
    plugged, memory = remember(inventory_of(RULES, a_usb_serial(0)), Memory(), 0.0, None)
    unplugged, _ = remember(inventory_of(RULES), memory, 1.0, None)
    facts = facts_of(unplugged)
    assert complaints(facts) == (f"{FTDI}: ftdi_A50285BI is Unhealthy: it is unplugged",)
    assert the_device(report(facts))["nodes"][0]["present"] is False
    assert complaints(facts_of(plugged)) == ()


def test_of_many_devices_that_are_gone_a_few_are_named() -> None:
    sticks = [
        replace(a_usb_serial(n, serial=f"S{n}", port=f"1.{n}"), node_is_there=False) for n in range(1, 8)
    ]
    *named, rest = complaints(facts_of(inventory_of(RULES, *sticks)))
    assert len(named) == 5
    assert rest == f"{FTDI}: 2 more devices are not Healthy"


def test_a_device_that_is_not_offered_until_a_pod_has_gone_is_complained_of() -> None:
    sticks = [a_usb_serial(n, serial=f"S{n}", port=f"1.{n}") for n in range(1, 8)]
    node = Node()
    node.allocate(*node.look(RULES, *sticks))
    node.look(RULES, *sticks, domain="example.org")
    *named, rest = complaints(facts_of(node.inventory))
    assert len(named) == 5
    assert named[0] == (
        "example.org/ftdi: ftdi_S1 is not offered: a pod may still hold it as ftdi_S1 of example.com/ftdi"
    )
    assert rest == "example.org/ftdi: 2 more devices are not offered"


def test_of_many_devices_whose_containers_cannot_start_again_a_few_are_named() -> None:
    sticks = [a_usb_serial(n, serial=f"S{n}", port=f"1.{n}") for n in range(1, 8)]
    ids = [f"ftdi_S{n}" for n in range(1, 8)]
    held = {id_: Holding(FTDI, id_, shared=False, links=(f"{id_}@usb",)) for id_ in ids}
    holdings = {(FTDI, id_): (Holder("default", id_, "main"),) for id_ in ids}
    inventory = inventory_of(RULES, *sticks)
    *named, rest = complaints(facts_of(inventory, held=held, holdings=holdings))
    assert len(named) == 5
    assert named[0] == (
        f"{FTDI}: default/ftdi_S1/main cannot start again: '/dev/genericdp/ftdi_S1@usb' leads nowhere, "
        "although ftdi_S1 is Healthy; plug in again what was there, or create the pod again"
    )
    assert rest == f"{FTDI}: containers with 2 more devices cannot start again either"
    assert complaints(facts_of(inventory, held=held, holdings=None)) == ()


def test_without_a_kubelet_there_is_no_complaint_for_each_resource() -> None:
    waiting = {FTDI: Standing("waiting for the kubelet", registered=False)}
    facts = facts_of(inventory_of(RULES, a_usb_serial(0)), kubelet=False, standings=waiting)
    assert complaints(facts) == ("no kubelet listens in '/var/lib/kubelet/device-plugins'",)


def test_a_resource_that_the_kubelet_does_not_know_is_complained_of_with_the_reason() -> None:
    inventory = inventory_of(RULES, a_usb_serial(0))
    waiting = Standing("registering", registered=False)
    assert complaints(facts_of(inventory, standings={FTDI: waiting})) == (
        f"{FTDI} is not registered: registering",
    )
    refused = Standing("waiting for the kubelet", registered=False, error="unsupported version")
    facts = facts_of(inventory, standings={FTDI: refused})
    assert complaints(facts) == (f"{FTDI} is not registered: unsupported version",)
    assert complaints(replace(facts, stuck=(FTDI,))) == (
        f"{FTDI} is stuck: the kubelet does not listen, and nothing tries to register it",
    )


def test_one_that_waits_for_another_at_the_kubelet_says_so_and_is_ready() -> None:
    facts = facts_of(inventory_of(RULES), kubelet=False, rival=True, standings={})
    (complaint,) = complaints(facts)
    assert complaint == (
        "another genericdp serves the kubelet in '/var/lib/kubelet/device-plugins'; waiting until it ends; "
        "remove one of the two, or give both the same 'link_dir'"
    )
    assert why_not_ready(facts) == ""


def test_clients_other_than_the_kubelet_are_named_and_are_no_complaint() -> None:
    others = {f"agent/{n}": 1 for n in range(12)} | {"\x1b[2J" + 200 * "x": 3}
    facts = facts_of(inventory_of(RULES), standings={FTDI: replace(REGISTERED, others=others)})
    document: Any = report(facts)
    shown = document["resources"][0]["otherClients"]
    assert shown[:2] == [
        {"userAgent": "\\x1b[2J" + 96 * "x", "streams": 3},
        {"userAgent": "agent/0", "streams": 1},
    ]
    assert len(shown) == 10
    assert complaints(facts) == ()


def test_a_resource_that_has_no_plugin_yet_is_not_registered() -> None:
    document: Any = report(facts_of(inventory_of(RULES), standings={}))
    (resource,) = document["resources"]
    assert (resource["registered"], resource["phase"], resource["streams"]) == (False, "", 0)
    assert document["well"]


def test_deafness_is_complained_of() -> None:
    facts = facts_of(inventory_of(RULES))
    facts.history.heard_udev("udev hangs", 90.0)
    assert complaints(facts) == ("no udev events: udev hangs",)
    document: Any = report(facts)
    assert document["udev"] == {
        "heard": False,
        "since": "2026-11-21T11:59:50Z",
        "reason": "udev hangs",
    }


def test_a_mistake_in_a_rule_file_is_complained_of_beside_the_version_in_force() -> None:
    problem = Problem(Location("/etc/r.toml", 3, 27), "'vendor' must be a string", 'write "2838"', "x")
    facts = facts_of(
        inventory_of(RULES),
        files=[
            InEffect("/etc/r.toml", "abc", outdated=True, resources=(FTDI,)),
            InEffect("/etc/new.toml", ""),
        ],
        problems=[problem],
    )
    facts.history.read_rules({"/etc/r.toml": "abc"}, mistakes=False, now=40.0)
    document: Any = report(facts)
    assert document["complaints"] == ["/etc/r.toml:3:27: 'vendor' must be a string"]
    assert document["rules"] == {
        "lastGood": "2026-11-21T11:59:00Z",
        "files": [
            {
                "path": "/etc/r.toml",
                "digest": "abc",
                "since": "2026-11-21T11:59:00Z",
                "outdated": True,
                "resources": [FTDI],
            },
            {"path": "/etc/new.toml", "digest": "", "since": None, "outdated": False, "resources": []},
        ],
        "problems": [
            {
                "file": "/etc/r.toml",
                "line": 3,
                "column": 27,
                "severity": "error",
                "message": "'vendor' must be a string",
                "hint": 'write "2838"',
            }
        ],
    }


def test_what_fails_is_a_complaint_with_its_beginning_and_what_to_do() -> None:
    facts = facts_of(inventory_of(RULES, a_usb_serial(0)))
    assert facts.history.failed(
        Retried.MEMORY, "cannot save '/m': disk quota exceeded", "free some space", 40.0
    )
    assert not facts.history.failed(Retried.MEMORY, "cannot save '/m': no space", "free some space", 90.0)
    document: Any = report(facts)
    assert (document["well"], document["complaints"]) == (False, ["cannot save '/m': no space"])
    assert document["failing"] == [
        {
            "what": "memory",
            "since": "2026-11-21T11:59:00Z",
            "reason": "cannot save '/m': no space",
            "hint": "free some space",
        }
    ]
    assert facts.history.works(Retried.MEMORY)
    assert not facts.history.works(Retried.MEMORY)
    assert report(facts)["well"]


def test_one_that_stands_by_complains_only_of_what_it_would_do() -> None:
    facts = facts_of(inventory_of(""), standing_by="process 1 on a", kubelet=False)
    document: Any = report(facts)
    assert (document["state"], document["standingByFor"]) == ("standing by", "process 1 on a")
    assert document["well"]


def test_what_was_said_lately_and_what_is_not_offered_are_in_it() -> None:
    rules = f'{RULES}container_path = "/dev/{{ID_NOWHERE}}"\n'
    facts = facts_of(inventory_of(rules, a_usb_serial(0)))
    logged = Logged(facts.now - 60, "warning", "a thing", {"why": "so"}, 3)
    document: Any = report(replace(facts, logged=[logged]))
    assert document["said"] == [
        {
            "time": "2026-11-21T11:59:00Z",
            "level": "warning",
            "message": "a thing",
            "fields": {"why": "so"},
            "count": 3,
        }
    ]
    assert document["notOffered"] == [
        {
            "node": "/dev/ttyUSB0",
            "resource": FTDI,
            "reason": "it has no property ID_NOWHERE, which a template uses without a default",
        }
    ]


def test_a_stamp_is_rfc_3339_in_utc_to_the_second() -> None:
    assert stamp(NOON + 0.6) == "2026-11-21T12:00:01Z"


def test_what_a_pod_holds_of_a_resource_that_the_rules_no_longer_define_is_in_it() -> None:
    node, rules = Node(), f"{RULES}replicas = 2\n"
    node.look(rules, a_usb_serial(0))
    node.allocate("ftdi_A50285BI.1")
    node.look("", a_usb_serial(0))
    facts = facts_of(node.inventory)
    reader = Holder("plant", "reader-0", "main")
    document: Any = report(replace(facts, holdings={(FTDI, "ftdi_A50285BI.1"): (reader,)}))
    assert document["orphans"] == [
        {
            "resource": FTDI,
            "id": "ftdi_A50285BI",
            "heldBy": [
                {"id": "ftdi_A50285BI.1", "namespace": "plant", "pod": "reader-0", "container": "main"}
            ],
        }
    ]
    why = "no rule defines the resource any more; put the rule back, or delete the pod"
    assert document["complaints"] == [
        f"{FTDI}: plant/reader-0/main cannot start again with ftdi_A50285BI: {why}"
    ]
    assert complaints(replace(facts, holdings=None)) == (
        f"{FTDI}: a container cannot start again with ftdi_A50285BI: {why}",
    )
    assert complaints(replace(facts, holdings={})) == (), "the pod has just gone"
    assert node.memory.devices["ftdi_A50285BI"].device.reason == "no rule defines the resource any more"
    node.look("")
    assert node.memory.devices["ftdi_A50285BI"].device.reason == "it is unplugged"
    node.look("", a_usb_serial(0), answer=node.nobody_holds_anything())
    assert (node.inventory.orphans, node.inventory.orphaned_links) == ((), ("ftdi_A50285BI",))


def test_a_pod_holds_an_orphan_under_its_own_id_if_it_is_not_shared() -> None:
    node = Node()
    (id_,) = node.look(RULES, a_usb_serial(0))
    node.allocate(id_)
    node.look("", a_usb_serial(0))
    reader = Holder("plant", "reader-0", "main")
    document: Any = report(replace(facts_of(node.inventory), holdings={(FTDI, id_): (reader,)}))
    (orphan,) = document["orphans"]
    assert [each["id"] for each in orphan["heldBy"]] == [id_]


def test_only_its_own_id_or_that_of_a_replica_is_an_id_of_an_orphan() -> None:
    node = Node()
    (id_,) = node.look(RULES, a_usb_serial(0))
    node.allocate(id_)
    node.look("", a_usb_serial(0))
    pod = (Holder("plant", "reader-0", "main"),)
    ids = [id_, f"{id_}.1", f"{id_}.x", f"{id_}.01", f"{id_}x.1"]
    found = of_orphans({(FTDI, each): pod for each in ids}, node.inventory)
    assert [[each for each, _ in held] for held in found.values()] == [[id_, f"{id_}.1"]]


def test_of_many_orphans_only_some_are_named() -> None:
    node = Node()
    ids = [*node.look(f"{RULES}replicas = 2\n", *(a_usb_serial(n, serial=f"S{n}") for n in range(7)))]
    node.allocate(*ids)
    node.look("")
    found = complaints(replace(facts_of(node.inventory), holdings=None))
    assert (len(found), found[-1]) == (
        6,
        "containers with 2 more devices cannot start again either: no rule defines the resource any more",
    )
