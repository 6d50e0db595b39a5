"""The daemon's metrics and probes, scraped while it serves."""

import asyncio
from pathlib import Path

import pytest

from genericdp.core.rules.settings import Settings
from genericdp.core.status.holdings import Holdings
from genericdp.status.answers import METRICS_LAST_S
from genericdp.status.exporter import Page
from genericdp.status.pages import Pages
from tests.scenes.asking import answer_to
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene
from tests.scenes.scrape import read
from tests.scenes.service import settings_below


@pytest.fixture
def settings(short_dir: Path) -> Settings:
    return settings_below(short_dir, metrics=f"unix:{short_dir}/run/metrics.sock")


async def get(settings: Settings, path: str) -> tuple[str, str]:
    """Status and text of a page."""
    request = f"GET {path} HTTP/1.1\r\n\r\n".encode()
    answer = await answer_to(Path(settings.metrics.removeprefix("unix:")), request)
    head, _, text = answer.decode().partition("\r\n\r\n")
    return head.split(" ", 2)[1], text


async def scrape(settings: Settings) -> dict[str, list[tuple[dict[str, str], float]]]:
    status, text = await get(settings, "/metrics")
    assert status == "200"
    return read(text)


async def test_a_scrape_tells_of_devices_allocations_and_who_holds_them(
    short_dir: Path, settings: Settings
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), settings=settings) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        found = await scrape(settings)
        assert found["genericdp_registered"] == [({"resource": FTDI}, 1.0)]
        assert found["genericdp_allocations_total"] == [({"resource": FTDI}, 1.0)]
        assert found["genericdp_allocation_duration_seconds_count"] == [({}, 1.0)]
        assert 0.0 < found["genericdp_allocation_duration_seconds_sum"][0][1] < 1.0
        holder = {"namespace": "default", "pod": "app", "container": "main"}
        assert found["genericdp_device_allocated"] == [
            ({"resource": FTDI, "device": "ftdi_A50285BI", **holder}, 1.0)
        ]
        assert found["process_resident_memory_bytes"][0][1] > 1 << 20
        assert found["process_open_fds"][0][1] > 3
        assert await get(settings, "/readyz") == ("200", "ok\n")
        assert await get(settings, "/healthz") == ("200", "ok\n")


async def test_without_a_kubelet_it_is_healthy_and_not_ready(short_dir: Path, settings: Settings) -> None:
    async with a_scene(short_dir, settings=settings, kubelet_runs=False):
        why = f"no kubelet listens in '{settings.kubelet_dir}'\n"
        assert await get(settings, "/readyz") == ("503", why)
        assert await get(settings, "/healthz") == ("200", "ok\n")
        assert (await scrape(settings))["genericdp_kubelet_up"] == [({}, 0.0)]


async def test_a_resource_that_is_stuck_makes_it_unhealthy(short_dir: Path, settings: Settings) -> None:
    clock = [0.0]
    async with a_scene(short_dir, settings=settings, now=lambda: clock[0]) as scene:
        await scene.until_allocatable(0)
        tasks = [task for each in scene.daemon.plugins._tasks.values() for task in each]
        for task in tasks:  # as only a bug would end it
            task.cancel()
        await asyncio.wait(tasks)
        assert (await get(settings, "/healthz"))[0] == "200"
        clock[0] = 100.0
        assert await get(settings, "/healthz") == (
            "503",
            f"{FTDI} is stuck: nothing tries to register it\n",
        )


async def test_metrics_ask_the_kubelet_seldom_and_everybody_at_once_only_once(
    short_dir: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def ask(socket_path: str) -> None:
        asked.append(socket_path)
        await asyncio.sleep(0)

    monkeypatch.setattr("genericdp.status.answers.podresources.ask", ask)

    clock = [0.0]
    async with a_scene(short_dir, settings=settings, kubelet_runs=False, now=lambda: clock[0]):
        await asyncio.gather(*(scrape(settings) for _ in range(5)))
        assert len(asked) == 1
        clock[0] = 10.5
        await scrape(settings)
        assert len(asked) == 2


async def test_however_many_scrape_the_page_is_made_once_a_second(
    short_dir: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise any user of the node could keep a pod waiting for its device."""
    made = 0
    make = Pages.metrics

    async def counted(self: Pages, holdings: Holdings | None) -> Page:
        nonlocal made
        made += 1
        return await make(self, holdings)

    monkeypatch.setattr(Pages, "metrics", counted)
    clock = [0.0]
    async with a_scene(short_dir, settings=settings, kubelet_runs=False, now=lambda: clock[0]):
        for _ in range(3):
            await asyncio.gather(*(scrape(settings) for _ in range(20)))
        assert made == 1
        clock[0] += METRICS_LAST_S + 0.1
        await asyncio.gather(*(scrape(settings) for _ in range(20)))
        assert made == 2


async def test_a_port_in_use_is_reported_and_the_plugin_serves(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_below(short_dir, metrics="203.0.113.1:9101")
    async with a_scene(short_dir, a_usb_serial(0), settings=settings) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()

    assert pod.phase == "Running"
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.getMessage() == "cannot listen on '203.0.113.1:9101': Cannot assign requested address"
    assert getattr(warning, "fields", {}) == {"hint": "it must be an address of this machine"}
