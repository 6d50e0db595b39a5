"""What the daemon reports about itself, and that reporting does not keep it from its work."""

import asyncio
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.hint import Deafness, RescanCause, Resync, Silence, SilenceCause, Uevent
from genericdp.core.rules.settings import Settings
from genericdp.core.status.history import Retried
from genericdp.errors import GenericdpError, Location, Problem, UnreadError
from genericdp.files.rulefiles import RuleFile
from genericdp.files.state import StateFile
from genericdp.retry import LONGEST_S
from genericdp.status import client
from genericdp.status.answers import LISTEN_AGAIN_S
from genericdp.status.protocol import SOCKET
from tests.scenes.asking import answer_to
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, a_scene
from tests.scenes.service import Service, settings_below
from tests.scenes.shortage import no_file_larger_than
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


def logged(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """What was logged with one of these words in it."""
    messages = [record.getMessage() for record in caplog.records]
    return [message for message in messages if any(word in message for word in words)]


@pytest.mark.parametrize("reloads", [True, False], ids=["at a reload", "by itself"])
async def test_a_daemon_without_a_control_socket_serves_and_listens_as_soon_as_it_can(
    short_dir: Path, caplog: pytest.LogCaptureFixture, reloads: bool
) -> None:
    caplog.set_level("INFO")
    run_dir = short_dir / "run"
    run_dir.write_text("in the way")
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        time = LoopTime()
        listener = scene.daemon.answers._listeners[Retried.CONTROL]
        for _ in range(3):
            time.advance(LISTEN_AGAIN_S)
            await asyncio.sleep(0.01)
        assert "File exists" in scene.daemon.status_line()
        run_dir.unlink()
        if reloads:
            scene.daemon.reload()
        else:
            time.advance(LISTEN_AGAIN_S)
        await until(lambda: listener.listens)
        await until(lambda: "File exists" not in scene.daemon.status_line())
        assert (await status_of(scene.settings))["well"]
    assert logged(caplog, "listen") == [
        f"cannot listen on 'unix:{short_dir}/run/{SOCKET}': File exists",
        "listening on the control socket now",
    ]


async def test_a_port_for_metrics_that_another_program_has_is_listened_on_once_it_is_free(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        address = f"127.0.0.1:{port}"
        settings = settings_below(short_dir, metrics=address)
        async with a_scene(short_dir, a_usb_serial(0), settings=settings) as scene:
            await scene.until_allocatable(1)
            time = LoopTime()
            report = await status_of(settings)
            why = f"cannot listen on '{address}': Address already in use"
            assert report["complaints"] == [why]
            (failing,) = report["failing"]
            hint = "'ss --listening --tcp --processes' shows who listens there"
            assert (failing["what"], failing["reason"], failing["hint"]) == ("metrics", why, hint)
            other.close()
            time.advance(LISTEN_AGAIN_S)
            await until(lambda: not scene.daemon.recorder.history.failing)
            page = await answer_to(("127.0.0.1", port), b"GET /metrics HTTP/1.1\r\n\r\n")
            assert b'genericdp_failing{what="metrics"} 0' in page
            assert (await status_of(settings))["well"]
    assert logged(caplog, "listen") == [why, "listening on the address for metrics now"]


async def test_a_memory_that_cannot_be_saved_is_reported_until_it_is(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    metrics = short_dir / "metrics.sock"
    settings = settings_below(short_dir, metrics=f"unix:{metrics}")
    async with a_scene(short_dir, settings=settings, kubelet_runs=False) as scene:
        time = LoopTime()
        with no_file_larger_than(10):
            scene.plug(a_usb_serial(0))
            await until(lambda: scene.daemon.recorder.history.failing)
            report = await status_of(settings)
            why = f"cannot save '{settings.state_dir}/memory.json': File too large"
            assert why in report["complaints"]
            assert [each["what"] for each in report["failing"]] == ["memory"]
            page = await answer_to(metrics, b"GET /metrics HTTP/1.1\r\n\r\n")
            assert b'genericdp_failing{what="memory"} 1' in page
            assert why in scene.daemon.status_line()
        time.advance(LONGEST_S)
        await until(lambda: not scene.daemon.recorder.history.failing)
        assert list(StateFile(settings.state_dir).load().devices) == ["ftdi_A50285BI"]
        assert why not in (await status_of(settings))["complaints"]
    assert logged(caplog, "memory") == [why, "the memory is saved again"]


async def test_a_udevd_that_was_not_told_of_the_devices_is_reported_until_it_has_looked(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    why = "udevd runs, but has not looked at 9 of 9 device nodes, and none of these is offered"
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        scene.udev.unseen = GenericdpError(why, hint="'udevadm trigger'")
        scene.udev.tell(Uevent("change", "/sys/x", "tty", "udev"))
        await until(lambda: scene.daemon.recorder.history.failing)
        report = await status_of(scene.settings)
        assert (report["complaints"], report["well"]) == ([why], False)
        assert [(each["what"], each["hint"]) for each in report["failing"]] == [
            ("coldplug", "'udevadm trigger'")
        ]
        scene.udev.unseen = None
        scene.udev.tell(Uevent("change", "/sys/x", "tty", "udev"))
        await until(lambda: not scene.daemon.recorder.history.failing)
        assert (await status_of(scene.settings))["well"]
    assert logged(caplog, "udevd") == [why, "udevd has looked at the devices now"]


async def test_devices_that_cannot_be_read_are_reported_and_read_again(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        time, rescans = LoopTime(), scene.daemon.recorder.history.rescans.by_kind
        scene.udev.unread = UnreadError(
            "cannot read '/sys/x': Too many open files", hint="raise the limit", paths={"/sys/x": ""}
        )
        scene.udev.tell(Uevent("add", "/sys/x", "tty", "udev"))
        await until(lambda: scene.daemon.recorder.history.failing)
        report = await status_of(scene.settings)
        assert report["complaints"] == ["cannot read '/sys/x': Too many open files"]
        for pause in (1.0, 2.0, 4.0):
            steps = scene.service.steps
            time.advance(pause)
            await until(lambda: scene.service.steps > steps)  # noqa: B023  (it is asked in this round)
        scene.udev.unread = None
        time.advance(8.0)
        await until(lambda: not scene.daemon.recorder.history.failing)
        time.advance(20.0)
        assert (await status_of(scene.settings))["well"]
        assert rescans[("unread",)] == 4
    assert logged(caplog, "read") == [
        "ready",
        "cannot read '/sys/x': Too many open files",
        "every device can be read again",
    ]


async def test_rule_files_that_cannot_be_read_during_a_shortage_are_read_again(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene:
        time, reloads = LoopTime(), scene.daemon.recorder.history.reloads.by_kind
        before = reloads[("success",)]
        scene.rules.unread = True
        scene.daemon.reload()
        await until(lambda: reloads[("success",)] == before + 1)
        scene.rules.unread = False
        time.advance(LONGEST_S)
        await until(lambda: reloads[("success",)] == before + 2)
        time.advance(20.0)
        await status_of(scene.settings)
        assert reloads[("success",)] == before + 2


async def test_sighup_makes_the_daemon_read_every_device_again(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene:
        steps = scene.service.steps
        scene.daemon.reload()
        await scene.service.wait_until(lambda: scene.service.steps > steps)
        assert scene.daemon.recorder.history.rescans.by_kind == {("reload",): 1}


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
