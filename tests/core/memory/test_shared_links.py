"""The links to shared nodes: they stay while a pod may hold them, and lead to the node or nowhere."""

import json

import pytest

from genericdp.core.inventory.offer import Device
from genericdp.core.memory import saved
from tests.scenes.builders import a_fuse, a_gpu, a_kfd, a_usb_serial
from tests.scenes.edits import Node, rule

SHARED = '[[resource.node]]\nmatch = { DEVNAME = "/dev/kfd" }\nshared = true'
FTDI = rule("ftdi", SHARED)
GPU = rule("gpu", 'group_by = "parent"', SHARED, match='{ SUBSYSTEM = "drm" }')
STICK = a_usb_serial(serial="A")


def the_link(node: Node) -> str | None:
    return node.inventory.links()["shared+kfd"]


def the_device(node: Node) -> Device:
    (device,) = (device for offer in node.inventory.offers.values() for device in offer.devices)
    return device


def test_a_shared_node_that_leaves_has_a_dead_link_and_leads_to_it_again_afterwards() -> None:
    node = Node()
    node.look(FTDI, STICK, a_kfd())
    assert the_link(node) == "/dev/kfd"
    told = node.look(FTDI, STICK)
    assert told == {"ftdi_A": "the shared node for DEVNAME '/dev/kfd' is missing"}
    assert node.inventory.links() == {"ftdi_A": None, "shared+kfd": None}
    assert node.look(FTDI, STICK, a_kfd()) == {"ftdi_A": "Healthy"}
    assert the_link(node) == "/dev/kfd"
    assert the_device(node).links == ("ftdi_A", "shared+kfd")


def test_a_device_that_leaves_does_not_take_the_link_with_it() -> None:
    both = FTDI + GPU
    node = Node()
    node.look(both, STICK, *a_gpu(), a_kfd())
    node.look(both, *a_gpu(), a_kfd())
    assert the_link(node) == "/dev/kfd"
    node.look(both, a_kfd())
    assert the_link(node) is None
    node.look(both)
    assert the_link(node) is None


@pytest.mark.parametrize("restart", [False, True])
def test_a_link_that_a_pod_got_is_dead_while_no_rule_shares_the_node(restart: bool) -> None:
    node = Node()
    node.look(FTDI, STICK, a_kfd())
    node.allocate("ftdi_A")
    for rules in (rule("ftdi"), ""):
        if restart:
            node.memory = saved.load(saved.dump(node.memory))
        node.look(rules, STICK, a_kfd())
        assert the_link(node) is None
        node.look(f"{rules}{GPU}", STICK, a_kfd(), *a_gpu())
        assert the_link(node) == "/dev/kfd"
    node.look("", answer=node.nobody_holds_anything())
    node.now += 1e6
    node.look("", answer=node.nobody_holds_anything())
    assert node.inventory.links() == {}


def test_what_is_saved_of_links_is_read_again_in_the_same_order() -> None:
    node = Node()
    node.look(FTDI, STICK, a_kfd())
    other = FTDI.replace('"/dev/kfd"', '["/dev/fuse", "/dev/kfd"]')
    node.look(other, STICK, a_fuse())
    assert the_device(node).links == ("ftdi_A", "shared+fuse", "shared+kfd")
    read = saved.load(saved.dump(node.memory))
    assert read.devices["ftdi_A"].device.links == ("ftdi_A", "shared+fuse", "shared+kfd")
    assert saved.dump(read) == saved.dump(node.memory)


@pytest.mark.parametrize(
    "name", ["kfd", "shared", "shared+", "shared+a/b", "shared@kfd", "ftdi_A", 1, "shared+é"]
)
def test_a_saved_link_that_cannot_be_that_of_a_shared_node_makes_the_memory_unreadable(name: object) -> None:
    node = Node()
    node.look(FTDI, STICK, a_kfd())
    document = json.loads(saved.dump(node.memory))
    document["devices"]["ftdi_A"]["shared"] = [name]
    with pytest.raises(saved.UnreadableMemoryError):
        saved.load(json.dumps(document).encode())
