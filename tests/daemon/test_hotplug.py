"""The whole daemon with the real udev door: rule files, udev, the simulated kubelet, one process."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from genericdp.daemon import Daemon
from genericdp.files.rulefiles import RuleFiles
from genericdp.simulator import Kubelet
from tests.scenes.machine import DOMAIN, Steps, settings_below, until_allocatable
from tests.udev import gadgets
from tests.udev.hotplug import Console, macvtap, udevd
from tests.udev.testbed import Testbed

RULES = """
[[resource]]
name = "dongle"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }

[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c", product = ["0125", "0121"] } }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
container_path = "/dev/modem-at"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }
container_path = "/dev/modem-qmi"
optional = true

[[resource]]
name = "camera"
match = { SUBSYSTEM = "video4linux", "ATTR{index}" = "0" }
"""
CONSOLES = """
[[resource]]
name = "screen"
match = { SUBSYSTEM = "vc", DEVNAME = "NODE" }

[[resource]]
name = "tap"
match = { SUBSYSTEM = "macvtap" }
container_path = "/dev/tap{index}"
"""


@asynccontextmanager
async def a_node(directory: Path, rules: str) -> AsyncIterator[tuple[Kubelet, Daemon, Steps]]:
    """A kubelet and a daemon that reads real rule files and hears the real udev."""
    (directory / "rules.d").mkdir(mode=0o755)
    (directory / "rules.d" / "50-test.toml").write_text(rules)
    steps = Steps()
    async with Kubelet(directory) as kubelet:
        rule_files = RuleFiles([str(directory / "rules.d")], DOMAIN)
        daemon = Daemon(settings_below(directory), rule_files, on_step=steps)
        serving = asyncio.ensure_future(daemon.run())
        try:
            await kubelet.wait_until(lambda: len(kubelet.capacity) == len(rule_files.resources))
            yield kubelet, daemon, steps
        finally:
            daemon.stop()
            await serving


def under_umockdev(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run without counting descriptors: umockdev's library keeps sockets that look like ours."""
    asyncio.run(asyncio.wait_for(coroutine, 30.0))


@pytest.mark.testbed
def test_plugs_and_unplugs_reach_the_kubelet(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _, _):
            dongle, modem, webcam = gadgets.serial_dongle(), gadgets.modem(first_tty=1), gadgets.webcam()
            bed.plug(dongle, modem, webcam)
            for name in ("dongle", "modem", "camera"):
                await until_allocatable(kubelet, f"{DOMAIN}/{name}", 1)
            ids = {name: set(kubelet.devices(f"{DOMAIN}/{name}")) for name in ("dongle", "modem", "camera")}
            bed.unplug(dongle, modem, webcam)
            for name in ("dongle", "modem", "camera"):
                await until_allocatable(kubelet, f"{DOMAIN}/{name}", 0)
                assert set(kubelet.devices(f"{DOMAIN}/{name}")) == ids[name]

    under_umockdev(main())


@pytest.mark.testbed
def test_two_identical_dongles_are_two_devices(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _, _):
            first, second = gadgets.twins()
            bed.plug(first)
            await until_allocatable(kubelet, f"{DOMAIN}/dongle", 1)
            (plain,) = kubelet.devices(f"{DOMAIN}/dongle")
            bed.plug(second)
            await until_allocatable(kubelet, f"{DOMAIN}/dongle", 2)
            both = set(kubelet.devices(f"{DOMAIN}/dongle"))
            assert plain in both
            bed.unplug(first)
            await until_allocatable(kubelet, f"{DOMAIN}/dongle", 1)
            bed.plug(first)
            await until_allocatable(kubelet, f"{DOMAIN}/dongle", 2)
            assert set(kubelet.devices(f"{DOMAIN}/dongle")) == both

    under_umockdev(main())


@pytest.mark.hotplug
async def test_a_real_console_comes_and_goes(short_dir: Path, console: Console) -> None:
    id_ = f"screen_vcs{console.number}"

    with udevd():
        async with a_node(short_dir, CONSOLES.replace("NODE", console.node)) as (kubelet, _, _):
            with console.plugged() as node:
                await until_allocatable(kubelet, f"{DOMAIN}/screen", 1)
                assert list(kubelet.devices(f"{DOMAIN}/screen")) == [id_]
                assert os.readlink(short_dir / "links" / id_) == node
            await until_allocatable(kubelet, f"{DOMAIN}/screen", 0)
            assert os.readlink(short_dir / "links" / id_) == id_


@pytest.mark.hotplug
async def test_a_real_tap_keeps_its_id_under_another_number(short_dir: Path) -> None:
    with udevd():
        async with a_node(short_dir, CONSOLES) as (kubelet, _, _):
            seen: list[tuple[str, list[str]]] = []
            for _ in range(2):
                with macvtap("gdpvm0") as node:
                    await until_allocatable(kubelet, f"{DOMAIN}/tap", 1)
                    seen.append((node, list(kubelet.devices(f"{DOMAIN}/tap"))))
                await until_allocatable(kubelet, f"{DOMAIN}/tap", 0)
            (node, ids), (other_node, other_ids) = seen
            assert node != other_node
            assert ids == other_ids


@pytest.mark.hotplug
async def test_without_any_udevd_the_kernel_is_followed(short_dir: Path, console: Console) -> None:
    async with a_node(short_dir, CONSOLES.replace("NODE", console.node)) as (kubelet, _, _):
        with console.plugged():
            await until_allocatable(kubelet, f"{DOMAIN}/screen", 1)
        await until_allocatable(kubelet, f"{DOMAIN}/screen", 0)


@pytest.mark.hotplug
async def test_an_edited_rule_file_applies_and_a_bad_one_keeps_its_version(short_dir: Path) -> None:
    async with a_node(short_dir, CONSOLES) as (kubelet, daemon, steps):
        file = short_dir / "rules.d" / "60-more.toml"
        file.write_text('[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n')
        await until_allocatable(kubelet, f"{DOMAIN}/null", 1)
        file.write_text('[[resource]]\nname = "null"\nmach = 1\n')
        other = short_dir / "rules.d" / "70-other.toml"
        other.write_text('[[resource]]\nname = "zero"\nmatch = { DEVNAME = "/dev/zero" }\n')
        await until_allocatable(kubelet, f"{DOMAIN}/zero", 1)
        assert [problem.message for problem in daemon.rules.problems] == [
            "unknown key 'mach' in [[resource]]"
        ]
        assert kubelet.allocatable[f"{DOMAIN}/null"] == 1
        file.unlink()
        await steps.wait_until(lambda inventory: f"{DOMAIN}/null" not in inventory.offers)
