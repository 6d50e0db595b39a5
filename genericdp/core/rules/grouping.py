"""`group_by`: which of the device nodes that a resource takes form one device.

The rules of this file:

* A node by itself, the nodes of a USB device and those of a parent are one mechanism, `Nearest`, which a rule
  file can also name by a match.
* Two groupings are equal when they mean the same, however the rule file writes them.
"""

from dataclasses import dataclass, field

from genericdp.core.device import UdevDevice
from genericdp.core.rules.match import Match, PropertyCondition
from genericdp.core.rules.pattern import glob


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nodes that have one udev device in common: the nearest that satisfies a match.

    match   without alternatives, every udev device satisfies it
    above   whether only ancestors count; otherwise the node's own udev device comes first
    word    how a rule file writes it in one word, "" for a match
    """

    match: Match
    above: bool = False
    word: str = field(default="", compare=False)

    def subject(self, device: UdevDevice) -> UdevDevice | None:
        """The udev device that decides to which group a node belongs; None if none satisfies the match."""
        candidate = device.parent if self.above else device
        while candidate is not None:
            if self.match.matches(candidate):
                return candidate
            candidate = candidate.parent
        return None


@dataclass(frozen=True, slots=True)
class SameProperty:
    """The nodes that have the same value of a udev property."""

    name: str


@dataclass(frozen=True, slots=True)
class AllNodes:
    """Everything that the resource takes."""


Grouping = Nearest | SameProperty | AllNodes

NODE = Nearest(Match(), word="node")
USB_DEVICE = Nearest(
    Match(((PropertyCondition("SUBSYSTEM", glob("usb")), PropertyCondition("DEVTYPE", glob("usb_device"))),)),
    word="usb_device",
)
PARENT = Nearest(Match(), above=True, word="parent")
ALL = AllNodes()

#: What a rule file writes in one word.
WORDS: dict[str, Grouping] = {"node": NODE, "usb_device": USB_DEVICE, "parent": PARENT, "all": ALL}
