"""`make test-vm`: the Debian package on an emulated Debian, with USB devices that come and go.

python -m tests.vm [WORD …]: only cases with one of the words in their title.
"""

import importlib
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.vm import image, seed
from tests.vm.case import CASES, Case, title
from tests.vm.channel import ChannelError
from tests.vm.guest import Guest, GuestError
from tests.vm.node import CaseError, Node
from tests.vm.qmp import QmpError

_CACHE = Path(".cache/vm")
_CONSOLE = _CACHE / "console"

#: In this order: the first ones tell most when everything is broken.
_FILES = ("plugging", "devices", "gadgets", "udev", "service", "boot")


def main(words: Sequence[str]) -> int:
    """Run the cases. Returns 0 if all pass, 1 if one fails, 2 if none could be run."""
    packages = sorted(Path("dist").glob("genericdp_*_all.deb"))
    if len(packages) != 1:
        print(f"dist holds {len(packages)} packages of genericdp instead of one: run make deb")
        return 2
    package = packages[0]
    cases = _cases(words)
    if not cases:
        print(f"no case has any of these words in its title: {' '.join(words)}")
        return 2
    clock = _Clock()
    system = image.provide(_CACHE)
    clock.tell("      the image is ready")
    _CONSOLE.unlink(missing_ok=True)
    started = seed.initrd(system, {package.name: package.read_bytes()})
    with Guest(system, started, _CONSOLE) as guest:
        try:
            guest.wait_for_boot()
            clock.tell("      the guest has booted")
            node = Node(guest)
            node.install(package)
            clock.tell(f"      {package.name} is installed")
        except (GuestError, CaseError) as error:
            print(error)
            return 2
        failed = sum(not _passes(each, node, clock) for each in cases)
    clock.total(f"{len(cases) - failed} of {len(cases)} cases passed")
    return 1 if failed else 0


def _passes(each: Case, node: Node, clock: "_Clock") -> bool:
    try:
        each(node)
    except (CaseError, GuestError, ChannelError, QmpError) as error:
        clock.tell(f"FAIL  {title(each)}")
        print(f"{error}\n", flush=True)
        return False
    except Exception:  # noqa: BLE001  # the other cases still run
        clock.tell(f"FAIL  {title(each)}")
        traceback.print_exc(file=sys.stdout)
        return False
    clock.tell(f"ok    {title(each)}")
    return True


def _cases(words: Sequence[str]) -> list[Case]:
    for name in _FILES:
        importlib.import_module(f"tests.vm.cases.{name}")
    return [each for each in CASES if not words or any(word in title(each) for word in words)]


class _Clock:
    """Prints how long each step took."""

    def __init__(self) -> None:
        self._started = self._last = time.monotonic()

    def tell(self, what: str) -> None:
        now = time.monotonic()
        print(f"{what:<70} {now - self._last:6.1f} s", flush=True)
        self._last = now

    def total(self, what: str) -> None:
        print(f"\n{what:<70} {self._last - self._started:6.1f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
