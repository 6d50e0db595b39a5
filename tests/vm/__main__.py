"""`make test-vm`: the Debian package on emulated Debians, with USB devices that come and go.

python -m tests.vm [WORD …]: only cases with one of the words in their title. A number is a release of Debian.

The rules of this file:

* Each machine boots once, and all machines work at the same time.
"""

import importlib
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.vm import image, seed
from tests.vm.case import CASES, Case, title
from tests.vm.channel import ChannelError
from tests.vm.guest import Guest, GuestError
from tests.vm.image import Image
from tests.vm.node import CaseError, Node
from tests.vm.qmp import QmpError
from tests.vm.runtime import OutcomeError

_CACHE = Path(".cache/vm")

#: Release of Debian -> its files of cases. In this order: the first ones tell most when everything is broken.
#: What depends on the container runtime is on both; the rest is divided so that both end at the same time.
_FILES = {
    "12": ("plugging", "service", "boot", "runtimes", "containers", "swaps"),
    "13": (
        "comeback",
        "answers",
        "devices",
        "gadgets",
        "udev",
        "runtimes",
        "cdi",
        "containers",
        "reboot",
        "swaps",
    ),
}

Plan = Mapping[str, Sequence[Case]]


def main(words: Sequence[str]) -> int:
    """Run the cases. Returns 0 if all pass, 1 if one fails, 2 if some could not be run."""
    packages = sorted(Path("dist").glob("genericdp_*_all.deb"))
    if len(packages) != 1:
        print(f"dist holds {len(packages)} packages of genericdp instead of one: run make deb")
        return 2
    plan = _plan(words)
    if not plan:
        print(f"no case has any of these words in its title: {' '.join(words)}")
        return 2
    clock = _Clock("")
    systems = {release: image.provide(release, _CACHE) for release in plan}
    clock.tell("", "the images are ready")
    with ThreadPoolExecutor() as machines:
        runs = {
            release: machines.submit(_run, release, systems[release], packages[0], plan[release])
            for release in plan
        }
    results = [run.result() for run in runs.values()]
    count = sum(map(len, plan.values()))
    clock.total(f"{sum(passed for passed, _ in results)} of {count} cases passed")
    return 0 if sum(passed for passed, _ in results) == count else max(status for _, status in results)


def _run(release: str, system: Image, package: Path, cases: Sequence[Case]) -> tuple[int, int]:
    """Run the cases on one machine. Returns how many passed, and the status."""
    console = _CACHE / f"console-{release}"
    console.unlink(missing_ok=True)
    started = seed.initrd(system, {package.name: package.read_bytes()})
    with Guest(system, started, console) as guest:
        clock = _Clock(release, guest.cpu_s)
        try:
            guest.wait_for_boot()
            clock.tell("", "the guest has booted")
            node = Node(guest, release)
            node.install(package)
            clock.tell("", f"{package.name} is installed")
        except (GuestError, CaseError) as error:
            print(error, flush=True)
            return 0, 2
        passed = sum(_passes(each, node, clock) for each in cases)
        clock.total(f"{passed} of {len(cases)} cases passed")
        return passed, 1


def _passes(each: Case, node: Node, clock: "_Clock") -> bool:
    try:
        measured = each(node) or ""
    except (CaseError, GuestError, ChannelError, QmpError, OutcomeError) as error:
        clock.tell("FAIL", title(each), str(error))
        return False
    except Exception:  # noqa: BLE001  # the other cases still run
        clock.tell("FAIL", title(each), traceback.format_exc())
        return False
    clock.tell("ok", title(each), measured)
    return True


def _plan(words: Sequence[str]) -> Plan:
    """The cases of each machine; without those that have none."""
    for name in dict.fromkeys(name for names in _FILES.values() for name in names):
        importlib.import_module(f"tests.vm.cases.{name}")
    releases = [word for word in words if word in _FILES] or list(_FILES)
    parts = [word for word in words if word not in _FILES]
    wanted = [each for each in CASES if not parts or any(part in title(each) for part in parts)]
    plan = {
        release: [each for name in _FILES[release] for each in wanted if each.__module__.endswith(f".{name}")]
        for release in releases
    }
    return {release: cases for release, cases in plan.items() if cases}


class _Clock:
    """Prints how long each step took on a machine, and how much processor time of it the emulator took."""

    def __init__(self, release: str, cpu_s: Callable[[], float] = time.process_time) -> None:
        self._release = release
        self._cpu_s = cpu_s
        self._started = self._last = (time.monotonic(), 0.0)

    def tell(self, verdict: str, what: str, more: str = "") -> None:
        """The end of a step, with what was found."""
        line = self._line(verdict, what, self._last)
        # In one piece, because the machines print at the same time.
        print(f"{line}\n{more}" if more else line, flush=True)
        self._last = self._now()

    def total(self, what: str) -> None:
        """The end of all steps."""
        print(self._line("", what, self._started), flush=True)

    def _line(self, verdict: str, what: str, since: tuple[float, float]) -> str:
        took_s, cpu_s = (now - then for now, then in zip(self._now(), since, strict=True))
        return f"{self._release:<2} {verdict:<4} {what:<64} {took_s:6.1f} s {cpu_s:6.1f} s"

    def _now(self) -> tuple[float, float]:
        return time.monotonic(), self._cpu_s()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
