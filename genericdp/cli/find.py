"""Finds the udev device that a word names: by device node, link, sys path or kernel name."""

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.explain.explanation import nodes_below
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.node_names import NodeNames, names_of
from genericdp.errors import GenericdpError

#: What has a name of the kernel but no device node, and its class in sysfs.
_WITHOUT_NODES = {"network interface": "net", "Bluetooth adapter": "bluetooth"}

ONLY_NODES = "a device plugin gives containers device nodes and nothing else"

_DIGITS = re.compile(r"\d+")


def bare_node(word: str) -> NodeNames:
    """The bare node that `word` may name, directly or through links."""
    path = os.path.normpath(word if word.startswith("/") else f"/dev/{word}")
    paths = {path, _behind_links(path)}
    return names_of(each for each in paths if each.startswith("/dev/"))


def kind_without_node(word: str) -> str:
    """What the kernel calls `word` if that can have no device node; "" for anything else."""
    is_name = "/" not in word and word not in {"", ".", ".."}
    kinds = _WITHOUT_NODES.items() if is_name else ()
    return next((kind for kind, folder in kinds if os.path.exists(f"/sys/class/{folder}/{word}")), "")


def find(word: str, devices: Mapping[str, UdevDevice], link_dir: str) -> UdevDevice:
    """The udev device that `word` names. Raises GenericdpError.

    `word` is a path below /dev (a device node or any link to one), a path below /sys, or a kernel
    name such as `ttyUSB0`.
    """
    if word.startswith("/sys/"):
        return _by_sys_path(word, devices)
    path = word if word.startswith("/") else f"/dev/{word}"
    for candidates in (
        [device for device in devices.values() if device.device_node == path],
        [device for device in devices.values() if path in device.devlinks],
        _by_number(path, devices.values()),
        [device for device in devices.values() if "/" not in word and device.sys_name == word],
    ):
        if candidates:
            return candidates[0]
    raise _not_found(word, path, link_dir, devices.values())


def _behind_links(path: str) -> str:
    """Where a path leads through links, or itself if one of them may not be read."""
    try:
        return os.path.realpath(path)
    except OSError:
        return path


def _by_sys_path(word: str, devices: Mapping[str, UdevDevice]) -> UdevDevice:
    path = _behind_links(word)
    device = devices.get(path)
    if device is not None:
        return device
    name = for_terminal(word)
    if not os.path.exists(path):
        raise GenericdpError(f"'{name}' does not exist", hint="the device may be unplugged")
    below = nodes_below(path, devices.values())
    if below:
        raise GenericdpError(f"'{name}' is not a udev device", hint=f"below it are {', '.join(below)}")
    raise GenericdpError(
        f"neither '{name}' nor anything below it has a device node", hint="only device nodes can be offered"
    )


def _by_number(path: str, devices: Iterable[UdevDevice]) -> Sequence[UdevDevice]:
    """The device of the node behind `path`, through any links."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        return ()
    kind = "c" if stat.S_ISCHR(status.st_mode) else "b"
    number = DeviceNumber(kind, os.major(status.st_rdev), os.minor(status.st_rdev))
    return [device for device in devices if device.number == number]


def _not_found(word: str, path: str, link_dir: str, devices: Iterable[UdevDevice]) -> GenericdpError:
    name = for_terminal(word)
    if word.endswith(".toml"):
        return GenericdpError(f"'{name}' is not a device", hint=f"did you mean --rules {name}?")
    if os.path.dirname(path) == link_dir and os.path.islink(path):
        return GenericdpError(
            f"'{name}' is the stable link of a device that is not plugged in",
            hint="'genericdp list' shows what is known about it",
        )
    if os.path.islink(path) and not os.path.exists(path):
        return GenericdpError(f"'{name}' is a dangling link", hint="the device may be unplugged")
    if os.path.exists(path):
        return GenericdpError(
            f"'{name}' is not a device of this machine", hint="'genericdp list --all' shows the device nodes"
        )
    is_path = "/" in word
    if kind := kind_without_node(word):
        return GenericdpError(f"'{name}' is a {kind}", hint=ONLY_NODES)
    return GenericdpError(
        f"'{name}' does not exist"
        if is_path
        else f"no device node, device id or resource is called '{name}'",
        hint=_nearest_node(path, devices) or "'genericdp list --all' shows the device nodes of this machine",
    )


def _nearest_node(path: str, devices: Iterable[UdevDevice]) -> str:
    """`did you mean …?` with the device node whose last component is this path's or close to it; or ""."""
    name = os.path.basename(path)
    by_name = {os.path.basename(each.device_node): each.device_node for each in devices if each.device_node}
    similar = [each for each in by_name if _may_be_misspelt(name, each)]
    found = name if name in by_name else next(iter(get_close_matches(name, similar, n=1)), "")
    return f"did you mean {for_terminal(by_name[found])}?" if found else ""


def _may_be_misspelt(name: str, right: str) -> bool:
    # Another number is another device, and so is ttyS0 beside ttyUSB0.
    return _DIGITS.findall(name) == _DIGITS.findall(right) and abs(len(name) - len(right)) <= 1
