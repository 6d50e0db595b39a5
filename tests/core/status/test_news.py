"""What is worth a line in the log."""

from dataclasses import replace

from genericdp.core.inventory.inventory import Conflict, Inventory, Overlap, Refusal
from genericdp.core.inventory.offer import Device, Health, Node, Offer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import EVERY_NODE, Resource
from genericdp.core.status.news import News, news

NAME = "example.com/ftdi"


def a_stick(id_: str = "a", *, path: str = "/dev/ttyUSB0") -> Device:
    return Device(id_, nodes=(Node(path, None, id_, EVERY_NODE, {}, (), "/sys/x"),), links=(id_,))


def gone(device: Device, reason: str = "it is unplugged") -> Device:
    return replace(device, health=Health.UNHEALTHY, reason=reason)


def an_inventory(*devices: Device) -> Inventory:
    return Inventory({NAME: Offer(Resource(NAME, Match()), devices)})


def news_of(old: Inventory, new: Inventory) -> list[News]:
    return list(news(old, new))


def test_nothing_new_is_no_news() -> None:
    assert news_of(an_inventory(a_stick()), an_inventory(a_stick())) == []


def test_a_new_resource_is_one_line_however_many_devices_it_has() -> None:
    assert news_of(Inventory(), an_inventory(a_stick("a"), gone(a_stick("b")))) == [
        News(
            "resource is offered",
            {"resource": NAME, "devices": 2, "unhealthy": 1, "why": "it is unplugged"},
        )
    ]
    assert news_of(Inventory(), an_inventory()) == [
        News("resource is offered", {"resource": NAME, "devices": 0})
    ]
    assert news_of(an_inventory(), Inventory()) == [News("resource is no longer offered", {"resource": NAME})]


def test_a_new_resource_says_why_devices_are_unhealthy_in_three_reasons_at_the_most() -> None:
    devices = [replace(gone(a_stick(name)), reason=f"no link {name}") for name in "edcbaa"]
    (line,) = news_of(Inventory(), an_inventory(*devices))
    assert line.fields["why"] == "no link a; no link b; no link c; and 2 other reasons"


def test_a_device_comes_leaves_comes_back_and_is_forgotten() -> None:
    about = {"resource": NAME, "id": "a"}
    nothing, here, away = an_inventory(), an_inventory(a_stick()), an_inventory(gone(a_stick()))
    assert news_of(nothing, here) == [News("device appeared", {**about, "nodes": "/dev/ttyUSB0"})]
    assert news_of(here, away) == [
        News("device is unhealthy", {**about, "why": "it is unplugged"}, warning=True)
    ]
    assert news_of(away, here) == [News("device is back", {**about, "nodes": "/dev/ttyUSB0"})]
    assert news_of(away, nothing) == [News("device forgotten", about)]


def test_another_reason_and_other_nodes_are_news() -> None:
    about = {"resource": NAME, "id": "a"}
    assert news_of(an_inventory(gone(a_stick(), "x")), an_inventory(gone(a_stick(), "y"))) == [
        News("device is still unhealthy", {**about, "why": "y"})
    ]
    assert news_of(an_inventory(), an_inventory(gone(a_stick(), "a node is missing"))) == [
        News("device appeared, but is unhealthy", {**about, "why": "a node is missing"})
    ]
    assert news_of(an_inventory(a_stick()), an_inventory(a_stick(path="/dev/ttyUSB7"))) == [
        News("device has different nodes", {**about, "nodes": "/dev/ttyUSB7"})
    ]


def test_a_device_node_that_is_owned_and_shared_is_reported_once() -> None:
    conflict = Conflict("/dev/kfd", "r/a", ("r/b", "r/c"))
    here = Inventory(conflicts=(conflict,))
    assert news_of(here, here) == []
    assert news_of(Inventory(), here) == [
        News(
            "a device node for one container at a time is shared by other resources",
            {"node": "/dev/kfd", "owned_by": "r/a", "shared_by": "r/b, r/c"},
            warning=True,
        )
    ]


def test_overlaps_refusals_and_doubts_are_reported_once() -> None:
    overlap = Overlap("/dev/x", "r/a", ("r/b", "r/c"))
    refusal = Refusal("r/a", "/dev/sda", "no")
    doubtful = Inventory({}, (refusal,), (overlap,), {}, ("a", "b"))
    messages = [(each.message, dict(each.fields), each.warning) for each in news(Inventory(), doubtful)]
    assert messages == [
        (
            "several resources match a device node; the first in file order gets it",
            {"node": "/dev/x", "taken_by": "r/a", "not_by": "r/b, r/c"},
            True,
        ),
        ("device node is not offered", {"resource": "r/a", "node": "/dev/sda", "why": "no"}, True),
        (
            "only the order of device nodes decides which has this id; give the resource an 'identity'",
            {"id": "a"},
            True,
        ),
        (
            "only the order of device nodes decides which has this id; give the resource an 'identity'",
            {"id": "b"},
            True,
        ),
    ]
    assert news_of(doubtful, doubtful) == []


def test_a_healthy_device_for_which_new_pods_have_to_wait_is_news_twice() -> None:
    about = {"resource": NAME, "id": "a"}
    stick = a_stick()
    free = an_inventory(stick)
    offer = replace(free.offers[NAME], refused={"a": "a pod may still hold it as a.1"})
    waits = Inventory({NAME: offer})
    assert news_of(free, waits) == [
        News("new pods have to wait for a device", {**about, "why": "a pod may still hold it as a.1"}, True)
    ]
    assert news_of(waits, waits) == []
    assert news_of(waits, free) == [News("new pods may have a device again", about)]
    # One that is Unhealthy says why anyway.
    unhealthy = Inventory({NAME: replace(offer, devices=(gone(stick, "a pod may still hold it as a.1"),))})
    assert [line.message for line in news_of(free, unhealthy)] == ["device is unhealthy"]
    assert [line.message for line in news_of(unhealthy, free)] == ["device is back"]
