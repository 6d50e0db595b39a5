"""`genericdp complete`: the candidates for a shell's completion. People do not type it; no help names it.

The rules of this file:

* It is fast, and prints nothing but candidates: one on a line, then a tab and a few words about it.
* Text of a device is a candidate only if it is a plain word: it must not mean anything to a shell.
"""

import argparse
import contextlib
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from genericdp.cli.options import add_rule_options, open_rules
from genericdp.cli.usage import UsageError
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.files.rulefiles import RuleFiles

Candidate = tuple[str, str]

_USB_DEVICES = "/sys/bus/usb/devices"
_NUMBERS = "/sys/dev"
_PLAIN = re.compile(r"[A-Za-z0-9._:/+-]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print candidates for the completion of a shell."
    parser.add_argument("what", choices=tuple(KINDS), help="which kind")
    parser.add_argument("words", metavar="WORD", nargs=argparse.REMAINDER, help="the words typed so far")


def run(*, what: str, words: list[str]) -> int:
    """Print the candidates. Returns 0 even if it finds none."""
    # Pressing the tab key must not print a message.
    with contextlib.suppress(GenericdpError, UsageError):
        for word, about in sorted(dict(KINDS[what](words)).items()):
            if _PLAIN.fullmatch(word):
                print(f"{word}\t{for_terminal(about)}")
    return 0


class _Words(argparse.ArgumentParser):
    """The rule options among other words."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _resources(words: Sequence[str]) -> Iterator[Candidate]:
    """Names of the resources of the rule files that the command line means, as short as possible."""
    settings, files = _meant(words)
    for resource in files.resources:
        yield resource.name.removeprefix(f"{settings.domain}/"), resource.description


def _subjects(words: Sequence[str]) -> Iterator[Candidate]:
    """Those, and the ids of devices that have a link, plugged in or not."""
    yield from _resources(words)
    settings, _ = _meant(words)
    with contextlib.suppress(OSError):
        for link in os.listdir(settings.link_dir):
            # No id has a "+": such a link belongs to no device, or to several.
            if not link.startswith(".") and "+" not in link:
                yield link.partition("@")[0], "a device"


def _meant(words: Sequence[str]) -> tuple[Settings, RuleFiles]:
    parser = _Words(add_help=False, allow_abbrev=False)
    add_rule_options(parser)
    options, _ = parser.parse_known_args(list(words))
    home = os.path.expanduser  # the shell has not expanded the words yet
    return open_rules(
        [home(place) for place in options.rules], options.config and home(options.config), options.domain
    )


def _serials(_: Sequence[str]) -> Iterator[Candidate]:
    """Serial numbers of the connected USB devices."""
    return ((serial, product) for serial, _, product in _usb_devices() if serial)


def _usb_ids(_: Sequence[str]) -> Iterator[Candidate]:
    """Vendor and product of the connected USB devices, as lsusb prints them."""
    return ((numbers, product) for _, numbers, product in _usb_devices())


def _subsystems(_: Sequence[str]) -> Iterator[Candidate]:
    """The subsystems of the device nodes of this machine."""
    for link in glob.glob(f"{_NUMBERS}/*/*/subsystem"):
        with contextlib.suppress(OSError):
            yield os.path.basename(os.readlink(link)), ""


def _usb_devices() -> Iterator[tuple[str, str, str]]:
    for path in glob.glob(f"{_USB_DEVICES}/*/idVendor"):
        device = os.path.dirname(path)
        numbers = f"{_read(device, 'idVendor')}:{_read(device, 'idProduct')}"
        yield _read(device, "serial"), numbers, _read(device, "product")


def _read(device: str, attribute: str) -> str:
    try:
        with open(f"{device}/{attribute}", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


KINDS: dict[str, Callable[[Sequence[str]], Iterator[Candidate]]] = {
    "resources": _resources,
    "subjects": _subjects,
    "serials": _serials,
    "subsystems": _subsystems,
    "usb": _usb_ids,
}
