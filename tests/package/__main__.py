"""`make test-package`: tests the packages on booted Debian systems and prints a table with times.

Needs root, systemd-nspawn, mmdebstrap (the Makefile installs them) and, the first time, a Debian
mirror. Arguments: numbers of releases; without any, all that the mirror serves.
"""

import fcntl
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.package import documented, image, nspawn, successor
from tests.package.case import Outcome
from tests.udev.hotplug import reserve_console

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache/machines"

#: The folders in the machine for the checkout and for the wheels that Debian lacks.
INSIDE = "/src"
WHEELS = "/wheels"
PYTHON_PATH = f"{INSIDE}:{INSIDE}/packaging/carried"

#: Sections of the install page, and the folders in which their steps are run.
PACKAGE, PACKAGE_HOME = "Debian and Ubuntu", "/root"
SOURCES, SOURCES_HOME = "From the sources", "/root/genericdp"

#: How long a reader takes to type a command, in seconds: a saved rule file applies within this time.
TYPING_S = 3.0


def main(numbers: list[str]) -> int:
    """Test the packages on each release. Returns 0 if every case passes, else 1."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another `make test-package` is running in this checkout", file=sys.stderr)
            return 1
        return _try_all([release for release in image.RELEASES if not numbers or release.number in numbers])


def _try_all(releases: list[image.Release]) -> int:
    started = time.monotonic()
    (deb,) = (CHECKOUT / "dist").glob("genericdp_*.deb")
    next_deb = successor.build(CHECKOUT, CACHE / "successor")
    tried = failed = 0
    for release in releases:
        if not image.available(release, deb, CACHE):
            print(f"{release}: not tested, {image.MIRROR} does not serve it")
            continue
        print(release, flush=True)
        for outcome in _outcomes(release, deb, next_deb):
            tried += 1
            failed += bool(outcome.problem)
            _show(outcome)
    took = time.monotonic() - started
    print(f"{tried} cases, {failed} failed, in {took:.0f} s" if tried else "nothing was tested")
    return 1 if failed or not tried else 0


def _outcomes(release: image.Release, deb: Path, next_deb: Path) -> Iterator[Outcome]:
    """The outcome of every case on one release, as soon as it is known."""
    archive = image.image(release, deb, CACHE)
    machine_tree = CACHE / f"machine-{release.number}"
    nspawn.remove(machine_tree)
    image.unpack(archive, machine_tree)
    shutil.copy(deb, f"{machine_tree}{PACKAGE_HOME}")
    subprocess.run([f"{CHECKOUT}/.ci/tree", f"{machine_tree}{SOURCES_HOME}"], check=True)
    binds = {CHECKOUT / part: f"{INSIDE}/{part}" for part in ("genericdp", "tests", "packaging")}
    binds |= {deb.parent: "/debs", next_deb.parent: "/debs-next", image.wheels(release, CACHE): WHEELS}
    console = reserve_console()
    machine = nspawn.Machine(machine_tree, binds=binds)
    try:
        machine.boot()
        yield from _story(machine, console.number)
    except nspawn.MachineError as error:
        yield Outcome("the machine works", 0.0, str(error))
    finally:
        machine.halt()
        nspawn.remove(machine_tree)


def _story(machine: nspawn.Machine, console: int) -> Iterator[Outcome]:
    """The package's life, from the first step of the install page to the last purge."""
    installed = _typed(machine, PACKAGE, PACKAGE_HOME)
    yield installed
    if installed.problem:
        return
    yield from _part(machine, "installed", console)
    yield _restarted(machine)
    yield from _part(machine, "rebooted", console)
    yield from _part(machine, "end", console)
    installed = _typed(machine, SOURCES, SOURCES_HOME)
    yield installed
    if not installed.problem:
        yield from _part(machine, "sources", console)


def _typed(machine: nspawn.Machine, section: str, home: str) -> Outcome:
    """Run the steps of a section of the install page exactly as documented."""
    started = time.monotonic()
    problem = ""
    for step in documented.steps(section):
        status, output = _run(machine, home, step)
        if status:
            problem = f"'{step.command}' ended with status {status}:\n{output}"
        elif not step.agrees(output):
            problem = f"'{step.command}' printed\n{output}\nbut the page shows\n{step.prints}"
        if problem:
            break
    case = f"docs/install.md, '{section}', step by step"
    return Outcome(case, time.monotonic() - started, problem)


def _run(machine: nspawn.Machine, home: str, step: documented.Step) -> tuple[int, str]:
    """Run a step: its exit status and output. Output that differs is asked for again for TYPING_S."""
    # The machine has no network for pip, either.
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": WHEELS}
    started = time.monotonic()
    while True:
        process = machine.start(["bash", "-c", f"cd {home}\n{step.command}"], environment=environment)
        output, _ = process.communicate()
        if process.returncode or step.agrees(output) or time.monotonic() - started > TYPING_S:
            return process.returncode, output


def _restarted(machine: nspawn.Machine) -> Outcome:
    started = time.monotonic()
    machine.halt()
    machine.boot()
    return Outcome("the machine restarts", time.monotonic() - started)


def _part(machine: nspawn.Machine, part: str, console: int) -> Iterator[Outcome]:
    """The outcomes of one part; any other output of the driver is a failure, too."""
    environment = {"PYTHONPATH": PYTHON_PATH, "PYTHONDONTWRITEBYTECODE": "1", "GRPC_VERBOSITY": "NONE"}
    driver = machine.start(
        ["python3", "-m", "tests.package.driver", part, str(console)], environment=environment
    )
    assert driver.stdout is not None
    noise = []
    started = time.monotonic()
    for line in driver.stdout:
        if line.startswith('{"case": '):
            yield Outcome(**json.loads(line))
        else:
            noise.append(line)
    if driver.wait() or noise:
        yield Outcome(
            f"the driver of '{part}' succeeds", time.monotonic() - started, "".join(noise) or "it failed"
        )


def _show(outcome: Outcome) -> None:
    verdict = "FAILED" if outcome.problem else "ok"
    print(f"{verdict:<7}{outcome.case:<65}{outcome.took_s:6.1f} s", flush=True)
    for line in outcome.problem.splitlines():
        print(f"    {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
