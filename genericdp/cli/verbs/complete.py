"""`genericdp complete`: what the shells' completion asks; for nobody to type, so no help names it.

The rules of this file:

* It is fast, and says nothing but candidates: a line each, with a tab and a few words about it.
* What a device says of itself is a candidate only if it is a plain word: a shell is not the place to
  find out what else it is.
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
_PLAIN = re.compile(r"[A-Za-z0-9._:/+-]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Print candidates for the completion of a shell."
    parser.add_argument("what", choices=tuple(KINDS), help="of which kind")
    parser.add_argument("words", metavar="WORD", nargs=argparse.REMAINDER, help="what has been typed so far")


def run(*, what: str, words: list[str]) -> int:
    """Print the candidates. Returns 0, also when there are none to find."""
    # Whoever presses the tab key asks for no message.
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
    """Names of the resources of the rule files that the command line means, as short as they may be."""
    settings, files = _meant(words)
    for resource in files.resources:
        yield resource.name.removeprefix(f"{settings.domain}/"), resource.description


def _subjects(words: Sequence[str]) -> Iterator[Candidate]:
    """Those, and the ids of devices that have a link, whether they are there or not."""
    yield from _resources(words)
    settings, _ = _meant(words)
    with contextlib.suppress(OSError):
        for link in os.listdir(settings.link_dir):
            if not link.startswith("."):
                yield link.partition("@")[0], "a device"


def _meant(words: Sequence[str]) -> tuple[Settings, RuleFiles]:
    parser = _Words(add_help=False, allow_abbrev=False)
    add_rule_options(parser)
    given, _ = parser.parse_known_args(list(words))
    home = os.path.expanduser  # a shell that is asked has not looked at the words yet
    return open_rules(
        [home(place) for place in given.rules], given.config and home(given.config), given.domain
    )


def _serials(_: Sequence[str]) -> Iterator[Candidate]:
    """Serial numbers of the USB devices that are there."""
    return ((serial, product) for serial, _, product in _usb_devices() if serial)


def _usb_ids(_: Sequence[str]) -> Iterator[Candidate]:
    """Vendor and product of the USB devices that are there, as lsusb prints them."""
    return ((numbers, product) for _, numbers, product in _usb_devices())


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
    "usb": _usb_ids,
}
