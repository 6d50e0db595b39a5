"""What a daemon tells of itself when it is asked, and that being asked is not in its way."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.hint import Deafness, RescanCause, Resync, Silence, SilenceCause, Uevent
from genericdp.core.rules.settings import Settings
from genericdp.errors import Location, Problem
from genericdp.files.rulefiles import RuleFile
from genericdp.status import client
from genericdp.status.protocol import SOCKET
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene
from tests.scenes.service import Service, settings_below
from tests.scenes.waiting import until


async def status_of(settings: Settings) -> dict[str, Any]:
    return await asyncio.to_thread(client.status, settings)


async def test_it_tells_what_is_registered_and_who_holds_what(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        report = await status_of(scene.settings)
        assert (report["state"], report["well"], report["pid"]) == ("serving", True, os.getpid())
        (resource,) = report["resources"]
        assert (resource["registered"], resource["streams"], resource["lists"]) == (True, 1, 1)
        (device,) = resource["devices"]
        assert device["heldBy"] == [
            {"id": "ftdi_A50285BI", "namespace": "default", "pod": "app", "container": "main"}
        ]
        scene.unplug(a_usb_serial(0))
        await scene.until_allocatable(0)
        report = await status_of(scene.settings)
        assert report["complaints"] == [f"{FTDI}: ftdi_A50285BI is Unhealthy: it is unplugged"]
        (entry,) = report["said"]
        assert (entry["message"], entry["fields"]["id"]) == ("device is unhealthy", "ftdi_A50285BI")


async def test_without_a_kubelet_it_says_so_and_that_nobody_knows_who_holds_what(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene:
        report = await status_of(scene.settings)
        assert report["complaints"] == [f"no kubelet listens in '{scene.settings.kubelet_dir}'"]
        assert report["podResources"]["answers"] is False


async def test_rule_files_are_told_with_the_version_in_force(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False, daemon_runs=False) as scene:
        rules = scene.rules
        rules.files = (RuleFile("/r.toml", FTDI_RULE, rules.resources, digest="abc"),)
        await scene.service.start()
        before = (await status_of(scene.settings))["rules"]
        problem = Problem(Location("/r.toml", 2), "oh")
        rules.files = (replace(rules.files[0], problems=(problem,), outdated=True),)
        rules.problems = (problem,)
        scene.daemon.reload()
        await until(lambda: scene.daemon.recorder.history.reloads.by_kind.get(("error",)))
        after = (await status_of(scene.settings))["rules"]
    (file,) = before["files"]
    assert (file["digest"], file["outdated"], file["resources"]) == ("abc", False, [FTDI])
    (file,) = after["files"]
    assert (file["digest"], file["outdated"]) == ("abc", True)
    assert [each["message"] for each in after["problems"]] == ["oh"]


async def test_what_is_heard_of_udev_is_counted_once(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False) as scene:
        history = scene.daemon.recorder.history
        # Both tell of the same removal; while all is well, udev's counts.
        scene.udev.tell(Uevent("remove", "/sys/a", "tty", "kernel", seqnum=1))
        scene.udev.tell(Uevent("remove", "/sys/a", "tty", "udev", seqnum=1))
        silence = Silence(SilenceCause.NO_UDEV, detail="/run/udev/control")
        scene.udev.tell(Deafness(silence))
        scene.udev.tell(Resync(RescanCause.TROUBLE, silence=silence))
        for _ in range(3):  # the monitor looks again and again
            scene.udev.tell(Uevent("add", "/sys/b", "usb", "kernel", seqnum=2))
        scene.udev.tell(Resync(RescanCause.DEAF))
        scene.udev.tell(Resync(RescanCause.OVERFLOW, "udev"))
        scene.udev.tell(Resync(RescanCause.HEARD_AGAIN, silence=silence))
        scene.udev.tell(Resync(RescanCause.USB_RESET))
        scene.udev.tell(Deafness(None))
        assert history.uevents.by_kind == {("remove", "tty"): 1, ("add", "usb"): 1}
        assert history.rescans.by_kind == {
            ("trouble",): 1,
            ("deaf",): 1,
            ("overflow",): 1,
            ("heard again",): 1,
            ("usb reset",): 1,
        }
        assert history.overflows == 1
        assert (await status_of(scene.settings))["udev"]["heard"]


async def test_one_that_cannot_be_asked_serves_all_the_same_and_listens_after_a_reload(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_dir = short_dir / "run"
    run_dir.write_text("in the way")
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        run_dir.unlink()
        scene.daemon.reload()
        await until(lambda: scene.daemon.answers._listeners[0].listens)
        assert (await status_of(scene.settings))["well"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"cannot listen on 'unix:{short_dir}/run/{SOCKET}': File exists"
    ]


@pytest.mark.parametrize("shared", [True, False], ids=["the same run_dir", "another run_dir"])
async def test_of_two_the_one_that_serves_answers_and_then_the_other(short_dir: Path, shared: bool) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        other = scene.settings if shared else settings_below(short_dir, run_dir=f"{short_dir}/run2")
        async with Service(other, scene.rules, scene.udev) as second:
            assert (await status_of(scene.settings))["state"] == "serving"
            if not shared:
                report = await status_of(other)
                assert (report["state"], report["well"]) == ("standing by", True)
                assert report["standingByFor"].startswith("process ")
            await scene.service.stop()
            await until(lambda: second.daemon.plugins.registered)
            report = await status_of(other)
            assert (report["state"], report["well"]) == ("serving", True)
    assert not [*short_dir.rglob(SOCKET)]
