"""Laws of Allocate and GetPreferredAllocation, for any device that any rule offers."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.allocate import DeviceSpec, RefusedError, allocate
from genericdp.core.cdi import by_names, cdi_device
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device, Node, Offer
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.answered import learn_names
from genericdp.core.memory.held import give
from genericdp.core.prefer import prefer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import EVERY_NODE, Prefer, Resource
from genericdp.core.rules.template import parse
from tests.properties.strategies import DOMAIN, Unit, booted, machines, rules

LINKS = "/dev/genericdp"
Rules = tuple[Resource, ...]


def offers(rules_: Rules, units: tuple[Unit, ...]) -> list[Offer]:
    made = Builder(rules_, DOMAIN).build(booted(units)).offers.values()
    return [offer for offer in made if offer.devices]


def shape(template: str) -> str:
    """The form of all paths that a template may make: one component for each field."""
    fixed = re.split(r"(\{[^}]*\})", template)
    return "".join("[^/]+" if part.startswith("{") else re.escape(part) for part in fixed)


@given(rules, machines(), st.data())
def test_an_answer_holds_what_was_asked_for_and_nothing_else(
    rules_: Rules, units: tuple[Unit, ...], data: st.DataObject
) -> None:
    for offer in offers(rules_, units):
        ids = data.draw(st.lists(st.sampled_from(sorted(offer.ids)), min_size=1, unique=True))
        answer = allocate(offer, ids, LINKS)
        chosen = {offer.ids[id_].id for id_ in ids}
        links = {node.link for device in offer.devices if device.id in chosen for node in device.nodes_inside}
        assert {spec.host_path for spec in answer.devices} == {f"{LINKS}/{link}" for link in links}
        assert all(spec.permissions == "rw" for spec in answer.devices)


@given(rules, machines(), st.data())
def test_what_an_answer_by_cdi_named_is_learned_again_from_what_the_kubelet_saved(
    rules_: Rules, units: tuple[Unit, ...], data: st.DataObject
) -> None:
    for offer in offers(rules_, units):
        ids = data.draw(st.lists(st.sampled_from(sorted(offer.ids)), min_size=1, unique=True))
        device = cdi_device(offer, ids)
        names = by_names(allocate(offer, ids, LINKS), device, offer.resource).cdi_devices
        saved = Answer(
            frozenset(), 0.0, complete=False, named=(Named(device.resource, frozenset(ids), names),)
        )
        assert learn_names({}, saved, give({}, offer, ids, 0.0)) == {device.name: device}


@given(rules, machines(), st.data())
def test_what_is_shared_is_the_same_in_every_answer_and_only_once(
    rules_: Rules, units: tuple[Unit, ...], data: st.DataObject
) -> None:
    for offer in offers(rules_, units):
        ids = data.draw(st.lists(st.sampled_from(sorted(offer.ids)), min_size=1, unique=True))
        shared = {f"{LINKS}/{node.link}" for node in offer.shared}
        some, every = (
            [spec for spec in allocate(offer, each, LINKS).devices if spec.host_path in shared]
            for each in (ids, offer.ids)
        )
        assert some == every
        assert {spec.host_path for spec in some} == shared


@given(rules, machines())
def test_container_paths_are_of_the_form_that_the_rule_says_and_no_two_are_one(
    rules_: Rules, units: tuple[Unit, ...]
) -> None:
    for offer in offers(rules_, units):
        answer = allocate(offer, offer.ids, LINKS)
        paths = [spec.container_path for spec in answer.devices]
        assert len(set(paths)) == len(paths)
        # The kernel's names, our links and devlinks may hold slashes; no part of them goes up, see below.
        whole = {"{devname}": "ttyUSB0", "{link}": "/dev/genericdp/x"}
        forms = [
            r"/dev/serial/by-id/.+",
            rf"{LINKS}/[^/]+",
            r"/dev/[a-z]+[A-Za-z0-9-]*",
            r"/dev/bus/usb/\d+/\d+",
        ]
        forms += [
            shape(template.text)
            for table in offer.resource.nodes
            for template in table.container_paths
            if template.text not in whole
        ]
        for path in paths:
            assert any(re.fullmatch(f"(?:{form})(?:-[0-9]+)?", path) for form in forms), path
            assert not {"..", ".", ""} & {*path.split("/")[1:]}
            assert path.isascii()
            assert path.isprintable()
        for mount in answer.mounts:
            assert re.fullmatch(r"/cal(-[0-9]+)?", mount.container_path)
            assert re.fullmatch(r"/srv/[^/]+", mount.host_path)
        assert len({mount.container_path for mount in answer.mounts}) == len(answer.mounts)
        for text in (*answer.envs.values(), *answer.annotations.values()):
            assert text.isascii()
            assert text.isprintable()


@given(rules, machines(), st.randoms(use_true_random=False))
def test_an_answer_depends_on_nothing_but_the_ids(
    rules_: Rules, units: tuple[Unit, ...], chance: random.Random
) -> None:
    for offer in offers(rules_, units):
        ids = list(offer.ids)
        expected = allocate(offer, ids, LINKS)
        chance.shuffle(ids)
        assert allocate(offer, [*ids, *ids], LINKS) == expected


@given(rules, machines(), st.text(max_size=20))
def test_an_id_that_was_never_offered_is_refused(rules_: Rules, units: tuple[Unit, ...], id_: str) -> None:
    for offer in offers(rules_, units):
        assume(id_ not in offer.ids)
        with pytest.raises(RefusedError, match=re.escape(offer.resource.name)) as refused:
            allocate(offer, [*offer.ids, id_], LINKS)
        assert str(refused.value).isascii()
        assert str(refused.value).isprintable()


@given(rules, machines(), st.data())
def test_a_preference_is_exactly_as_large_as_asked_for(
    rules_: Rules, units: tuple[Unit, ...], data: st.DataObject
) -> None:
    for offer in offers(rules_, units):
        ids = sorted(offer.ids)
        available = data.draw(st.lists(st.sampled_from(ids), unique=True))
        must = data.draw(st.lists(st.sampled_from(available), unique=True)) if available else []
        size = data.draw(st.integers(len(must), len(ids) + 2))
        last_used = data.draw(st.dictionaries(st.sampled_from(ids), st.integers(1, 9)))
        chosen = prefer(offer, available, must, size, last_used)
        assert len(chosen) == len(set(chosen)) == min(size, len(available))
        assert set(must) <= set(chosen) <= set(available)
        again = prefer(offer, data.draw(st.permutations(available)), must[::-1], size, last_used)
        assert again == chosen


@st.composite
def crowded_hubs(draw: st.DrawFn) -> Offer:
    """Few hubs with few ports, so that devices share them."""
    at = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12))
    devices = [
        Device(f"x{n}", hub=f"h{hub}" if hub else "", port=f"h{hub}.{port}")
        for n, (hub, port) in enumerate(at)
    ]
    replicas = draw(st.none() | st.integers(1, 4))
    return Offer(Resource("example.com/x", Match(), prefer=Prefer.SPREAD, replicas=replicas), tuple(devices))


def spread_one_by_one(offer: Offer, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
    """What spreading means: look at all that are left, take the best, and begin again."""

    def device(id_: str) -> str:
        return offer.ids[id_].id if id_ in offer.ids else ""

    def port(id_: str) -> str:
        return offer.ids[id_].port if id_ in offer.ids else ""

    def hub(id_: str) -> str:
        return offer.ids[id_].hub if id_ in offer.ids else ""

    def is_usable(id_: str) -> bool:
        return id_ in offer.ids and offer.ids[id_].healthy and id_ not in offer.refused

    def order(id_: str) -> tuple[bool, object]:
        return id_ not in offer.ids, natural(id_)

    chosen = sorted(set(must), key=order)[:size]
    left = sorted(set(available).difference(chosen), key=order)
    devices = Counter(map(device, chosen))
    units, hubs = Counter(map(port, chosen)), Counter(map(hub, chosen))
    while left and len(chosen) < size:
        best = min(
            left,
            key=lambda id_: (
                not is_usable(id_),
                *(devices[device(id_)], units[port(id_)], hubs[hub(id_)]),
            ),
        )
        left.remove(best)
        chosen.append(best)
        devices[device(best)] += 1
        units[port(best)] += 1
        hubs[hub(best)] += 1
    return chosen


@given(crowded_hubs(), st.sampled_from(Prefer), st.data())
def test_two_replicas_are_of_two_units_if_two_are_free(
    offer: Offer, policy: Prefer, data: st.DataObject
) -> None:
    assume(offer.resource.replicas is not None and len(offer.ids) > 1 and policy is not Prefer.SAME_UNIT)
    offer = Offer(replace(offer.resource, prefer=policy), offer.devices)
    available = data.draw(st.lists(st.sampled_from([*offer.ids]), unique=True, min_size=2))
    must = data.draw(st.lists(st.sampled_from(available), unique=True, max_size=1))
    ports = {id_: device.port for id_, device in offer.ids.items()}
    one, other = prefer(offer, available, must, 2, {})
    assert ports[one] != ports[other] or len({ports[id_] for id_ in available}) == 1
    most = len({offer.ids[id_].id for id_ in available})
    for size in range(1, len(available) + 1):
        devices = {offer.ids[id_].id for id_ in prefer(offer, available, must, size, {})}
        assert len(devices) == min(size, most)


@given(crowded_hubs(), st.data())
def test_spreading_at_once_takes_what_spreading_one_by_one_takes(offer: Offer, data: st.DataObject) -> None:
    ids = [*offer.ids, "never-offered", "nor-this"]
    available = data.draw(st.lists(st.sampled_from(ids), unique=True))
    must = data.draw(st.lists(st.sampled_from(available), unique=True)) if available else []
    size = data.draw(st.integers(0, len(ids) + 2))
    expected = spread_one_by_one(offer, available, must, size)
    assert list(prefer(offer, available, must, size, {})) == expected


def placed_one_by_one(wanted: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Where things of the host go: the path, path-1, path-2, …, whichever is free or has them already."""
    taken: dict[str, str] = {}
    for path, host_path in wanted:
        number, free = 0, path
        while taken.get(free, host_path) != host_path:
            number += 1
            free = f"{path}-{number}"
        taken[free] = host_path
    return taken


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["/x", "/x-1", "/x-2", "/x-1-1", "/y"]), min_size=1, max_size=3),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_container_path_that_is_taken_gets_the_first_free_number(
    nodes: list[tuple[list[str], int]],
) -> None:
    devices = []
    for n, (paths, link) in enumerate(nodes):
        table = replace(EVERY_NODE, container_paths=tuple(map(parse, paths)))
        devices.append(Device(f"d{n}", nodes=(Node("/dev/x", None, f"l{link}", table, {}, (), ""),)))
    offer = Offer(Resource("example.com/x", Match()), tuple(devices))
    wanted = [(path, f"{LINKS}/l{link}") for paths, link in nodes for path in dict.fromkeys(paths)]
    answer = allocate(offer, offer.ids, LINKS)
    assert answer.devices == tuple(
        DeviceSpec(path, host_path, EVERY_NODE.permissions)
        for path, host_path in placed_one_by_one(wanted).items()
    )
