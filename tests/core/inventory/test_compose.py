"""One device, made of its nodes: links, health, topology, what its templates name."""

import itertools
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import Spot, spot_of_node, spot_under_link
from tests.scenes.builders import (
    CONTROLLER,
    a_device,
    a_fuse,
    a_modem,
    a_terminal,
    a_usb_device,
    a_usb_interface,
    a_usb_node,
    a_usb_serial,
)
from tests.scenes.inventories import inventory_of, offered, the_device

TTY = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'

MODEM = """
[[resource]]
name = "lte"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }
container_path = "/dev/modem-qmi"
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
container_path = "/dev/modem-at"
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "01" } }
container_path = "/dev/modem-gps"
optional = true
"""


# The whole


def test_a_device_says_all_that_the_kubelet_and_a_container_will_ask() -> None:
    tty = a_usb_serial(3, port="2.1", serial="A5", devnum=7)
    device = the_device(TTY, tty)
    (node,) = device.nodes
    assert (node.path, node.number, node.link, node.sys_path) == (
        "/dev/ttyUSB3",
        tty.number,
        "ftdi_A5",
        tty.sys_path,
    )
    assert node.values == {"devname": "ttyUSB3"}
    assert device == Device(
        id="ftdi_A5",
        health=Health.HEALTHY,
        nodes=(node,),
        links=("ftdi_A5",),
        unit="ftdi_A5",
        basis="serial",
        port=f"{CONTROLLER} usb 2.1",
        hub=f"{CONTROLLER} usb 2",
        usb=((1, 7),),
        spots=(Spot(f"{CONTROLLER} usb 2.1", "A5", "if00"),),
        models=("0403:6001",),
        also=(spot_of_node(tty), spot_under_link(tty, "ftdi_A5")),
    )


def test_nodes_are_in_the_order_of_the_node_tables() -> None:
    for order in itertools.permutations(a_modem(serial="E")):
        device = the_device(MODEM, *order)
        assert [node.path for node in device.nodes] == ["/dev/cdc-wdm0", "/dev/ttyUSB3", "/dev/ttyUSB2"]
        assert device.id == "lte_E"


# Links


def test_the_links_of_a_grouped_device_are_named_for_the_places_of_its_nodes() -> None:
    device = the_device(MODEM, *a_modem(serial="E"))
    assert device.links == ("lte_E@if04-cdc-wdm", "lte_E@if02", "lte_E@if01")
    assert tuple(node.link for node in device.nodes) == device.links


def test_a_node_keeps_its_link_whichever_others_are_missing() -> None:
    nodes = a_modem(serial="E")[1:]
    links: dict[str, set[str]] = {}
    for count in (1, 2, 3, 4):
        for present in itertools.combinations(nodes, count):
            for device in offered(MODEM, *present):
                for node in device.nodes:
                    links.setdefault(node.path, set()).add(node.link)
    assert links == {
        "/dev/cdc-wdm0": {"lte_E@if04-cdc-wdm"},
        "/dev/ttyUSB3": {"lte_E@if02"},
        "/dev/ttyUSB2": {"lte_E@if01"},
    }


RACK = '[[resource]]\nname = "rack"\nmatch = { SUBSYSTEM = "tty" }\ngroup_by = "RACK"\n'


def in_a_rack(port: str, number: int, *, serial: str | None = None, bus: int = 1) -> UdevDevice:
    usb = a_usb_device(port, bus=bus, serial=serial)
    return a_usb_node(usb, "tty", f"ttyUSB{number}", properties={"RACK": "left"})


def link_of(device: Device, path: str) -> str:
    return next(node.link for node in device.nodes if node.path == path)


def test_the_same_place_of_several_units_is_told_apart_by_the_unit() -> None:
    device = the_device(RACK, in_a_rack("1", 0, serial="A"), in_a_rack("2", 1, serial="B"))
    assert device.links == ("rack_left_lplhqjaabv@if00@7xnd55", "rack_left_lplhqjaabv@if00@e5zpmk")
    # At other ports, under other names, in another order, one of them alone.
    moved = the_device(RACK, in_a_rack("7", 0, serial="B", bus=2), in_a_rack("8", 1, serial="A", bus=2))
    assert link_of(moved, "/dev/ttyUSB1") == link_of(device, "/dev/ttyUSB0")
    alone = the_device(RACK, in_a_rack("2", 0, serial="B"))
    assert link_of(alone, "/dev/ttyUSB0") == link_of(device, "/dev/ttyUSB1")


def test_such_a_unit_is_its_port_where_it_has_no_serial_number_or_the_rule_says_so() -> None:
    def links(rule: str, serial: str | None) -> tuple[str, ...]:
        return the_device(rule, in_a_rack("1", 0, serial=serial), in_a_rack("2", 1, serial=serial)).links

    by_port = links(RACK, None)
    assert len(set(by_port)) == 2
    assert links(RACK + 'identity = ["RACK"]\n', "S") == by_port


def test_no_twin_in_a_device_gets_a_link_that_another_one_had() -> None:
    one, other = in_a_rack("2", 0, serial="S"), in_a_rack("1", 1, serial="S")
    pair = the_device(RACK, one, other)
    alone = {the_device(RACK, each).links for each in (one, other)}
    assert alone == {("rack_left_lplhqjaabv@if00@sywlth",)}, "a twin may stand in for another"
    assert not {*pair.links} & {*alone.pop()}
    moved = the_device(RACK, in_a_rack("3", 0, serial="S"), other)
    assert link_of(moved, "/dev/ttyUSB1") == link_of(pair, "/dev/ttyUSB1")
    assert link_of(moved, "/dev/ttyUSB0") not in pair.links


def test_siblings_in_a_device_have_links_with_their_numbers() -> None:
    gpu = a_device("/sys/devices/pci0000:00/0000:00:02.0", subsystem="pci")
    adapters = [
        a_device(f"{gpu.sys_path}/i2c-{n}", subsystem="i2c-dev", node=f"/dev/i2c-{n}", parent=gpu)
        for n in (9, 10, 11)
    ]
    rule = '[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "i2c-dev" }\ngroup_by = "parent"\n'
    links = the_device(rule, *adapters).links
    stem = the_device(rule, adapters[0]).links[0]
    assert links == (stem, f"{stem}@2", f"{stem}@3")
    only_the_last = rule.replace('"i2c-dev"', '"i2c-dev", DEVNAME = "/dev/i2c-11"')
    assert the_device(only_the_last, *adapters).links == links[2:]


def test_the_units_at_one_hub_are_told_apart_when_the_hub_is_the_device() -> None:
    hub = a_usb_device("2", serial="HUB")
    sticks = [
        a_device(
            f"{hub.sys_path}/1-2.{n}",
            subsystem="usb",
            devtype="usb_device",
            node=f"/dev/bus/usb/001/{n:03}",
            attributes={"serial": f"S{n}"},
            parent=hub,
        )
        for n in (1, 2)
    ]
    match = '{ SUBSYSTEM = "usb", usb = { port = "2.*" } }'
    rules = f'[[resource]]\nname = "hub"\nmatch = {match}\ngroup_by = "parent"\n'
    both = the_device(rules, *sticks)
    assert both.id == "hub_HUB"
    assert len(set(both.links)) == 2
    assert the_device(rules, sticks[1]).links == both.links[1:]


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("My Keyboard", "kb_S@if00-event-My_Keyboard"),
        ("../../etc/passwd", "kb_S@if00-event-.._.._etc_passwd"),
        ("x\n/../y", "kb_S@if00-event-x__.._y"),
        ("k" * 300, "kb_S@" + ("if00-event-" + "k" * 300)[:128]),
    ],
)
def test_no_name_of_a_device_leads_a_link_out_of_its_directory(name: str, link: str) -> None:
    keyboard = a_device(
        "/sys/x/input/input1",
        subsystem="input",
        attributes={"name": name},
        parent=a_usb_interface(a_usb_device(serial="S")),
    )
    event = a_device(
        f"{keyboard.sys_path}/event1", subsystem="input", node="/dev/input/event1", parent=keyboard
    )
    rules = '[[resource]]\nname = "kb"\nmatch = { SUBSYSTEM = "input" }\ngroup_by = "usb_device"\n'
    assert the_device(rules, event).links == (link,)


def test_all_nodes_of_a_resource_are_one_device_with_links_that_say_which_node_it_is() -> None:
    rules = """
    [[resource]]
    name = "media"
    match = { DEVNAME = ["/dev/fuse", "/dev/vcs*"] }
    group_by = "all"
    [[resource.node]]
    match = { DEVNAME = "/dev/vcs*" }
    [[resource.node]]
    match = { DEVNAME = "/dev/fuse" }
    """
    whole = the_device(rules, a_fuse(), a_terminal(7))
    assert (whole.id, whole.unit, whole.port) == ("media", "media", "")
    assert [node.path for node in whole.nodes] == ["/dev/vcs7", "/dev/fuse"]
    assert whole.links == ("media@node@yorm4h", "media@node@gnricp")
    assert whole.healthy
    part = the_device(rules, a_terminal(7))
    assert (part.id, part.links) == ("media", whole.links[:1])
    assert part.reason == "the device node for DEVNAME '/dev/fuse' is missing"


# Health


def reason(rules: str, *devices: UdevDevice) -> str:
    device = the_device(rules, *devices)
    assert device.healthy is not bool(device.reason)
    return device.reason


def test_a_device_is_healthy_without_its_optional_nodes() -> None:
    _, _, _, at, qmi = a_modem()
    assert reason(MODEM, at, qmi) == ""


def test_a_device_is_unhealthy_while_a_required_node_is_missing() -> None:
    _, gps, gps2, at, qmi = a_modem()
    assert reason(MODEM, gps, gps2, qmi) == "the device node for '/dev/modem-at' is missing"
    assert reason(MODEM, gps, at) == "the device node for '/dev/modem-qmi' is missing"


def test_a_device_is_unhealthy_while_its_node_is_something_else() -> None:
    odd = replace(a_usb_serial(3), node_is_there=False)
    assert reason(TTY, odd) == "'/dev/ttyUSB3' is not the device node c 188:3"


def test_a_device_is_unhealthy_while_usb_does_not_authorize_it() -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "usb" }\n'
    assert reason(rules, a_usb_device(authorized=False)) == "the USB device is not authorized"
    assert reason(rules, a_usb_device(authorized=True)) == ""
    assert reason(rules, a_usb_device(attributes={"authorized": "0\n"})) == "the USB device is not authorized"


def test_a_device_is_unhealthy_while_a_node_does_not_match_health() -> None:
    rules = TTY + 'health = { DRIVER = { exists = false }, "ATTR{ready}" = "1", CARRIER = "on" }\n'
    usb = a_usb_device()

    def tty(**properties: str) -> UdevDevice:
        return a_usb_node(usb, "tty", "ttyUSB0", attributes={"ready": "0\n"}, properties=properties)

    assert reason(rules, tty(CARRIER="on")) == "ATTR{ready} is '0_', wanted '1'"
    assert reason(rules, tty()) == "ATTR{ready} is '0_', wanted '1'; CARRIER is missing, wanted 'on'"
    good = a_usb_node(usb, "tty", "ttyUSB0", attributes={"ready": "1"}, properties={"CARRIER": "on"})
    assert reason(rules, good) == ""


# Topology and numbers


def at_numa(*nodes: str) -> UdevDevice:
    """A device whose ancestors, nearest first, have these values of numa_node."""
    device: UdevDevice | None = None
    for number, node in enumerate(reversed(nodes)):
        path = f"{device.sys_path if device else '/sys/devices'}/0000:0{number}:00.0"
        device = a_device(
            path, subsystem="pci", attributes={"numa_node": node} if node else {}, parent=device
        )
    assert device is not None
    return a_device(f"{device.sys_path}/misc/x", node="/dev/x", parent=device)


@pytest.mark.parametrize(
    ("nodes", "numa"),
    [
        (("1\n", "0"), 1),
        (("", "0"), 0),
        (("-1", "1"), 1),
        (("-1", "-1"), None),
        (("", ""), None),
        (("²",), None),
        (("9" * 5000,), None),
        (("9999",), 9999),
        (("10000", "1"), 1),
    ],
)
def test_the_numa_node_is_that_of_the_nearest_ancestor_that_has_one(
    nodes: tuple[str, ...], numa: int | None
) -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\n'
    assert the_device(rules, at_numa(*nodes)).numa == numa


def test_a_device_is_on_a_numa_node_only_if_all_its_nodes_are() -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { DEVNAME = "*" }\ngroup_by = "all"\n'

    def numa(*nodes: int | None) -> int | None:
        cards = [
            a_device(
                f"/sys/devices/pci0000:{n}/0000:0{n}:00.0",
                subsystem="pci",
                attributes={} if node is None else {"numa_node": str(node)},
            )
            for n, node in enumerate(nodes)
        ]
        return the_device(
            rules,
            *(
                a_device(f"{card.sys_path}/m{n}", node=f"/dev/m{n}", parent=card)
                for n, card in enumerate(cards)
            ),
        ).numa

    assert numa(1, 1) == 1
    assert numa(0, 1) is None
    assert numa(1, None) is None
    assert numa(1) == 1


@pytest.mark.parametrize(
    ("attributes", "numbers"),
    [
        ({"busnum": "3", "devnum": "12"}, ((3, 12),)),
        ({"busnum": "3\n", "devnum": "012"}, ((3, 12),)),
        ({"busnum": "", "devnum": "12"}, ()),
        ({"busnum": "3", "devnum": "x"}, ()),
    ],
)
def test_the_numbers_of_a_usb_device(
    attributes: dict[str, str], numbers: tuple[tuple[int, int], ...]
) -> None:
    rules = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "usb" }\n'
    assert the_device(rules, a_usb_device(attributes=attributes)).usb == numbers
    assert the_device('[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "misc" }\n', a_fuse()).usb == ()


def test_a_device_of_two_usb_devices_has_the_numbers_of_both_in_the_order_of_the_node_tables() -> None:
    rules = """
    [[resource]]
    name = "set"
    match = { SUBSYSTEM = "usb" }
    group_by = "all"
    [[resource.node]]
    match = { usb = { serial = "B" } }
    [[resource.node]]
    match = { usb = { serial = "A" } }
    """
    one, other = a_usb_device("1", serial="A", devnum=5), a_usb_device("2", serial="B", devnum=7)
    for order in ((one, other), (other, one)):
        assert the_device(rules, *order).usb == ((1, 7), (1, 5))
    ports = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\ngroup_by = "usb_device"\n'
    assert the_device(ports, *a_modem()).usb == ((1, 9),)


# Templates and devlinks


def test_the_properties_that_templates_name_are_kept() -> None:
    rules = """
    [[resource]]
    name = "lte"
    match = { usb = { vendor = "2c7c" } }
    group_by = "usb_device"
    env = { SERIAL = "{ID_SERIAL_SHORT}", BUS = "{BUSNUM}", ODD = "{NOT_THERE|none}" }
    [[resource.node]]
    container_path = ["/dev/modem-{ID_USB_INTERFACE_NUM|usb}", "/dev/{index}/{id}"]
    """
    device = the_device(rules, *a_modem(serial="E")[:3])
    assert device.values == {"ID_SERIAL_SHORT": "E", "BUSNUM": "001"}
    assert [node.values for node in device.nodes] == [
        {"devname": "ttyUSB1", "ID_USB_INTERFACE_NUM": "00"},
        {"devname": "ttyUSB2", "ID_USB_INTERFACE_NUM": "01"},
        {"devname": "bus/usb/001/009"},
    ]


@pytest.mark.parametrize(
    "keys",
    [
        'env = { A = "{NOT_THERE}" }',
        'env = { "A_{NOT_THERE}" = "x" }',
        'annotations = { "example.com/a" = "{NOT_THERE}" }',
        'mounts = [{ host_path = "/srv/{NOT_THERE}", container_path = "/srv" }]',
        'mounts = [{ host_path = "/srv", container_path = "/srv/{NOT_THERE}" }]',
        'cdi = ["example.com/unit={NOT_THERE}"]',
        'container_path = "/dev/{NOT_THERE}"',
        'container_path = ["/dev/x", "/dev/{NOT_THERE|default}-{NOT_THERE}"]',
    ],
)
def test_a_device_that_lacks_what_a_template_names_is_not_offered(keys: str) -> None:
    inventory = inventory_of(TTY + keys, a_usb_serial(3))
    assert inventory.offers["example.com/ftdi"].devices == ()
    reason = "it has no property NOT_THERE, which a template uses without a default"
    assert inventory.refusals == (Refusal("example.com/ftdi", "/dev/ttyUSB3", reason),)


def test_properties_of_ancestors_and_the_names_of_the_kernel_are_kept() -> None:
    card = a_device(
        "/sys/devices/pci0000:00/0000:01:00.0", subsystem="pci", properties={"PCI_SLOT_NAME": "0000:01:00.0"}
    )
    nodes = [
        a_device(f"{card.sys_path}/drm/{name}", subsystem="drm", node=f"/dev/dri/{name}", parent=card)
        for name in ("card0", "renderD128")
    ]
    rules = """
    [[resource]]
    name = "gpu"
    match = { SUBSYSTEM = "drm" }
    group_by = "parent"
    env = { "GPU_{sysname}" = "{PCI_SLOT_NAME}" }
    [[resource.node]]
    match = { DEVNAME = "*/render*" }
    [[resource.node]]
    container_path = "/dev/dri/{sysname}-{DRIVER|none}"
    """
    device = the_device(rules, *nodes)
    # That of what the nodes have in common, but of the node itself in its container path.
    assert device.values == {"sysname": "0000:01:00.0", "PCI_SLOT_NAME": "0000:01:00.0"}
    assert [node.values for node in device.nodes] == [
        {"devname": "dri/renderD128"},
        {"devname": "dri/card0", "sysname": "card0"},
    ]


def test_without_a_udev_device_in_common_the_kernels_name_is_that_of_the_first_node() -> None:
    nodes = [a_device(f"/sys/devices/virtual/misc/{name}", node=f"/dev/{name}") for name in ("fuse", "kvm")]
    rules = """
    [[resource]]
    name = "all"
    match = { SUBSYSTEM = "misc" }
    group_by = "all"
    env = { X = "{sysname}" }
    [[resource.node]]
    match = { DEVNAME = "/dev/kvm" }
    [[resource.node]]
    """
    assert the_device(rules, *nodes).values == {"sysname": "kvm"}


def test_an_empty_property_counts_as_missing() -> None:
    tty = a_usb_node(a_usb_device(), "tty", "ttyUSB0", properties={"EMPTY": ""})
    assert offered(TTY + 'env = { A = "{EMPTY}" }', tty) == []
    assert the_device(TTY + 'env = { A = "{EMPTY|x}" }', tty).values == {}


def devlinks(pattern: str, *links: str) -> tuple[str, ...]:
    tty = a_usb_node(a_usb_device(), "tty", "ttyUSB0", devlinks=links)
    return the_device(TTY + f"devlinks = {pattern}\n", tty).nodes[0].devlinks


def test_devlinks_that_the_table_asks_for_are_names_inside() -> None:
    links = ("/dev/serial/by-path/pci-0", "/dev/serial/by-id/usb-B", "/dev/serial/by-id/usb-A")
    assert devlinks('["/dev/serial/by-id/*"]', *links) == (
        "/dev/serial/by-id/usb-A",
        "/dev/serial/by-id/usb-B",
    )
    assert devlinks('["/dev/gps", "/dev/serial/by-path/*"]', *links) == ("/dev/serial/by-path/pci-0",)
    assert the_device(TTY, a_usb_serial()).nodes[0].devlinks == ()


def test_no_devlink_leads_out_of_dev() -> None:
    hostile = ("/dev/serial/by-id/../../../etc/passwd", "/dev//x/./y z\n", "/etc/passwd", "/dev/", "/dev")
    assert devlinks('["/dev/*"]', *hostile) == ("/dev/serial/by-id/__/__/__/etc/passwd", "/dev/x/_/y_z_")


# The group of a node


GID = '[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/fuse" }\nenv = { GROUP = "{gid}" }\n'


@pytest.mark.parametrize(("gid", "value"), [(20, "20"), (0, "0"), (None, "65534")])
def test_gid_is_the_group_of_the_node_or_nobody_while_the_node_is_missing(
    gid: int | None, value: str
) -> None:
    assert the_device(GID, replace(a_fuse(), gid=gid)).values == {"gid": value}


def test_gid_of_several_nodes_is_every_group_of_them_once() -> None:
    usb, one, two, three, qmi = a_modem()
    nodes = [usb, replace(one, gid=20), replace(two, gid=20), replace(three, gid=7), qmi]
    rules = '[[resource]]\nname = "m"\nmatch = { SUBSYSTEM = "tty" }\ngroup_by = "usb_device"\n'
    assert the_device(rules + 'annotations = { g = "{gid}" }\n', *nodes).values == {"gid": "7,20"}


def test_a_container_path_may_name_the_gid_of_its_node() -> None:
    rules = TTY.replace("tty", "misc") + 'container_path = "/dev/of-{gid}"\n'
    (node,) = the_device(rules, replace(a_fuse(), gid=20)).nodes
    assert node.values == {"devname": "fuse", "gid": "20"}


def test_a_new_group_is_news_for_a_rule_that_is_answered_by_cdi() -> None:
    dongle = a_usb_serial()
    for answer, is_news in (("devices", False), ("cdi", True), ("auto", True)):
        rules = f'{TTY}answer = "{answer}"\n'
        before, after = the_device(rules, replace(dongle, gid=5)), the_device(rules, replace(dongle, gid=20))
        assert (before != after) is is_news


def test_a_new_group_is_no_news_for_a_rule_that_does_not_name_it() -> None:
    rules = TTY + 'env = { NAME = "{ID_BUS}" }\n'
    dongle = a_usb_serial()
    assert the_device(rules, replace(dongle, gid=5)) == the_device(rules, replace(dongle, gid=20))
