"""`genericdp probe` while a daemon runs: the decisions of /healthz and /readyz, over the control socket."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.status.protocol import socket_path
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene
from tests.scenes.service import Service
from tests.scenes.waiting import until


async def probe(what: str, settings: Settings) -> tuple[int, str]:
    """Exit status and output of the verb."""
    command = [sys.executable, "-m", "genericdp", "probe", what, "--socket", socket_path(settings.run_dir)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


async def test_a_daemon_with_all_resources_registered_is_healthy_and_ready(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        assert await probe("health", scene.settings) == (0, "")
        assert await probe("readiness", scene.settings) == (0, "")


async def test_a_resource_that_the_kubelet_refuses_is_named_with_its_reason(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        scene.kubelet.faults.refuse_registrations("no more plugins")
        await scene.service.start()
        (registration,) = scene.daemon.plugins.registrations.values()
        await until(lambda: registration.progress.error)
        assert await probe("readiness", scene.settings) == (
            1,
            f"{FTDI} is not registered: no more plugins\n",
        )
        assert await probe("health", scene.settings) == (0, "")


async def test_a_resource_that_is_stuck_makes_it_unhealthy(short_dir: Path) -> None:
    clock = [0.0]
    async with a_scene(short_dir, now=lambda: clock[0]) as scene:
        await scene.until_allocatable(0)
        tasks = [task for each in scene.daemon.plugins._tasks.values() for task in each]
        for task in tasks:  # as only a bug would end it
            task.cancel()
        await asyncio.wait(tasks)
        assert await probe("health", scene.settings) == (0, "")
        clock[0] = 100.0
        assert await probe("health", scene.settings) == (
            1,
            f"{FTDI} is stuck: nothing tries to register it\n",
        )


async def test_the_new_pod_of_a_rollout_is_ready_while_it_stands_by(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        of_new_pod = replace(scene.settings, run_dir=f"{short_dir}/new")
        async with Service(of_new_pod, scene.rules, scene.udev) as second:
            assert second.daemon.standing_by
            assert await probe("readiness", of_new_pod) == (0, "")
            assert await probe("health", of_new_pod) == (0, "")
        assert await probe("readiness", scene.settings) == (0, "")


async def test_the_kubelet_is_not_asked(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(socket_path: str) -> None:
        raise AssertionError(socket_path)

    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        monkeypatch.setattr("genericdp.status.answers.podresources.ask", ask)
        assert await probe("health", scene.settings) == (0, "")
        assert await probe("readiness", scene.settings) == (0, "")
