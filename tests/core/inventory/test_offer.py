"""What a resource offers: ids, replicas, order, topology."""

from collections.abc import Callable

import pytest

from genericdp.core.inventory.offer import Device, Health, Offer, ids_of, in_order, is_id_of
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Resource
from tests.scenes.steps import growth

ONE = Resource("example.com/fuse", Match())
SHARED = Resource("example.com/fuse", Match(), replicas=3)


def test_health_is_spelled_as_the_kubelet_compares_it() -> None:
    assert [str(health) for health in Health] == ["Healthy", "Unhealthy"]
    assert Device("a").healthy
    assert not Device("a", Health.UNHEALTHY).healthy


def test_the_kubelet_hears_the_id_of_every_device() -> None:
    a, b = Device("a"), Device("b")
    assert Offer(ONE, (a, b)).ids == {"a": a, "b": b}


def test_of_a_shared_device_the_kubelet_hears_an_id_for_each_replica() -> None:
    a, b = Device("a"), Device("b")
    ids = Offer(SHARED, (a, b)).ids
    assert ids == {"a.0": a, "a.1": a, "a.2": a, "b.0": b, "b.1": b, "b.2": b}
    assert list(ids) == ["a.0", "a.1", "a.2", "b.0", "b.1", "b.2"]


def test_one_replica_has_a_number_too() -> None:
    assert list(Offer(Resource("example.com/x", Match(), replicas=1), (Device("a"),)).ids) == ["a.0"]


def test_devices_are_in_the_order_of_their_ids() -> None:
    names = ["x_10", "x_9", "x_1", "x_01"]
    for order in (names, names[::-1]):
        assert [device.id for device in in_order(map(Device, order))] == ["x_01", "x_1", "x_9", "x_10"]


def test_either_all_devices_have_a_numa_node_or_none_has() -> None:
    known = [Device("a", numa=0), Device("b", numa=1)]
    assert in_order(known) == tuple(known)
    assert [device.numa for device in in_order([*known, Device("c")])] == [None, None, None]


def test_the_device_behind_a_withheld_id_is_as_healthy_as_it_is() -> None:
    a = Device("a")
    withheld = {"a": Device("a", Health.UNHEALTHY, "'replicas' no longer includes this id")}
    offer = Offer(SHARED, (a,), withheld)
    assert offer.device("a") is a
    assert offer.device("a.0") is a
    assert offer.device("a.3") is None
    assert not offer.ids["a"].healthy


def test_a_device_waits_when_an_id_that_the_rule_makes_is_refused() -> None:
    a, b = Device("a"), Device("b")
    offer = Offer(SHARED, (a, b), refused={"a.2": "a pod may still hold it as x", "b": "withdrawn"})
    assert (offer.why_waiting(a), offer.why_waiting(b)) == ("a pod may still hold it as x", "")
    assert Offer(SHARED, (a,)).why_waiting(a) == ""


def test_ids_are_put_in_natural_order_once_each_and_those_of_nobody_behind_them() -> None:
    offer = Offer(ONE, in_order(map(Device, ("x2", "x10", "x1"))))
    assert offer.in_order(["x10", "x1", "x2", "x1"]) == ["x1", "x2", "x10"]
    assert offer.in_order(["x10", "x9", "x1"]) == ["x1", "x10", "x9"]
    many = Offer(ONE, in_order(Device(f"x{n}") for n in range(100)))
    assert many.in_order(["x10", "y", "x9"]) == ["x9", "x10", "y"], "a few of many"


@pytest.mark.parametrize("resource", [ONE, SHARED])
def test_finding_all_devices_by_their_ids_takes_twice_as_long_for_twice_as_many(resource: Resource) -> None:
    def finding(size: int) -> Callable[[], object]:
        offer = Offer(resource, tuple(Device(f"x{n}") for n in range(size)))
        ids = tuple(offer.ids)
        return lambda: [offer.device(id_) for id_ in ids]

    assert growth(finding, 100) < 2.5


@pytest.mark.parametrize("replicas", [None, 1, 3, 11])
@pytest.mark.parametrize(
    "id_",
    [
        "a",
        "a.0",
        "a.1",
        "a.2",
        "a.3",
        "a.10",
        "a.11",
        "a.00",
        "a.01",
        "a.-1",
        "a.",
        "a.x",
        "a.²",
        "a.٣",
        "b.0",
        ".0",
        "",
    ],
)
def test_an_id_is_one_of_those_of_its_device_or_not(id_: str, replicas: int | None) -> None:
    assert is_id_of(id_, "a", replicas) is (id_ in ids_of("a", replicas))
