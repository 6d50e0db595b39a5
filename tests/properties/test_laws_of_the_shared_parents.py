"""Laws of units below one parent, which nothing but their own addresses tells apart.

Units of a radio, disks behind a controller and volumes come and go, the kernel numbers them in the order of
arrival, the machine boots, rules are edited. An id never moves to another physical unit while a pod holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.buses import told
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import locate
from genericdp.core.memory import saved
from tests.properties.test_laws_of_the_holdings import Node, Physical, table
from tests.scenes.builders import by_sys_path
from tests.scenes.storage import a_sas_disk, a_volume, an_fc_disk, an_iscsi_disk
from tests.scenes.wireless import LINK, UHID, a_hid, a_paired

_ANY = 'SUBSYSTEM = "hidraw|block"'
_DISKS = "allow_dangerous = true"
RULES = {
    "each": table("x", _DISKS, match=_ANY),
    "renamed": table("y", _DISKS, match=_ANY),
    "by port": table("x", _DISKS, 'identity = "port"', match=_ANY),
    "by its address": table("x", _DISKS, 'identity = ["HID_UNIQ"]', match=_ANY),
    "by model": table("x", 'identity = ["HID_ID"]', match=_ANY),
    "by parent": table("x", _DISKS, 'group_by = "parent"', match=_ANY),
    "some": table("x", _DISKS, match=f'{_ANY}, DEVNAME = "*[13579]"'),
    "shared": table("x", _DISKS, "replicas = 2", match=_ANY),
}

#: Those that offer each node under an id of its own, whatever the kernel calls it.
STEADY = ("each", "by port", "shared")

KINDS = ("uhid", "hidp", "paired", "sas", "fc", "iscsi", "dm")

#: Physical unit -> whether it has said what it is.
UNITS = {
    **{f"{kind}{number}": True for kind in KINDS for number in range(3)},
    "silent0": False,
    "silent1": False,
}


def device_of(unit: str, arrival: int, minor: int, inode: int) -> UdevDevice:
    """The device node of a unit; `arrival` is the number that the kernel has counted for it."""
    kind, number = unit[:-1], int(unit[-1])
    address = f"aa:bb:cc:00:00:0{number}"
    name = f"0x5000c500a1b2c3d{number}"
    match kind:
        case "uhid":
            return a_hid(UHID, arrival, address, minor, incarnation=inode)
        case "hidp":
            return a_hid(LINK, arrival, address.replace("aa", "bb"), minor, incarnation=inode)
        case "silent":
            return a_hid(UHID, arrival, None, minor, incarnation=inode)
        case "paired":
            return a_paired(arrival, f"c4-a5-3c-1{number}", 1, minor)
        case "sas":
            return a_sas_disk(arrival, name, minor)
        case "fc":
            return an_fc_disk(arrival, name, minor, host=1)
        case "iscsi":
            return an_iscsi_disk(2 + arrival, arrival, f"iqn.2003-01.org.example:{number}", minor)
        case _:
            return a_volume(minor, f"LVM-{number}")


@dataclass
class Machine(Node):
    """A machine whose units hang off few parents."""

    rules: str = "each"
    here: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """unit -> number of arrival, minor, inode"""
    arrived: int = 0
    inodes: int = 5000

    def tables(self) -> str:
        return RULES[self.rules]

    def devices(self) -> dict[str, UdevDevice]:
        self.at, found = {}, []
        for unit, (arrival, minor, inode) in self.here.items():
            found.append(device_of(unit, arrival, minor, inode))
            self.at[found[-1].device_node or ""] = ((unit, 0, 0), "")
        return by_sys_path(*found)

    def _arrive(self, unit: str, arrival: int) -> None:
        free = next(minor for minor in range(25) if minor not in {each for _, each, _ in self.here.values()})
        self.inodes += 1
        self.here[unit] = (arrival, free, self.inodes)

    def change(self, units: frozenset[str]) -> None:
        """These come if they are not there, and leave if they are, within one look."""
        left, came = units & self.here.keys(), units - self.here.keys()
        for unit in left:
            del self.here[unit]
        for unit in sorted(came):
            self.arrived += 1
            self._arrive(unit, self.arrived)
        self.step()

    def change_while_the_daemon_is_down(self, units: frozenset[str]) -> None:
        self.memory = saved.load(saved.dump(self.memory, "boot"), "boot")
        self.change(units)

    def boot(self, units: list[str]) -> None:
        """The machine boots, and these are there, counted in this order."""
        self.here, self.arrived = {}, len(units)
        for arrival, unit in enumerate(units, start=1):
            self._arrive(unit, arrival)
        self.memory = saved.load(saved.dump(self.memory, "boot"), "another boot")
        self.step()

    def may_stand_in(self, was: Physical, _its_port: str, now: Physical, _port: str) -> bool:
        """Never another unit."""
        return was[0] == now[0]

    def check(self) -> None:
        super().check()
        if self.rules not in STEADY:
            return
        links: Mapping[str, str | None] = self.inventory.links()
        nodes = {physical[0]: path for path, (physical, _) in self.at.items()}
        for pod in self.pods:
            for link, (physical, _) in (pod.first or {}).items():
                if physical[0] in nodes and UNITS[physical[0]] and pod.id_ in self.first_ids:
                    assert links[link] == nodes[physical[0]], (pod, "its unit is there")

    @property
    def first_ids(self) -> frozenset[str]:
        """The ids that the rules of now give."""
        return frozenset(
            id_
            for offer in self.inventory.offers.values()
            for id_, device in offer.ids.items()
            if any(node.sys_path for node in device.nodes)
        )


units = st.frozensets(st.sampled_from(sorted(UNITS)), max_size=4)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("change"), units),
        st.tuples(st.just("change_while_the_daemon_is_down"), units),
        st.tuples(st.just("boot"), st.lists(st.sampled_from(sorted(UNITS)), max_size=4, unique=True)),
        st.tuples(st.just("admit"), st.integers(0, 7)),
        st.tuples(st.just("start_again"), st.integers(0, 7)),
        st.tuples(st.just("delete"), st.integers(0, 7)),
        st.tuples(st.just("answer")),
        st.tuples(st.just("edit"), st.sampled_from(sorted(RULES.keys() - {"by model"}))),
    ),
    max_size=25,
)


@example(
    "each",
    [("change", frozenset({unit})) if unit else ("admit", 0) for unit in ("uhid0", "", "uhid0", "uhid1")],
)
@example(
    "each",
    [
        ("change", frozenset({unit})) if unit else ("admit", 0)
        for unit in ("silent0", "", "silent0", "silent1")
    ],
)
@example("each", [("boot", ["sas0", "sas1"]), ("admit", 0), ("admit", 0), ("boot", ["sas1"])])
@given(st.sampled_from(sorted(RULES.keys() - {"by model"})), histories)
def test_an_id_never_moves_to_another_unit_below_the_same_parent_while_a_pod_holds_it(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    machine = Machine(rules)
    machine.step()
    for name, *arguments in history:
        getattr(machine, name)(*arguments)
        machine.check()


#: Who is there in the order of arrival, how many pods, who leaves during the upgrade, what comes later.
Upgrade = tuple[list[str], int, frozenset[str], list[tuple[Any, ...]]]


def upgrades_of(there: list[str]) -> st.SearchStrategy[Upgrade]:
    """One that was never seen may be taken for one that has its properties, so only these come and leave."""
    some = st.frozensets(st.sampled_from(there))
    after = st.one_of(
        st.tuples(st.just("change"), some),
        st.tuples(st.just("change_while_the_daemon_is_down"), some),
        st.tuples(st.just("start_again"), st.integers(0, 7)),
        st.tuples(st.just("delete"), st.integers(0, 7)),
        st.tuples(st.just("answer")),
    )
    return st.tuples(st.just(there), st.integers(0, 4), some, st.lists(after, max_size=15))


wireless = sorted(unit for unit in UNITS if unit.startswith(("uhid", "hidp")))


@example((["uhid1", "uhid0"], 2, frozenset(), [("start_again", 0), ("start_again", 1)]))
@example(
    (
        ["uhid1", "uhid0"],
        1,
        frozenset({"uhid0", "uhid1"}),
        [("answer",), ("answer",), ("change", frozenset({"uhid0"}))],
    )
)
@given(st.lists(st.sampled_from(wireless), min_size=1, max_size=4, unique=True).flatmap(upgrades_of))
def test_after_an_upgrade_an_id_of_a_property_that_several_units_have_never_means_another_one(
    upgrade: Upgrade,
) -> None:
    there, admitted, left, history = upgrade
    machine = Machine("by model")
    with pytest.MonkeyPatch.context() as release_before:
        release_before.setattr(told, "_UNITS", {})
        machine.boot(there)
        for _ in range(admitted):
            machine.admit(0)
    machine.change_while_the_daemon_is_down(left)
    machine.check()
    for name, *arguments in history:
        getattr(machine, name)(*arguments)
        machine.check()


def test_each_unit_has_a_spot_of_its_own_unless_it_says_nothing() -> None:
    spots = {unit: locate(device_of(unit, 1, 0, 1)).spot for unit in UNITS}
    told = [spots[unit] for unit, is_told in UNITS.items() if is_told]
    assert len({*told}) == len(told)
    assert spots["silent0"] == spots["silent1"] not in told
