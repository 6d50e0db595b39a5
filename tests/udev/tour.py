"""The tour of the README, typed again: a recorded stick, the daemon, a simulated kubelet.

What stands between `<!-- tour -->` and `<!-- end of tour -->` is a script. Each line of a `console` block
that begins with `$ ` is typed, and what is printed takes the place of what stands below it. A `yaml` block
is a pod that is created, and `<!-- unplug -->` and `<!-- plug -->` are what they say. `make tour` writes
the page anew; `test_tour` does the same and compares.

It runs in a machine of its own (tests/udev/machine.py), whose /etc and /var/lib are thrown away with it.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from genericdp.files.settings import read_settings
from genericdp.simulator import Container, Kubelet, Pod
from tests.udev.gadgets import Gadget, serial_dongle
from tests.udev.testbed import Testbed

PAGE = Path(__file__).resolve().parents[2] / "README.md"

STICK = serial_dongle()
#: Group dialout of Debian, which serial ports belong to.
DIALOUT = 20

#: As long as the real one, so that tables come out the same: what is made in /dev here, umockdev cannot show.
LINKS, LINKS_SHOWN = "/run/links-dir", "/dev/genericdp"

_SCRIPT = re.compile(r"(<!-- tour -->\n)(.*?)(?=<!-- end of tour -->)", re.DOTALL)
_STEP = re.compile(
    r"```console\n(?P<typed>.*?)```|```yaml\n(?P<pod>.*?)```|<!-- (?P<deed>plug|unplug) -->", re.DOTALL
)

#: What is another at every run, and what the page has for it.
_PASSING = (
    (re.compile(r"runs for .*? as process \d+"), "runs for 3 h as process 1234"),
    (re.compile(r"(here|heard|registered) for [0-9]+ \w+"), r"\1 for 3 h"),
    (re.compile(r"the kubelet has only begun: .*"), "known from the kubelet"),
    (re.compile(r"FOR +NODE"), "FOR  NODE"),
    (re.compile(r"(Healthy +)[0-9]+ s +"), r"\g<1>5 s  "),
    (re.compile(r"([0-9a-f]{12}  for) [0-9]+ s"), r"\1 5 s"),
)


async def rewritten(page: str) -> str:
    """The page with what the commands of its tour print now."""
    found = _SCRIPT.search(page)
    assert found is not None
    script = found.group(2)
    with Testbed() as bed, tempfile.TemporaryDirectory() as directory:
        async with a_node(bed, Path(directory)) as node:
            done, at = "", 0
            for step in _STEP.finditer(script):
                done += script[at : step.start()] + await node.take(step)
                at = step.end()
    return page[: found.start(2)] + done + script[at:] + page[found.end(2) :]


class Node:
    """A node of a cluster: the stick in it, the daemon, the kubelet."""

    def __init__(self, bed: Testbed, kubelet: Kubelet, folder: Path) -> None:
        self._bed = bed
        self._kubelet = kubelet
        self._environment = {**os.environ, "COLUMNS": "80", "PATH": f"{folder}:{os.environ['PATH']}"}
        for name, line in (("genericdp", f'exec {sys.executable} -m genericdp "$@"'), ("sudo", 'exec "$@"')):
            (folder / name).write_text(f"#!/bin/sh\n{line}\n")
            (folder / name).chmod(0o755)
        self._folder = folder

    async def take(self, step: re.Match[str]) -> str:
        """Take a step; returns what stands on the page for it."""
        if step["typed"] is not None:
            commands = re.findall(r"^\$ (.*)$", step["typed"], re.MULTILINE)
            printed = [f"$ {command}\n{await self._type(command)}" for command in commands]
            return "```console\n" + "\n".join(printed) + "```"
        if step["pod"] is not None:
            await self._create(step["pod"])
        elif step["deed"] == "plug":
            plug(self._bed, STICK)
        else:
            self._bed.unplug(STICK)
            await self._until_remembered()
        return step.group(0)

    async def _type(self, command: str) -> str:
        done = await asyncio.create_subprocess_shell(
            command,
            cwd=PAGE.parent,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await done.communicate()
        text = output.decode().replace(LINKS, LINKS_SHOWN)
        for pattern, usual in _PASSING:
            text = pattern.sub(usual, text)
        return text

    async def _create(self, yaml: str) -> None:
        """Create a pod; only what a pod of the page has is understood."""
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

    async def _until_remembered(self) -> None:
        """Wait until the daemon has written down what it remembers."""
        memory = Path(read_settings(None).state_dir) / "memory.json"
        for _ in range(400):
            if await asyncio.to_thread(memory.exists):
                return
            await asyncio.sleep(0.05)
        raise AssertionError("nothing is remembered")


def plug(bed: Testbed, gadget: Gadget) -> None:
    """Plug in the stick; its port belongs to dialout, as Debian's udev has it."""
    for entry in bed.attach(*[gadget]):
        if entry.node:
            os.chown(bed.node(entry), 0, DIALOUT)
            bed.node(entry).chmod(0o660)
        bed.initialize(entry)
        bed.uevent(entry, "add")


@asynccontextmanager
async def a_node(bed: Testbed, folder: Path) -> AsyncIterator[Node]:
    """A node on which genericdp was installed; nothing is plugged in and there is no rule."""
    await asyncio.to_thread(own_folders)
    async with Kubelet(Path("/var/lib/kubelet")) as kubelet:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "genericdp", "run", cwd=PAGE.parent, stdout=subprocess.DEVNULL, stderr=None
        )
        try:
            yield Node(bed, kubelet, folder)
        finally:
            daemon.terminate()
            await daemon.wait()


def own_folders() -> None:
    """An /etc and a /var/lib of our own: the mounts are seen in this machine only."""
    shutil.copytree("/etc", "/run/etc", symlinks=True, ignore=shutil.ignore_patterns("genericdp"))
    subprocess.run(["mount", "--bind", "/run/etc", "/etc"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib"], check=True)
    Path("/etc/genericdp/rules.d").mkdir(parents=True)
    Path("/etc/genericdp/genericdp.toml").write_text(f'link_dir = "{LINKS}"\n')


if __name__ == "__main__":
    PAGE.write_text(asyncio.run(rewritten(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
