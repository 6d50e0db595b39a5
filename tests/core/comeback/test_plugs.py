"""When the containers of a device are judged: debounce, interruptions, evidence that is missing."""

from dataclasses import replace

import pytest

from genericdp.core.comeback.container import Container
from genericdp.core.comeback.plugs import Plugs, cases, follow, judged, next_case, not_stopped
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory, after_allocate
from genericdp.core.memory.saved import dump, load
from genericdp.core.memory.take import take_inventory
from genericdp.core.status.holdings import Holder
from tests.scenes.builders import a_kfd, a_usb_serial, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE, KIT_RULE
from tests.scenes.rules import KIT as KIT_NAME
from tests.scenes.sockets import SHIFT, a_tty_in_socket, unread

STICK, RENAMED = a_usb_serial(0, serial="A"), a_usb_serial(3, serial="A")
KEY = (FTDI, "ftdi_A")
POD = Container("1", Holder("default", "app", "main"), "uid-1")


class Node:
    """What is plugged in, and the plugs that follow from it. `at` moves the clock."""

    def __init__(self, keys: str = 'on_unplug = "stop"\non_replug = "restart"\n', rules: str = "") -> None:
        self.edit(rules or FTDI_RULE + keys)
        self.memory = Memory()
        self.plugs = Plugs()
        self.inventory = Inventory()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)

    def see(self, now: float, *devices: UdevDevice, unread: str = "", beside: str = "") -> None:
        paths = {unread: beside} if unread else {}
        self.inventory, self.memory = take_inventory(
            self.builder, by_sys_path(*devices), self.memory, now, unread=paths
        )
        plugged = self.builder.claims.plugged.with_unread(paths)
        self.plugs = follow(self.plugs, self.inventory, plugged, now, self.memory.devices)

    def give(self, now: float, resource: str, id_: str) -> None:
        """A pod gets a device."""
        self.memory = after_allocate(self.memory, self.inventory.offers[resource], [id_], None, now)

    def restart(self, *, boot: str = "") -> None:
        """The daemon ends, and another one knows what is saved."""
        self.memory, self.plugs = load(dump(self.memory, "a boot"), boot or "a boot"), Plugs()

    def due(self, now: float) -> list[str]:
        """Why containers are judged now."""
        return ["unplug" if case.unplugged else "replug" for case in cases(self.plugs, now)]

    def judge(self, now: float, *stops: Container, again_at: float | None = None) -> None:
        (case,) = cases(self.plugs, now)
        self.plugs = judged(self.plugs, [(case, stops)], again_at=again_at)


def test_a_device_is_judged_once_its_debounce_time_has_passed() -> None:
    node = Node()
    node.see(0.0, STICK)
    assert next_case(node.plugs) == 3.0
    assert node.due(2.9) == []
    assert node.due(3.0) == ["replug"]
    node.judge(3.0)
    assert next_case(node.plugs) is None
    node.see(10.0)
    assert node.due(12.9) == []
    assert node.due(13.0) == ["unplug"]


def test_a_unit_whose_twin_is_still_there_is_unplugged_all_the_same() -> None:
    node = Node()
    twin = a_usb_serial(1, port="1", serial="A")
    node.see(0.0, STICK)
    node.see(1.0, STICK, twin)
    node.judge(3.0)
    node.see(10.0, twin)
    assert "unplug" in node.due(13.0)


@pytest.mark.parametrize("is_seen_to_leave", [False, True])
def test_a_unit_at_a_port_where_no_rule_matches_it_is_unplugged(*, is_seen_to_leave: bool) -> None:
    node = Node(rules=FTDI_RULE.replace("vendor", 'port = "2", vendor') + 'on_unplug = "stop"\n')
    node.see(0.0, STICK)
    if is_seen_to_leave:
        node.see(10.0)
    node.see(10.0, a_usb_serial(3, serial="A", port="5"))
    assert node.due(13.0) == ["unplug"]


def test_a_device_that_flaps_is_judged_only_when_it_rests() -> None:
    node = Node()
    for now in range(10):
        node.see(now, *((STICK,) if now % 2 else ()))
        assert node.due(now) == []
    assert next_case(node.plugs) == 9 + 3.0


def test_what_rules_do_not_ask_for_is_never_judged() -> None:
    for keys, unplugged, plugged in (
        ("", [], []),
        ('on_unplug = "stop"\n', ["unplug"], []),
        ('on_replug = "restart"\n', [], ["replug"]),
    ):
        node = Node(keys)
        node.see(0.0, STICK)
        assert node.due(99.0) == plugged
        node.see(100.0)
        assert node.due(199.0) == unplugged


def test_numbers_that_come_back_within_one_look_are_no_other_plug() -> None:
    node = Node()
    node.see(0.0, STICK)
    node.judge(3.0)
    node.see(5.0, STICK)
    assert next_case(node.plugs) is None
    node.see(6.0, RENAMED)
    assert node.due(9.0) == ["replug"]


def test_a_failing_health_condition_interrupts_a_plug_and_ends_none() -> None:
    node = Node('on_replug = "restart"\non_unplug = "stop"\nhealth = { DRIVER = { not = "bad" } }\n')
    sick = UdevDevice(**{name: getattr(STICK, name) for name in STICK.__slots__} | {"driver": "bad"})
    node.see(0.0, STICK)
    node.see(2.0, sick)
    assert next_case(node.plugs) is None
    node.see(4.0, STICK)
    assert node.due(6.9) == []
    node.judge(7.0)
    node.see(8.0, sick)
    node.see(9.0, STICK)
    assert next_case(node.plugs) is None


def test_without_evidence_it_is_asked_for_again_later() -> None:
    node = Node()
    node.see(0.0, STICK)
    node.judge(3.0, again_at=13.0)
    assert node.due(12.0) == []
    assert node.due(13.0) == ["replug"]


def test_evidence_that_is_missing_for_minutes_is_asked_for_less_often() -> None:
    """A checkpoint of the kubelet that cannot be read may never be readable."""
    node = Node()
    node.see(0.0, STICK)
    asked, now = [], 3.0
    while now < 3600.0:
        asked.append(now)
        node.judge(now, again_at=now + 10.0)
        next_ = next_case(node.plugs)
        assert next_ is not None
        now = next_
    assert asked[:3] == [3.0, 13.0, 23.0]
    assert asked[-1] - asked[-2] == 60.0
    assert len(asked) == 30 + 55
    node.see(3600.0, RENAMED)
    node.judge(3603.0, again_at=3613.0)
    assert next_case(node.plugs) == 3613.0, "it is another plug"


def test_a_container_that_was_stopped_counts_as_stopped_until_the_next_plug() -> None:
    node = Node()
    node.see(0.0, STICK)
    node.judge(3.0, POD, again_at=13.0)
    assert node.plugs.by_device[KEY].stopped == {("uid-1", "main")}
    node.see(20.0)
    assert node.plugs.by_device[KEY].stopped == frozenset()


def test_a_container_that_could_not_be_stopped_is_tried_again() -> None:
    node = Node()
    node.see(0.0, STICK)
    (case,) = cases(node.plugs, 3.0)
    node.judge(3.0, POD)
    node.plugs = not_stopped(node.plugs, [case], POD, again_at=60.0)
    assert node.plugs.by_device[KEY].stopped == frozenset()
    assert next_case(node.plugs) == 60.0


def test_what_was_asked_about_an_earlier_plug_does_not_count_for_the_next() -> None:
    node = Node()
    node.see(0.0, STICK)
    (case,) = cases(node.plugs, 3.0)
    node.see(4.0)
    before = node.plugs
    assert judged(before, [(case, (POD,))]) == before
    assert not_stopped(before, [case], POD, 60.0) == before


def test_rules_that_no_longer_want_it_end_it() -> None:
    node = Node()
    node.see(0.0, STICK)
    node.builder = Builder(resources_of(FTDI_RULE, domain=DOMAIN), DOMAIN)
    node.see(1.0, STICK)
    assert node.plugs == Plugs()


def test_an_edit_that_gives_a_device_another_id_unplugs_nothing() -> None:
    node = Node()
    node.see(0.0, STICK)
    node.judge(3.0)
    by_port = FTDI_RULE + 'identity = "port"\non_unplug = "stop"\n'
    node.builder = Builder(resources_of(by_port, domain=DOMAIN), DOMAIN)
    node.see(10.0, STICK)
    assert {device.id: device.healthy for device in node.inventory.offers[FTDI].devices}["ftdi_A"] is False
    assert node.due(99.0) == []
    node.see(100.0)
    assert KEY in {case.key for case in cases(node.plugs, 103.0)}


def test_devices_that_are_judged_together_are_judged_in_one_pass() -> None:
    node = Node()
    node.see(0.0, *(a_usb_serial(number, serial=f"S{number}", port=str(number)) for number in range(3)))
    (first, *others) = cases(node.plugs, 3.0)
    node.plugs = judged(node.plugs, [(first, (POD,)), *((case, ()) for case in others)])
    assert next_case(node.plugs) is None
    stopped = [plug.stopped for plug in node.plugs.by_device.values()]
    assert stopped == [{("uid-1", "main")}, frozenset(), frozenset()]


def test_another_number_of_a_shared_node_is_another_plug() -> None:
    def kfd(major: int) -> UdevDevice:
        return replace(a_kfd(), number=DeviceNumber("c", major, 0))

    node = Node('on_replug = "restart"\n[[resource.node]]\nmatch = { SUBSYSTEM = "kfd" }\nshared = true\n')
    node.see(0.0, STICK, kfd(510))
    node.judge(3.0)
    node.see(4.0, STICK)
    node.see(5.0, STICK, kfd(510))
    assert next_case(node.plugs) is None
    node.see(6.0, STICK, kfd(511))
    assert node.due(9.0) == ["replug"]
    (case,) = cases(node.plugs, 9.0)
    assert case.plug.numbers == {"ftdi_A": STICK.number, "shared+kfd": DeviceNumber("c", 511, 0)}


KIT = (
    KIT_RULE
    + """
[[resource.node]]
match.usb = { port = "3" }
optional = true
"""
)
ONE, TWO, EXTRA = (a_usb_serial(number, port=str(number + 1), serial="ABC"[number]) for number in range(3))


def test_a_part_that_the_device_needs_is_followed_as_the_whole_device_is() -> None:
    node = Node(rules=KIT)
    node.see(0.0, ONE, TWO)
    node.judge(3.0)
    node.see(10.0, ONE)
    assert node.due(12.9) == []
    assert node.due(13.0) == ["unplug"]
    # The other one follows, and returns first.
    node.judge(13.0)
    node.see(20.0)
    node.see(21.0, TWO)
    assert node.due(99.0) == []
    node.see(100.0, ONE, TWO)
    assert node.due(103.0) == ["replug"]


def test_a_part_that_returns_under_another_number_is_another_plug() -> None:
    node = Node(rules=KIT)
    node.see(0.0, ONE, TWO)
    node.judge(3.0)
    node.see(4.0, ONE)
    node.see(5.0, ONE, a_usb_serial(7, port="2", serial="B"))
    assert node.due(7.9) == []
    assert node.due(8.0) == ["replug"]


def test_a_part_that_moves_is_looked_for_where_it_is_now() -> None:
    node = Node(rules=KIT.replace('match.usb = { port = "2" }', 'match.usb = { serial = "B" }'))
    node.see(0.0, ONE, TWO)
    node.see(4.0, ONE, a_usb_serial(1, port="5", serial="B"))
    node.judge(7.0)
    node.see(10.0, ONE)
    assert node.due(13.0) == ["unplug"]


def test_a_part_that_is_optional_stops_nothing_when_it_leaves() -> None:
    node = Node(rules=KIT)
    node.see(0.0, ONE, TWO, EXTRA)
    node.judge(3.0)
    node.see(10.0, ONE, TWO)
    assert node.due(99.0) == ["replug"], "which finds nothing wrong"


def test_a_part_that_is_still_plugged_in_is_not_unplugged() -> None:
    """Edited rules no longer take it, or take it for something else."""
    for edited in (
        KIT.replace('port = "2"', 'port = "4"'),
        '[[resource]]\nname = "other"\nmatch.usb = { port = "2" }\n' + KIT,
    ):
        node = Node(rules=KIT)
        node.see(0.0, ONE, TWO)
        node.judge(3.0)
        node.edit(edited)
        node.see(10.0, ONE, TWO)
        node.see(11.0, ONE, TWO, EXTRA)
        assert node.due(99.0) == []


def test_a_part_that_no_longer_belongs_to_the_device_when_it_is_unplugged_counts() -> None:
    node = Node(rules=KIT.replace('match.usb = { port = "2" }', 'match = { usb = { port = "2" }, A = "1" }'))
    fits, does_not = (replace(TWO, properties={**TWO.properties, "A": value}) for value in "12")
    node.see(0.0, ONE, fits)
    node.judge(3.0)
    node.see(10.0, ONE, does_not)
    assert node.due(99.0) == []
    node.see(100.0, ONE)
    assert node.due(103.0) == ["unplug"]


def test_a_part_of_which_there_is_another_one_is_not_needed() -> None:
    """The device is Unhealthy for another reason."""
    node = Node(rules=KIT.replace('match.usb = { port = "2" }', 'match.usb = { port = "2|4" }'))
    node.edit(node.rules.replace("group_by", 'health = { DRIVER = { not = "bad" } }\ngroup_by'))
    another = a_usb_serial(3, port="4", serial="D")
    node.see(0.0, ONE, TWO, another)
    node.judge(3.0)
    node.see(10.0, replace(ONE, driver="bad"), another)
    assert node.due(99.0) == []


def test_a_part_that_was_never_there_is_not_unplugged() -> None:
    node = Node(rules=KIT)
    node.see(0.0, ONE)
    assert node.due(99.0) == []


def a_kit_that_a_pod_has(rules: str, *parts: UdevDevice) -> Node:
    node = Node(rules=rules)
    node.see(0.0, *parts)
    node.give(0.0, KIT_NAME, "kit")
    return node


def test_a_part_that_leaves_while_the_daemon_is_away_is_unplugged() -> None:
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    node.restart()
    node.see(10.0, ONE)
    assert node.due(12.9) == []
    assert node.due(13.0) == ["unplug"]
    # It is restarted before that.
    node.restart()
    node.see(20.0, ONE)
    assert node.due(23.0) == ["unplug"]
    node.judge(23.0)
    node.see(30.0, ONE, TWO)
    assert node.due(33.0) == ["replug"]


def test_a_kit_of_which_one_part_returns_after_a_start_is_still_the_same_absence() -> None:
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    node.restart()
    node.see(10.0)
    node.judge(13.0)
    node.see(20.0, TWO)
    assert node.due(99.0) == []


def test_a_part_that_no_pod_has_got_is_not_looked_for_after_a_start() -> None:
    node = Node(rules=KIT_RULE)
    node.see(0.0, ONE, TWO)
    node.restart()
    node.see(10.0, ONE)
    assert node.due(99.0) == []


def test_a_part_that_may_be_an_optional_one_is_not_unplugged_after_a_start() -> None:
    """An edit may have added the part that the device lacks."""
    added = KIT + '[[resource.node]]\nmatch.usb = { port = "4" }\n'
    node = a_kit_that_a_pod_has(KIT, ONE, TWO, EXTRA)
    node.restart()
    node.see(10.0, ONE, TWO)
    assert node.due(99.0) == ["replug"]
    node.restart()
    node.edit(added)
    node.see(100.0, ONE, TWO)
    assert node.due(199.0) == []
    # As long as all of them are away, one of them is needed.
    node.edit(KIT)
    node.restart()
    node.see(200.0, ONE)
    assert node.due(299.0) == ["unplug"]


def test_a_part_is_unplugged_after_a_start_although_the_optional_one_is_there() -> None:
    node = a_kit_that_a_pod_has(KIT, ONE, TWO, EXTRA)
    node.restart()
    node.see(10.0, ONE, EXTRA)
    assert node.due(13.0) == ["unplug"]


def test_a_part_that_is_still_plugged_in_after_a_start_is_not_unplugged() -> None:
    """Rules that were edited meanwhile no longer take it, or take it for something else."""
    for edited in (
        KIT_RULE.replace('port = "2"', 'port = "4"'),
        '[[resource]]\nname = "other"\nmatch.usb = { port = "2" }\n' + KIT_RULE,
    ):
        node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
        node.restart()
        node.edit(edited)
        node.see(10.0, ONE, TWO)
        assert node.due(99.0) == []


def test_a_part_that_an_edit_adds_while_the_daemon_is_away_was_not_there() -> None:
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    # Another unit in the place of one of them.
    node.see(1.0, ONE, a_usb_serial(5, port="2", serial="E"))
    node.restart()
    node.edit(KIT.replace("optional = true", ""))
    node.see(10.0, ONE, a_usb_serial(5, port="2", serial="E"))
    assert node.due(99.0) == []


def test_a_part_that_cannot_be_read_is_not_unplugged() -> None:
    for has_restarted in (False, True):
        node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
        if has_restarted:
            node.restart()
        node.see(10.0, ONE, unread=TWO.sys_path)
        assert "unplug" not in node.due(99.0)
        node.see(100.0, ONE)
        assert node.due(103.0) == ["unplug"]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shift", [0, SHIFT])
def test_nor_is_one_that_cannot_be_read_in_a_socket_of_usb_3(shift: int, *, fast: bool) -> None:
    two = a_tty_in_socket(1, port="2", serial="B", fast=fast, shift=shift)
    rules = KIT_RULE.replace('usb = { port = "1" }', 'usb = { serial = "A" }')
    node = a_kit_that_a_pod_has(rules.replace('usb = { port = "2" }', 'usb = { serial = "B" }'), ONE, two)
    node.see(5.0, ONE, two)
    ((path, beside),) = unread(two).items()
    node.see(10.0, ONE, unread=path, beside=beside)
    assert node.due(99.0) == []
    node.see(100.0, ONE)
    assert node.due(103.0) == ["unplug"]


def test_a_part_that_may_have_moved_to_where_nothing_can_be_read_is_not_unplugged_after_a_start() -> None:
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    node.restart()
    node.see(10.0, ONE, unread="/sys/devices/pci0000:00/0000:00:15.0")
    assert node.due(99.0) == []
    node.see(100.0, ONE)
    assert node.due(103.0) == ["unplug"]


def test_a_memory_that_does_not_say_where_the_parts_were_stops_nothing() -> None:
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    known = node.memory.devices["kit"]
    bare = replace(known, device=replace(known.device, spots=(), models=()))
    node.memory = replace(node.memory, devices={"kit": bare})
    node.restart()
    node.see(10.0, ONE)
    assert node.due(99.0) == []


def test_after_a_boot_a_kit_is_followed_as_after_a_start() -> None:
    """A container that runs was created with all parts since then."""
    node = a_kit_that_a_pod_has(KIT_RULE, ONE, TWO)
    node.restart(boot="another boot")
    node.see(0.0, ONE)
    assert node.due(2.9) == []
    node.see(2.9, ONE, TWO)
    assert node.due(6.0) == ["replug"]


def test_a_part_whose_place_a_stranger_had_for_a_while_is_missed_when_that_has_gone() -> None:
    """A unit in its boot loader looks like another one. Nothing else of the device changes when it leaves."""
    gps, radio = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")
    stranger = a_usb_serial(7, port="2", serial="B", vendor="1209")
    node = Node(rules=KIT_RULE.replace('"tty" }', '"tty", usb = { vendor = "0403" } }'))
    node.see(0.0, gps, radio)
    node.give(0.0, KIT_NAME, "kit")
    node.see(1.0, gps, stranger)
    assert cases(node.plugs, 100.0) == ()
    node.see(2.0, gps)
    assert [case.unplugged for case in cases(node.plugs, 100.0)] == [True]
