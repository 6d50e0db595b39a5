"""What a daemon tells of itself when it is asked, and that being asked is not in its way."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.errors import Location, Problem
from genericdp.files.rulefiles import RuleFile
from genericdp.simulator import Container, Kubelet, Pod
from genericdp.status import client
from genericdp.status.control import SOCKET
from genericdp.systemd import Notify
from genericdp.udev import Deafness, Resync, Uevent
from tests.scenes.asking import until
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import (
    FixedRules,
    a_daemon,
    a_machine,
    settings_below,
    until_allocatable,
)

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }\n'


async def status_of(settings: Settings) -> dict[str, Any]:
    return await asyncio.to_thread(client.status, settings)


async def test_it_tells_what_is_registered_and_who_holds_what(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet, a_daemon(machine, FixedRules(RULES), settings):
            await until_allocatable(kubelet, FTDI, 1)
            await kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1})]))
            report = await status_of(settings)
            assert (report["state"], report["well"], report["pid"]) == ("serving", True, os.getpid())
            (resource,) = report["resources"]
            assert (resource["registered"], resource["streams"], resource["lists"]) == (True, 1, 1)
            (device,) = resource["devices"]
            assert device["heldBy"] == [
                {"id": "ftdi_A50285BI", "namespace": "default", "pod": "app", "container": "main"}
            ]
            machine.unplug(a_usb_serial(0))
            await until_allocatable(kubelet, FTDI, 0)
            report = await status_of(settings)
            assert report["complaints"] == [f"{FTDI}: ftdi_A50285BI is Unhealthy: it is unplugged"]
            (said,) = report["said"]
            assert (said["message"], said["fields"]["id"]) == ("device is unhealthy", "ftdi_A50285BI")


async def test_without_a_kubelet_it_says_so_and_that_nobody_knows_who_holds_what(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with a_daemon(machine, FixedRules(RULES), settings):
            report = await status_of(settings)
            assert report["complaints"] == [f"there is no kubelet at '{settings.kubelet_dir}'"]
            assert report["podResources"]["answers"] is False


async def test_rule_files_are_told_with_the_version_in_force(short_dir: Path) -> None:
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    rules.files = (RuleFile("/r.toml", RULES, rules.resources, digest="abc"),)
    with a_machine() as machine:
        async with a_daemon(machine, rules, settings) as daemon:
            before = (await status_of(settings))["rules"]
            problem = Problem(Location("/r.toml", 2), "oh")
            rules.files = (replace(rules.files[0], problems=(problem,), outdated=True),)
            rules.problems = (problem,)
            daemon.reload()
            await until(lambda: daemon.witness.history.reloads.by_kind.get(("error",)))
            after = (await status_of(settings))["rules"]
    (file,) = before["files"]
    assert (file["digest"], file["outdated"], file["resources"]) == ("abc", False, [FTDI])
    (file,) = after["files"]
    assert (file["digest"], file["outdated"]) == ("abc", True)
    assert [each["message"] for each in after["problems"]] == ["oh"]


async def test_what_is_heard_of_udev_is_counted_once(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    with a_machine() as machine:
        async with a_daemon(machine, FixedRules(RULES), settings) as daemon:
            history = daemon.witness.history
            # Both tell of the same removal; while all is well, udev's counts.
            machine.tell(Uevent("remove", "/sys/a", "tty", "kernel", seqnum=1))
            machine.tell(Uevent("remove", "/sys/a", "tty", "udev", seqnum=1))
            machine.tell(Deafness("no udev"))
            machine.tell(Resync("no udev"))
            for _ in range(3):  # the monitor looks again and again
                machine.tell(Uevent("add", "/sys/b", "usb", "kernel", seqnum=2))
            machine.tell(Resync("rescan"))
            machine.tell(Resync("the socket for the events of udev overflowed"))
            machine.tell(Resync("heard again after: no udev"))
            machine.tell(Resync("a USB device was reset"))
            machine.tell(Deafness(""))
            assert history.uevents.by_kind == {("remove", "tty"): 1, ("add", "usb"): 1}
            assert history.rescans.by_kind == {
                ("trouble",): 1,
                ("deaf",): 1,
                ("overflow",): 1,
                ("heard again",): 1,
                ("usb reset",): 1,
            }
            assert history.overflows == 1
            assert (await status_of(settings))["udev"]["heard"]


async def test_one_that_cannot_be_asked_serves_all_the_same_and_listens_after_a_reload(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_dir = short_dir / "run"
    run_dir.write_text("in the way")
    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings) as daemon,
        ):
            await until_allocatable(kubelet, FTDI, 1)
            run_dir.unlink()
            daemon.reload()
            await until(lambda: daemon.witness._listeners[0].listens)
            assert (await status_of(settings))["well"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"cannot listen on 'unix:{short_dir}/run/{SOCKET}': File exists"
    ]


class Told(Notify):
    """Notes that it was told to be ready."""

    def __init__(self) -> None:
        super().__init__()
        self.ready_once = asyncio.Event()

    def ready(self, status: str = "") -> None:
        del status
        self.ready_once.set()


@pytest.mark.parametrize("shared", [True, False], ids=["the same run_dir", "another run_dir"])
async def test_of_two_the_one_that_serves_answers_and_then_the_other(short_dir: Path, shared: bool) -> None:
    settings = settings_below(short_dir)
    other = settings if shared else replace(settings, run_dir=f"{short_dir}/run2")
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir):
            first = a_daemon(machine, FixedRules(RULES), settings)
            await first.__aenter__()
            told = Told()
            second = Daemon(other, FixedRules(RULES), devices=machine, listen=machine.listen, notify=told)
            serving = asyncio.ensure_future(second.run())
            try:
                await told.ready_once.wait()
                assert (await status_of(settings))["state"] == "serving"
                if not shared:
                    report = await status_of(other)
                    assert (report["state"], report["well"]) == ("standing by", True)
                    assert report["standingByFor"].startswith("process ")
                await first.__aexit__(None, None, None)
                await until(lambda: second.plugins.registered)
                report = await status_of(other)
                assert (report["state"], report["well"]) == ("serving", True)
            finally:
                second.stop()
                await serving
    assert not [*short_dir.rglob(SOCKET)]
