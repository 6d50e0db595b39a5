"""Law: whatever goes while devices are read, and whenever it does, the rest is read as ever."""

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint, RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices, bounded, snapshot
from tests.udev import gadgets
from tests.udev.gadgets import Entry
from tests.udev.testbed import Testbed
from tests.udev.vfio import bridge, function, function_node, group_node

pytestmark = pytest.mark.testbed

BRIDGE = bridge()
FUNCTIONS = [function(f"0000:81:00.{number}") for number in range(3)]
NODES = [function_node(each, number) for number, each in enumerate(FUNCTIONS)]
CARD = (BRIDGE, *(each for pair in zip(FUNCTIONS, NODES, strict=True) for each in pair), group_node(51))
HUB = gadgets.hub(behind=1)
STUCK = gadgets.serial_dongle("5", tty=1, serial="STUCK", devnum=20)
NEW = gadgets.serial_dongle("6", tty=6, serial="NEW", devnum=21)

#: The first thing that is read, one in the middle, its node, and one of another kind.
GOING = [FUNCTIONS[0], FUNCTIONS[1], NODES[1], HUB[2]]


@dataclass
class Vanishing:
    """Reads devices; before one of the reads, one of them goes, with what is below it."""

    bed: Testbed
    going: Entry
    reads_left: int
    has_gone: bool = False

    def look_at(self, path: str, names: frozenset[str]) -> UdevDevice | None:
        self.reads_left -= 1
        if self.reads_left == 0:
            for each in self.below():
                self.bed.detach(each)
            self.has_gone = True
        return look_at(path, names)

    def below(self) -> list[Entry]:
        """What goes, children first."""
        path = self.going.path
        return [each for each in reversed((*CARD, *HUB)) if f"{each.path}/".startswith(f"{path}/")]


look_at = snapshot.look_at


def change(entry: Entry) -> Uevent:
    return Uevent("change", entry.sys_path, entry.subsystem, "udev")


@pytest.mark.parametrize("going", GOING, ids=lambda entry: entry.path.rpartition("/")[2])
@pytest.mark.parametrize(
    "hint",
    [
        Resync(RescanCause.RELOAD),
        Resync(RescanCause.UNREAD),
        change(BRIDGE),
        change(FUNCTIONS[1]),
        change(HUB[2]),
    ],
    ids=["everything", "what is unread", "a bridge", "a function", "a hub"],
)
def test_what_goes_while_devices_are_read_disturbs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, hint: Hint, going: Entry
) -> None:
    # To hang takes long. All others are read as with `RELOAD`.
    for number in count(1, 3 if hint == Resync(RescanCause.UNREAD) else 1):
        with Testbed() as bed, ExitStack() as stack:
            bed.plug(CARD, HUB)
            bed.group(51, *FUNCTIONS)
            devices = UdevDevices()
            devices.resync()
            if hint == Resync(RescanCause.UNREAD):
                bed.plug(STUCK)
                stack.enter_context(bed.stuck(STUCK[2]))
                # What hangs is not waited for again.
                with monkeypatch.context() as patched:
                    patched.setattr(bounded, "BOUND_S", 0.02)
                    devices.resync()
            bed.attach(NEW)
            vanishing = Vanishing(bed, going, number)
            monkeypatch.setattr(snapshot, "look_at", vanishing.look_at)
            devices.apply(hint)
            monkeypatch.undo()
            if not vanishing.has_gone:
                return
            for each in vanishing.below():
                devices.apply(Uevent("remove", each.sys_path, each.subsystem, "kernel"))
            devices.resync()
            fresh = UdevDevices()
            fresh.resync()
            assert devices.devices.keys() == fresh.devices.keys()
