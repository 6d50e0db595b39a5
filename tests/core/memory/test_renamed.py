"""An upgrade from a release with other ids and links: pods keep what they got, under its old name."""

import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from genericdp.core.allocate import RefusedError
from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.scenes.builders import CONTROLLER, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

BY_NAME = rule("x", 'identity = ["ID_NAME"]')
GROUP = rule("x", 'group_by = "usb_device"')
EACH = rule("x")
PORT = f"{CONTROLLER} usb 2"

CARD = a_usb_device(serial="A")
PORTS = tuple(a_usb_node(CARD, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in range(3))


def named(port: str = "2", name: str = "n1") -> UdevDevice:
    stick = a_usb_serial(0, port=port, serial=None)
    return replace(stick, properties={**stick.properties, "ID_NAME": name})


def upgraded(links: dict[str, list[str]], serial: str = "A", *, without: Collection[str] = ()) -> Node:
    """A node on which each of these devices is held; its memory is as release 0.1 saved it.

    without  what it does not say, because an earlier build saved it
    """
    devices = {
        id_: {
            "resource": "example.com/x",
            "unit": id_,
            "port": PORT,
            "hub": f"{CONTROLLER} usb ",
            "numa": None,
            "links": names,
            "spots": [[PORT, serial, "if00"] for _ in names],
            "earlier": [],
            "listed": True,
        }
        for id_, names in links.items()
    }
    held = {
        id_: {"resource": "example.com/x", "device": id_, "shared": False, "listed": True} for id_ in links
    }
    for device in devices.values():
        for key in without:
            device.pop(key, None)
    document = {"version": 1, "ties": {}, "replicas": {}, "withdrawn": {}, "devices": devices, "held": held}
    for key in without:
        document.pop(key, None)
    node = Node()
    node.memory = saved.load(json.dumps(document).encode())
    return node


def old_stick(*, without: Collection[str] = ()) -> Node:
    return upgraded({OLD: [OLD]}, serial="", without=without)


OLD = "x_n1_ysua7kbldd"


def test_an_id_that_is_spelled_otherwise_waits_and_the_old_link_leads_to_the_device() -> None:
    node = old_stick()
    told = node.look(BY_NAME, named())
    (new,) = told.keys() - {OLD}
    assert told == {OLD: f"its id is now {new}", new: f"a pod may still hold it as {OLD}"}
    assert node.inventory.links() == {OLD: "/dev/ttyUSB0", new: None}
    with pytest.raises(RefusedError):
        node.allocate(new)


def test_the_old_link_leads_to_the_device_after_a_restart_and_a_replug() -> None:
    node = old_stick()
    node.look(BY_NAME, named())
    node.memory = saved.load(saved.dump(node.memory))
    node.look(BY_NAME)
    assert node.inventory.links()[OLD] is None
    node.look(BY_NAME, named())
    assert node.inventory.links()[OLD] == "/dev/ttyUSB0"
    assert node.inventory.behind([OLD]) == (named().sys_path,)


def test_when_no_pod_holds_the_old_id_its_link_leads_nowhere() -> None:
    node = old_stick()
    node.look(BY_NAME, named())
    told = node.look(BY_NAME, named(), answer=node.nobody_holds_anything())
    (new,) = told.keys() - {OLD}
    assert told[new] == "Healthy"
    assert (node.inventory.links()[OLD], node.inventory.links()[new]) == (None, "/dev/ttyUSB0")


def test_who_holds_what_is_asked_for_if_the_memory_does_not_say_it() -> None:
    node = old_stick(without=["held"])
    told = node.look(BY_NAME, named())
    (new,) = told.keys() - {OLD}
    assert told == {OLD: f"its id is now {new}", new: f"a pod may still hold it as {OLD}"}
    answer = replace(node.nobody_holds_anything(), ids=frozenset({("example.com/x", OLD)}))
    assert node.look(BY_NAME, named(), answer=answer) == told
    assert node.inventory.links() == {OLD: "/dev/ttyUSB0", new: None}
    assert node.look(BY_NAME, named(), answer=node.nobody_holds_anything())[new] == "Healthy"


@pytest.mark.parametrize("other", [named(name="n2"), named(port="3")], ids=["another value", "elsewhere"])
def test_the_old_link_leads_to_no_other_device(other: UdevDevice) -> None:
    node = old_stick()
    node.look(BY_NAME, other)
    assert node.inventory.links()[OLD] is None
    node = old_stick()
    node.look(BY_NAME, named())
    node.look(BY_NAME, other)
    assert node.inventory.links()[OLD] is None


def test_each_sibling_keeps_its_id_and_its_link() -> None:
    ids = list(Node().look(EACH, *PORTS))
    node = upgraded({id_: [id_] for id_ in ids})
    assert node.look(EACH, *PORTS) == dict.fromkeys(ids, "Healthy")
    assert sorted(filter(None, node.inventory.links().values())) == [port.device_node for port in PORTS]


def test_of_siblings_of_which_one_has_left_meanwhile_none_gets_the_id_of_another_one() -> None:
    ids = list(Node().look(EACH, *PORTS))
    node = upgraded({id_: [id_] for id_ in ids})
    told = node.look(EACH, *PORTS[1:])
    assert set(node.inventory.links().values()) == {None}
    assert set(told.values()) == {
        "the device plugged in now may not be the one that a pod got; delete that pod"
    }


@pytest.mark.parametrize("restart", [False, True])
def test_the_old_links_of_siblings_in_a_group_lead_where_they_led(restart: bool) -> None:
    node = upgraded({"x_A": ["x_A@if00", "x_A@if00@2", "x_A@if00@3"]})
    for _ in range(2):
        assert node.look(GROUP, *PORTS) == {"x_A": "Healthy"}
        links = node.inventory.links()
        old = [links[name] for name in ("x_A@if00", "x_A@if00@2", "x_A@if00@3")]
        assert old == [port.device_node for port in PORTS]
        if restart:
            node.memory = saved.load(saved.dump(node.memory))


def test_the_old_links_of_siblings_in_a_group_lead_nowhere_when_one_has_left_meanwhile() -> None:
    node = upgraded({"x_A": ["x_A@if00", "x_A@if00@2", "x_A@if00@3"]})
    node.look(GROUP, *PORTS[1:])
    assert set(node.inventory.links().values()) == {None}
