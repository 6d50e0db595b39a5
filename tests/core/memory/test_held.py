"""Which ids pods hold: what Allocate gave and PodResources lists, until a complete answer says otherwise."""

from dataclasses import replace

import pytest

from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import (
    PODS_SETTLE_S,
    Held,
    Holding,
    give,
    learn,
    may_be_of_the_past,
    not_taken,
)
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.room import ID_LIMIT
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Resource

NAME = "example.com/x"


def offering(*ids: str, replicas: int | None = None) -> Offer:
    return Offer(Resource(NAME, Match(), replicas=replicas), tuple(map(Device, ids)))


def learned(
    held: Held,
    *ids: str,
    asked: float = 0.0,
    complete: bool = True,
    resource: str = NAME,
    checkpointed: frozenset[str] | None = frozenset(),
    first: bool = False,
    earlier: frozenset[str] = frozenset(),
) -> Held:
    answer = Answer(frozenset((resource, id_) for id_ in ids), asked, complete, checkpointed, first)
    answer = replace(answer, earlier=frozenset((resource, id_) for id_ in earlier))
    remembered = {"x_gone": Remembered(NAME, Device("x_gone"))}
    return learn(held, answer, {NAME: offering("x_A", "x_B")}, remembered)


def test_what_allocate_gave_is_held() -> None:
    assert give({}, offering("x_A", "x_B"), ["x_A"], 5.0) == {"x_A": Holding(NAME, "x_A", shared=False)}
    assert give({}, offering("x_A"), ["unknown"], 5.0) == {}


@pytest.mark.parametrize(("replicas", "shared"), [(1, False), (2, True)])
def test_an_id_is_shared_when_another_container_may_have_the_device(replicas: int, shared: bool) -> None:
    held = give({}, offering("x_A", replicas=replicas), ["x_A.0"], 5.0)
    assert held == {"x_A.0": Holding(NAME, "x_A", shared)}


def test_an_id_that_is_given_again_belongs_to_the_next_pod() -> None:
    """The kubelet gives only what is free. The next pod gets the device as it is shared now."""
    held = give({}, offering("x_A", replicas=1), ["x_A.0"], 5.0)
    assert give(held, offering("x_A", replicas=2), ["x_A.0"], 6.0) == {
        "x_A.0": Holding(NAME, "x_A", shared=True)
    }


def test_an_id_is_held_until_a_complete_answer_no_longer_lists_it() -> None:
    held = give({}, offering("x_A"), ["x_A"], 0.0)
    late = PODS_SETTLE_S
    assert learned(held, asked=late, complete=False) is held
    assert learned(held, asked=late) == {}
    listed = learned(held, "x_A", asked=late)
    assert listed == {"x_A": Holding(NAME, "x_A", shared=False, listed=True)}
    assert learned(listed, "x_A", asked=late) is listed
    assert learned(listed, asked=late) == {}


def test_an_id_that_was_never_listed_is_held_while_the_checkpoint_has_it() -> None:
    """Only an init container got it."""
    held = give({}, offering("x_A"), ["x_A"], 0.0)
    checkpointed = frozenset({"x_A"})
    assert learned(held, asked=PODS_SETTLE_S, checkpointed=checkpointed) is held
    assert learned(held, asked=PODS_SETTLE_S) == {}
    listed = learned(held, "x_A", asked=PODS_SETTLE_S)
    assert learned(listed, asked=PODS_SETTLE_S, checkpointed=checkpointed) == {}
    again = give(listed, offering("x_A"), ["x_A"], 0.0)
    assert learned(again, asked=PODS_SETTLE_S, checkpointed=checkpointed) == again


def test_an_id_that_the_next_kubelet_has_never_listed_is_held_while_the_checkpoint_has_it() -> None:
    """It may be unable to reach the API server, and then it knows no pod, although containers are running."""
    held = learned(give({}, offering("x_A"), ["x_A"], 0.0), "x_A", asked=PODS_SETTLE_S)
    checkpointed = frozenset({"x_A"})
    deaf = learned(held, asked=PODS_SETTLE_S, checkpointed=checkpointed, first=True)
    assert deaf == {"x_A": Holding(NAME, "x_A", shared=False, listed=False)}
    assert learned(deaf, asked=PODS_SETTLE_S, checkpointed=checkpointed) is deaf
    assert learned(deaf, asked=PODS_SETTLE_S) == {}, "its pod has gone"
    knows = learned(deaf, "x_A", asked=PODS_SETTLE_S, checkpointed=checkpointed)
    assert knows == held
    assert learned(knows, asked=PODS_SETTLE_S, checkpointed=checkpointed) == {}


def test_an_id_that_was_never_listed_is_held_while_the_checkpoint_cannot_be_read() -> None:
    """A daemon may lack a descriptor at that moment."""
    held = give({}, offering("x_A"), ["x_A"], 0.0)
    assert learned(held, asked=PODS_SETTLE_S, checkpointed=None) is held
    listed = learned(held, "x_A", asked=PODS_SETTLE_S, checkpointed=None)
    assert learned(listed, asked=PODS_SETTLE_S, checkpointed=None) == {}, (
        "what was listed needs no checkpoint"
    )
    deaf = learned(listed, asked=PODS_SETTLE_S, checkpointed=None, first=True)
    assert list(deaf) == ["x_A"]


def test_what_only_the_checkpoint_names_may_be_of_the_past() -> None:
    held = give({}, offering("x_A", "x_B"), ["x_A"], 0.0)
    named = Answer(frozenset(), PODS_SETTLE_S, complete=True, checkpointed=frozenset({"x_A"}))
    assert may_be_of_the_past(held, named)
    assert may_be_of_the_past({}, named), "nobody holds anything"
    assert not may_be_of_the_past({}, replace(named, checkpointed=frozenset()))
    assert not may_be_of_the_past(learned(held, "x_A", asked=1.0), named), "it is listed"
    assert not may_be_of_the_past(held, replace(named, complete=False))
    assert not may_be_of_the_past(held, replace(named, checkpointed=frozenset({"x_B"})))
    assert not may_be_of_the_past(held, replace(named, checkpointed=None))
    assert not may_be_of_the_past(held, replace(named, asked=1.0)), "its pod is being admitted"


def test_an_answer_says_nothing_about_an_id_that_was_given_shortly_before() -> None:
    held = give({}, offering("x_A"), ["x_A"], 10.0)
    assert learned(held, asked=9.0) is held
    assert learned(held, asked=9.9 + PODS_SETTLE_S) is held
    assert learned(held, asked=10.0 + PODS_SETTLE_S) == {}


@pytest.mark.parametrize("asked", [9.0, 10.0])
@pytest.mark.parametrize("first", [False, True])
def test_an_answer_says_nothing_about_an_id_that_was_given_after_the_question(
    asked: float, first: bool
) -> None:
    """It lists the pod that had the id before. What only an init container got is never listed."""
    held = give({}, offering("x_A"), ["x_A"], 10.0)
    checkpointed = frozenset({"x_A"})
    late = learned(held, "x_A", asked=asked, checkpointed=checkpointed, first=first)
    assert late == held
    assert learned(late, asked=10.0 + PODS_SETTLE_S, checkpointed=checkpointed) == held
    assert learned(late, "x_A", asked=10.1, checkpointed=checkpointed)["x_A"].listed


def test_an_id_that_was_given_before_a_restart_is_held_until_the_first_complete_answer() -> None:
    held = {"x_A": Holding(NAME, "x_A", shared=False)}
    assert learned(held, complete=False) is held
    assert learned(held) == {}


@pytest.mark.parametrize("complete", [False, True])
def test_what_podresources_lists_is_held_even_if_this_daemon_never_gave_it(complete: bool) -> None:
    """The memory may be lost."""
    assert learned({}, "x_B", complete=complete) == {"x_B": Holding(NAME, "x_B", shared=False, listed=True)}
    assert learned({}, "x_gone", complete=complete) == {
        "x_gone": Holding(NAME, "x_gone", shared=False, listed=True)
    }
    assert learned({}, "x_gone.7", complete=complete) == {
        "x_gone.7": Holding(NAME, "x_gone", shared=True, listed=True)
    }
    assert learned({}, "x_never.7", complete=complete) == {
        "x_never.7": Holding(NAME, "x_never", shared=True, listed=True)
    }


@pytest.mark.parametrize("replicas", [None, 2000])
def test_an_id_that_is_too_long_for_a_device_is_that_of_a_replica(replicas: int | None) -> None:
    """Whether or not the rule still has replicas, and also if nothing is remembered."""
    longest = "x" * 57
    assert learned({}, longest) == {longest: Holding(NAME, longest, shared=False, listed=True)}
    answer = Answer(frozenset({(NAME, f"{longest}.1999")}), 0.0, complete=False)
    for offer in (offering(), offering(longest), offering(longest, replicas=replicas)):
        held = learn({}, answer, {NAME: offer}, {})
        assert [(id_, one.device) for id_, one in held.items()] == [(f"{longest}.1999", longest)]


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(
    ("id_", "device"), [("x_A", "x_A"), ("x_gone", "x_gone"), ("x_gone.7", "x_gone"), ("x_never", "x_never")]
)
def test_what_an_earlier_daemon_gave_and_could_not_save_is_held_while_the_checkpoint_names_it(
    id_: str, device: str, complete: bool
) -> None:
    """Its disk was full. The kubelet lists no init container, and no pod before it reaches the API server."""
    named = frozenset({id_})
    held = learned({}, complete=complete, checkpointed=named, earlier=named, first=True)
    assert held == {id_: Holding(NAME, device, shared=id_ != device, listed=False)}
    assert learned(held, checkpointed=named) is held
    assert learned(held) == {}, "its pod has gone"
    listed = learned({}, id_, checkpointed=named, earlier=named)
    assert listed == {id_: Holding(NAME, device, shared=id_ != device, listed=True)}
    assert learned(listed, checkpointed=named, earlier=named) == {}, "the kubelet listed it before"


def test_what_an_earlier_daemon_gave_counts_only_if_it_may_be_ours() -> None:
    for id_, resource in (("x_A", "nvidia.com/gpu"), ("/dev/ttyUSB0", NAME), ("", NAME), ("\udc80", NAME)):
        assert learned({}, resource=resource, checkpointed=frozenset({id_}), earlier=frozenset({id_})) == {}


def test_what_only_a_checkpoint_names_is_taken_while_the_list_has_room_for_it() -> None:
    flood = frozenset((NAME, f"x_{n}x") for n in range(2 * ID_LIMIT))
    answer = Answer(frozenset({(NAME, "x_B")}), 0.0, complete=False, earlier=flood)
    held = learn({}, answer, {NAME: offering("x_A", "x_B")}, {})
    assert len(held) == ID_LIMIT
    assert held["x_B"].listed


def test_the_devices_of_other_plugins_do_not_count() -> None:
    assert learned({}, "x_A", resource="nvidia.com/gpu") == {}


def test_an_id_that_ends_like_that_of_a_replica_may_be_that_of_a_device() -> None:
    remembered = {id_: Remembered(NAME, Device(id_)) for id_ in ("x_gone", "x_gone.7")}
    answer = Answer(frozenset({(NAME, "x_gone.7")}), 0.0, complete=True)
    assert learn({}, answer, {}, remembered) == {
        "x_gone.7": Holding(NAME, "x_gone.7", shared=False, listed=True)
    }


@pytest.mark.parametrize("id_", ["/dev/ttyUSB0", "vendor:ttyUSB0", "a" * 58, f"{'a' * 58}.1", "", "\udc80"])
def test_an_id_that_no_device_can_have_is_not_ours(id_: str) -> None:
    """Pods of the plugin that had the resource before may still run."""
    assert learned({}, id_) == {}


def test_unknown_ids_are_taken_while_the_list_has_room_for_them() -> None:
    """Each answer is the same, so what was taken of the first one must not make room in the next."""
    flood = [f"x_{n}x" for n in range(2 * ID_LIMIT)]
    before = give({}, offering("x_A", "x_B"), ["x_B"], 0.0)
    for resource in (offering("x_A", "x_B"), offering("x_A", replicas=10)):
        held, offered = before, next(iter(resource.ids))
        answer = Answer(frozenset((NAME, id_) for id_ in (*flood, offered, "x_gone")), 0.0, complete=False)
        devices = {"x_gone": Remembered(NAME, Device("x_gone"))}
        for _ in range(2):
            held = learn(held, answer, {NAME: resource}, devices)
            assert len(held) == ID_LIMIT
            assert {offered, "x_B", "x_gone"} <= held.keys()
            assert not_taken(held, answer, {NAME: resource}) == {NAME: 2 * ID_LIMIT + 3 - len(held)}
            devices |= {id_: Remembered(NAME, Device(id_)) for id_ in held}
