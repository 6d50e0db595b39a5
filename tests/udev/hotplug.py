"""Devices of the real kernel that come and go on any machine, and a systemd-udevd to deal with them.

For tests marked `hotplug` (tests/udev/machine.py): udevd keeps its files in a /run of the machine's
own and talks to that network namespace only, so the system's udevd, if any, is not disturbed. The
devices are the kernel's, though, and visible outside for as long as they exist.
"""

import errno
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

UDEVD = "/lib/systemd/systemd-udevd"
CONTROL = Path("/run/udev/control")
RULES_D = Path("/run/udev/rules.d")

#: What the package installs for udevd.
_PACKAGED = Path(__file__).parents[2] / "packaging" / "udev"
OUR_RULE = _PACKAGED / "90-genericdp.rules"
NODE_REMOVED = _PACKAGED / "node-removed"

#: A device that is always there, to send synthetic uevents for (`trigger`).
NULL = "/sys/devices/virtual/mem/null"

#: linux/vt.h
_VT_DISALLOCATE = 0x5608


class Udevd:
    """A running systemd-udevd. A context manager: ended and its files removed at the end."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [UDEVD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Its socket comes first; it answers there once it listens to the kernel.
        deadline = time.monotonic() + 10.0
        while subprocess.run(["udevadm", "control", "--ping"], capture_output=True, check=False).returncode:
            assert self._process.poll() is None, f"{UDEVD} ended with status {self._process.returncode}"
            assert time.monotonic() < deadline, f"{UDEVD} does not answer"

    def kill(self) -> None:
        """Kill it: its files stay, as after a crash."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop it from working: what happens now it deals with after `resume`."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it work again."""
        os.kill(self._process.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Start another one after `kill`."""
        self._start()

    def settle(self) -> None:
        """Return when it has dealt with everything that happened so far."""
        subprocess.run(["udevadm", "settle", "--timeout=10"], check=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        forget()


def udevd() -> Udevd:
    """One that is running when this returns, for a `with`."""
    return Udevd()


@contextmanager
def udevd_with_our_rule(links: Path, more: str = "") -> Iterator[Udevd]:
    """A udevd with the package's rule, for a link directory, and with more rules after it."""
    rule = OUR_RULE.read_text(encoding="utf-8")
    for there, here in (("/usr/libexec/genericdp/node-removed", NODE_REMOVED), ("/dev/genericdp", links)):
        assert there in rule
        rule = rule.replace(there, str(here))
    # udevd notices new rule files only every few seconds.
    RULES_D.mkdir(parents=True, exist_ok=True)
    (RULES_D / OUR_RULE.name).write_text(rule + more, encoding="utf-8")
    with udevd() as running:
        yield running


def forget() -> None:
    """Remove all that udevd keeps in /run/udev, and the directory."""
    subprocess.run(["rm", "-rf", "/run/udev"], check=True)


@contextmanager
def console(number: int) -> Iterator[str]:
    """While open, virtual console `number` exists and with it /dev/vcs`number` (yielded), vcsa, vcsu."""
    # The kernel allocates a console when its terminal is opened.
    os.close(os.open(f"/dev/tty{number}", os.O_RDWR | os.O_NOCTTY))
    try:
        yield f"/dev/vcs{number}"
    finally:
        _disallocate(number)


def _disallocate(number: int) -> None:
    deadline = time.monotonic() + 5.0
    tty0 = os.open("/dev/tty0", os.O_RDWR | os.O_NOCTTY)
    try:
        while True:
            try:
                fcntl.ioctl(tty0, _VT_DISALLOCATE, number)
            except OSError as error:
                # The kernel finishes the closing of a terminal in a worker of its own.
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
                os.sched_yield()
            else:
                return
    finally:
        os.close(tty0)


@dataclass(frozen=True, slots=True)
class Console:
    """A virtual console that this process has for itself, as long as it lives."""

    number: int

    @property
    def node(self) -> str:
        return f"/dev/vcs{self.number}"

    @property
    def sys_path(self) -> str:
        return f"/sys/devices/virtual/vc/vcs{self.number}"

    def plugged(self) -> AbstractContextManager[str]:
        """While open, it exists."""
        return console(self.number)


def reserve_console() -> Console:
    """A console that nobody uses, nor any other run of these tests: consoles are the whole machine's."""
    for number in range(20, 63):
        lock = os.open(f"/tmp/genericdp-test-console-{number}", os.O_CREAT | os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        if not os.path.exists(f"/dev/vcs{number}"):
            return Console(number)
    raise RuntimeError("all virtual consoles are in use")


@contextmanager
def macvtap(name: str, index: int | None = None) -> Iterator[str]:
    """While open, a macvtap interface exists and with it its node, /dev/tapINDEX (yielded)."""
    below = f"{name}-l"
    _ip("link", "add", below, "type", "veth", "peer", "name", f"{name}-p")
    try:
        numbered = [] if index is None else ["index", str(index)]
        _ip("link", "add", "link", below, "name", name, *numbered, "type", "macvtap")
        index = int(Path(f"/sys/class/net/{name}/ifindex").read_text(encoding="ascii"))
        yield f"/dev/tap{index}"
    finally:
        _ip("link", "del", below)


def trigger(sys_path: str = NULL, what: str = "change", times: int = 1) -> None:
    """Have the kernel send a synthetic uevent, `times` times."""
    file = os.open(f"{sys_path}/uevent", os.O_WRONLY)
    try:
        for _ in range(times):
            os.write(file, what.encode())
    finally:
        os.close(file)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
