"""What `suggest` prints is right for every machine, whatever its devices call themselves."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, Judged
from genericdp.core.rules.name import why_not_a_resource_name
from genericdp.core.rules.resource import Resource
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import suggest
from genericdp.errors import GenericdpError
from tests.properties.strategies import Boot, Unit, booted, boots, machines, names, rules
from tests.scenes.suggestions import DOMAIN, assert_takes_exactly, offers_of, uncommented

#: What udev says about a device, all of it from the device itself.
properties = st.dictionaries(
    st.sampled_from(["ID_MODEL", "ID_VENDOR", "ID_SERIAL", "ID_MODEL_FROM_DATABASE"]), names, max_size=3
)


def talking(devices: Mapping[str, UdevDevice], words: Mapping[str, str]) -> dict[str, UdevDevice]:
    """The devices, each of which says these things about itself."""
    told: dict[str, UdevDevice] = {}
    for device in sorted(devices.values(), key=lambda each: each.sys_path.count("/")):
        parent = None if device.parent is None else told[device.parent.sys_path]
        told[device.sys_path] = replace(device, parent=parent, properties={**device.properties, **words})
    return told


@given(machines(), boots, properties, st.booleans())
def test_a_suggestion_matches_exactly_its_device(
    units: tuple[Unit, ...], boot: Boot, words: dict[str, str], by_itself: bool
) -> None:
    devices = talking(booted(units, boot), words)
    present = Present(devices, DOMAIN)
    for node in present.nodes:
        if not node.initialized:
            with pytest.raises(GenericdpError):
                suggest(node, present)
            continue
        suggestion = suggest(node, present, by_itself=by_itself)
        assert_takes_exactly(suggestion.text, devices, suggestion.group.nodes)
        assert node in suggestion.group.nodes
        assert why_not_a_resource_name(f"{DOMAIN}/{suggestion.name}") == ""
        assert suggestion.text.replace("\n", "").isprintable()
        assert_takes_exactly(uncommented(suggestion.text), devices, suggestion.group.nodes)


def is_free(judged: Judged) -> bool:
    return not judged.claims and not judged.shares


@given(machines(), boots, properties, rules)
def test_a_starter_file_offers_whatever_it_does_not_leave_out_and_no_rule_took(
    units: tuple[Unit, ...], boot: Boot, words: dict[str, str], resources: tuple[Resource, ...]
) -> None:
    devices = talking(booted(units, boot), words)
    present, claims = Present(devices, DOMAIN), Claims(resources)

    started = starter(present, resources, claims)

    offers = offers_of(started.text, devices)
    offered = {node.path for offer in offers for device in offer.devices for node in device.nodes}
    left_out = {path for _, paths in started.left_out for path in paths}
    free = {node.device_node for node in present.nodes if node.initialized and is_free(claims.judged(node))}
    assert offered | left_out == free
    assert not offered & left_out
    assert all(offer.devices for offer in offers)
    assert len(offers) == len(started.chapters)
