"""Laws of Allocate and GetPreferredAllocation, for any device that any rule offers."""

import random
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.allocate import UnknownDeviceError, allocate
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.offer import Offer
from genericdp.core.prefer import prefer
from genericdp.core.rules.resource import Resource
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
        links = {node.link for device in offer.devices if device.id in chosen for node in device.nodes}
        assert {spec.host_path for spec in answer.devices} == {f"{LINKS}/{link}" for link in links}
        assert all(spec.permissions == "rw" for spec in answer.devices)


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
        with pytest.raises(UnknownDeviceError, match=re.escape(offer.resource.name)) as refused:
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
