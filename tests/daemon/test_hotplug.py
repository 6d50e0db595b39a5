"""The whole daemon with the real udev door: rule files, udev, the simulated kubelet, one process."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.inventory.inventory import Inventory
from genericdp.files.rulefiles import RuleFiles
from genericdp.simulator import Container, Kubelet, Pod
from tests.scenes.mounts import bind_mounted
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE, MODEM_RULE
from tests.scenes.scene import until_allocatable
from tests.scenes.service import Service, settings_below
from tests.scenes.waiting import until
from tests.udev import gadgets
from tests.udev.hotplug import Console, macvtap, udevd, udevd_with_our_rule
from tests.udev.testbed import Testbed

CAMERA_RULE = """
[[resource]]
name = "camera"
match = { SUBSYSTEM = "video4linux", "ATTR{index}" = "0" }
"""
TWO_MODELS = MODEM_RULE.replace('"2c7c"', '"2c7c", product = ["0125", "0121"]') + "optional = true\n"
RULES = FTDI_RULE + TWO_MODELS + CAMERA_RULE
CONSOLES = """
[[resource]]
name = "screen"
match = { SUBSYSTEM = "vc", DEVNAME = "/dev/NODE" }

[[resource]]
name = "tap"
match = { SUBSYSTEM = "macvtap" }
container_path = "/dev/tap{index}"
"""


@asynccontextmanager
async def a_node(
    directory: Path, rules: str, now: Callable[[], float] = time.monotonic
) -> AsyncIterator[tuple[Kubelet, Service]]:
    """A kubelet and a daemon that reads real rule files and hears the real udev."""
    settings = settings_below(directory)
    (directory / "rules.d").mkdir(mode=0o755)
    (directory / "rules.d" / "50-test.toml").write_text(rules)
    rule_files = RuleFiles([str(directory / "rules.d")], DOMAIN)
    async with Kubelet(directory) as kubelet, Service(settings, rule_files, now=now) as service:
        await kubelet.wait_until(lambda: len(kubelet.capacity) == len(rule_files.resources))
        yield kubelet, service


def nodes_seen(inventory: Inventory) -> set[str]:
    """The device nodes that the rules match, offered or not."""
    devices = (device for offer in inventory.offers.values() for device in offer.devices)
    offered = {node.path for device in devices for node in device.nodes}
    return offered | {refusal.node for refusal in inventory.refusals}


def under_umockdev(coroutine: Coroutine[Any, Any, None], timeout_s: float = 30.0) -> None:
    """Run without counting descriptors: umockdev's library keeps sockets that look like ours."""
    asyncio.run(asyncio.wait_for(coroutine, timeout_s))


@pytest.mark.testbed
def test_plugs_and_unplugs_reach_the_kubelet(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _):
            dongle, modem, webcam = gadgets.serial_dongle(), gadgets.modem(first_tty=1), gadgets.webcam()
            bed.plug(dongle, modem, webcam)
            for name in ("ftdi", "modem", "camera"):
                await until_allocatable(kubelet, 1, f"{DOMAIN}/{name}")
            ids = {name: set(kubelet.devices(f"{DOMAIN}/{name}")) for name in ("ftdi", "modem", "camera")}
            bed.unplug(dongle, modem, webcam)
            for name in ("ftdi", "modem", "camera"):
                await until_allocatable(kubelet, 0, f"{DOMAIN}/{name}")
                assert set(kubelet.devices(f"{DOMAIN}/{name}")) == ids[name]

    under_umockdev(main())


@pytest.mark.testbed
def test_two_identical_dongles_are_two_devices(short_dir: Path, bed: Testbed) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _):
            first, second = gadgets.twins()
            bed.plug(first)
            await until_allocatable(kubelet, 1)
            (plain,) = kubelet.devices(FTDI)
            bed.plug(second)
            await until_allocatable(kubelet, 2)
            both = set(kubelet.devices(FTDI))
            assert plain in both
            bed.unplug(first)
            await until_allocatable(kubelet, 1)
            bed.plug(first)
            await until_allocatable(kubelet, 2)
            assert set(kubelet.devices(FTDI)) == both

    under_umockdev(main())


@pytest.mark.testbed
def test_a_dongle_at_another_port_is_no_twin_of_itself_if_its_remove_comes_late(
    short_dir: Path, bed: Testbed
) -> None:
    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, _):
            here = gadgets.serial_dongle("1", serial="A50285BI")
            there = gadgets.serial_dongle("2", tty=1, serial="A50285BI", devnum=6)
            bed.plug(here)
            await until_allocatable(kubelet, 1)
            for entry in reversed([entry for entry in here if not entry.shared]):
                bed.detach(entry)
            bed.plug(there)
            await until(lambda: os.readlink(short_dir / "links/ftdi_A50285BI") == "/dev/ttyUSB1")
            assert list(kubelet.devices(FTDI)) == ["ftdi_A50285BI"]

    under_umockdev(main())


@pytest.mark.testbed
@pytest.mark.parametrize("finished", [True, False])
def test_a_twin_that_is_announced_before_the_unit_of_a_pod_gets_nothing_of_it(
    short_dir: Path, bed: Testbed, *, finished: bool
) -> None:
    """The unit is at another port. Udev may have finished with it, but it has not been heard of."""

    async def main() -> None:
        bed.plug(gadgets.root_hub())
        async with a_node(short_dir, RULES) as (kubelet, service):
            link = short_dir / "links/ftdi_A50285BI"
            here = gadgets.serial_dongle("1")
            there = gadgets.serial_dongle("3", tty=1, devnum=6)
            twin = gadgets.serial_dongle("2", tty=2, devnum=7)
            bed.plug(here)
            await until_allocatable(kubelet, 1)
            await kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1})]))
            bed.unplug(here)
            await until_allocatable(kubelet, 0)
            for entry in bed.attach(there):
                if finished:
                    bed.initialize(entry)
            bed.plug(twin)
            await service.wait_until(lambda: "/dev/ttyUSB2" in nodes_seen(service.daemon.inventory))
            assert os.readlink(link) == link.name
            for entry in there:
                bed.initialize(entry)
                bed.uevent(entry, "add")
            await until_allocatable(kubelet, 2)
            assert os.readlink(link) == link.name
            bed.unplug(there)
            bed.plug(here)
            await until(lambda: os.readlink(link) == "/dev/ttyUSB0")

    under_umockdev(main())


@pytest.mark.hotplug
async def test_a_real_console_comes_and_goes(short_dir: Path, console: Console) -> None:
    id_ = f"screen_vcs{console.number}"

    with udevd():
        async with a_node(short_dir, CONSOLES.replace("/dev/NODE", console.node)) as (kubelet, _):
            with console.plugged() as node:
                await until_allocatable(kubelet, 1, f"{DOMAIN}/screen")
                assert list(kubelet.devices(f"{DOMAIN}/screen")) == [id_]
                assert os.readlink(short_dir / "links" / id_) == node
            await until_allocatable(kubelet, 0, f"{DOMAIN}/screen")
            assert os.readlink(short_dir / "links" / id_) == id_


@pytest.mark.hotplug
async def test_a_real_tap_keeps_its_id_under_another_number(short_dir: Path) -> None:
    with udevd():
        async with a_node(short_dir, CONSOLES) as (kubelet, _):
            seen: list[tuple[str, list[str]]] = []
            for _ in range(2):
                with macvtap("gdpvm0") as node:
                    await until_allocatable(kubelet, 1, f"{DOMAIN}/tap")
                    seen.append((node, list(kubelet.devices(f"{DOMAIN}/tap"))))
                await until_allocatable(kubelet, 0, f"{DOMAIN}/tap")
            (node, ids), (other_node, other_ids) = seen
            assert node != other_node
            assert ids == other_ids


@pytest.mark.hotplug
async def test_udevs_rule_and_the_daemon_do_not_get_in_each_others_way(
    short_dir: Path, console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    link = short_dir / "links" / f"screen_vcs{console.number}"
    with udevd_with_our_rule(short_dir / "links") as running:
        async with a_node(short_dir, CONSOLES.replace("/dev/NODE", console.node)) as (kubelet, _):
            for _ in range(20):
                with console.plugged():
                    pass
                with console.plugged() as node:
                    await asyncio.to_thread(running.settle)
                    await until(leads(link, node))
                    await until_allocatable(kubelet, 1, f"{DOMAIN}/screen")
                await until(leads(link, link.name))
            await until_allocatable(kubelet, 0, f"{DOMAIN}/screen")
    assert "the stable links were changed, restoring them" not in caplog.messages


def leads(link: Path, target: str) -> Callable[[], bool]:
    """Whether a link leads there."""
    return lambda: os.path.lexists(link) and os.readlink(link) == target


@pytest.mark.hotplug
async def test_while_the_daemon_hangs_a_link_never_leads_to_the_next_device_of_a_name(
    short_dir: Path, console: Console
) -> None:
    link = short_dir / "links" / f"screen_vcs{console.number}"
    with udevd_with_our_rule(short_dir / "links") as running:
        async with a_node(short_dir, CONSOLES.replace("/dev/NODE", console.node)) as (kubelet, _):
            with console.plugged():
                await until_allocatable(kubelet, 1, f"{DOMAIN}/screen")
            # The loop of the daemon stands still from here on.
            with console.plugged() as node:
                running.settle()
                assert os.readlink(link) == link.name
                await until(leads(link, node))
                await until_allocatable(kubelet, 1, f"{DOMAIN}/screen")


@pytest.mark.hotplug
async def test_without_any_udevd_the_kernel_is_followed(short_dir: Path, console: Console) -> None:
    async with a_node(short_dir, CONSOLES.replace("/dev/NODE", console.node)) as (kubelet, _):
        with console.plugged():
            await until_allocatable(kubelet, 1, f"{DOMAIN}/screen")
        await until_allocatable(kubelet, 0, f"{DOMAIN}/screen")


@pytest.mark.hotplug
async def test_an_edited_rule_file_applies_and_a_bad_one_keeps_its_version(short_dir: Path) -> None:
    async with a_node(short_dir, CONSOLES) as (kubelet, service):
        file = short_dir / "rules.d" / "60-more.toml"
        file.write_text('[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n')
        await until_allocatable(kubelet, 1, f"{DOMAIN}/null")
        file.write_text('[[resource]]\nname = "null"\nmach = 1\n')
        other = short_dir / "rules.d" / "70-other.toml"
        other.write_text('[[resource]]\nname = "zero"\nmatch = { DEVNAME = "/dev/zero" }\n')
        await until_allocatable(kubelet, 1, f"{DOMAIN}/zero")
        assert [problem.message for problem in service.rules.problems] == [
            "unknown key 'mach' in [[resource]]"
        ]
        assert kubelet.allocatable[f"{DOMAIN}/null"] == 1
        file.unlink()
        await service.wait_until(lambda: f"{DOMAIN}/null" not in service.daemon.inventory.offers)


@pytest.mark.hotplug
async def test_a_directory_that_is_mounted_over_the_rules_is_read_and_watched(short_dir: Path) -> None:
    other = short_dir / "other"
    other.mkdir()
    async with a_node(short_dir, CONSOLES) as (kubelet, service):
        with bind_mounted(other, short_dir / "rules.d"):
            await service.wait_until(lambda: not service.daemon.inventory.offers)
            file = short_dir / "rules.d" / "60-more.toml"
            file.write_text('[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\n')
            await until_allocatable(kubelet, 1, f"{DOMAIN}/null")


@pytest.mark.hotplug
def test_the_demo_shows_a_console_that_comes_and_goes(short_dir: Path, console: Console) -> None:
    rules = short_dir / "screens.toml"
    rules.write_text(
        '[[resource]]\nname = "screen"\n'
        f'match = {{ SUBSYSTEM = "vc", DEVNAME = ["/dev/vcs1", "{console.node}"] }}\n'
    )
    rules.chmod(0o644)
    done = subprocess.run(
        [sys.executable, "examples/demo.py", "--config", os.devnull, "--rules", str(rules)],
        env={**os.environ, "CONSOLE": str(console.number)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    changes = [line for line in done.stdout.splitlines() if line.startswith(("#", "genericdp.io/"))]
    assert changes == [
        f"# genericdp simulate --config {os.devnull} --rules {rules}",
        "# A resource with capacity 0 is no fault: this machine has no such device.",
        f"# opening /dev/tty{console.number}: the kernel adds vcs{console.number}",
        "genericdp.io/screen: capacity 1 -> 2, allocatable 1 -> 2",
        f"# deallocating console {console.number}: the kernel removes vcs{console.number}",
        "genericdp.io/screen: capacity 2, allocatable 2 -> 1",
    ]
    assert "Ctrl-C" not in done.stdout  # without a terminal it ends by itself
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.testbed
def test_what_changes_without_an_event_is_found_where_a_rule_asks_for_it(
    short_dir: Path, bed: Testbed
) -> None:
    health = 'health = { parent = { "ATTR{temp}" = { at_most = 85000 } } }\nhealth_poll = "500ms"\n'

    async def main() -> None:
        webcam = gadgets.webcam()
        bed.plug(gadgets.root_hub(), webcam)
        bed.set_attribute(webcam[2], "temp", "40000")
        async with a_node(short_dir, CAMERA_RULE + health) as (kubelet, _):
            camera = f"{DOMAIN}/camera"
            await until_allocatable(kubelet, 1, camera)
            bed.set_attribute(webcam[2], "temp", "90000")
            await until_allocatable(kubelet, 0, camera)
            bed.set_attribute(webcam[2], "temp", "40000")
            await until_allocatable(kubelet, 1, camera)

    under_umockdev(main())
