"""Siblings that are not on USB: sensors on a board, nodes of a PCI card. A missing one may come back."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.memory import resumed
from tests.scenes.builders import a_device, a_usb_serial
from tests.scenes.edits import Node, rule
from tests.scenes.video import a_sensor

GRACE_S = 700.0
RULES = ("", 'group_by = "parent"', 'group_by = "all"')
TUNERS = a_device(
    "/sys/devices/pci0000:00/0000:00:1c.0/0000:03:00.0",
    subsystem="pci",
    driver="cx23885",
    properties={"PCI_SLOT_NAME": "0000:03:00.0"},
)


class Booting(Node):
    """A node that is booted again and again, with pods that stay."""

    def __init__(self) -> None:
        super().__init__()
        self.boots = (f"boot{n}" for n in range(1, 9))
        self.boot = "boot0"

    def reboot(self) -> None:
        before, self.boot = self.boot, next(self.boots)
        self.memory = resumed(saved.load(saved.dump(self.memory, before), self.boot), self.now)

    def restart(self) -> None:
        """The daemon is restarted."""
        self.memory = resumed(saved.load(saved.dump(self.memory, self.boot), self.boot), self.now)

    def forget(self, rules: str, *devices: UdevDevice) -> None:
        """All that is missing is forgotten, as far as it can be, while no pod holds anything."""
        for _ in range(3):
            self.now += GRACE_S
            self.look(rules, *devices, answer=self.nobody_holds_anything())

    def give(self, rules: str, *devices: UdevDevice) -> str:
        """A pod gets the one device that is offered. Returns the link to its node."""
        (id_,) = (id_ for id_, told in self.look(rules, *devices).items() if told == "Healthy")
        self.allocate(id_)
        self.look(rules, *devices)
        (link,) = (link for link, path in self.links().items() if path is not None)
        return link


def sensors(boot: int, *buses: int) -> Iterator[UdevDevice]:
    """Two sensors at one address, on buses 9 and 10, that get their numbers in this order."""
    for number, bus in enumerate(buses):
        yield replace(a_sensor(f"vi-output, imx219 {bus}-0010", number), incarnation=100 * boot + bus)


def tuner(number: int, since: int) -> UdevDevice:
    path = f"{TUNERS.sys_path}/dvb/dvb{number}.frontend0"
    node = f"/dev/dvb/adapter{number}/frontend0"
    made = a_device(path, subsystem="dvb", number=f"c 212:{4 * number}", node=node, parent=TUNERS)
    return replace(made, incarnation=since)


def without_the_first(keys: str) -> tuple[Booting, str, str]:
    """A node after two boots, the rule for its two sensors, and the link to the one that a pod got.

    That was in the boot before, in which the first sensor was missing.
    """
    node, rules = Booting(), rule("cam", keys, match='{ SUBSYSTEM = "video4linux" }')
    node.look(rules, *sensors(1, 9, 10))
    node.reboot()
    node.forget(rules, *sensors(2, 10))
    link = node.give(rules, *sensors(2, 10))
    node.reboot()
    return node, rules, link


@pytest.mark.parametrize("keys", RULES)
def test_one_that_was_missing_in_the_boot_before_does_not_pass_for_the_other_one(keys: str) -> None:
    node, rules, link = without_the_first(keys)
    node.look(rules)
    for _ in range(2):
        told = node.look(rules, *sensors(3, 9))
        assert (node.links()[link], "Healthy" in told.values()) == (None, False)
    node.look(rules, *sensors(3, 9, 10))
    assert node.links()[link] in (None, "/dev/video1")


@pytest.mark.parametrize("keys", RULES)
def test_one_that_failed_alone_does_not_pass_for_the_other_one_once_the_driver_is_loaded_again(
    keys: str,
) -> None:
    node, rules = Booting(), rule("tuner", keys, match='{ SUBSYSTEM = "dvb" }')
    node.look(rules, tuner(0, 10), tuner(1, 11))
    node.forget(rules, tuner(1, 11))
    link = node.give(rules, tuner(1, 11))
    node.look(rules)
    node.look(rules, tuner(0, 20))
    assert node.links()[link] is None
    node.look(rules, tuner(0, 20), tuner(1, 21))
    assert node.links()[link] in (None, "/dev/dvb/adapter1/frontend0")


@pytest.mark.parametrize("keys", RULES)
def test_one_that_has_gone_for_good_costs_a_pod_no_more_than_a_wait_after_a_boot(keys: str) -> None:
    node, rules, _ = without_the_first(keys)
    told = node.look(rules, *sensors(3, 10))
    assert "Healthy" not in told.values()
    node.forget(rules, *sensors(3, 10))
    assert "Healthy" in node.look(rules, *sensors(3, 10)).values()


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("keys", RULES)
def test_that_there_are_several_is_not_forgotten_with_the_pod_that_had_the_missing_one(
    keys: str, *, is_late: bool
) -> None:
    """The other one is in doubt until that pod is gone, so it is not a device that could be remembered."""
    node, rules = Booting(), rule("cam", keys, match='{ SUBSYSTEM = "video4linux" }')
    node.look(rules, *sensors(1, 10))
    node.give(rules, *sensors(1, 10))
    node.look(rules, *sensors(1, 10, 9))
    node.reboot()
    node.look(rules)
    assert "Healthy" not in node.look(rules, *sensors(2, 9)).values()
    node.now += GRACE_S
    node.look(rules, *sensors(2, 9), answer=node.nobody_holds_anything())
    for _ in range(2 * is_late):
        node.look(rules, *(replace(each, initialized=False) for each in sensors(2, 9)))
    link = node.give(rules, *sensors(2, 9))
    node.reboot()
    node.look(rules)
    for _ in range(2):
        assert "Healthy" not in node.look(rules, *sensors(3, 10)).values()
        assert node.links()[link] is None


@pytest.mark.parametrize("are_late", [None, "not there", "not finished"])
def test_a_kit_remembers_how_many_there_are_although_none_of_them_is_there_for_a_moment(
    are_late: str | None,
) -> None:
    kit = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = ["video4linux", "tty"] }')
    node, gps = Booting(), a_usb_serial(0, serial="GPS")
    node.look(kit, gps, *sensors(1, 9, 10))
    node.reboot()
    if are_late:
        late = (replace(each, initialized=False) for each in sensors(2, 10) if are_late == "not finished")
        for _ in range(2):
            node.look(kit, gps, *late)
    node.look(kit, gps, *sensors(2, 10))
    node.allocate("kit")
    node.look(kit, gps, *sensors(2, 10))
    link = next(link for link, path in node.links().items() if path == "/dev/video0")
    node.reboot()
    assert "Healthy" not in node.look(kit, gps, *sensors(3, 9)).values()
    assert node.links()[link] is None


def test_a_property_that_several_share_does_not_tell_which_one_came_first() -> None:
    """The pod got both before the rule named the property. The device that the rule makes now loses one."""

    def some(plug: int, *buses: int) -> list[UdevDevice]:
        made = sensors(plug, *buses)
        return [replace(each, properties={**each.properties, "KIT": "k1"}) for each in made]

    match = '{ SUBSYSTEM = "video4linux" }'
    whole, grouped = (rule("cam", f'group_by = "{by}"', match=match) for by in ("all", "KIT"))
    node = Booting()
    node.look(whole, *some(1, 9, 10))
    links = {path: link for link, path in node.links().items()}
    node.allocate("cam")
    node.look(grouped, *some(1, 9, 10))
    node.look(grouped, *some(1, 9))
    first, second = some(2, 9, 10)
    node.look(grouped, replace(first, initialized=False), second)
    for rules in (grouped, whole):
        node.look(rules, first, second)
    assert node.links()[links["/dev/video0"]] in (None, "/dev/video0")
    assert node.links()[links["/dev/video1"]] in (None, "/dev/video1")
