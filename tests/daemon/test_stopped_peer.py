"""A peer of a plugin that reads no more: a kubelet that was killed and hangs in the kernel."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path

from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene
from tests.scenes.service import SHORT_PAUSES
from tests.scenes.waiting import until

KUBELET = """
import asyncio, sys
from genericdp.simulator import Kubelet

async def main():
    async with Kubelet(sys.argv[1]) as kubelet:
        await kubelet.wait_until(lambda: sum(kubelet.allocatable.values()) == int(sys.argv[2]))
        print("knows them", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

KNOWS = b"knows them\n"

STICK, OTHER = a_usb_serial(0, serial="A"), a_usb_serial(1, serial="B", port="3")
REPLICAS = 1000
COUNT = 2 * REPLICAS
#: Its lists are longer than what the kernel keeps for a peer.
RULES = FTDI_RULE + f"replicas = {REPLICAS}\n"
#: A list that has not left after so many seconds will not.
STUCK_S = 1.0


@asynccontextmanager
async def a_kubelet(root: Path, count: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A kubelet in a process of its own. It says when it knows so many devices."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KUBELET, str(root), str(count)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def a_kubelet_that_hangs(scene: Scene, root: Path) -> AsyncIterator[None]:
    """One that reads no more, while lists are on their way to it."""
    async with a_kubelet(root, COUNT) as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == KNOWS
        process.send_signal(signal.SIGSTOP)
        await fill(scene)
        yield


async def fill(scene: Scene) -> None:
    """Change the list until no list leaves any more: the kernel keeps no more for the peer.

    All devices are there at the end, whichever change was the last one that left.
    """
    plugin, changes = scene.daemon.plugins.plugins[FTDI], cycle((scene.unplug, scene.plug))
    sent = 0

    def change() -> None:
        next(changes)(STICK)
        scene.daemon._follow_hints()

    def another_left() -> bool:
        return plugin.messages > sent

    while another_left():
        sent = plugin.messages
        change()
        with suppress(TimeoutError):
            await until(another_left, timeout_s=STUCK_S)
    if STICK.sys_path not in scene.udev.devices:
        change()


async def test_the_next_kubelet_gets_its_devices(short_dir: Path) -> None:
    async with (
        a_scene(short_dir, STICK, OTHER, rules=RULES, pauses=SHORT_PAUSES, kubelet_runs=False) as scene,
        a_kubelet_that_hangs(scene, short_dir),
    ):
        await scene.kubelet.start()
        await scene.until_allocatable(COUNT)
        await scene.kubelet.stop()


async def test_the_daemon_ends_when_it_is_told_to(short_dir: Path) -> None:
    async with (
        a_scene(short_dir, STICK, OTHER, rules=RULES, pauses=SHORT_PAUSES, kubelet_runs=False) as scene,
        a_kubelet_that_hangs(scene, short_dir),
    ):
        await scene.service.stop()
        assert scene.service.has_ended()


async def test_a_resource_with_other_options_is_registered(short_dir: Path) -> None:
    async with (
        a_scene(short_dir, STICK, OTHER, rules=RULES, pauses=SHORT_PAUSES, kubelet_runs=False) as scene,
        a_kubelet_that_hangs(scene, short_dir),
    ):
        scene.edit_rules(RULES + 'prestart = { wait = "1s" }\n')
        await scene.kubelet.start()
        await scene.until_allocatable(COUNT)
        await scene.kubelet.stop()


async def test_its_process_ends_too(short_dir: Path) -> None:
    """Python would wait for gRPC, and gRPC for its peer."""
    rules = short_dir / "rules.d"
    rules.mkdir(mode=0o755)

    def write(replicas: int) -> None:
        new = short_dir / "new"
        new.write_text(f'[[resource]]\nname = "null"\nmatch.DEVNAME = "/dev/null"\nreplicas = {replicas}\n')
        new.chmod(0o644)
        new.rename(rules / "null.toml")

    write(5000)
    settings = short_dir / "genericdp.toml"
    settings.write_text(
        f'kubelet_dir = "{short_dir}/device-plugins"\nlink_dir = "{short_dir}/links"\n'
        f'state_dir = "{short_dir}/state"\nrun_dir = "{short_dir}/run"\ncdi_dir = "{short_dir}/cdi"\n'
        f'pod_resources_socket = "{short_dir}/pod-resources/kubelet.sock"\n'
    )
    settings.chmod(0o644)
    async with a_kubelet(short_dir, 5000) as kubelet:
        command = ["-m", "genericdp", "run", "--config", str(settings), "--rules", str(rules)]
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, *command, stderr=asyncio.subprocess.PIPE
        )
        assert daemon.stderr is not None
        try:
            assert kubelet.stdout is not None
            assert await kubelet.stdout.readline() == KNOWS
            kubelet.send_signal(signal.SIGSTOP)
            for number in range(12):
                write(4999 - number)
                while b"rules reloaded" not in await daemon.stderr.readline():
                    pass
            daemon.send_signal(signal.SIGTERM)
            _, last = await daemon.communicate()
        finally:
            if daemon.returncode is None:
                daemon.kill()
                await daemon.communicate()
        assert daemon.returncode == 0
        assert b"a client of a plugin's socket does not read; ending without it" in last
