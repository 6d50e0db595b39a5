"""Ids that pods hold, of which nothing is remembered and that edited rules no longer give to a device."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer, Named, joined
from genericdp.core.memory.memory import Memory, resumed
from genericdp.core.rules.resource import UNPLUG_GRACE_S
from tests.core.memory.test_without_nodes import a_unit, by_all, why_waiting, without_node
from tests.scenes.builders import a_bare_node, a_device, a_modem, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

TTY = a_usb_serial(0)
X, Y = "example.com/x", "example.com/y"
OTHER = "other.example"


def begun(node: Node, resource: str, id_: str, led: dict[str, str]) -> Answer:
    """What a daemon finds when it starts without its memory."""
    held = frozenset({(resource, id_)})
    node.inventory, node.memory = type(node.inventory)(), resumed(Memory(), node.now)
    ids = frozenset({id_})
    return Answer(frozenset(), node.now, complete=False, checkpointed=ids, earlier=held, led=led)


@pytest.mark.parametrize("id_", ["x_A50285BI", "x_A50285BI.1"])
def test_what_a_link_of_a_held_id_led_to_waits_until_no_pod_holds_that_id(id_: str) -> None:
    node = Node()
    found = node.look(rule("y"), TTY, answer=begun(node, X, id_, {"x_A50285BI": "/dev/ttyUSB0"}))
    assert found == {"y_A50285BI": f"a pod may still hold it as {id_} of {X}"}
    assert node.inventory.orphaned_links == ("x_A50285BI",)
    assert node.inventory.held_links == {"held+x_A50285BI": "/dev/ttyUSB0"}
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(rule("y"), TTY) == found
    assert node.look(rule("y"), TTY, answer=node.nobody_holds_anything()) == {"y_A50285BI": "Healthy"}
    assert node.inventory.held_links == {}


def test_shared_devices_need_not_wait_for_a_replica() -> None:
    node = Node()
    answer = begun(node, X, "x_A50285BI.0", {"x_A50285BI": "/dev/ttyUSB0"})
    found = node.look(rule("y", "replicas = 2"), TTY, answer=answer)
    assert found == {"y_A50285BI.0": "Healthy", "y_A50285BI.1": "Healthy"}


def test_each_node_waits_to_which_a_link_of_a_held_group_led() -> None:
    node = Node()
    modem = a_modem()
    ids = node.look(rule("y"), *modem)
    paths = [each.path for device in node.inventory.offers[Y].devices for each in device.nodes]
    led = {f"x_EC25-17@{n}": path for n, path in enumerate(paths)}
    found = node.look(rule("y"), *modem, answer=begun(node, X, "x_EC25-17", led))
    assert found == dict.fromkeys(ids, f"a pod may still hold it as x_EC25-17 of {X}")
    assert {*node.inventory.held_links.values()} == {*paths}


@pytest.mark.parametrize(
    "led",
    [{}, {"x_A50285BI": "/dev/ttyUSB9"}, {"x_other": "/dev/ttyUSB0"}, {"y_A50285BI": "/dev/ttyUSB0"}],
    ids=["no link", "the node has gone", "of another id", "its own link"],
)
def test_nothing_waits_for_an_id_whose_links_lead_to_no_device_node(led: dict[str, str]) -> None:
    node = Node()
    found = node.look(rule("y"), TTY, answer=begun(node, X, "x_A50285BI", led))
    assert found == {"y_A50285BI": "Healthy"}


@pytest.mark.parametrize("is_held", [False, True])
def test_an_id_of_which_nothing_is_known_has_nothing_to_do_with_a_kit(*, is_held: bool) -> None:
    """A kit has no port, and neither has such an id."""
    kit = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "misc" }')
    null = a_device("/sys/devices/virtual/misc/a", subsystem="misc", node="/dev/a", number="c 10:1")
    node = Node()
    answer = begun(node, "example.com/ftdi", "ftdi_GONE", {})
    if is_held:
        answer = replace(answer, earlier=answer.earlier | {("example.com/kit", "kit")})
    node.look(rule("ftdi") + kit, null, answer=answer)
    for _ in range(2):
        told = node.look(rule("ftdi") + kit, null)
        assert told == {"ftdi_GONE": "only its id is known", "kit": "Healthy"}
        assert not node.inventory.refusals
        node.memory = saved.load(saved.dump(node.memory))


def test_the_links_of_a_resource_that_no_rule_names_stay_dead_until_no_pod_holds_it() -> None:
    """As after a boot: no link leads anywhere, and CRI-O would start the pod without a missing one."""
    node = Node()
    answer = begun(node, X, "x_A50285BI", {})
    for ours, kept in ((frozenset[str](), ()), (frozenset({X}), ("x_A50285BI",))):
        node.look(rule("y"), TTY, answer=replace(answer, ours=ours))
        assert node.inventory.orphaned_links == kept
    node.memory = saved.load(saved.dump(node.memory))
    node.look(rule("y"), TTY)
    assert node.inventory.orphaned_links == ("x_A50285BI",)
    node.now += UNPLUG_GRACE_S
    node.look(rule("y"), TTY, answer=node.nobody_holds_anything())
    assert not node.inventory.orphaned_links


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_id_of_another_plugin_that_is_spelled_like_ours_is_not_ours(*, is_lost: bool) -> None:
    node = Node()
    node.look(rule("y"), TTY)
    answer = begun(node, "vendor.example/thing", "y_A50285BI", {"y_A50285BI": "/dev/ttyUSB0"})
    if not is_lost:
        node = Node()
        node.look(rule("y"), TTY)
    for _ in range(2):
        assert node.look(rule("y"), TTY, answer=answer) == {"y_A50285BI": "Healthy"}
        assert not node.memory.held
        answer = replace(answer, ids=answer.earlier, earlier=frozenset(), complete=True)


@pytest.mark.parametrize("by_cdi", [False, True])
@pytest.mark.parametrize("led", [{}, {"ftdi_A50285BI": "/dev/ttyUSB0"}], ids=["after a boot", ""])
def test_the_same_id_in_another_domain_waits_for_its_pod(led: dict[str, str], *, by_cdi: bool) -> None:
    """Ids do not contain the domain of the settings, so an edit of that setting changes no id."""
    node = Node()
    old, ids = "example.com/ftdi", frozenset({"ftdi_A50285BI"})
    answer = begun(node, old, "ftdi_A50285BI", led)
    if by_cdi:
        answer = replace(answer, named=(Named(old, ids, (f"{old}=ftdi_A50285BI",)),))
    else:
        answer = replace(answer, ours=frozenset({old}))
    told = node.look(rule(), TTY, answer=answer, domain=OTHER)
    if by_cdi and not led:
        assert told == {"ftdi_A50285BI": "Healthy"}, "its pod cannot start again: the runtime refuses it"
        return
    assert "Healthy" not in told.values()
    assert node.look(rule(), TTY, domain=OTHER) == told
    assert node.look(rule(), TTY, answer=node.nobody_holds_anything(), domain=OTHER) == {
        "ftdi_A50285BI": "Healthy"
    }


def test_and_so_do_its_twins() -> None:
    node = Node()
    answer = begun(node, "example.com/ftdi", "ftdi_SAME", {})
    twins = a_usb_serial(0, serial="SAME"), a_usb_serial(1, serial="SAME", port="3", devnum=7)
    answer = replace(answer, ours=frozenset({"example.com/ftdi"}))
    assert "Healthy" not in node.look(rule(), *twins, answer=answer, domain=OTHER).values()
    assert "Healthy" not in node.look(rule(), *twins, domain=OTHER).values()


def test_an_id_that_still_means_what_its_link_led_to_stays_healthy() -> None:
    node = Node()
    answer = begun(node, Y, "y_A50285BI", {"y_A50285BI": "/dev/ttyUSB0"})
    assert node.look(rule("y"), TTY, answer=answer) == {"y_A50285BI": "Healthy"}
    assert node.inventory.held_links == {}


@pytest.mark.parametrize("link", ["x_SAME", "held+x_SAME"])
def test_an_id_that_edited_rules_give_to_another_node_leads_nowhere_while_a_pod_holds_it(link: str) -> None:
    node, usb = Node(), a_usb_device(serial="SAME")
    tty = a_usb_node(usb, "tty", "ttyUSB1", number="c 188:1")
    answer = begun(node, X, "x_SAME", {link: usb.device_node or ""})
    expected = {"x_SAME": "only its id is known"}
    assert node.look(rule("x"), usb, tty, answer=answer) == expected
    assert node.inventory.links() == {"x_SAME": None}
    assert node.inventory.held_links == {"held+x_SAME": usb.device_node}
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(rule("x"), usb, tty) == expected
    assert node.look(rule("x"), usb, tty, answer=node.nobody_holds_anything()) == {"x_SAME": "Healthy"}
    assert node.inventory.links() == {"x_SAME": "/dev/ttyUSB1"}


def test_a_group_whose_links_would_lead_to_its_other_nodes_leads_nowhere() -> None:
    node, modem = Node(), a_modem()
    (id_,) = node.look(rule("x", 'group_by = "usb_device"'), *modem)
    led = {link: path for link, path in node.inventory.links().items() if path is not None}
    assert len({*led.values()}) > 2
    exchanged = dict(zip(led, reversed(led.values()), strict=True))
    for links, health in ((led, "Healthy"), (exchanged, "only its id is known")):
        answer = begun(node, X, id_, links)
        assert node.look(rule("x", 'group_by = "usb_device"'), *modem, answer=answer) == {id_: health}


def test_nor_does_a_device_that_another_unknown_id_has() -> None:
    node, usb = Node(), a_usb_device(serial="SAME")
    tty = a_usb_node(usb, "tty", "ttyUSB1", number="c 188:1")
    answer = begun(node, X, "x_SAME", {"held+x_SAME": "/dev/missing", "held+y_SAME": "/dev/ttyUSB1"})
    answer = replace(answer, earlier=answer.earlier | {(Y, "y_SAME")})
    assert node.look(rule("x"), usb, tty, answer=answer) == {"x_SAME": "only its id is known"}


@by_all
def test_a_twin_does_not_get_the_id_while_the_unit_of_a_pod_may_lack_its_node(rules: str) -> None:
    """Only the id is known, and a unit without its node may have been what it meant."""
    node, twin = Node(), a_unit("2", 1)
    (id_, *_) = node.look(rules, *a_unit("1", 0))
    name = next(iter(node.inventory.offers))
    node.look(rules, without_node("1"), *twin, answer=begun(node, name, id_, {}))
    assert {*node.inventory.links().values()} == {None}
    assert [each.reason for each in node.inventory.refusals] == [why_waiting(id_.partition(".")[0], "1-1")]
    node.look(rules, *twin)
    assert "/dev/ttyUSB1" in node.inventory.links().values()


def test_where_links_led_is_not_forgotten_with_a_step_that_failed() -> None:
    first = Answer(frozenset(), 0.0, complete=False, led={"a": "/dev/ttyUSB0"}, ours=frozenset({X}))
    assert joined(first, replace(first, led={}, ours=frozenset())) == first


def a_stick(number: int, port: str, serial: str, product: str = "6001") -> UdevDevice:
    stick = a_usb_serial(number, port=port, serial=serial, product=product, devnum=9 + number)
    return replace(stick, incarnation=10 + number)


def test_a_unit_that_was_plugged_in_again_waits_after_a_loss_beside_one_that_stayed() -> None:
    """Held links lead to both parts of what was a kit."""
    kit, apart, node = rule("kit", 'group_by = "all"'), rule("u"), Node()
    stays = a_stick(0, "1", "A")
    node.look(kit, stays, a_stick(1, "2", "B"))
    node.allocate("kit")
    node.look(apart, stays)
    both = stays, a_stick(2, "2", "B")
    node.look(apart, *both)
    assert node.inventory.held_links == {"held+kit": "/dev/ttyUSB0", "held+kit@1": "/dev/ttyUSB2"}
    answer = begun(node, "example.com/kit", "kit", dict(node.inventory.held_links))
    told = node.look(apart, *both, answer=answer)
    assert told == dict.fromkeys(("u_A", "u_B"), "a pod may still hold it as kit of example.com/kit")


def test_after_a_loss_no_link_leads_to_another_model_with_the_serial_number_of_a_lost_part() -> None:
    def kit(*ports: str) -> str:
        match = f'{{ SUBSYSTEM = "tty", usb = {{ port = [{", ".join(map(repr, ports))}] }} }}'
        return rule("kit", 'group_by = "all"', match=match)

    node = Node()
    own, rest = a_stick(0, "1", "DOCK"), a_stick(1, "3", "B")
    node.look(kit("1", "3"), own, rest)
    node.allocate("kit")
    links = node.links()
    (lost,) = (link for link, leads in links.items() if leads == own.device_node)
    node.look(kit("3", "5"), own, rest)
    led = {link: path for link, path in {**node.links(), **node.inventory.held_links}.items() if path}
    assert led != links
    answer = begun(node, "example.com/kit", "kit", led)
    named = Named("example.com/kit", frozenset({"kit"}), links=(*links,), cdi=())
    node.look(kit("3", "5"), own, rest, answer=replace(answer, named=(named,)))
    node.look(kit("3", "5"), own, rest, a_stick(2, "5", "DOCK", product="6015"))
    assert node.links()[lost] is None


@pytest.mark.parametrize("keys", ["", "replicas = 2"])
def test_a_bare_node_whose_pod_has_it_stays_its_own(keys: str) -> None:
    """Its link says nothing about another node: a bare node is known by its number."""
    rules, bare, node = rule("gpu", keys, match='{ DEVNAME = "/dev/acme0" }'), a_bare_node(), Node()
    first, *others = sorted(node.look(rules, bare))
    node.allocate(first)
    answer = begun(node, "example.com/gpu", first, {"gpu_acme0": "/dev/acme0"})
    for each in (answer, None):
        assert node.look(rules, bare, answer=each) == dict.fromkeys((first, *others), "Healthy")
        assert node.links()["gpu_acme0"] == "/dev/acme0"
    # Under another name, it waits wherever it is.
    told = node.look(rule("y", match='{ DEVNAME = "/dev/beta0" }'), a_bare_node("/dev/beta0"))
    assert told == {"y_beta0": f"a pod may still hold it as {first} of example.com/gpu"}
