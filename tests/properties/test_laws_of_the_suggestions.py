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
from tests.scenes.builders import a_device, a_function, a_usb_device, a_usb_interface, by_sys_path
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


#: The device nodes of one unit, with the subsystem of each: any of them may be missing.
KINDS = {
    "dri/card1": "drm",
    "dri/renderD129": "drm",
    "fb1": "graphics",
    "snd/controlC1": "sound",
    "snd/pcmC1D0p": "sound",
    "video1": "video4linux",
    "video2": "video4linux",
    "v4l-subdev1": "video4linux",
    "media1": "media",
    "hidraw1": "hidraw",
    "input/event1": "input",
    "ttyUSB1": "tty",
    "ttyUSB2": "tty",
    "cdc-wdm1": "usbmisc",
    "usb/lp1": "usbmisc",
    "gpiochip1": "gpio",
    "ptp1": "ptp",
    "tpm1": "tpm",
    "tpmrm1": "tpmrm",
    "wwan1at1": "wwan",
    "dvb/adapter1/frontend1": "dvb",
    "sda": "block",
    "sg1": "scsi_generic",
    "remoteproc1": "remoteproc",
    "hpilo/d1ccb1": "iLO",
    "acme1": "acme",
}
UNITS = {
    "usb": a_usb_interface(a_usb_device()),
    "pci": a_function(driver="acme"),
    "platform": a_device("/sys/devices/platform/soc@0/48030000.acme", subsystem="platform", driver="acme"),
}


@given(
    st.sampled_from(sorted(UNITS)),
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5, unique=True),
)
def test_whatever_a_unit_consists_of_each_of_its_nodes_has_a_suggestion(bus: str, names: list[str]) -> None:
    above = UNITS[bus]
    nodes = [
        a_device(
            f"{above.sys_path}/{KINDS[name]}/{name.rpartition('/')[2]}",
            subsystem=KINDS[name],
            node=f"/dev/{name}",
            number=f"{'b' if KINDS[name] == 'block' else 'c'} 240:{minor}",
            devtype="disk" if KINDS[name] == "block" else "",
            parent=above,
        )
        for minor, name in enumerate(names)
    ]
    devices = by_sys_path(*nodes)
    present = Present(devices, DOMAIN)
    for node in nodes:
        for by_itself in (False, True):
            suggestion = suggest(node, present, by_itself=by_itself)
            assert_takes_exactly(suggestion.text, devices, suggestion.group.nodes)
            assert node in suggestion.group.nodes


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
