"""A node of a cluster that an operator types at: devices under umockdev, the daemon, a simulated kubelet."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from genericdp.cli.main import main
from genericdp.errors import GenericdpError
from genericdp.files.settings import read_settings
from genericdp.files.state import SPARE
from genericdp.simulator import Container, Kubelet, Pod
from genericdp.status import client
from tests.udev.gadgets import Entry, Gadget, hub, modem, serial_dongle, twins
from tests.udev.testbed import Testbed

ROOT = Path(__file__).resolve().parents[2]

#: Group dialout of Debian, which serial ports belong to.
DIALOUT = 20

#: As long as the real one, so that tables come out the same: what is made in /dev here, umockdev cannot show.
LINKS, LINKS_SHOWN = "/run/links-dir", "/dev/genericdp"

SETTINGS, OUR_SETTINGS = Path("/etc/genericdp/genericdp.toml"), f'link_dir = "{LINKS}"\n'

#: Where the daemon saves what it remembers.
STATE = Path("/var/lib/genericdp")

#: Where the operator types.
HOME = Path("/run/operator")

MODEM = modem(serial="EC25A7")

#: What can be plugged in. The first two are one stick at two ports.
GADGETS: Mapping[str, Gadget] = {
    "stick": serial_dongle(),
    "stick at port 3": serial_dongle("3", tty=1, devnum=9),
    "stick with another serial number": serial_dongle("3", tty=1, serial="A50299ZZ", devnum=9),
    "first twin": twins(serial="PX4410")[0],
    "second twin": twins(serial="PX4410")[1],
    "modem": MODEM,
    "hub": hub(behind=2),
    "fuse": (Entry("/devices/virtual/misc/fuse", "misc", "fuse", "10:229"),),
    "modem without its QMI node": tuple(each for each in MODEM if each.subsystem != "usbmisc"),
    "disk": (Entry("/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda", "block", "sda", "8:0", "disk"),),
}

#: What a kubelet says that has another version of the device plugin API.
_UNSUPPORTED = 'requested API version "v1beta1" is not supported by kubelet. Supported version is ["v1"]'

#: What is another at every run, and what a page has for it.
_PASSING = (
    (re.compile(r"up for .*? as process \d+"), "up for 3 h as process 1234"),
    (re.compile(r"(up|down|receiving events|registered) for [0-9]+ \w+"), r"\1 for 3 h"),
    (re.compile(r"^  [0-9]+ s ago", re.MULTILINE), "  5 s ago"),
    (re.compile(r"failing for [0-9]+ s"), "failing for 5 s"),
    (re.compile(r"the kubelet has just started .*"), "known from the kubelet"),
    (re.compile(r"FOR +NODE"), "FOR  NODE"),
    (re.compile(r"(Healthy +|Unhealthy  )[0-9]+ s +"), r"\g<1>5 s  "),
    (re.compile(r"/run/gdp-\w+/"), "/tmp/gdp-x/"),
    (re.compile(r"([0-9a-f]{12}  for) [0-9]+ s"), r"\1 5 s"),
    (re.compile(r"^\d\d:\d\d:\d\d\.\d{3} ", re.MULTILINE), "07:57:31.744 "),
)

#: How long anything may take, in seconds.
_PATIENCE_S = 20.0


class TourNode:
    """A node without devices, rules, daemon or kubelet at first."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        self._bed = bed
        self._environment = {**os.environ, "COLUMNS": "80", "PATH": f"{folder}:{os.environ['PATH']}"}
        for name, line in (("genericdp", f'exec {sys.executable} -m genericdp "$@"'), ("sudo", 'exec "$@"')):
            (folder / name).write_text(f"#!/bin/sh\n{line}\n")
            (folder / name).chmod(0o755)
        self._kubelet = Kubelet(Path("/var/lib/kubelet"))
        self._daemon: Process | None = None
        self._meanwhile = ""

    # What happens

    async def happen(self, deed: str) -> None:
        """What a comment of a page says."""
        word, _, rest = deed.partition(" ")
        if word == "plug":
            await self._plug(GADGETS[rest])
        elif word == "unplug":
            self._bed.unplug(GADGETS[rest])
        elif word == "meanwhile":
            self._meanwhile = rest.removeprefix("plug ")  # while the next command runs
        elif word == "deauthorize":
            (usb,) = (each for each in GADGETS[rest] if each.devtype == "usb_device" and not each.shared)
            self._bed.set_attribute(usb, "authorized", "0")
            self._bed.uevent(usb, "change")
        elif word == "attach":
            self._bed.attach(GADGETS[rest])  # without udevd's part
        else:
            deeds: Mapping[str, Callable[[], Awaitable[None]]] = {
                "start daemon": self._start_daemon,
                "stop daemon": self.stop_daemon,
                "start kubelet": self._kubelet.start,
                "stop kubelet": self._kubelet.stop,
                "let the kubelet refuse registrations": self._refuse_registrations,
                "fill the disk": self._fill_the_disk,
                "lose the memory": self._lose_the_memory,
            }
            await deeds[deed]()

    def write(self, path: str, content: str) -> None:
        """Write a file as an editor does: all at once."""
        target = HOME / path
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".fresh")
        fresh.write_text(content + OUR_SETTINGS * (target == SETTINGS), encoding="utf-8")
        fresh.rename(target)

    async def create(self, yaml: str) -> None:
        """Create a pod; only what a pod of a page has is understood."""
        name = re.search(r"^  name: (\S+)$", yaml, re.MULTILINE)
        container = re.search(r"^    - name: (\S+)$", yaml, re.MULTILINE)
        limits = dict(re.findall(r"^ +(\S+/\S+): (\d+)$", yaml, re.MULTILINE))
        assert name is not None
        assert container is not None
        (resource,) = limits
        await self._kubelet.wait_until(lambda: self._kubelet.allocatable.get(resource) == 1)
        self._kubelet.tick()
        pod = Pod(name[1], [Container(container[1], limits={resource: int(limits[resource])})])
        await self._kubelet.admit(pod)

    async def _plug(self, gadget: Gadget, events: Iterator[Mapping[str, Any]] | None = None) -> None:
        """Plug it in; serial ports belong to dialout, as Debian's udev has it.

        With the daemon's events, a uevent is sent when it has followed the one before, because what it
        says of each depends on how many it follows at once.
        """
        for entry in self._bed.attach(gadget):
            if entry.subsystem == "tty":
                os.chown(self._bed.node(entry), 0, DIALOUT)
                self._bed.node(entry).chmod(0o660)
            self._bed.initialize(entry)
            self._bed.uevent(entry, "add")
            while (
                events is not None
                and (await asyncio.to_thread(next, events)).get("sysPath") != entry.sys_path
            ):
                pass

    async def _start_daemon(self) -> None:
        self._daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "genericdp", "run", cwd=ROOT, stdout=subprocess.DEVNULL, stderr=None
        )

    async def _refuse_registrations(self) -> None:
        self._kubelet.faults.refuse_registrations(_UNSUPPORTED)

    async def _fill_the_disk(self) -> None:
        await asyncio.to_thread(_fill_the_disk)

    async def _lose_the_memory(self) -> None:
        """While the daemon does not run; it starts again."""
        await self.stop_daemon()
        (STATE / "memory.json").unlink()
        Path(LINKS, SPARE).unlink()
        await self._start_daemon()

    async def stop_daemon(self) -> None:
        """Stop the daemon, if it runs."""
        if self._daemon is not None:
            self._daemon.terminate()
            await self._daemon.wait()
            self._daemon = None

    async def stop(self) -> None:
        """Stop all that runs."""
        await self.stop_daemon()
        if self._kubelet.running:
            await self._kubelet.stop()
        await asyncio.to_thread(_free_the_disk)

    # What is typed

    async def type(self, command: str) -> str:
        """What a command prints, once the daemon has followed everything that happened."""
        async with asyncio.timeout(_PATIENCE_S):
            while self._daemon is not None and not await self._is_settled():  # noqa: ASYNC110  (no event says so)
                await asyncio.sleep(0.02)
        gadget, self._meanwhile = self._meanwhile, ""
        text = await (self._followed(command, GADGETS[gadget]) if gadget else self._printed(command))
        text = text.replace(LINKS, LINKS_SHOWN)
        for pattern, usual in _PASSING:
            text = pattern.sub(usual, text)
        return text

    async def _printed(self, command: str) -> str:
        output, _ = await (await self._started(command)).communicate()
        return output.decode()

    async def _followed(self, command: str, gadget: Gadget) -> str:
        """What `monitor` prints while a gadget is plugged in, up to the list that the kubelet is sent."""
        process = await self._started(command)
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode()]
        events = client.events(read_settings(None))
        assert (await asyncio.to_thread(next, events))["event"] == "begin"
        await self._plug(gadget, events)
        async with asyncio.timeout(_PATIENCE_S):
            while " kubelet " not in lines[-1]:
                lines.append((await process.stdout.readline()).decode())
        os.killpg(process.pid, signal.SIGKILL)  # umockdev's preload may block all others: it mixes up threads
        await process.wait()
        return "".join(lines)

    async def _started(self, command: str) -> Process:
        return await asyncio.create_subprocess_shell(
            command,
            cwd=HOME,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    async def _is_settled(self) -> bool:
        """Whether the daemon says what a fresh look at the machine says, and the kubelet knows it."""
        try:
            status = await asyncio.to_thread(client.status, read_settings(None))
        except GenericdpError:
            return False
        resources = status["resources"]
        unsaved = {"memory", "rules", "directories"} if STATE.is_mount() else set()  # the disk that is full
        if {each["what"] for each in status["failing"]} != unsaved:
            return False
        heard = all(bool(each["registered"] or each["error"]) == self._kubelet.running for each in resources)
        if status["kubelet"]["there"] != self._kubelet.running or not heard:
            return False
        mistakes = (await asyncio.to_thread(_seen, "check"))["problems"]
        if bool(mistakes) != bool(status["rules"]["problems"]):
            return False
        listed = await asyncio.to_thread(_seen, "list")
        return _healths(resources) == _healths(listed["resources"])


def _seen(verb: str) -> dict[str, Any]:
    """What a verb prints as JSON. In this process, as a settled node is looked for many times."""
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
        main([verb, "--json"])
    seen: dict[str, Any] = json.loads(printed.getvalue())
    return seen


def _healths(resources: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {
        each["name"]: {device["id"]: device["health"] for device in each["devices"]} for each in resources
    }


@asynccontextmanager
async def a_node() -> AsyncIterator[TourNode]:
    """A node on which genericdp was installed; nothing is plugged in, there is no rule, nothing runs."""
    await asyncio.to_thread(_clean)
    with Testbed() as bed, tempfile.TemporaryDirectory() as folder:
        node = TourNode(bed, Path(folder))
        try:
            yield node
        finally:
            await node.stop()


def _fill_the_disk() -> None:
    """The one that the memory is saved on."""
    STATE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=4k", "tmpfs", STATE], check=True)
    (STATE / "full").write_bytes(bytes(4096))


def _free_the_disk() -> None:
    if STATE.is_mount():
        subprocess.run(["umount", STATE], check=True)


def _clean() -> None:
    """An empty /etc/genericdp and /var/lib, seen in this machine only."""
    if not os.path.exists("/run/etc"):
        shutil.copytree("/etc", "/run/etc", symlinks=True, ignore=shutil.ignore_patterns("genericdp"))
        subprocess.run(["mount", "--bind", "/run/etc", "/etc"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib"], check=True)
    for folder in ("/etc/genericdp", "/run/genericdp", "/var/lib/genericdp", "/var/lib/kubelet", LINKS, HOME):
        shutil.rmtree(folder, ignore_errors=True)
    Path("/etc/genericdp/rules.d").mkdir(parents=True)
    SETTINGS.write_text(OUR_SETTINGS)
    HOME.mkdir()
