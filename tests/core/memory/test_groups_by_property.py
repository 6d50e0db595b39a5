"""Devices of nodes that share a property: whichever of them come and go, an id means the same value."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import Identity, Speller
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import locate
from genericdp.core.memory import saved
from tests.scenes.builders import a_card, a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN

CARD = a_usb_device("1", serial="A")
PORTS = [
    a_usb_node(
        CARD,
        "tty",
        f"ttyUSB{n}",
        interface=f"{n:02}",
        number=f"c 188:{n}",
        properties={"ID_PATH": f"pci-0000:00:14.0-usb-0:1:1.{n}"},
    )
    for n in range(4)
]
IDENTITIES = ("", 'identity = "port"', 'identity = ["ID_SERIAL_SHORT"]', 'identity = ["ID_PATH"]')
by_any_identity = pytest.mark.parametrize("identity", IDENTITIES)


def devices_of(node: Node) -> dict[str, Device]:
    """Device node -> its device, of those that are plugged in."""
    return {
        each.path: device
        for offer in node.inventory.offers.values()
        for device in offer.devices
        for each in device.nodes
        if each.sys_path
    }


@by_any_identity
@pytest.mark.parametrize("gone", range(4))
def test_the_others_of_a_unit_keep_their_ids_when_one_leaves(identity: str, gone: int) -> None:
    rules = rule("ftdi", 'group_by = "ID_PATH"', identity)
    node = Node()
    node.look(rules, CARD, *PORTS)
    before = {path: device.id for path, device in devices_of(node).items()}
    assert len({*before.values()}) == 4
    for id_ in before.values():
        node.allocate(id_)
    left = [port for n, port in enumerate(PORTS) if n != gone]
    told = node.look(rules, CARD, *left)
    assert told == {
        **dict.fromkeys(before.values(), "Healthy"),
        before[f"/dev/ttyUSB{gone}"]: "it is unplugged",
    }
    assert {path: device.id for path, device in devices_of(node).items()}.items() <= before.items()
    assert node.look(rules, CARD, *PORTS) == dict.fromkeys(before.values(), "Healthy")
    assert {path: device.id for path, device in devices_of(node).items()} == before


@by_any_identity
def test_an_id_does_not_depend_on_which_of_a_unit_are_there(identity: str) -> None:
    rules = rule("ftdi", 'group_by = "ID_PATH"', identity)
    together, alone = Node(), Node()
    together.look(rules, CARD, *PORTS)
    alone.look(rules, CARD, PORTS[2])
    assert devices_of(alone)["/dev/ttyUSB2"].id == devices_of(together)["/dev/ttyUSB2"].id


def a_part(port: str, number: int) -> UdevDevice:
    unit = a_usb_device(port, serial=f"S{port}", devnum=int(port) + 3)
    return a_usb_node(unit, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties={"KIT": "one"})


@pytest.mark.parametrize("identity", ["", 'identity = "port"', 'identity = ["KIT"]'])
def test_a_kit_of_several_units_keeps_its_id_when_the_part_at_the_lowest_port_comes_or_goes(
    identity: str,
) -> None:
    rules = rule("kit", 'group_by = "KIT"', identity)
    low, high = a_part("1", 0), a_part("2", 1)
    node = Node()
    (kit,) = node.look(rules, high)
    node.allocate(kit)
    for plugged in ((low, high), (high,), (low, high), (low,)):
        assert node.look(rules, *plugged) == {kit: "Healthy"}


# An upgrade


def test_an_id_of_an_earlier_release_means_no_device_and_nobody_gets_its_device_while_a_pod_holds_it() -> (
    None
):
    """That release told the ports of a unit by their order."""
    rules = rule("ftdi", 'group_by = "ID_PATH"', 'identity = "port"')
    node = Node()
    node.look(rules, CARD, *PORTS)
    new = [devices_of(node)[f"/dev/ttyUSB{n}"].id for n in range(4)]
    place = locate(PORTS[0])
    was = Identity("port", place.port.exact, place.port.readable, "", place.port, "")
    old = [Speller(f"{DOMAIN}/ftdi", DOMAIN).device(was, rank=rank) for rank in range(4)]
    node.allocate(new[0])
    node.allocate(new[2])
    written = saved.dump(node.memory)
    for id_, its_old_id in zip(new, old, strict=True):
        written = written.replace(id_.encode(), its_old_id.encode())
    node.memory = saved.load(written)

    told = node.look(rules, CARD, *PORTS[1:])
    renamed = {old[n]: f"its id is now {new[n]}" for n in (1, 2, 3)}
    waits = f"a pod may still hold it as {old[2]}"
    assert told == {old[0]: "it is unplugged", **renamed, new[1]: "Healthy", new[2]: waits, new[3]: "Healthy"}
    told = node.look(rules, CARD, *PORTS)
    assert (told[new[0]], told[new[2]]) == (f"a pod may still hold it as {old[0]}", waits)
    node.look(rules, CARD, *PORTS, answer=node.nobody_holds_anything())
    assert [device.healthy for device in devices_of(node).values()] == [True] * 4


def a_unit_of_a_kit(port: str, n: int, foo: str = "kit") -> list[UdevDevice]:
    usb = a_usb_device(port, serial=None, devnum=int(port) + 1)
    return [usb, a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties={"FOO": foo})]


def test_what_an_earlier_rule_has_tied_to_a_port_does_not_rule_a_group() -> None:
    """Two units with one value, each a device: one is tied to its port. Together, they have no port."""
    each, kit = rule("x", 'identity = ["FOO"]'), rule("x", 'group_by = "FOO"')
    one, two, three = a_unit_of_a_kit("1", 0), a_unit_of_a_kit("2", 1), a_unit_of_a_kit("3", 2)
    node = Node()
    node.look(each, *one, *two)
    assert node.memory.ties != {}
    node.look(kit, *one, *two, answer=node.nobody_holds_anything())
    (id_,) = {device.id for device in devices_of(node).values()}
    (fresh,) = Node().look(kit, *one, *two)
    assert id_ == fresh
    node.allocate(id_)
    for parts in (two, [*two, *three], three, [*one, *three]):
        assert node.look(kit, *parts)[id_] == "Healthy"
        assert {device.id for device in devices_of(node).values()} == {id_}


def test_the_ranks_of_siblings_do_not_rule_a_group() -> None:
    """Ports of one interface that only their order tells apart, with one value."""
    each, kit = rule("x", 'identity = ["FOO"]'), rule("x", 'group_by = "FOO"')
    usb = a_usb_device("1", serial=None)
    first, second = (
        a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties={"FOO": "kit"}) for n in range(2)
    )
    node = Node()
    ids = {*node.look(each, usb, first, second)}
    assert len(ids) == 2
    node.look(kit, usb, first)
    (id_,) = Node().look(kit, usb, first)
    node.allocate(id_)
    for parts in ([], [first, second], [second], [first, second]):
        assert node.look(kit, usb, *parts)[id_] == ("Healthy" if parts else "it is unplugged")


def finished_but(late: int, since: int) -> list[UdevDevice]:
    """A card that is plugged in anew, of which udev has not finished with one port. Two share a value."""
    usb, *ports = a_card("1", {n: n for n in range(3)}, since)
    told = [
        replace(port, properties={**port.properties, "ODD": f"o{n == 1}"}) for n, port in enumerate(ports)
    ]
    unknown = {
        name: each for name, each in ports[0].properties.items() if name not in ("ODD", "PART", "HALF")
    }
    return [
        usb,
        *(
            replace(port, properties=unknown, initialized=False) if n == late else port
            for n, port in enumerate(told)
        ),
    ]


@pytest.mark.parametrize("keys", ['group_by = "ODD"', 'identity = ["ODD"]'])
@pytest.mark.parametrize("late", range(3))
@pytest.mark.parametrize("unbound", range(3))
@pytest.mark.parametrize("part", range(3))
def test_what_udev_has_not_finished_with_may_have_the_value_of_what_was_not_there_when_a_pod_got_it(
    part: int, unbound: int, late: int, keys: str
) -> None:
    rules = rule("x", keys)
    node = Node()
    node.look(rules, *finished_but(-1, 100))
    there = [each for n, each in enumerate(finished_but(-1, 100)) if n != unbound + 1]
    node.look(rules, *there)
    id_ = next((device.id for path, device in devices_of(node).items() if path == f"/dev/ttyUSB{part}"), "")
    if not id_:
        assert part == unbound
        return
    node.allocate(id_)
    node.look(rules, *there)
    got = {link: path for link, path in node.links().items() if link.startswith(id_) and path}
    for still in (late, late, -1, -1):
        node.look(rules, *finished_but(still, 200))
        links = node.links()
        assert [links[link] for link, path in got.items() if links[link] not in (path, None)] == []
