"""How to choose among free devices."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest

from genericdp.core.inventory.offer import Device, Health, Offer
from genericdp.core.prefer import prefer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Prefer, Resource
from tests.scenes.steps import growth

#: Two NUMA nodes and three hubs.
DEVICES = (
    Device("a", numa=0, hub="h1", port="h1.1"),
    Device("b", numa=1, hub="h2", port="h2.1"),
    Device("c", numa=1, hub="h2", port="h2.2"),
    Device("d", numa=0, hub="h1", port="h1.2"),
    Device("e", numa=1, hub="h3", port="h3.1"),
    Device("f", numa=1, hub="h3", port="h3.1"),
)
ALL = "abcdef"


def chosen(
    policy: Prefer,
    size: int,
    *,
    available: Iterable[str] = ALL,
    must: Iterable[str] = "",
    last_used: Mapping[str, int] | None = None,
    replicas: int | None = None,
) -> str:
    offer = Offer(Resource("example.com/x", Match(), prefer=policy, replicas=replicas), DEVICES)
    return " ".join(prefer(offer, [*available], [*must], size, last_used or {}))


@pytest.mark.parametrize("policy", Prefer)
def test_the_answer_has_exactly_the_size_or_all_there_is(policy: Prefer) -> None:
    for size in range(9):
        assert len(chosen(policy, size).split()) == min(size, 6)
    assert chosen(policy, 6).split() != []
    assert sorted(chosen(policy, 99).split()) == [*ALL]


@pytest.mark.parametrize("policy", Prefer)
def test_what_must_be_is_in_it(policy: Prefer) -> None:
    for must in itertools.combinations(ALL, 2):
        assert {*must} <= {*chosen(policy, 3, must=must).split()}
    # More than the size cannot be.
    assert chosen(policy, 2, must="fbd") == "b d"
    assert chosen(policy, -1, must="a") == ""


@pytest.mark.parametrize("policy", Prefer)
def test_only_what_is_free_is_in_it(policy: Prefer) -> None:
    assert {*chosen(policy, 2, available="cf").split()} == {*"cf"}


@pytest.mark.parametrize("policy", Prefer)
def test_neither_order_nor_repetition_matters(policy: Prefer) -> None:
    expected = chosen(policy, 4, must="be")
    for order in itertools.islice(itertools.permutations(ALL), 0, 720, 37):
        assert chosen(policy, 4, available=(*order, *order), must="eebe") == expected


@pytest.mark.parametrize("policy", Prefer)
def test_an_id_that_was_never_offered_does_no_harm(policy: Prefer) -> None:
    assert len(chosen(policy, 3, available=["a", "zz", "b"], must=["yy"]).split()) == 3


@pytest.mark.parametrize("policy", Prefer)
def test_what_no_pod_can_have_now_comes_last(policy: Prefer) -> None:
    """The kubelet may not have heard yet that it is Unhealthy, has to wait or has gone."""
    gone = Device("b", health=Health.UNHEALTHY, numa=1, hub="h2", port="h2.1")
    withheld = Device("w", health=Health.UNHEALTHY, numa=1, hub="h2", port="h2.1")
    offer = Offer(
        Resource("example.com/x", Match(), prefer=policy),
        tuple(gone if device.id == "b" else device for device in DEVICES),
        withheld={"w": withheld},
        refused={"c": "it has to wait"},
    )
    available = [*ALL, "w", "unknown"]
    for size in range(5):
        assert {*prefer(offer, available, [], size, {})} <= {*"adef"}
    for size in range(5, 9):
        chosen_ = prefer(offer, available, [], size, {})
        assert len({*chosen_}) == len(chosen_) == size
        assert {*chosen_} > {*"adef"}
    assert {*prefer(offer, available, ["b", "w"], 4, {})} - {*"adef"} == {"b", "w"}


def test_what_no_pod_can_have_now_makes_no_group_larger() -> None:
    gone = [replace(device, health=Health.UNHEALTHY) for device in DEVICES if device.id in "bce"]
    offer = Offer(
        Resource("example.com/x", Match(), prefer=Prefer.NUMA), (DEVICES[0], *gone[:2], DEVICES[3], gone[2])
    )
    assert prefer(offer, "abcde", [], 3, {}) == ("a", "d", "b")


def test_first_is_the_order_of_the_ids() -> None:
    assert chosen(Prefer.FIRST, 3) == "a b c"
    assert chosen(Prefer.FIRST, 3, available=["x10", "c", "x1"]) == "c x1 x10"


def test_numa_begins_where_most_is_free_and_stays_there() -> None:
    assert chosen(Prefer.NUMA, 3) == "b c e"
    assert chosen(Prefer.NUMA, 5) == "b c e f a"
    assert chosen(Prefer.NUMA, 2, available="abd") == "a d"


def test_numa_stays_where_a_device_must_be() -> None:
    assert chosen(Prefer.NUMA, 3, must="a") == "a d b"
    assert chosen(Prefer.NUMA, 4, must="da") == "a d b c"


def test_same_hub_begins_at_the_hub_with_most_to_give() -> None:
    assert chosen(Prefer.SAME_HUB, 2) == "a d"
    assert chosen(Prefer.SAME_HUB, 2, available="abc") == "b c"
    assert chosen(Prefer.SAME_HUB, 3, must="e") == "e f a"


def test_spread_takes_another_hub_each_time() -> None:
    assert chosen(Prefer.SPREAD, 3) == "a b e"
    assert chosen(Prefer.SPREAD, 5) == "a b e c d"
    assert chosen(Prefer.SPREAD, 2, must="b") == "b a"


def test_spread_takes_another_unit_before_another_replica() -> None:
    offered = [f"{id_}.{n}" for id_ in "bc" for n in (0, 1)]
    assert chosen(Prefer.SPREAD, 3, available=offered, replicas=2) == "b.0 c.0 b.1"


@pytest.mark.parametrize("policy", [each for each in Prefer if each is not Prefer.SAME_UNIT])
def test_a_container_gets_another_replica_of_a_device_only_after_all_others(policy: Prefer) -> None:
    offered = [f"{id_}.{n}" for id_ in "abe" for n in range(3)]
    for size in (2, 3):
        picked = chosen(policy, size, available=offered, replicas=3).split()
        assert len({id_.partition(".")[0] for id_ in picked}) == size
    begun = chosen(policy, 3, available=offered, must=["a.1"], replicas=3).split()
    assert {id_.partition(".")[0] for id_ in begun} == {*"abe"}
    all_of_one = [f"b.{n}" for n in range(3)]
    assert chosen(policy, 2, available=all_of_one, replicas=3) == "b.0 b.1"


def test_the_policy_orders_the_devices_from_which_one_replica_is_taken() -> None:
    offered = [f"{id_}.{n}" for id_ in "abcd" for n in (0, 1)]
    assert chosen(Prefer.NUMA, 4, available=offered, replicas=2) == "a.0 d.0 b.0 c.0"
    assert chosen(Prefer.SAME_HUB, 3, available=offered, must=["c.0"], replicas=2) == "c.0 b.0 a.0"
    used = {"a.0": 1, "a.1": 2, "b.0": 3}
    assert chosen(
        Prefer.LEAST_RECENTLY_USED, 3, available=["a.0", "a.1", "b.0"], last_used=used, replicas=2
    ) == ("a.0 b.0 a.1")


def test_same_unit_begins_with_the_unit_that_has_most_to_give() -> None:
    assert chosen(Prefer.SAME_UNIT, 2) == "e f"
    assert chosen(Prefer.SAME_UNIT, 2, must="b") == "b e"
    offered = ["a.0", "b.0", "b.1", "b.2", "c.0"]
    assert chosen(Prefer.SAME_UNIT, 3, available=offered, replicas=3) == "b.0 b.1 b.2"
    assert chosen(Prefer.SAME_UNIT, 2, available=offered, must=["a.1"], replicas=3) == "a.1 a.0"


def test_least_recently_used_begins_with_what_was_never_used() -> None:
    used = {"a": 3, "b": 1, "c": 7, "d": 1}
    assert chosen(Prefer.LEAST_RECENTLY_USED, 4, last_used=used) == "e f b d"
    assert chosen(Prefer.LEAST_RECENTLY_USED, 3, last_used=used, available="abc") == "b a c"


def test_a_hundred_of_a_thousand_are_chosen_at_once() -> None:
    devices = tuple(Device(f"x{n}", numa=n % 2, hub=f"h{n % 7}", port=f"h{n % 7}.{n}") for n in range(1000))
    for policy in Prefer:
        offer = Offer(Resource("example.com/x", Match(), prefer=policy), devices)
        assert len(prefer(offer, list(offer.ids), ["x5"], 100, {})) == 100


@pytest.mark.parametrize("policy", Prefer)
def test_twice_as_many_ids_are_twice_as_much_work(policy: Prefer) -> None:
    def choosing(size: int) -> Callable[[], object]:
        devices = tuple(Device(f"x{n}", numa=n % 2, hub=f"h{n % 7}", port=f"p{n // 2}") for n in range(size))
        offer = Offer(Resource("example.com/x", Match(), prefer=policy), devices)
        return lambda: prefer(offer, list(offer.ids), ["x5"], size // 2, {})

    assert growth(choosing, 500) < 2.5
