"""The guest as a node of a cluster: rule files, service, kubelet, pods.

The rules of this file:

* A wait that fails names what it waited for and shows the kubelet's view and the service's journal,
  because the guest cannot be inspected afterwards.
* Each case begins with a node on which genericdp has never run.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.vm.channel import ChannelError, Document
from tests.vm.gadgets import Gadgets
from tests.vm.guest import COMMAND_S, PATIENCE_S, Guest
from tests.vm.runtime import ContainerRuntime
from tests.vm.seed import HOME
from tests.vm.usb import Usb
from tests.vm.view import NOTHING, Pod, View, parse

#: The administrator's rule files.
RULES = "/etc/genericdp/rules.d"

LINKS = "/dev/genericdp"

#: The service's settings, and where those of the package are kept.
_SETTINGS, _KEPT = "/etc/genericdp/genericdp.toml", f"{HOME}/genericdp.toml"

#: The administrator's drop-ins, and the package's examples of them.
DROPINS = "/etc/systemd/system/genericdp.service.d"
EXAMPLES = "/usr/share/doc/genericdp/examples/dropins"

_FORGET = f"""
systemctl stop kubelet.service genericdp.service
rm -rf /var/lib/kubelet {LINKS} {RULES}/*.toml /var/lib/genericdp/*
cp {_KEPT} {_SETTINGS}
if [ -e {DROPINS} ]; then rm -r {DROPINS}; systemctl daemon-reload; fi
"""


class CaseError(AssertionError):
    """A rule is violated."""


def expect(there: object, wanted: object) -> None:
    """Raise CaseError unless they are equal."""
    if there != wanted:
        raise CaseError(f"found    {there}\nexpected {wanted}")


def expect_at_most(what: str, there: float, limit: float) -> None:
    """Raise CaseError if the figure is above its limit."""
    if there > limit:
        raise CaseError(f"{what}: {there:g}, which exceeds the promised {limit:g}")


class Node:
    """The guest that all cases of a release share. `release`: the number of Debian's."""

    def __init__(self, guest: Guest, release: str) -> None:
        self.guest = guest
        self.release = release
        self.usb = Usb(guest.qmp)
        self.gadgets = Gadgets(self.sh)
        self.runtime = ContainerRuntime(guest.runtime, self.sh)
        self.view = NOTHING
        self._run = ""
        self._since = "@0"

    def install(self, package: Path) -> None:
        """Install the package as an administrator would."""
        # Not by apt, whose lists the guest lacks; the image contains the package's dependencies.
        self.sh(f"dpkg --install {HOME}/{package.name}; cp {_SETTINGS} {_KEPT}", timeout_s=300.0)

    def begin(self, rules: Mapping[str, str], drop_in: str = "") -> None:
        """Begin with a node without devices, on which genericdp starts with these rule files, by name.

        drop_in  one of the package's examples for the service
        """
        self.usb.unplug_all()
        self.gadgets.unplug_all()
        self.sh(_FORGET + "udevadm settle")
        if drop_in:
            self.add_drop_in(drop_in)
        self._since = self.sh("date +@%s.%N").strip()
        self.write_rules(rules)
        self.start()
        self.start_kubelet()

    def start(self) -> None:
        """Start the service, and return once it is READY. Raises CaseError."""
        try:
            self.sh("systemctl start genericdp.service")
        except CaseError as error:
            raise CaseError(f"{error}\n{self.circumstances()}") from None

    def add_drop_in(self, name: str) -> None:
        """Install one of the package's examples and no other one, as its first lines say."""
        there = f"rm -rf {DROPINS}; mkdir {DROPINS}; cp {EXAMPLES}/{name} {DROPINS}/"
        self.sh(f"{there}; systemctl daemon-reload")

    def run_with_drop_in(self, name: str) -> None:
        """Run the service with one of the package's examples, for the rest of the case."""
        self.add_drop_in(name)
        self.sh("systemctl restart genericdp")

    def set(self, line: str) -> None:
        """Run the service with this line in its settings, and no earlier one, for the rest of the case."""
        self.sh(f"cp {_KEPT} {_SETTINGS}; echo '{line}' >>{_SETTINGS}; systemctl restart genericdp")

    def write_rules(self, rules: Mapping[str, str]) -> None:
        """Write these rule files, by name; a running service reloads them by itself."""
        for name, text in rules.items():
            self.guest.ask({"write": f"{RULES}/{name}", "text": text})
        # Editors sync files, too; a power cut is to show what the service loses.
        self.sh("sync")

    def start_kubelet(self) -> None:
        """Start the kubelet, and forget the messages of an earlier one."""
        self.sh("systemctl start kubelet.service")
        self.meet_kubelet()

    def meet_kubelet(self) -> None:
        """Follow the kubelet that is running now."""
        self._run = self.sh("systemctl show --value --property InvocationID kubelet.service").strip()
        self.view = NOTHING

    def sh(self, script: str, timeout_s: float = COMMAND_S) -> str:
        """Run a shell script inside; returns its stdout. Raises CaseError if its status is not 0."""
        answer = self.guest.ask(
            {"run": ["/bin/sh", "-euc", script], "input": "", "timeout": timeout_s}, timeout_s + PATIENCE_S
        )
        if answer["status"] != 0:
            raise CaseError(f"status {answer['status']} of\n{script}\n{answer['out']}{answer['err']}")
        text: str = answer["out"]
        return text

    def python(self, script: str) -> str:
        """Run a Python script inside; returns its stdout. Raises CaseError as `sh` does."""
        self.guest.ask({"write": f"{HOME}/script.py", "text": script})
        return self.sh(f"python3 {HOME}/script.py")

    def links(self) -> dict[str, str]:
        """The stable links: name -> target."""
        links: dict[str, str] = self.guest.ask({"links": LINKS})["links"]
        return links

    def wait_until(self, what: str, holds: Callable[[View], object], timeout_s: float = PATIENCE_S) -> View:
        """Return the kubelet's state as soon as `holds` accepts it. Raises CaseError."""
        until = time.monotonic() + timeout_s
        # Messages that have already arrived are taken in first.
        while self.guest.kubelet.has_news() or not holds(self.view):
            try:
                self._take(self.guest.kubelet.receive(until, what))
            except ChannelError:
                raise CaseError(f"not within {timeout_s:g} s: {what}\n{self.circumstances()}") from None
        return self.view

    def wait_for_devices(self, resource: str, wanted: Mapping[str, str]) -> View:
        """Return once the kubelet has exactly these devices of a resource: id -> health."""
        return self.wait_until(
            f"{resource} has {wanted or 'no devices'}",
            lambda view: resource in view.devices and view.devices[resource] == wanted,
        )

    def wait_for_node(self, path: str) -> None:
        """Return once a device node exists and udevd has processed it. Raises CaseError."""
        self.sh(f"udevadm wait --timeout=60 {path}", timeout_s=90.0)

    def admit(self, name: str, limits: Mapping[str, int]) -> Pod:
        """Have the kubelet start a pod; returns its status."""
        return self._ask_kubelet({"admit": name, "limits": dict(limits)}).pods[name]

    def restart_container(self, pod: str) -> Pod:
        """End the container's process; the runtime creates another from the kubelet's saved answer."""
        return self._ask_kubelet({"restart_container": pod}).pods[pod]

    def delete(self, pod: str) -> None:
        """Delete a pod."""
        self._ask_kubelet({"delete": pod})

    def wait_for_restart(self, pod: str) -> Pod:
        """Restart a pod's container; returns once it runs, if need be after the kubelet's retries."""
        self.restart_container(pod)
        return self.wait_until(
            f"the container of {pod} runs again", lambda view: view.pods[pod].state == "running"
        ).pods[pod]

    def write_to(self, pod: Pod, path: str, text: str) -> None:
        """Write to a node of a container, by its numbers, as a program in the container would."""
        major, minor = pod.numbers[path]
        self.sh(
            f"rm -f {HOME}/node; mknod {HOME}/node c {major} {minor}; "
            f"stty -F {HOME}/node raw -echo; printf %s '{text}' >{HOME}/node"
        )

    def usb_device(self, serial: str) -> str:
        """The sysfs directory of the USB device with this serial number."""
        return self.sh(f"dirname $(grep -lx '{serial}' /sys/bus/usb/devices/*/serial)").strip()

    def unit_of(self, pod: Pod, path: str) -> str:
        """The serial number of the USB device behind a node of a container."""
        major, minor = pod.numbers[path]
        return self.sh(
            f"device=$(readlink -f /sys/dev/char/{major}:{minor}); "
            "until [ -e $device/serial ]; do device=${device%/*}; done; cat $device/serial"
        ).strip()

    def main_pid(self) -> int:
        """The pid of the service."""
        return int(self.sh("systemctl show --value --property MainPID genericdp"))

    def reboot(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Reboot as an administrator would; the kubelet starts by itself.

        meanwhile  called while the guest boots, as soon as commands can be run in it
        """
        self.guest.agent.send({"run": ["systemctl", "reboot"], "input": "", "timeout": 60.0})
        self._meet_after_boot(meanwhile)

    def cut_power(self) -> None:
        """Cut the power and restore it. Devices plugged from outside stay plugged."""
        self.guest.qmp.do("system_reset")
        self._meet_after_boot()

    def _meet_after_boot(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.guest.wait_for_boot()
        self.gadgets.forget()
        meanwhile()
        self.sh("systemctl is-system-running --wait || true", timeout_s=300.0)
        self.meet_kubelet()

    def clock_s(self) -> float:
        """The guest's clock, in seconds since its boot."""
        return float(self.sh("cat /proc/uptime").split()[0])

    def cpu_s(self, seconds: int) -> float:
        """The CPU time that the service uses within `seconds`, in seconds."""
        usage = "systemctl show --value -p CPUUsageNSec genericdp"
        before, after = self.sh(f"{usage}; sleep {seconds}; {usage}").split()
        return (int(after) - int(before)) / 1e9

    def drops(self) -> list[int]:
        """The messages that each of the service's uevent sockets has lost (/proc/net/netlink)."""
        inodes = self.sh(f"ls -l /proc/{self.main_pid()}/fd")
        rows = [line.split() for line in self.sh("cat /proc/net/netlink").splitlines()[1:]]
        return [int(row[8]) for row in rows if row[1] == "15" and f"socket:[{row[9]}]" in inodes]

    def journal(self, *options: str) -> list[str]:
        """The service's log lines since this case began; `options` go to journalctl."""
        command = f"journalctl --quiet --no-pager --output=cat --since={self._since} --unit=genericdp"
        return self.sh(" ".join((command, *options))).splitlines()

    def circumstances(self) -> str:
        """The state of the node, for error messages."""
        journal = self.sh(
            "journalctl --no-pager --output=short-monotonic --lines=40 "
            f"--since={self._since} --unit=genericdp --unit=kubelet || true"
        )
        return f"kubelet: {self.view}\nlinks: {self.sh(f'ls -l {LINKS} 2>&1 || true')}\n{journal}"

    def _ask_kubelet(self, request: Document) -> View:
        self.guest.kubelet.send(request)
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self._take(self.guest.kubelet.receive(until, f"the answer to {request}"))
            if answer is not None:
                if "error" in answer:
                    raise CaseError(f"{request}: {answer['error']}\n{self.circumstances()}")
                return self.view

    def _take(self, document: Document) -> Document | None:
        """Take in one line of the kubelet; returns the answer if it is one."""
        if document["run"] != self._run:
            return None
        if "state" in document:
            self.view = parse(document["state"])
        return document.get("answer")
