"""An edit of the rules gives no exclusive device node to a second pod."""

from dataclasses import replace
from itertools import permutations

import pytest

from genericdp.core.allocate import RefusalReason, RefusedError
from genericdp.core.device import UdevDevice
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.room import HELD_LINK_LIMIT
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import (
    a_bare_node,
    a_device,
    a_function,
    a_kfd,
    a_modem,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    a_vfio_group,
)
from tests.scenes.edits import Node, rule

STICK = a_usb_serial(3, serial="A5")
OTHER = a_usb_serial(4, serial="B6", port="2")


EDITS = {
    "the resource is renamed": (
        rule("ftdi"), "ftdi_A5", rule("serial"), {"serial_A5": "ftdi_A5 of example.com/ftdi"},
    ),
    "the identity is edited": (
        rule("ftdi"), "ftdi_A5", rule("ftdi", 'identity = "port"'), {"ftdi_port-2_nowobh74uu": "ftdi_A5"},
    ),
    "the device is no longer shared": (
        rule("ftdi", "replicas = 3"), "ftdi_A5.1", rule("ftdi"), {"ftdi_A5": "ftdi_A5.1"},
    ),
    "the device is shared by only one": (
        rule("ftdi", "replicas = 3"), "ftdi_A5.1", rule("ftdi", "replicas = 1"), {"ftdi_A5.0": "ftdi_A5.1"},
    ),
    "the device is shared": (
        rule("ftdi"), "ftdi_A5", rule("ftdi", "replicas = 2"),
        {"ftdi_A5.0": "ftdi_A5", "ftdi_A5.1": "ftdi_A5"},
    ),
    "the only id gets a number": (
        rule("ftdi"), "ftdi_A5", rule("ftdi", "replicas = 1"), {"ftdi_A5.0": "ftdi_A5"},
    ),
    "the only replica is no longer the only one": (
        rule("ftdi", "replicas = 1"), "ftdi_A5.0", rule("ftdi", "replicas = 2"), {"ftdi_A5.1": "ftdi_A5.0"},
    ),
    "an earlier file takes the node": (
        rule("ftdi"), "ftdi_A5", rule("console") + rule("ftdi"),
        {"console_A5": "ftdi_A5 of example.com/ftdi"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "held", "after", "waiting"), EDITS.values(), ids=EDITS)
def test_what_a_pod_holds_is_not_given_out_again(
    before: str, held: str, after: str, waiting: dict[str, str]
) -> None:
    node = Node()
    assert node.look(before, STICK)[held] == "Healthy"
    node.allocate(held)
    told = node.look(after, STICK)
    assert {id_: told[id_] for id_ in waiting} == {
        id_: f"a pod may still hold it as {other}" for id_, other in waiting.items()
    }
    for id_, other in waiting.items():
        with pytest.raises(RefusedError) as caught:
            node.allocate(id_)
        assert caught.value.reason is RefusalReason.HELD
        assert str(caught.value) == (
            f"device '{id_}' of {node.offer_of(id_).resource.name} is not available: "
            f"a pod may still hold it as {other}"
        )
    told = node.look(after, STICK, answer=node.nobody_holds_anything())
    assert {told[id_] for id_ in waiting} == {"Healthy"}


@pytest.mark.parametrize(("before", "held", "after", "waiting"), EDITS.values(), ids=EDITS)
def test_nothing_waits_when_no_pod_holds_it(
    before: str, held: str, after: str, waiting: dict[str, str]
) -> None:
    node = Node()
    node.look(before, STICK)
    told = node.look(after, STICK)
    assert {told[id_] for id_ in waiting} == {"Healthy"}
    assert held in told or held not in waiting


def test_the_device_that_a_pod_holds_keeps_its_link_while_its_new_ids_wait() -> None:
    node = Node()
    node.look(rule("ftdi", "replicas = 3"), STICK)
    node.allocate("ftdi_A5.1")
    node.look(rule("ftdi"), STICK)
    assert node.inventory.links() == {"ftdi_A5": "/dev/ttyUSB3"}


def test_the_link_of_a_device_that_waits_leads_nowhere() -> None:
    node = Node()
    node.look(rule("ftdi"), STICK)
    node.allocate("ftdi_A5")
    node.look(rule("serial"), STICK)
    assert node.inventory.links() == {"ftdi_A5": None, "serial_A5": None}


def test_an_edit_that_is_taken_back_gives_the_pod_its_device_again() -> None:
    node = Node()
    node.look(rule("ftdi"), STICK)
    node.allocate("ftdi_A5")
    node.look(rule("serial"), STICK)
    assert node.look(rule("ftdi"), STICK) == {"ftdi_A5": "Healthy"}
    assert node.inventory.links() == {"ftdi_A5": "/dev/ttyUSB3", "serial_A5": None}


def test_and_so_does_one_that_took_several_iommu_groups_for_one_device() -> None:
    rules = '[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "vfio" }\n'
    groups = (
        a_vfio_group(12, a_function("0000:81:00.0")),
        a_vfio_group(13, a_function("0000:82:00.0"), a_function("0000:82:00.1")),
    )
    node = Node()
    before = node.look(rules, *groups)
    node.allocate(*before)
    node.look(f'{rules}group_by = "all"\n', *groups)
    assert set(before.values()) == {"Healthy"}
    assert {id_: why for id_, why in node.look(rules, *groups).items() if id_ in before} == before


def test_a_shared_node_is_where_it_is_now_although_a_device_is_absent() -> None:
    shared = '[[resource.node]]\nmatch = { SUBSYSTEM = "kfd" }\nshared = true\n'
    node = Node()
    node.look(rule("ftdi") + shared, STICK, OTHER, a_kfd())
    node.allocate("ftdi_A5")
    moved = replace(a_kfd(), device_node="/dev/kfd1")
    node.look(rule("ftdi") + shared, OTHER, moved)
    offer = node.offer_of("ftdi_B6")
    assert [device.healthy for device in offer.devices] == [False, True]
    assert [each.path for each in offer.shared] == ["/dev/kfd1"]


def test_a_shared_device_goes_on_being_shared_under_another_name() -> None:
    node = Node()
    node.look(rule("ftdi", "replicas = 3"), STICK)
    node.allocate("ftdi_A5.1")
    assert set(node.look(rule("serial", "replicas = 2"), STICK).values()) == {"Healthy"}


def test_another_model_at_the_port_waits_for_a_pod_that_holds_a_replica_of_that_port() -> None:
    """It would get the same id, without a replica. Once a pod had that, both pods would have to wait."""
    node, units = Node(), 'group_by = "usb_device"'
    shared, alone = rule("x", units, "replicas = 2"), rule("x", units)
    first, _ = node.look(shared, a_usb_serial(3, serial=None))
    node.allocate(first)
    node.look(shared)
    other = a_usb_node(
        a_usb_device(product="6015", serial=None), "tty", "ttyUSB4", interface="01", number="c 188:4"
    )
    id_ = first.removesuffix(".0")
    for _ in range(2):
        assert node.look(alone, other)[id_] == f"a pod may still hold it as {first}"
    assert node.look(alone, other, answer=node.nobody_holds_anything())[id_] == "Healthy"


def test_more_replicas_of_a_shared_device_wait_for_nobody() -> None:
    node = Node()
    node.look(rule("ftdi", "replicas = 2"), STICK)
    node.allocate("ftdi_A5.0")
    assert set(node.look(rule("ftdi", "replicas = 4"), STICK).values()) == {"Healthy"}


def test_only_the_device_that_is_held_waits() -> None:
    node = Node()
    node.look(rule("ftdi"), STICK, OTHER)
    node.allocate("ftdi_A5")
    assert node.look(rule("serial"), STICK, OTHER)["serial_B6"] == "Healthy"


def test_it_waits_wherever_its_unit_was_when_it_comes_back() -> None:
    """Unplugged and plugged in again at the same port, it usually has the same device number again."""
    node = Node()
    node.look(rule("ftdi"), STICK)
    node.allocate("ftdi_A5")
    node.look(rule("serial"), STICK)
    assert node.look(rule("serial")) == {"serial_A5": "it is unplugged"}
    waiting = "a pod may still hold it as ftdi_A5 of example.com/ftdi"
    assert node.look(rule("serial"), STICK) == {"serial_A5": waiting}


MOVED = replace(a_usb_serial(3, serial="A5", port="7"), incarnation=2)
AT_PORT = '{{ SUBSYSTEM = "tty", usb = {{ port = "{}" }} }}'


@pytest.mark.parametrize("step", ["edited first", "unplugged first"])
@pytest.mark.parametrize("edit", ["the resource is renamed", "the identity is edited"])
def test_it_waits_at_another_port_as_well(edit: str, step: str) -> None:
    before, held, after, _ = EDITS[edit]
    node = Node()
    node.look(before, STICK)
    node.allocate(held)
    node.look(after if step == "edited first" else before, *([STICK] if step == "edited first" else []))
    told = node.look(after, MOVED)
    (new,) = told.keys() - {held, "ftdi_port-2_nowobh74uu"}
    of = "" if held in told else " of example.com/ftdi"
    assert told[new] == f"a pod may still hold it as {held}{of}"
    assert node.look(after, answer=node.nobody_holds_anything()).get(new) == "it is unplugged"
    assert node.look(after, MOVED)[new] == "Healthy"


@pytest.mark.parametrize("after", ['identity = ["ID_BUS", "ID_PATH"]', 'group_by = "ID_PATH"'])
def test_it_waits_at_another_port_if_the_rule_names_other_properties_than_before(after: str) -> None:
    node = Node()
    (held,) = node.look(rule("ftdi", 'identity = ["ID_BUS"]'), STICK)
    node.allocate(held)
    told = node.look(rule("ftdi", after), MOVED)
    assert told.pop(held) == "it is unplugged"
    assert [*told.values()] == [f"a pod may still hold it as {held}"]


@pytest.mark.parametrize("is_grouped", [False, True])
def test_it_waits_at_another_port_if_the_values_may_be_those_of_a_parent(*, is_grouped: bool) -> None:
    """A group has the properties of the device by which it is grouped, and a node has its own."""
    each, grouped = (rule("ftdi", 'identity = ["ID_PATH"]', more) for more in ("", 'group_by = "usb_device"'))
    before, after = (grouped, each) if is_grouped else (each, grouped)
    node = Node()
    (held,) = node.look(before, STICK)
    node.allocate(held)
    node.look(before)
    told = node.look(after, MOVED)
    assert told.pop(held) == "it is unplugged"
    assert [*told.values()] == [f"a pod may still hold it as {held}"]


def test_it_waits_if_an_earlier_release_has_not_saved_what_its_id_says() -> None:
    node = Node()
    node.look(rule("ftdi", 'identity = ["ID_PATH"]'), STICK)
    (held,) = node.memory.devices
    node.allocate(held)
    known = node.memory.devices[held]
    before = replace(known, device=replace(known.device, basis=""))
    node.memory = replace(load(dump(node.memory)), devices={held: before})
    told = node.look(rule("ftdi", 'identity = ["ID_PATH"]'), MOVED)
    assert told.pop(held) == "it is unplugged"
    assert [*told.values()] == [f"a pod may still hold it as {held}"]


def test_it_waits_at_a_port_that_another_resource_takes() -> None:
    rules = rule("a", match=AT_PORT.format(2)) + rule("b", match=AT_PORT.format(7))
    node = Node()
    assert node.look(rules, STICK) == {"a_A5": "Healthy"}
    node.allocate("a_A5")
    told = node.look(rules, MOVED)
    assert told["b_A5"] == "a pod may still hold it as a_A5 of example.com/a"


def test_it_waits_under_a_new_name_though_both_ids_say_the_same_properties() -> None:
    node = Node()
    (held,) = node.look(rule("ftdi", 'identity = ["ID_PATH"]'), STICK)
    node.allocate(held)
    told = node.look(rule("serial", 'identity = ["ID_PATH"]'), MOVED)
    assert [*told.values()] == [f"a pod may still hold it as {held} of example.com/ftdi"]


def test_a_twin_that_a_pod_has_stays_healthy_when_that_of_another_resource_leaves() -> None:
    rules = rule("a", match=AT_PORT.format(2)) + rule("b", match=AT_PORT.format(7))
    node, twin = Node(), a_usb_serial(4, serial="A5", port="7", devnum=9)
    node.look(rules, STICK, twin)
    node.allocate("a_A5")
    node.allocate("b_A5")
    assert node.look(rules, twin) == {"a_A5": "it is unplugged", "b_A5": "Healthy"}


def a_coloured(number: int, port: str, colour: str, serial: str = "A5") -> UdevDevice:
    stick = a_usb_serial(number, serial=serial, port=port, devnum=9 + number)
    return replace(stick, properties={**stick.properties, "ID_COLOR": colour}, incarnation=10 + number)


BY_COLOUR = "".join(
    rule(colour, 'identity = ["ID_COLOR"]', match=f'{{ SUBSYSTEM = "tty", ID_COLOR = "{colour}" }}')
    for colour in ("blue", "red")
)


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
def test_the_unit_of_a_pod_is_not_another_one_that_left_if_their_ids_say_different_properties(
    restarts: str,
) -> None:
    """Both have one serial number. Units with such ids need no ties."""
    node = Node()
    here, leaves = a_coloured(0, "2", "red"), a_coloured(1, "7", "blue")
    blue, red = sorted(node.look(BY_COLOUR, here, leaves))
    node.allocate(blue)
    node.allocate(red)
    for _ in range(2):
        assert node.look(BY_COLOUR, here) == {blue: "it is unplugged", red: "Healthy"}
        assert node.inventory.held_links == {}
        if restarts:
            node.memory = load(dump(node.memory, "same boot"), restarts)


def test_a_unit_with_other_properties_than_that_of_a_pod_may_be_it_if_it_had_them_before() -> None:
    node = Node()
    (blue,) = node.look(BY_COLOUR, a_coloured(1, "7", "blue"))
    (red,) = node.look(BY_COLOUR, a_coloured(0, "2", "red")).keys() - {blue}
    node.allocate(red)
    node.look(BY_COLOUR)
    told = node.look(BY_COLOUR, a_coloured(1, "7", "blue"))
    assert told[blue] == f"a pod may still hold it as {red} of example.com/red"


def test_a_unit_with_the_properties_of_a_pods_unit_may_be_that_of_another_pod() -> None:
    node = Node()
    red, blue = a_coloured(0, "2", "red"), a_coloured(1, "7", "blue", serial="B6")
    held_blue, held_red = sorted(node.look(BY_COLOUR, red, blue))
    node.allocate(held_blue)
    node.allocate(held_red)
    node.look(BY_COLOUR)
    for _ in range(2):
        told = node.look(BY_COLOUR, a_coloured(2, "2", "red", serial="B6"))
        assert told[held_red] == f"a pod may still hold it as {held_blue} of example.com/blue"


TWINS = tuple(a_usb_serial(n, serial="A5", port=port, devnum=9 + n) for n, port in enumerate("123"))


def answered(node: Node, *ids: str) -> Answer:
    """The kubelet says that pods hold these ids of `ftdi`, and nothing else."""
    node.now += PODS_SETTLE_S
    held = frozenset(("example.com/ftdi", id_) for id_ in ids)
    return Answer(held, node.now, complete=True, checkpointed=frozenset(ids))


@pytest.mark.parametrize("reboots", [False, True])
def test_each_twin_waits_under_another_name_only_for_the_pod_that_has_it(*, reboots: bool) -> None:
    """A rolling update goes on with each pod that has gone. After a boot, only the ports tell them apart."""
    node = Node()
    node.look(rule("ftdi"), TWINS[0])
    held = [*node.look(rule("ftdi"), *TWINS)]
    node.allocate(*held)
    node.look(rule("serial"), *TWINS)
    if reboots:
        node.memory = load(dump(node.memory, "before"), "after")
    while held:
        told = node.look(rule("serial"), *TWINS, answer=answered(node, *held))
        assert sorted(reason for reason in told.values() if reason != "Healthy") == [
            f"a pod may still hold it as {id_} of example.com/ftdi" for id_ in sorted(held)
        ]
        held.pop()
    assert set(node.look(rule("serial"), *TWINS, answer=answered(node)).values()) == {"Healthy"}


def test_a_twin_that_another_rule_matches_is_free_wherever_the_unit_of_a_pod_is() -> None:
    """They have been side by side, so neither of them is ever mistaken for the other one."""
    rules = rule("ftdi", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    renamed = rules.replace('"ftdi"', '"c"')
    node = Node()
    node.look(rules, *TWINS[:2])
    node.allocate("ftdi_A5")
    waiting = "a pod may still hold it as ftdi_A5 of example.com/ftdi"
    assert node.look(renamed, *TWINS[:2]) == {"c_A5": waiting, "b_A5": "Healthy"}
    assert node.look(renamed, TWINS[1]) == {"c_A5": "it is unplugged", "b_A5": "Healthy"}


def test_what_comes_after_the_unit_of_a_pod_has_left_may_be_that_unit() -> None:
    rules = rule("ftdi", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    node = Node()
    node.look(rules, TWINS[0])
    node.allocate("ftdi_A5")
    waiting = "a pod may still hold it as ftdi_A5 of example.com/ftdi"
    assert node.look(rules, TWINS[1]) == {"ftdi_A5": "it is unplugged", "b_A5": waiting}


@pytest.mark.parametrize("left", [1, 2])
def test_nor_does_it_wait_while_a_part_of_the_unit_that_a_pod_has_is_there(left: int) -> None:
    rules = "".join(
        rule(name, 'group_by = "usb_device"', match=AT_PORT.format(port))
        for name, port in (("ftdi", 4), ("b", 5))
    )
    one, other = (
        [
            a_usb_node(usb, "tty", f"ttyUSB{first + n}", interface=f"{n:02x}", number=f"c 188:{first + n}")
            for n in range(3)
        ]
        for usb, first in (
            (a_usb_device("4", serial="EC25", devnum=9), 0),
            (a_usb_device("5", serial="EC25", devnum=10), 3),
        )
    )
    node = Node()
    node.look(rules, *one, *other)
    node.allocate("ftdi_EC25")
    assert node.look(rules, *one[:left], *other) == {"ftdi_EC25": "Healthy", "b_EC25": "Healthy"}


def test_it_waits_if_one_of_several_units_has_left_where_a_pod_got_it() -> None:
    kit = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", ID_SERIAL_SHORT = ["A5", "B6"] }')
    node, other = Node(), a_usb_serial(4, serial="B6", port="5", devnum=9)
    node.look(kit, STICK, other)
    (held,) = node.memory.devices
    node.allocate(held)
    node.look(rule("serial"), STICK, other)
    told = node.look(rule("serial"), other, MOVED)
    assert told["serial_A5"] == f"a pod may still hold it as {held} of example.com/kit"


def test_whoever_got_what_is_at_the_same_port_is_named_first() -> None:
    before, after = (
        "".join(rule(name, match=AT_PORT.format(port)) for name, port in zip(names, (1, 2), strict=True))
        for names in (("ftdi", "b"), ("c", "d"))
    )
    node = Node()
    for id_ in node.look(before, *TWINS[:2]):
        node.allocate(id_)
    node.memory = load(dump(node.memory, "before"), "after")
    assert node.look(after, *TWINS[:2]) == {
        "c_A5": "a pod may still hold it as ftdi_A5 of example.com/ftdi",
        "d_A5": "a pod may still hold it as b_A5 of example.com/b",
    }


def test_what_cannot_be_read_where_a_pod_got_it_may_have_left() -> None:
    rules = rule("a", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    node = Node()
    node.look(rules, TWINS[0])
    node.allocate("a_A5")
    stale = replace(TWINS[0], initialized=False)
    told = node.look(rules.replace('"a"', '"c"'), stale, TWINS[1], unread=[TWINS[0].sys_path])
    assert told["b_A5"] == "a pod may still hold it as a_A5 of example.com/a"


BY_PORT = [rule(name, 'identity = "port"', match=AT_PORT.format(port)) for name, port in (("a", 2), ("b", 7))]

UNTOLD = {
    "the ids say the port, of two resources": ("".join(BY_PORT), "A5", "6001"),
    "the ids say the port": (rule("ftdi", 'identity = "port"'), "A5", "6001"),
    "the ids say a property": (rule("ftdi", 'identity = ["ID_PATH"]'), "A5", "6001"),
    "a property makes the groups": (rule("ftdi", 'group_by = "ID_PATH"'), "A5", "6001"),
    "both": (rule("ftdi", 'group_by = "ID_PATH"', 'identity = "port"'), "A5", "6001"),
    "another model": (rule("a", match=AT_PORT.format(2)) + rule("b", match=AT_PORT.format(7)), "A5", "6015"),
    "a filler": (rule("ftdi"), "0001", "6001"),
}


@pytest.mark.parametrize(("rules", "serial", "product"), UNTOLD.values(), ids=UNTOLD)
def test_what_need_not_be_the_unit_does_not_wait_at_another_port(
    rules: str, serial: str, product: str
) -> None:
    node = Node()
    (held,) = node.look(rules, a_usb_serial(3, serial=serial))
    node.allocate(held)
    told = node.look(rules, a_usb_serial(4, serial=serial, product=product, port="7"))
    assert told.pop(held, "it is unplugged") == "it is unplugged"
    assert set(told.values()) == {"Healthy"}


def test_a_twin_does_not_wait_at_another_port_for_the_pod_of_the_other_one() -> None:
    node = Node()
    twin = a_usb_serial(4, serial="A5", port="3", devnum=9)
    node.look(rule(), STICK, twin)
    node.allocate("ftdi_A5")
    told = node.look(rule(), twin)
    del told["ftdi_A5"]
    assert set(told.values()) == {"Healthy"}


def test_twins_that_both_wait_under_another_name_are_not_confused_later() -> None:
    """Which of them has the plain id is decided when they begin to wait, and outlasts re-plugs and boots."""
    first, second = (a_usb_serial(n, serial="SAME", port=port) for n, port in enumerate("15"))
    node = Node()
    node.look(rule("ftdi"), first)
    node.allocate(*node.look(rule("ftdi"), first, second))
    node.look(rule("serial"), first, second)
    node.look(rule("serial"), second)
    node.memory = load(dump(node.memory))
    renumbered = [a_usb_serial(3 - n, serial="SAME", port=port) for n, port in enumerate("15")]
    node.look(rule("serial"), *renumbered)
    node.look(rule("serial"), *renumbered, answer=node.nobody_holds_anything())
    assert node.inventory.links()["serial_SAME"] == "/dev/ttyUSB3"


UNREAD = "it may be one of the devices that cannot be read"


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_may_be_there_all_the_same_is_not_taken_for_its_twin(
    keys: tuple[str, ...], *, restarts: bool
) -> None:
    """It cannot be read: while a driver probes it, the kernel does not answer."""
    stick, twin = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    hanging = stick.sys_path
    node = Node()
    (id_,) = node.look(rule("ftdi", *keys), stick)
    node.allocate(id_)
    if restarts:
        restart(node)
    for elsewhere in ("/sys/devices/pci0000:00/0000:00:14.0/usb1/1-7", "/dev/other"):
        assert node.look(rule("ftdi", *keys), unread=[elsewhere])[id_] != "Healthy"
    assert node.look(rule("ftdi", *keys), twin, unread=[hanging])[id_] == UNREAD
    assert node.inventory.links()[id_] is None
    after = node.look(rule("ftdi", *keys), stick, twin)
    assert after[id_] == "Healthy"
    assert node.inventory.links()[id_] == stick.device_node


BUS = "/sys/devices/pci0000:00/0000:00:14.0/usb1"


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
def test_while_something_hangs_that_has_never_been_read_it_may_be_the_unit(keys: tuple[str, ...]) -> None:
    stick, twin = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    node = Node()
    (id_,) = node.look(rule("ftdi", *keys), stick)
    node.allocate(id_)
    for path in (f"{BUS}/1-7", f"{BUS}/1-2.7", f"{BUS}/1-7/1-7:1.0/ttyUSB5"):
        assert node.look(rule("ftdi", *keys), twin, unread=[path])[id_] == "it is unplugged"
        (refusal,) = node.inventory.refusals
        assert refusal.reason == f"its id, {id_}, may belong to another unit, which a pod may still hold"
    assert node.look(rule("ftdi", *keys), twin)[id_] == "Healthy"


def test_a_unit_that_stays_at_its_port_is_not_taken_for_what_hangs_elsewhere() -> None:
    node = Node()
    (id_,) = node.look(rule("ftdi"), a_usb_serial(3, serial="A5", port="1"))
    node.allocate(id_)
    assert node.look(rule("ftdi"), a_usb_serial(4, serial="A5", port="1"), unread=[f"{BUS}/1-7"]) == {
        id_: "Healthy"
    }


def test_what_hangs_and_is_something_else_keeps_nobody_from_another_port() -> None:
    stick, moved = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    other = a_usb_serial(5, serial="B6", port="7")
    root = a_device(BUS, subsystem="usb", devtype="usb_device", node="/dev/bus/usb/001/001", number="c 189:0")
    node = Node()
    (id_,) = node.look(rule("ftdi"), stick)
    node.allocate(id_)
    for path in (other.sys_path, f"{BUS}/1-7", f"{BUS}/1-7/1-7:1.1", f"{BUS}/1-2/1-2:1.1", BUS, "/dev/other"):
        assert node.look(rule("ftdi"), moved, other, root, unread=[path])[id_] == "Healthy"
        node.look(rule("ftdi"), stick)


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
@pytest.mark.parametrize("port", ["1", "3"], ids=["where it was", "elsewhere"])
def test_while_udev_has_not_finished_with_what_may_be_the_unit_its_twin_does_not_get_the_id(
    keys: tuple[str, ...], port: str
) -> None:
    stick, twin = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    again = replace(a_usb_serial(5, serial="A5", port=port), incarnation=2)
    node = Node()
    (id_,) = node.look(rule("ftdi", *keys), stick)
    node.allocate(id_)
    coming = replace(again, initialized=False, properties={})
    told = node.look(rule("ftdi", *keys), twin, coming)
    assert told[id_] != "Healthy"
    assert node.inventory.links()[id_] is None
    (refusal,) = node.inventory.refusals
    assert refusal.reason.endswith("to another unit, which a pod may still hold")
    told = node.look(rule("ftdi", *keys), twin, again)
    assert node.inventory.links()[id_] == (again.device_node if port == "1" else None)
    assert [why for other, why in told.items() if other != id_] == ["Healthy"] * (len(told) - 1)


def test_what_udev_has_not_finished_with_keeps_nobody_from_another_port_if_it_is_something_else() -> None:
    stick, moved = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    other = replace(a_usb_serial(5, serial="B6", port="3"), initialized=False)
    usb = a_usb_device("4", serial="A5", product="6010")
    elsewhere = a_usb_node(usb, "tty", "ttyACM0", interface="01", number="c 166:0")
    node = Node()
    (id_,) = node.look(rule("ftdi"), stick)
    node.allocate(id_)
    for coming in (other, replace(elsewhere, initialized=False)):
        assert node.look(rule("ftdi"), moved, coming)[id_] == "Healthy"
        node.look(rule("ftdi"), stick)


def test_who_is_not_held_waits_for_nothing() -> None:
    stick, moved = a_usb_serial(3, serial="A5", port="1"), a_usb_serial(4, serial="A5", port="2")
    coming = replace(a_usb_serial(5, serial="A5", port="3"), initialized=False)
    node = Node()
    (id_,) = node.look(rule("ftdi"), stick)
    assert node.look(rule("ftdi"), moved, coming)[id_] == "Healthy"


def test_an_id_does_not_wait_for_the_pod_that_holds_it() -> None:
    node = Node()
    node.look(rule("ftdi", "replicas = 1"), STICK)
    node.allocate("ftdi_A5.0")
    assert node.look(rule("ftdi", "replicas = 2"), STICK) == {
        "ftdi_A5.0": "Healthy",
        "ftdi_A5.1": "a pod may still hold it as ftdi_A5.0",
    }


#: A modem as one device, and then with its control port as a device of its own.
_TABLE = '[[resource.node]]\nmatch = {{ SUBSYSTEM = "{}" }}\noptional = true\n'
_TERMINALS = rule("lte", 'group_by = "usb_device"', match='{ usb = { vendor = "2c7c" } }') + _TABLE.format(
    "tty"
)


def restart(node: Node) -> None:
    node.memory = load(dump(node.memory))


WHOLE = _TERMINALS + _TABLE.format("usbmisc")
APART = rule("qmi", match='{ SUBSYSTEM = "usbmisc" }') + _TERMINALS


def test_a_node_that_a_rule_takes_away_from_a_device_waits_until_the_device_is_free() -> None:
    node = Node()
    parts = a_modem(serial="E")
    node.look(WHOLE, *parts)
    node.allocate("lte_E")
    waiting = "a pod may still hold it as lte_E of example.com/lte"
    told = node.look(APART, *parts)
    assert told == {"lte_E": "Healthy", "qmi_E.if04-cdc-wdm": waiting}
    # And on.
    assert node.look(APART, *parts) == told
    assert node.look(APART, *parts, answer=node.nobody_holds_anything()) == {
        "lte_E": "Healthy",
        "qmi_E.if04-cdc-wdm": "Healthy",
    }
    node.allocate("lte_E")
    assert node.look(APART, *parts)["qmi_E.if04-cdc-wdm"] == "Healthy", "this pod never had it"


def test_a_node_that_a_pod_has_waits_even_after_its_unit_was_unplugged() -> None:
    node = Node()
    parts = a_modem(serial="E")
    node.look(WHOLE, *parts)
    node.allocate("lte_E")
    node.look(APART, *parts)
    node.look(APART)
    told = node.look(APART, *parts)
    assert told["qmi_E.if04-cdc-wdm"] == "a pod may still hold it as lte_E of example.com/lte"


@pytest.mark.parametrize("order", list(permutations(range(1, 5))))
@pytest.mark.parametrize("edited", ["before it", "while it is unplugged"])
def test_and_also_if_the_unit_comes_back_part_by_part(order: tuple[int, ...], edited: str) -> None:
    node = Node()
    usb, *parts = a_modem(serial="E")
    node.look(WHOLE, usb, *parts)
    node.allocate("lte_E")
    if edited == "before it":
        node.look(APART, usb, *parts)
        for left in range(len(parts)):
            node.look(APART, usb, *parts[left + 1 :])
    node.look(APART)
    there, told = [usb], dict[str, str]()
    for number in order:
        there.append(parts[number - 1])
        told = node.look(APART, *there)
        restart(node)
    assert told["qmi_E.if04-cdc-wdm"] == "a pod may still hold it as lte_E of example.com/lte"


def test_a_part_that_is_away_when_the_rules_are_edited_waits_as_well() -> None:
    node = Node()
    usb, *ports, control = a_modem(serial="E")
    node.look(WHOLE, usb, *ports, control)
    node.allocate("lte_E")
    node.look(WHOLE, usb, *ports)
    node.look(APART, usb, *ports)
    node.look(APART, usb, *ports[1:])
    told = node.look(APART, usb, *ports, control)
    assert told["qmi_E.if04-cdc-wdm"] == "a pod may still hold it as lte_E of example.com/lte"


def test_a_part_of_the_unit_of_a_pod_waits_at_the_old_port_as_well_when_the_unit_is_back() -> None:
    node = Node()
    parts = a_modem(serial="E")
    node.look(WHOLE, *parts)
    node.allocate("lte_E")
    node.look(APART, *parts)
    node.look(APART, *a_modem("7", serial="E"))
    again = [replace(part, incarnation=part.incarnation + 1) for part in parts]
    told = node.look(APART, *again)
    assert told.pop("qmi_E.if04-cdc-wdm") == "a pod may still hold it as lte_E of example.com/lte"
    assert set(told.values()) == {"Healthy"}


def test_a_unit_that_moves_takes_nothing_with_it() -> None:
    node = Node()
    node.look(rule("ftdi"), STICK)
    node.allocate("ftdi_A5")
    moved = a_usb_serial(4, serial="A5", port="7")
    assert node.look(rule("ftdi"), moved) == {"ftdi_A5": "Healthy"}
    told = node.look(rule("ftdi"), moved, STICK)
    assert set(told.values()) == {"Healthy"}, "a twin in its old port"
    assert len(told) == 2


@pytest.mark.parametrize("held", [[], ["ftdi_A5.0"]], ids=["free", "held by another pod"])
def test_an_id_that_the_rules_no_longer_include_is_not_given_out_beside_the_new_one(held: list[str]) -> None:
    """The kubelet may choose an id before it has the new list."""
    node = Node()
    node.look(rule("ftdi", "replicas = 3"), STICK)
    if held:
        node.allocate(*held)
    node.look(rule("ftdi"), STICK)
    with pytest.raises(RefusedError) as caught:
        node.allocate("ftdi_A5.1")
    assert str(caught.value) == (
        "device 'ftdi_A5.1' of example.com/ftdi is not available: 'replicas' no longer includes this id"
    )


def test_an_id_waits_although_a_pod_holds_it_when_another_pod_has_the_device_as_well() -> None:
    """The pod may have gone unnoticed, and then the kubelet would give its id to a third one."""
    node = Node()
    node.look(rule("ftdi", "replicas = 2"), STICK)
    node.allocate("ftdi_A5.0")
    node.look(rule("serial", "replicas = 2"), STICK)
    node.allocate("serial_A5.0")
    told = node.look(rule("ftdi", "replicas = 1"), STICK)
    assert told["ftdi_A5.0"] == "a pod may still hold it as serial_A5.0 of example.com/serial"
    with pytest.raises(RefusedError):
        node.allocate("ftdi_A5.0")
    assert node.inventory.links()["ftdi_A5"] == "/dev/ttyUSB3", "the pod that has it keeps it"


ACME = rule("acme", match='{ DEVNAME = "/dev/acme*" }')
VFIO = rule("t4", match='{ SUBSYSTEM = "vfio" }')
FIRST, SECOND = a_function("0000:81:00.1"), a_function("0000:81:00.2")
ABOVE = a_function("0000:81:00.0")
OF_ABOVE = "t4_port-0000-81-00-0-vfio_adpsyt2gsr"
OF_FIRST = "t4_port-0000-81-00-1-vfio_ymqz4rn5jq"
OF_SECOND = "t4_port-0000-81-00-2-vfio_mckibskar5"

#: Rules and a device that a pod holds; rules and the device later, and what the kubelet is told then.
SAME_NODES = {
    "a bare node is renamed": (
        (ACME, a_bare_node("/dev/acme0")),
        (ACME, a_bare_node("/dev/acme1")),
        {"acme_acme0": "it is unplugged", "acme_acme1": "a pod may still hold it as acme_acme0"},
    ),
    "edited rules name an alias of it": (
        (ACME, a_bare_node("/dev/acme0")),
        (rule("beta", match='{ DEVNAME = "/dev/beta0" }'), a_bare_node("/dev/beta0")),
        {"beta_beta0": "a pod may still hold it as acme_acme0 of example.com/acme"},
    ),
    "udev knows it now": (
        (ACME, a_bare_node("/dev/acme0")),
        (ACME, a_device(f"{ABOVE.sys_path}/acme/acme0", node="/dev/acme0", number="c 195:0", parent=ABOVE)),
        {
            "acme_acme0": "its id is now acme_port-0000-81-00-0-acme_suxtmtpqu2",
            "acme_port-0000-81-00-0-acme_suxtmtpqu2": "a pod may still hold it as acme_acme0",
        },
    ),
    "udev does not know it any more": (
        (ACME, a_device(f"{ABOVE.sys_path}/acme/acme0", node="/dev/acme0", number="c 195:0", parent=ABOVE)),
        (ACME, a_bare_node("/dev/acme0")),
        {
            "acme_acme0": "a pod may still hold it as acme_port-0000-81-00-0-acme_suxtmtpqu2",
            "acme_port-0000-81-00-0-acme_suxtmtpqu2": "it is unplugged",
        },
    ),
    "the first function of a group has gone": (
        (VFIO, a_vfio_group(51, FIRST, SECOND)),
        (VFIO, a_vfio_group(51, SECOND)),
        {OF_FIRST: f"its id is now {OF_SECOND}", OF_SECOND: f"a pod may still hold it as {OF_FIRST}"},
    ),
    "a group gets another first function": (
        (VFIO, a_vfio_group(51, FIRST, SECOND)),
        (VFIO, a_vfio_group(51, ABOVE, FIRST, SECOND)),
        {OF_FIRST: f"its id is now {OF_ABOVE}", OF_ABOVE: f"a pod may still hold it as {OF_FIRST}"},
    ),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["", "and genericdp restarts"])
@pytest.mark.parametrize(("before", "after", "told"), SAME_NODES.values(), ids=SAME_NODES)
def test_a_node_that_a_pod_holds_waits_under_whatever_id_it_comes_back(
    before: tuple[str, UdevDevice], after: tuple[str, UdevDevice], told: dict[str, str], *, restarts: bool
) -> None:
    node = Node()
    (id_,) = node.look(*before)
    node.allocate(id_)
    if restarts:
        node.memory = load(dump(node.memory))
    assert node.look(*after) == told
    later = node.look(*after, answer=node.nobody_holds_anything())
    assert {later[new] for new in told.keys() - {id_}} == {"Healthy"}


GPUS = (a_bare_node("/dev/acme0", "c 195:0"), a_bare_node("/dev/acme1", "c 195:1"))
EXCHANGED = (a_bare_node("/dev/acme0", "c 195:1"), a_bare_node("/dev/acme1", "c 195:0"))


@pytest.mark.parametrize("restarts", ["", "same boot"])
@pytest.mark.parametrize(
    "after",
    [EXCHANGED, (a_bare_node("/dev/acme0", "c 195:7"), a_bare_node("/dev/acme1", "c 195:0"))],
    ids=["they exchange them", "the held path gets a third one"],
)
def test_a_bare_node_with_the_number_that_a_pod_got_at_another_path_waits(
    after: tuple[UdevDevice, ...], restarts: str
) -> None:
    node = Node()
    node.look(ACME, *GPUS)
    node.allocate("acme_acme0")
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    waits = {"acme_acme0": "Healthy", "acme_acme1": "a pod may still hold it as acme_acme0"}
    assert node.look(ACME, *after) == node.look(ACME, *after) == waits
    # Another number later: the container may have either.
    later = a_bare_node("/dev/acme0", "c 195:8")
    assert node.look(ACME, later, after[1]) == waits
    assert [*node.look(ACME, *after, answer=node.nobody_holds_anything()).values()] == ["Healthy"] * 2


def test_of_two_held_bare_nodes_that_exchange_their_numbers_neither_gets_the_other_ones() -> None:
    node = Node()
    node.look(ACME, *GPUS)
    node.allocate("acme_acme0")
    node.allocate("acme_acme1")
    why = "the device plugged in now may not be the one that a pod got; delete that pod"
    for _ in range(2):
        assert node.look(ACME, *EXCHANGED) == {"acme_acme0": why, "acme_acme1": why}
    assert [*node.look(ACME, *GPUS).values()] == ["Healthy"] * 2


@pytest.mark.parametrize("is_first_bare", [False, True])
def test_two_pods_do_not_get_one_number_by_a_bare_node_and_by_one_that_udev_knows(
    *, is_first_bare: bool
) -> None:
    def known(minor: int) -> UdevDevice:
        path = f"{ABOVE.sys_path}/acme/acme0"
        return a_device(path, node="/dev/acme0", number=f"c 195:{minor}", parent=ABOVE)

    def bare(minor: int) -> UdevDevice:
        return a_bare_node("/dev/acme1", f"c 195:{minor}")

    first, second = (bare, known) if is_first_bare else (known, bare)
    node = Node()
    (own,) = node.look(ACME, first(0))
    node.allocate(own)
    (other,) = node.look(ACME, first(0), second(1)).keys() - {own}
    node.allocate(other)
    node.look(ACME, first(0))
    for _ in range(2):
        told = node.look(ACME, second(0))
        assert told[other] == "the device plugged in now may not be the one that a pod got; delete that pod"
    assert node.look(ACME, first(0), second(1)) == {own: "Healthy", other: "Healthy"}


def test_after_a_boot_the_numbers_of_bare_nodes_say_nothing() -> None:
    node = Node()
    node.look(ACME, *GPUS)
    node.allocate("acme_acme0")
    node.allocate("acme_acme1")
    node.memory = load(dump(node.memory, "a boot"), "another boot")
    for _ in range(2):
        assert [*node.look(ACME, *EXCHANGED).values()] == ["Healthy"] * 2


def test_a_held_bare_node_gets_no_more_numbers_than_are_remembered() -> None:
    node = Node()
    node.look(ACME, *GPUS)
    node.allocate("acme_acme0")
    minors = range(2, HELD_LINK_LIMIT + 3)
    for minor in minors:
        told = node.look(ACME, a_bare_node("/dev/acme0", f"c 195:{minor}"))
        has_room = minor < minors[-1]
        assert (told["acme_acme0"] == "Healthy") is has_room
    assert len(node.memory.devices["acme_acme0"].earlier) == HELD_LINK_LIMIT
    assert node.inventory.links()["acme_acme0"] is None
    for minor in (0, 7, minors[-2]):
        told = node.look(ACME, a_bare_node("/dev/acme5", f"c 195:{minor}"))
        assert told["acme_acme5"] == "a pod may still hold it as acme_acme0"
    assert node.look(ACME, a_bare_node("/dev/acme0", "c 195:7"))["acme_acme0"] == "Healthy"


def test_a_group_with_the_number_of_one_that_has_gone_waits_for_nobody() -> None:
    node = Node()
    (id_,) = node.look(VFIO, a_vfio_group(51, FIRST, SECOND))
    node.allocate(id_)
    another = replace(a_vfio_group(51, a_function("0000:82:00.0")), incarnation=2)
    told = node.look(VFIO, another)
    del told[id_]
    assert [*told.values()] == ["Healthy"]


def test_a_part_of_a_bundle_that_a_pod_has_waits_in_another_resource() -> None:
    node = Node()
    rules = rule("bundle", 'group_by = "all"', match='{ DEVNAME = "/dev/acme*" }')
    rules += rule("beta", match='{ DEVNAME = "/dev/beta*" }')
    stays, goes = a_bare_node("/dev/acme0", "c 195:0"), a_bare_node("/dev/acme1", "c 195:1")
    node.look(rules, stays, goes)
    node.allocate("bundle")

    renamed = a_bare_node("/dev/beta0", "c 195:1")
    for _ in range(2):
        assert node.look(rules, stays, renamed) == {
            "bundle": "Healthy",
            "beta_beta0": "a pod may still hold it as bundle of example.com/bundle",
        }
    assert node.look(rules, stays, renamed, answer=node.nobody_holds_anything())["beta_beta0"] == "Healthy"


@pytest.mark.parametrize("back", ["/dev/acme0", "/dev/acme9"])
@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
def test_a_bare_node_that_a_bundle_lost_while_all_of_it_was_away_waits_in_another_resource(
    restarts: str, back: str
) -> None:
    node = Node()
    before = rule("bundle", 'group_by = "all"', match='{ DEVNAME = "/dev/acme*" }')
    after = rule("bundle", 'group_by = "all"', match='{ DEVNAME = "/dev/acme1" }')
    after += rule("acme", match='{ DEVNAME = "/dev/acme[09]" }')
    node.look(before, a_bare_node("/dev/acme0", "c 195:0"))
    node.allocate("bundle")
    node.look(before)
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    other = a_bare_node("/dev/acme1", "c 195:1")
    node.look(before, other)
    for number, why in (("0", "a pod may still hold it as bundle of example.com/bundle"), ("7", "Healthy")):
        told = node.look(after, other, a_bare_node(back, f"c 195:{number}"))
        assert told.pop("bundle") == "Healthy"
        assert [*told.values()] == [why]


def test_the_numbers_that_a_bare_node_had_before_a_boot_say_nothing_after_it() -> None:
    """Its driver was loaded again with another major number in the meantime."""
    node, rules = Node(), rule("acme", match='{ DEVNAME = "/dev/acme*" }')
    healthy = {"acme_acme0": "Healthy", "acme_acme1": "Healthy"}
    node.look(rules, a_bare_node("/dev/acme0", "c 240:0"), a_bare_node("/dev/acme1", "c 240:1"))
    node.allocate("acme_acme0")
    node.allocate("acme_acme1")
    node.look(rules)
    again = a_bare_node("/dev/acme0", "c 241:0"), a_bare_node("/dev/acme1", "c 241:1")
    assert node.look(rules, *again) == healthy
    node.memory = load(dump(node.memory, "one boot"), "another boot")
    for _ in range(2):
        other = a_bare_node("/dev/acme0", "c 240:1"), a_bare_node("/dev/acme1", "c 240:0")
        assert node.look(rules, *other) == healthy
        assert node.links() == {"acme_acme0": "/dev/acme0", "acme_acme1": "/dev/acme1"}
