"""One guest: a QEMU process with its console and the channels to the programs inside.

The rules of this file:

* Everything is emulated: no hardware acceleration, no network, no display.
* Its clock counts instructions: it is a machine of a thousand million per second, however busy the host is.
  So the host's load makes no time limit inside shorter, and does not count in what is measured inside. While
  the guest has nothing to do, its clock goes as the host's.
* Writes to its disk go to a temporary overlay; the image never changes.
* It ends when this process ends, even by SIGKILL.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.vm.channel import Channel, ChannelError, Document
from tests.vm.image import Image
from tests.vm.qmp import Qmp

_MEMORY_MB = 1024

#: Without AVX, because libc would use it for strings, and to emulate it takes a third longer.
_CPU = "Nehalem"

#: mallopt(3). The emulator replaces large tables whenever the guest changes its address space; without these,
#: the host's kernel would clear the pages of each one.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
}

#: From power on to the agent's first message: about half a minute on an idle machine; this one may be busy.
_BOOT_S = 900.0

#: How a panic shows on the console, and how often to check for it.
_PANIC = "Kernel panic"
_LOOK_S = 5.0

#: How long to wait for the guest, by the host's clock. Emulation is slow, and the host may be busy.
PATIENCE_S = 300.0

#: The default timeout of a command inside, by the guest's clock.
COMMAND_S = 120.0


class GuestError(Exception):
    """The guest does not respond, or failed to carry out a request."""


class Guest:
    """A running guest. `with Guest(image, initrd, console) as guest: guest.wait_for_boot()`."""

    def __init__(self, image: Image, initrd: bytes, console: Path) -> None:
        self.boot = ""
        self._console = console
        # Short, because it holds unix sockets.
        self._folder = Path(tempfile.mkdtemp(prefix="gdp-vm-"))
        (self._folder / "initrd").write_bytes(initrd)
        self.agent = Channel(self._folder / "agent")
        self.kubelet = Channel(self._folder / "kubelet")
        self.runtime = Channel(self._folder / "runtime")
        self._monitor = Channel(self._folder / "qmp")
        self.qmp = Qmp(self._monitor)
        self._errors = (self._folder / "errors").open("w+b")
        self._process = subprocess.Popen(
            self._command(image),
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_MALLOC},
        )

    def __enter__(self) -> Self:
        try:
            for channel in (self._monitor, self.agent, self.kubelet, self.runtime):
                channel.accept(30.0)
            self.qmp.greet()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Pull the plug."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for channel in (self._monitor, self.agent, self.kubelet, self.runtime):
            channel.close()
        self._errors.close()
        shutil.rmtree(self._folder)

    def wait_for_boot(self, timeout_s: float = _BOOT_S) -> None:
        """Return once the agent of a new boot has reported. Raises GuestError."""
        until = time.monotonic() + timeout_s
        document: Document = {}
        while document.get("boot", self.boot) == self.boot:
            document = self._receive(until, "the boot")
        self.boot = document["boot"]

    def ask(self, request: Document, timeout_s: float = PATIENCE_S) -> Document:
        """The agent's answer to a request. Raises GuestError if it failed or the guest has ended."""
        self.agent.send(request)
        answer = self._receive(time.monotonic() + timeout_s, f"the answer to {request}")
        if "error" in answer:
            raise GuestError(f"{request}: {answer['error']}")
        return answer

    def cpu_s(self) -> float:
        """The processor time that the emulator has used, in seconds."""
        # proc_pid_stat(5): after the name, which may contain anything; utime and stime are fields 14 and 15.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def console_tail(self) -> str:
        """The last lines on the guest's console, and QEMU's error output."""
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace")
        lines = self._console_lines()
        panic = next((number for number, line in enumerate(lines) if _PANIC in line), len(lines) - 10)
        return "\n".join([*lines[max(0, panic - 10) : panic + 10], errors])

    def _receive(self, until: float, what: str) -> Document:
        """The agent's next message. A kernel panic ends the wait."""
        while True:
            try:
                return self.agent.receive(min(until, time.monotonic() + _LOOK_S), what)
            except ChannelError as error:
                panicked = any(_PANIC in line for line in self._console_lines())
                if panicked or time.monotonic() >= until or self._process.poll() is not None:
                    raise GuestError(f"{error}\n{self.console_tail()}") from error

    def _console_lines(self) -> list[str]:
        return self._console.read_text(errors="replace").splitlines() if self._console.exists() else []

    def _command(self, image: Image) -> list[str]:
        def port(name: str, path: Path) -> list[str]:
            return [
                *("-chardev", f"socket,id={name},path={path}"),
                *("-device", f"virtserialport,chardev={name},name=vm.{name}"),
            ]

        return [
            *("setpriv", "--pdeathsig", "KILL"),
            *("qemu-system-x86_64", "-accel", "tcg", "-machine", "q35", "-cpu", _CPU),
            *("-icount", "shift=0", "-rtc", "clock=vm"),
            *("-smp", "1", "-m", str(_MEMORY_MB)),
            *("-nodefaults", "-no-user-config", "-display", "none", "-vga", "none"),
            *("-serial", f"file:{self._console}"),
            *("-kernel", str(image.kernel), "-initrd", str(self._folder / "initrd")),
            *("-append", "console=ttyS0 mitigations=off quiet loglevel=4"),
            *("-drive", f"file={image.disk},format=raw,if=virtio,snapshot=on"),
            *("-chardev", f"socket,id=qmp,path={self._monitor.path}", "-mon", "chardev=qmp,mode=control"),
            *("-device", "virtio-serial-pci"),
            *port("agent", self.agent.path),
            *port("kubelet", self.kubelet.path),
            *port("runtime", self.runtime.path),
            *("-device", "qemu-xhci,id=xhci,p2=8,p3=8"),
        ]
