"""Whether a udev device matches. The daemon and `explain` use the same evaluator, so they cannot disagree.

The rules of this file:

* A match is a list of alternatives, one of which must hold. An alternative is a list of conditions, all
  of which must hold.
* `judge` evaluates every condition and keeps what it saw; `matches` evaluates the same conditions and
  stops at the first that fails.
* Nothing here can fail: mistakes in a rule were found when its file was parsed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from genericdp.core.device import UdevDevice
from genericdp.core.rules.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one condition for one udev device.

    key       what was looked at, as the rule file writes it (`ID_VENDOR_ID`, `usb.vendor`)
    wanted    the pattern in words
    actual    the value of the device; None when it has none
    """

    key: str
    wanted: str
    holds: bool
    actual: str | None


class Condition(Protocol):
    """One condition: whether it `holds` for a udev device, and why (`judge`).

    attributes    the sysfs attributes that it looks at, beyond CORE_ATTRIBUTES: no others are read
    """

    @property
    def attributes(self) -> frozenset[str]: ...

    def holds(self, device: UdevDevice) -> bool: ...

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]: ...


Alternative = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A table of conditions, or several of them. Without alternatives it matches everything."""

    alternatives: tuple[Alternative, ...] = ()

    def matches(self, device: UdevDevice) -> bool:
        # Plain loops: any() and all() would cost two generators for every device and rule.
        for alternative in self.alternatives:
            for condition in alternative:
                if not condition.holds(device):
                    break
            else:
                return True
        return not self.alternatives

    def judge(self, device: UdevDevice) -> tuple[tuple[Verdict, ...], ...]:
        """The verdicts of every condition, an entry for each alternative."""
        return tuple(
            tuple(verdict for condition in alternative for verdict in condition.judge(device))
            for alternative in self.alternatives
        )

    @property
    def in_words(self) -> tuple[str, ...]:
        """What it wants: a text for each alternative."""
        return tuple(
            ", ".join(f"{verdict.key} {verdict.wanted}" for verdict in verdicts)
            for verdicts in self.judge(_NOTHING)
        )


#: A device without any value, and its parents: the verdicts on it show what each condition wants.
_NOTHING = reduce(
    lambda above, path: UdevDevice(path, parent=above),
    ("/sys/a/b", "/sys/a/b/c", "/sys/a/b/c/d"),
    UdevDevice("/sys/a"),
)


@dataclass(frozen=True, slots=True)
class PropertyCondition:
    """A udev property of the device itself."""

    name: str
    pattern: Pattern

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset()

    def holds(self, device: UdevDevice) -> bool:
        return self.pattern.holds(device.property(self.name))

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]:
        actual = device.property(self.name)
        return (Verdict(self.name, self.pattern.text, self.pattern.holds(actual), actual),)


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """A sysfs attribute of the device itself, `"ATTR{name}"`."""

    name: str
    pattern: Pattern

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset({self.name})

    def holds(self, device: UdevDevice) -> bool:
        return self.pattern.holds(device.attributes.get(self.name))

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]:
        actual = device.attributes.get(self.name)
        holds = self.pattern.holds(actual)
        return (Verdict(f"ATTR{{{self.name}}}", self.pattern.text, holds, actual),)


@dataclass(frozen=True, slots=True)
class TagCondition:
    """A udev tag, `TAG`: holds when the pattern holds for one of the tags, a negation for all of them."""

    pattern: Pattern

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset()

    def holds(self, device: UdevDevice) -> bool:
        # A negation must hold for every tag: `{ not = "x" }` means that no tag is x.
        if self.pattern.holds(None):
            return all(self.pattern.holds(tag) for tag in device.tags)
        return any(self.pattern.holds(tag) for tag in device.tags)

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]:
        actual = ", ".join(sorted(device.tags)) or None
        return (Verdict("TAG", self.pattern.text, self.holds(device), actual),)


#: What `usb = {…}` looks at: key -> (on the interface?, sysfs attribute). `port` is not an attribute.
USB_ATTRIBUTES: Mapping[str, tuple[bool, str]] = {
    "vendor": (False, "idVendor"),
    "product": (False, "idProduct"),
    "serial": (False, "serial"),
    "interface": (True, "bInterfaceNumber"),
    "class": (True, "bInterfaceClass"),
}


@dataclass(frozen=True, slots=True)
class UsbCondition:
    """An attribute of the USB device or interface that the device belongs to, from sysfs alone.

    `port` is the chain of ports below the root hub (`2.3` for `1-2.3`): it does not change when buses are
    numbered anew.
    """

    key: str
    pattern: Pattern

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset()

    def holds(self, device: UdevDevice) -> bool:
        return self.pattern.holds(usb_value(device, self.key))

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]:
        actual = usb_value(device, self.key)
        return (Verdict(f"usb.{self.key}", self.pattern.text, self.pattern.holds(actual), actual),)


def usb_value(device: UdevDevice, key: str) -> str | None:
    """The value that `usb = { key = … }` is compared with; None for a device without a USB device."""
    if key == "port":
        usb = device.usb_device
        return usb.sys_name.partition("-")[2] or None if usb else None
    on_interface, attribute = USB_ATTRIBUTES[key]
    source = device.usb_interface if on_interface else device.usb_device
    return source.attributes.get(attribute) if source else None


@dataclass(frozen=True, slots=True)
class ParentCondition:
    """Holds when one ancestor satisfies a whole alternative of the match, or another function of the IOMMU
    group that a VFIO device hands over.
    """

    match: Match

    @property
    def attributes(self) -> frozenset[str]:
        return attributes_wanted((self.match,))

    def holds(self, device: UdevDevice) -> bool:
        ancestor = device.parent
        while ancestor is not None:
            if self.match.matches(ancestor):
                return True
            ancestor = ancestor.parent
        return any(map(self.match.matches, device.companions)) if device.companions else False

    def judge(self, device: UdevDevice) -> tuple[Verdict, ...]:
        """The verdicts for the one that satisfies the match, or for the one that comes closest.

        Of two that fail as many conditions, the one with other values is closer than the one without any.
        """
        nearest: tuple[Verdict, ...] = ()
        least: tuple[int, int] | None = None
        for ancestor in (*device.ancestors(), *device.companions):
            for verdicts in self.match.judge(ancestor):
                failed = [verdict for verdict in verdicts if not verdict.holds]
                distance = (len(failed), sum(verdict.actual is None for verdict in failed))
                if least is None or distance < least:
                    nearest, least = verdicts, distance
        if least is None:
            return (Verdict("parent", "one", False, None),)
        return tuple(
            Verdict(f"parent.{verdict.key}", verdict.wanted, verdict.holds, verdict.actual)
            for verdict in nearest
        )


def attributes_wanted(matches: Iterable[Match]) -> frozenset[str]:
    """The sysfs attributes that these matches look at, beyond CORE_ATTRIBUTES."""
    return frozenset(
        name
        for match in matches
        for alternative in match.alternatives
        for condition in alternative
        for name in condition.attributes
    )
