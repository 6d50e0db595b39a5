"""Device nodes that udev does not know: some drivers register none with the kernel (`/dev/nvidia0`).

The rules of this file:

* All that is known of a bare node is what lstat says: its path, its number and its owner. It is never opened.
* A bare node is a way around everything that rules say of the device behind its number. So it is refused if
  that number belongs to a udev device, or if another bare node that rules name has it, too.
* Only root makes device nodes that can be trusted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.device import DeviceNumber, UdevDevice

#: How many nodes with the same number a reason names.
_MOST_RIVALS = 2


@dataclass(frozen=True, slots=True)
class Sighting:
    """What lstat says of a name below /dev that is a device node or a symlink to one.

    number  None for a symlink, and for what is not looked at
    target  where a symlink leads in the end, else ""
    hidden  why a node that was there is not looked at, else ""
    """

    path: str
    number: DeviceNumber | None
    uid: int = 0
    gid: int = 0
    target: str = ""
    hidden: str = ""


def judge(
    sightings: Iterable[Sighting], owners: Mapping[DeviceNumber, str | None], is_named: Callable[[str], bool]
) -> dict[str, str]:
    """Path -> why the bare node must not be offered, "" if it may; without those that udev knows.

    owners    device number -> the device node that udev knows under it, "" if the device has none, None if
              the kernel does not say whether there is such a device
    is_named  whether rules name a path; others are only shown
    """
    known = frozenset(owners.values())
    bare = sorted((each for each in sightings if each.path not in known), key=lambda each: each.path)
    named: dict[DeviceNumber, list[str]] = {}
    shown: dict[DeviceNumber, list[str]] = {}
    judged: dict[str, str] = {}
    for each in bare:
        if each.number is not None:
            shown.setdefault(each.number, []).append(each.path)
            if is_named(each.path):
                named.setdefault(each.number, []).append(each.path)
    for each in bare:
        # What no rule names is offered to nobody, so it is in nobody's way.
        rivals = named if is_named(each.path) else shown
        judged[each.path] = _why_not(each, owners, rivals.get(each.number, ()) if each.number else ())
    return judged


def _why_not(sighting: Sighting, owners: Mapping[DeviceNumber, str | None], rivals: Sequence[str]) -> str:
    """`rivals` are the paths with the same number, its own among them, in order."""
    number = sighting.number
    if sighting.hidden:
        return sighting.hidden
    if number is None:
        return f"it is a symlink; match the device node to which it leads, '{sighting.target}'"
    if number in owners:
        if owners[number] is None:
            return f"the kernel does not say whether another device has the number {number}"
        owner = f"'{owners[number]}'" if owners[number] else "another device"
        return f"it has the number of {owner}, {number}; match that device node instead"
    if number.kind != "c":
        return "it is a block device that udev does not know"
    if sighting.uid != 0:
        return "udev does not know it, and it does not belong to root"
    count = len(rivals) - 1
    if not count:
        return ""
    has = "has" if count == 1 else "have"
    others = [f"'{path}'" for path in rivals[: _MOST_RIVALS + 1] if path != sighting.path][:_MOST_RIVALS]
    if count > _MOST_RIVALS:
        others = [", ".join(others), f"{count - _MOST_RIVALS} more"]
    return f"udev does not know it, and {' and '.join(others)} {has} the same number, {number}"


def device_of(sighting: Sighting, refusal: str) -> UdevDevice:
    """The bare node as a udev device: with a path and a number, and nothing else."""
    properties = {"DEVNAME": sighting.path}
    if sighting.number is not None:
        properties |= {"MAJOR": str(sighting.number.major), "MINOR": str(sighting.number.minor)}
    return UdevDevice(
        sighting.path,
        device_node=sighting.path,
        number=sighting.number,
        gid=sighting.gid,
        properties=properties,
        refusal=refusal,
    )
