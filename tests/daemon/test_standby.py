"""Two daemons on one node: the second one stands by, and takes over when the first one ends."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp import standby
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon, Rules
from genericdp.errors import GenericdpError
from genericdp.files.rulefiles import RuleFiles
from genericdp.kubelet.endpoints import sweep
from genericdp.simulator import Generation, Kubelet
from genericdp.systemd import Notify
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import (
    DOMAIN,
    FixedRules,
    Machine,
    Steps,
    a_daemon,
    a_machine,
    links_in,
    settings_below,
    until_allocatable,
)

FTDI = "example.com/ftdi"
RULES = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
"""

both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


class Told(Notify):
    """What the service manager is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.changed = asyncio.Event()

    def ready(self, status: str = "") -> None:
        self.said.append(status)
        self.changed.set()


@asynccontextmanager
async def a_second(
    machine: Machine, settings: Settings, rules: Rules | None = None
) -> AsyncIterator[tuple[Daemon, Told, Steps]]:
    """Another daemon, which has told that it is ready."""
    told, steps = Told(), Steps()
    daemon = Daemon(
        settings,
        rules or FixedRules(RULES),
        devices=machine,
        listen=machine.listen,
        notify=told,
        on_step=steps,
    )
    serving = asyncio.ensure_future(daemon.run())
    try:
        await told.changed.wait()
        yield daemon, told, steps
    finally:
        daemon.stop()
        await serving


@both_generations
async def test_the_second_one_stands_by_and_serves_as_soon_as_the_first_ends(
    short_dir: Path, generation: Generation
) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation) as kubelet:
            first = a_daemon(machine, FixedRules(RULES), settings)
            await first.__aenter__()
            await until_allocatable(kubelet, FTDI, 1)
            async with a_second(machine, settings) as (_, told, steps):
                (ready,) = told.said
                assert ready.startswith("standing by: process ")
                assert ready.endswith(" serves this node")
                # It hears of nothing, makes no link and does not register.
                machine.plug(a_usb_serial(1, serial="B", port="2"))
                await until_allocatable(kubelet, FTDI, 2)
                assert steps.count == 0
                await first.__aexit__(None, None, None)
                await steps.wait_until(lambda inventory: bool(inventory.offers))
                await until_allocatable(kubelet, FTDI, 2)
                assert links_in(settings).keys() == {"ftdi_A50285BI", "ftdi_B"}
                assert told.said[1:] == ["1 resource, 2 of 2 devices healthy; no kubelet"]


async def test_a_rule_file_that_was_edited_while_it_stood_by_is_in_force_when_it_serves(
    short_dir: Path,
) -> None:
    settings = settings_below(short_dir)
    file = short_dir / "10-ftdi.toml"
    file.write_text(RULES)
    file.chmod(0o644)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet:
            first = a_daemon(machine, FixedRules(RULES), settings)
            await first.__aenter__()
            await until_allocatable(kubelet, FTDI, 1)
            rules = RuleFiles([str(file)], DOMAIN)
            async with a_second(machine, settings, rules) as (_, _, steps):
                file.write_text(RULES.replace('"ftdi"', '"serial"'))
                await first.__aexit__(None, None, None)
                await steps.wait_until(lambda inventory: bool(inventory.offers))
                assert steps.inventory.offers.keys() == {f"{DOMAIN}/serial"}


async def test_one_that_stands_by_can_be_stopped_and_leaves_everything_alone(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet, a_daemon(machine, FixedRules(RULES), settings):
            await until_allocatable(kubelet, FTDI, 1)
            async with a_second(machine, settings):
                pass
            machine.plug(a_usb_serial(1, serial="B", port="2"))
            await until_allocatable(kubelet, FTDI, 2)


async def test_one_with_other_links_is_refused_with_what_to_do(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "AGAIN_S", 0.0)

    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet, a_daemon(machine, FixedRules(RULES), settings):
            await until_allocatable(kubelet, FTDI, 1)
            (name,) = sweep(settings.kubelet_dir)
            other = replace(settings, link_dir=f"{short_dir}/other")
            with pytest.raises(GenericdpError) as refused:
                await Daemon(other, FixedRules(RULES), devices=machine, listen=machine.listen).run()
            assert str(refused.value) == (
                f"another genericdp serves this kubelet: it listens on '{settings.kubelet_dir}/{name}'"
            )
            assert refused.value.hint == (
                "remove one of them, or give both the same 'link_dir': then one stands by for the other"
            )
            # And the one that was there did not notice.
            assert kubelet.allocatable[FTDI] == 1


async def test_sockets_that_a_killed_daemon_left_are_removed(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        async with Kubelet(short_dir) as kubelet:
            left = Path(settings.kubelet_dir) / "gdp-0123456789.sock"
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(left))
            machine.plug(a_usb_serial(0))
            async with a_daemon(machine, FixedRules(RULES), settings):
                await until_allocatable(kubelet, FTDI, 1)
                assert not left.exists()


async def test_without_a_directory_to_lock_it_says_so_and_serves(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = replace(settings_below(short_dir), link_dir=f"{short_dir}/file/links")
    (short_dir / "file").touch()
    with a_machine() as machine:
        async with a_daemon(machine, FixedRules(RULES), settings):
            pass
    assert f"cannot lock '{short_dir}/file/links/.lock': Not a directory" in caplog.messages
