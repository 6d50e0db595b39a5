"""After an upgrade, what pods hold of siblings stays theirs, whatever the rules of now say."""

import json
from dataclasses import replace

from genericdp.core.memory import saved
from genericdp.core.memory.absence import NOTHING_KNOWN
from tests.core.memory.test_renamed import BY_NAME, EACH, OLD, PORTS, named, old_stick, upgraded
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

TABLES = """[[resource]]
name = "x"
match = { SUBSYSTEM = "tty" }
group_by = "usb_device"
[[resource.node]]
match.DEVNAME = "/dev/ttyACM1"
container_path = "/dev/control"
[[resource.node]]
match.DEVNAME = "/dev/ttyACM0"
container_path = "/dev/data"
"""


def test_the_old_links_of_siblings_in_several_tables_lead_where_they_led() -> None:
    # The earlier release named them in the order of their places, before it sorted them by table.
    node = upgraded({"x_A": ["x_A@if00", "x_A@if00@2"]})
    node.look(TABLES, *PORTS[:2])
    links = node.inventory.links()
    assert links["x_A@if00"] in (None, "/dev/ttyACM0")
    assert links["x_A@if00@2"] in (None, "/dev/ttyACM1")


def test_two_ids_of_the_earlier_release_are_not_one_device_of_now() -> None:
    """The rules are edited while genericdp is upgraded: another resource takes the second sibling."""
    card = a_usb_device(serial=None)
    ports = tuple(a_usb_node(card, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in range(2))
    each = rule("x")
    apart = rule("y", match='{ SUBSYSTEM = "tty", DEVNAME = "/dev/ttyACM1" }') + each
    ids = list(Node().look(each, *ports))
    node = upgraded({id_: [id_] for id_ in ids}, serial="")
    told = node.look(apart, *ports)
    (new,) = (id_ for id_ in told if id_.startswith("y_"))
    assert told[new] != "Healthy", "a pod holds that node under an id of x"


def test_new_ids_at_the_port_of_a_device_that_an_early_build_remembered_wait_for_its_pod() -> None:
    node = old_stick(without=["held", "spots"])
    elsewhere = named(port="3", name="n3")
    told = node.look(BY_NAME, named(), elsewhere)
    assert sorted(told.values()) == ["Healthy", f"a pod may still hold it as {OLD}", NOTHING_KNOWN]
    assert node.inventory.links()[OLD] is None
    node.memory = saved.load(saved.dump(node.memory))
    answer = replace(node.nobody_holds_anything(), ids=frozenset({("example.com/x", OLD)}))
    assert node.look(BY_NAME, named(), elsewhere, answer=answer) == told
    told = node.look(BY_NAME, named(), elsewhere, answer=node.nobody_holds_anything())
    assert sorted(told.values()) == ["Healthy", "Healthy", NOTHING_KNOWN]


def test_a_new_id_at_the_port_waits_also_when_it_comes_after_the_first_look() -> None:
    node = old_stick(without=["spots"])
    assert node.look(BY_NAME) == {OLD: NOTHING_KNOWN}
    told = node.look(BY_NAME, named())
    assert sorted(told.values()) == [f"a pod may still hold it as {OLD}", NOTHING_KNOWN]
    node.memory = saved.load(saved.dump(node.memory))
    node.look(BY_NAME)
    assert node.look(BY_NAME, named()) == told


def test_an_id_of_an_early_build_that_stays_is_the_same_device() -> None:
    (id_,) = Node().look(EACH, PORTS[0])
    node = upgraded({id_: [id_]}, without=["held", "spots"])
    assert node.look(EACH, PORTS[0]) == {id_: "Healthy"}
    assert node.inventory.links() == {id_: "/dev/ttyACM0"}


def test_siblings_of_which_an_early_build_saved_how_many_they_are_are_read() -> None:
    node = Node()
    told = node.look(EACH, *PORTS)
    node.allocate(*told)
    document = json.loads(saved.dump(node.memory))
    document["siblings"] = []
    del document["sibling_models"]
    for device in document["devices"].values():
        device["spots"] = [[*spot[:3], *(spot[3:] or [0]), len(PORTS)] for spot in device["spots"]]
    links = node.inventory.links()
    node.memory = saved.load(json.dumps(document).encode())
    assert node.look(EACH, *PORTS) == told
    assert node.inventory.links() == links
