"""The whole daemon while the kernel does not answer for one device: all others are served."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from genericdp.simulator import Container, Kubelet, Pod
from genericdp.simulator.pods import Phase
from genericdp.status import client
from tests.daemon.test_hotplug import a_node, under_umockdev
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE
from tests.scenes.scene import until_allocatable
from tests.scenes.service import settings_below
from tests.scenes.waiting import until
from tests.udev import gadgets
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed

HEALTHY = gadgets.serial_dongle()
STUCK = gadgets.serial_dongle("3", tty=1, serial="STUCK", devnum=9)
USB = STUCK[2]
NO_ANSWER = f"cannot read '{USB.sys_path}': the kernel does not answer"


async def admit(kubelet: Kubelet) -> None:
    pod = await kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1})]))
    assert pod.phase is Phase.RUNNING, pod.message


def test_pods_get_other_devices_and_this_one_when_the_kernel_answers(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(HEALTHY)
        async with a_node(short_dir, FTDI_RULE) as (kubelet, service):
            await until_allocatable(kubelet, 1)
            new = bed.attach(STUCK)
            with bed.stuck(USB) as release:
                for entry in new:
                    bed.initialize(entry)
                    bed.uevent(entry, "add")
                failing = service.daemon.recorder.history.failing
                await until(lambda: NO_ANSWER in [each.why for each in failing.values()])
                await admit(kubelet)
                assert kubelet.allocatable[FTDI] == 1
                release()
                await until_allocatable(kubelet, 2)

    under_umockdev(main())


@asynccontextmanager
async def a_process(directory: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, socket.socket]]:
    """The daemon in a process of its own, and the socket on which it tells its service manager."""
    (directory / "rules.d").mkdir(mode=0o755)
    (directory / "rules.d" / "50-test.toml").write_text(FTDI_RULE)
    settings = settings_below(directory)
    names = ("kubelet_dir", "pod_resources_socket", "link_dir", "cdi_dir", "state_dir", "run_dir")
    lines = [f'{name} = "{getattr(settings, name)}"\n' for name in names]
    (directory / "settings.toml").write_text("".join([f'domain = "{DOMAIN}"\n', *lines]))
    arguments = ["--config", f"{directory}/settings.toml", "--rules", f"{directory}/rules.d"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{directory}/notify")
        manager.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "genericdp", "run", *arguments],
            env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify", "WATCHDOG_USEC": "1000000"},
        )
        try:
            yield process, manager
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def told(manager: socket.socket, what: str) -> None:
    """Wait until the service manager hears this."""
    while what not in (await asyncio.get_running_loop().sock_recv(manager, 4096)).decode().split("\n"):
        pass


def test_a_daemon_starts_serves_and_ends_while_the_kernel_does_not_answer(
    short_dir: Path, bed: Testbed
) -> None:
    async def main() -> None:
        bed.plug(HEALTHY, STUCK)
        with bed.stuck(USB):
            async with Kubelet(short_dir) as kubelet, a_process(short_dir) as (process, manager):
                await told(manager, "READY=1")
                await until_allocatable(kubelet, 1)
                await admit(kubelet)
                for _ in range(3):
                    await told(manager, "WATCHDOG=1")
                status = await asyncio.to_thread(client.status, settings_below(short_dir))
                assert [each["reason"] for each in status["failing"]] == [NO_ANSWER]

                process.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(process.wait(), 10) == 0

    under_umockdev(main())


def test_a_daemon_offers_the_device_when_the_kernel_answers(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(HEALTHY, STUCK)
        with bed.stuck(USB) as release:
            async with Kubelet(short_dir) as kubelet, a_process(short_dir) as (_, manager):
                await told(manager, "READY=1")
                await until_allocatable(kubelet, 1)
                release()
                await until_allocatable(kubelet, 2)

    under_umockdev(main())
