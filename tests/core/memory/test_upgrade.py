"""After an upgrade, what pods hold of siblings stays theirs, whatever the rules of now say."""

import json

from genericdp.core.memory import saved
from tests.core.memory.test_renamed import EACH, PORTS, upgraded
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


def test_siblings_of_which_an_early_build_saved_how_many_they_are_are_read() -> None:
    node = Node()
    told = node.look(EACH, *PORTS)
    node.allocate(*told)
    document = json.loads(saved.dump(node.memory))
    document["siblings"] = []
    for device in document["devices"].values():
        device["spots"] = [[*spot[:3], *(spot[3:] or [0]), len(PORTS)] for spot in device["spots"]]
    links = node.inventory.links()
    node.memory = saved.load(json.dumps(document).encode())
    assert node.look(EACH, *PORTS) == told
    assert node.inventory.links() == links
