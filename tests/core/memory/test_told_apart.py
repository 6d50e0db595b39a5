"""An upgrade from a release that took other devices for one: it found them all at one spot.

What a pod holds under an old id may be any of those that are found there now. None of them is given out again
before that pod has gone, and the old id leads to none of them.
"""

from dataclasses import replace

import pytest

from genericdp.core.allocate import RefusedError
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import locate
from genericdp.core.memory import saved
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from tests.scenes.edits import Node, rule
from tests.scenes.storage import (
    NVME_DRIVES,
    a_generic_namespace,
    a_sas_disk,
    a_volume,
    an_array,
    an_fc_disk,
    an_image,
    an_iscsi_disk,
)
from tests.scenes.video import a_gamepad, a_loopback, a_sensor, a_watchdog
from tests.scenes.wireless import LINK, UHID, a_hid, a_paired

MATCH = '{ SUBSYSTEM = "block|hidraw|input|nvme-generic|tty|video4linux|watchdog", DEVNAME = "*" }'
RULE = rule("x", "allow_dangerous = true", match=MATCH)
OLD = "x_old_abcdefghij"

IQN = "iqn.2003-01.org.example"

#: What the release before took for the same device: one, and another one that is there later.
TAKEN_FOR_ONE = {
    "SAS": (a_sas_disk(0, "0x5000c500a1b2c3d4", 0), a_sas_disk(0, "0x5000c500a1b2c3d5", 1)),
    "Fibre Channel": (an_fc_disk(0, "0x5000c500a1b2c3d4", 0), an_fc_disk(0, "0x5000c500a1b2c3d5", 1)),
    "iSCSI": (an_iscsi_disk(2, 1, f"{IQN}:a", 0), an_iscsi_disk(2, 1, f"{IQN}:b", 1)),
    "volumes": (a_volume(0, "LVM-abc"), replace(a_volume(0, "LVM-def"), incarnation=900)),
    "Bluetooth": (a_hid(UHID, 1, "aa:bb:cc:00:00:01", 0), a_hid(UHID, 2, "aa:bb:cc:00:00:02", 1)),
    "Bluetooth on USB": (a_hid(LINK, 1, "aa:bb:cc:00:00:01", 0), a_hid(LINK, 2, "aa:bb:cc:00:00:02", 1)),
    "a receiver": (a_paired(2, "c4-a5-3c-11", 1, 0), a_paired(3, "c4-a5-3c-12", 1, 1)),
    "images of Ceph": (an_image(0, "1f5c6b8b4567"), an_image(0, "1f5d6b8b4567")),
    "namespaces": tuple(a_generic_namespace(NVME_DRIVES[0], 1, nsid) for nsid in (1, 2)),
    "cameras of a board": (a_sensor("rkisp_mainpath", 0), a_sensor("rkisp_selfpath", 0)),
    "virtual cameras": (a_loopback("front door", 0), a_loopback("back door", 0)),
    "watchdogs": (a_watchdog("Software Watchdog", 0), a_watchdog("IT87 WDT", 0)),
    "input devices of a program": (a_gamepad("one", 5), a_gamepad("other", 5)),
    "arrays": (an_array(127, "3aaa0122-2982"), an_array(127, "3aaa0122-2983")),
}
each_of_them = pytest.mark.parametrize(
    ("one", "other"), TAKEN_FOR_ONE.values(), ids=[*TAKEN_FOR_ONE]
)  # fmt: skip


def upgraded(device: UdevDevice, id_: str = OLD, unit: str = "") -> Node:
    """A node on which a pod holds a device; its memory is as the release before saved it."""
    spot = locate(device).before
    assert spot is not None
    spot = spot._replace(number=0)
    known = Device(id_, Health.UNHEALTHY, links=(id_,), unit=unit or id_, port=spot.port, spots=(spot,))
    memory = Memory(
        devices={id_: Remembered("example.com/x", known)},
        held={id_: Holding("example.com/x", id_, shared=False)},
    )
    node = Node()
    node.memory = saved.load(saved.dump(memory))
    return node


@each_of_them
def test_whichever_is_there_waits_for_the_pod_and_the_old_id_leads_nowhere(
    one: UdevDevice, other: UdevDevice
) -> None:
    for there in (one, other):
        node = upgraded(one)
        told = node.look(RULE, there)
        (new,) = told.keys() - {OLD}
        assert told == {
            new: f"a pod may still hold it as {OLD}",
            OLD: f"this release tells such devices apart; its id may now be {new}",
        }
        assert node.inventory.links() == {OLD: None, new: None}
        with pytest.raises(RefusedError):
            node.allocate(new)


@each_of_them
def test_it_is_given_out_when_the_pod_has_gone(one: UdevDevice, other: UdevDevice) -> None:
    node = upgraded(one)
    told = node.look(RULE, other)
    (new,) = told.keys() - {OLD}
    node.memory = saved.load(saved.dump(node.memory))
    told = node.look(RULE, other, answer=node.nobody_holds_anything())
    assert told[new] == "Healthy"
    node.allocate(new)


@each_of_them
def test_once_each_has_an_id_of_its_own_none_waits_for_another(one: UdevDevice, other: UdevDevice) -> None:
    node = Node()
    (id_,) = node.look(RULE, one)
    node.allocate(id_)
    assert node.look(RULE)[id_] == "it is unplugged"
    other = replace(other, incarnation=one.incarnation + 1000)
    told = node.look(RULE, other)
    (new,) = told.keys() - {id_}
    assert told == {id_: "it is unplugged", new: "Healthy"}
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(RULE, other) == told
    assert node.look(RULE, one) == {id_: "Healthy", new: "it is unplugged"}


def test_an_id_of_the_address_of_a_wireless_unit_stays_its_own() -> None:
    rules = RULE + 'identity = ["HID_UNIQ"]\n'
    for one, other in (TAKEN_FOR_ONE["Bluetooth"], TAKEN_FOR_ONE["Bluetooth on USB"]):
        (id_,) = Node().look(rules, one)
        node = upgraded(one, id_)
        assert node.look(rules, one) == {id_: "Healthy"}
        assert node.look(rules) == {id_: "it is unplugged"}
        told = node.look(rules, other)
        assert sorted(told.values()) == ["Healthy", "it is unplugged"]


def test_an_id_of_properties_stays_the_devices_own() -> None:
    rules = RULE + 'identity = ["ID_SERIAL"]\n'
    one, other = TAKEN_FOR_ONE["SAS"]
    (id_,) = Node().look(rules, one)
    node = upgraded(one, id_)
    assert node.look(rules, one) == {id_: "Healthy"}
    assert node.inventory.links() == {id_: "/dev/sda"}
    told = upgraded(one, id_).look(rules, other)
    assert told.pop(id_) != "Healthy"
    assert [*told.values()] == [f"a pod may still hold it as {id_}"]


BY_MODEL = rule("x", 'identity = ["HID_ID"]', match='{ SUBSYSTEM = "hidraw" }')
AMBIGUOUS = "the device plugged in now may not be the one that a pod got; delete that pod"


def after_siblings(one: UdevDevice, *held: int, siblings: int = 2) -> tuple[Node, list[str]]:
    """A node of the release before, which had siblings at one port under one property, and their ids."""
    before = locate(one).before
    assert before is not None
    (first,) = Node().look(BY_MODEL, one)
    ids = [first, "x_second_abcdefghij"][:siblings]
    known = {
        id_: Device(id_, Health.UNHEALTHY, links=(id_,), unit=_unit_of(one), port=before.port, spots=(spot,))
        for number, id_ in enumerate(ids)
        for spot in (before._replace(number=number),)
    }
    node = Node()
    node.memory = Memory(
        devices={id_: Remembered("example.com/x", device) for id_, device in known.items()},
        held={ids[number]: Holding("example.com/x", ids[number], shared=False) for number in held},
    )
    node.memory = saved.load(saved.dump(node.memory))
    return node, ids


def _unit_of(device: UdevDevice) -> str:
    node = Node()
    (id_,) = node.look(BY_MODEL, device)
    return node.offer_of(id_).ids[id_].unit


wireless = pytest.mark.parametrize("kind", ["Bluetooth", "Bluetooth on USB"])


@wireless
@pytest.mark.parametrize("siblings", [1, 2])
def test_an_id_of_a_property_that_two_units_have_means_neither_until_the_pod_has_gone(
    kind: str, siblings: int
) -> None:
    one, other = TAKEN_FOR_ONE[kind]
    node, (id_, *absent) = after_siblings(one, 0, siblings=siblings)
    told = node.look(BY_MODEL, one, other)
    (new,) = told.keys() - {id_, *absent}
    waits = {id_: AMBIGUOUS, new: f"a pod may still hold it as {id_}"}
    assert {each: told[each] for each in waits} == waits
    assert node.inventory.links() == {id_: None, new: None, **dict.fromkeys(absent)}
    (refusal,) = node.inventory.refusals
    assert refusal.reason == f"its id, {id_}, may belong to another unit, which a pod may still hold"
    for candidate in (id_, new):
        with pytest.raises(RefusedError):
            node.allocate(candidate)
    told = node.look(BY_MODEL, one, other, answer=node.nobody_holds_anything())
    told = node.look(BY_MODEL, one, other)
    assert (told[id_], told[new]) == ("Healthy", "Healthy")


@wireless
def test_it_means_neither_when_two_pods_hold_what_were_siblings(kind: str) -> None:
    one, other = TAKEN_FOR_ONE[kind]
    node, (id_, second) = after_siblings(one, 0, 1)
    told = node.look(BY_MODEL, one, other)
    (new,) = told.keys() - {id_, second}
    assert told[id_] == AMBIGUOUS
    assert (
        told[second]
        == f"this release tells such devices apart; its id may now be {' or '.join(sorted((id_, new)))}"
    )
    assert told[new].startswith("a pod may still hold it as ")


@wireless
def test_it_means_neither_when_only_one_of_the_siblings_is_still_there(kind: str) -> None:
    for there in TAKEN_FOR_ONE[kind]:
        node, (id_, _) = after_siblings(there, 0)
        told = node.look(BY_MODEL, there)
        assert told[id_] == AMBIGUOUS


@wireless
def test_it_still_means_neither_when_the_other_one_has_left(kind: str) -> None:
    one, other = TAKEN_FOR_ONE[kind]
    for left in (one, other):
        node, (id_,) = after_siblings(one, 0, siblings=1)
        node.look(BY_MODEL, one, other)
        node.memory = saved.load(saved.dump(node.memory))
        told = node.look(BY_MODEL, left)
        assert told[id_] != "Healthy"
        assert "Healthy" not in told.values()


@wireless
def test_it_still_means_the_only_unit_that_has_it(kind: str) -> None:
    one, other = TAKEN_FOR_ONE[kind]
    node, (id_,) = after_siblings(one, 0, siblings=1)
    assert node.look(BY_MODEL, one) == {id_: "Healthy"}
    told = node.look(BY_MODEL, one, other)
    assert [*told.values()] == ["Healthy", "Healthy"]
    assert node.inventory.links()[id_] == one.device_node


def test_an_id_of_a_property_of_volumes_means_none_when_several_have_it_under_other_numbers() -> None:
    def a_twin(number: int, uuid: str) -> UdevDevice:
        volume = a_volume(number, uuid)
        return replace(volume, properties={**volume.properties, "MODEL": "twin"})

    rules = RULE + 'identity = ["MODEL"]\n'
    probe = Node()
    (id_,) = probe.look(rules, a_twin(0, "LVM-abc"))
    unit = probe.offer_of(id_).ids[id_].unit
    for others in ((1, 2), (2, 1)):
        node = upgraded(a_twin(0, "LVM-abc"), id_, unit)
        there = [a_twin(number, uuid) for number, uuid in zip(others, ("LVM-abc", "LVM-def"), strict=True)]
        assert node.look(rules, *there)[id_] == "it is unplugged"
        assert node.inventory.links()[id_] is None
