"""Lists of a plugin: how the kubelet counts them, and what it publishes."""

import os
from pathlib import Path

import pytest
from inotify_simple import INotify, flags

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, Generation, Kubelet, ManualClock, Pod
from genericdp.simulator.devices.checkpoint import NAME, parse
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, device

ONE = Pod("p", [Container("c", limits={RESOURCE: 1})])


async def test_each_list_replaces_the_previous_one(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        await plugin.send(kubelet, "b", device("c", api.UNHEALTHY))
        assert sorted(kubelet.devices(RESOURCE)) == ["b", "c"]
        assert kubelet.capacity == {RESOURCE: 2}
        assert kubelet.allocatable == {RESOURCE: 1}
        assert kubelet.messages(RESOURCE) == 2
        await plugin.stop()


async def test_an_id_that_is_listed_healthy_and_unhealthy_counts_twice(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "a", device("b"), device("b", api.UNHEALTHY)).join(kubelet)
        assert kubelet.capacity == {RESOURCE: 3}
        assert kubelet.allocatable == {RESOURCE: 2}
        await plugin.stop()


async def test_an_empty_list_does_not_disconnect_the_plugin(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin().join(kubelet)
        assert kubelet.capacity == kubelet.allocatable == {RESOURCE: 0}
        assert kubelet.streams(RESOURCE) == 1
        await plugin.stop()


async def test_a_list_of_more_than_4_mib_ends_the_stream(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.streams[0].put_nowait([device("x" * 4_300_000)])
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        assert kubelet.allocatable == {RESOURCE: 0}
        assert kubelet.capacity == {RESOURCE: 1}
        await plugin.stop()


async def test_each_list_makes_checkpoint_noise_in_the_directory(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        with INotify() as inotify:
            inotify.add_watch(str(kubelet.directory), flags.CREATE | flags.MOVED_TO)
            await plugin.send(kubelet, "a", "b")
            created, moved = inotify.read(timeout=0)
        assert created.mask == flags.CREATE
        assert created.name[0] == "."
        assert created.name[1:].isdigit()
        assert (moved.mask, moved.name) == (flags.MOVED_TO, NAME)
        path = kubelet.directory / NAME
        assert parse(path.read_text()).registered == {RESOURCE: ("a", "b")}
        assert os.stat(path).st_mode & 0o777 == 0o600
        await plugin.stop()


async def test_the_inotify_order_of_a_restart_is_delete_then_create(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.directory / "p.sock")
        with INotify() as inotify:
            inotify.add_watch(str(kubelet.directory), flags.CREATE | flags.DELETE | flags.MOVED_TO)
            await kubelet.restart()
            events = [(event.mask, event.name) for event in inotify.read(timeout=0)]
        assert sorted(events[:-1]) == [(flags.DELETE, "kubelet.sock"), (flags.DELETE, "p.sock")]
        assert events[-1] == (flags.CREATE, "kubelet.sock")
        await plugin.stop()


@pytest.mark.parametrize("generation", Generation)
async def test_a_resource_still_counts_for_five_minutes_after_its_plugin_has_gone(
    short_dir: Path, generation: Generation
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock, generation=generation) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.tick()
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})
        kubelet.tick()
        clock.advance(300)
        assert not kubelet.tick()
        clock.advance(0.1)
        assert kubelet.capacity == {RESOURCE: 1}, "only a tick removes it"
        assert kubelet.tick()
        assert kubelet.capacity == {}
        assert parse((kubelet.directory / NAME).read_text()).registered == {}
        assert [(dict(one.capacity), dict(one.allocatable)) for one in kubelet.node_status] == [
            ({}, {}),
            ({RESOURCE: 1}, {RESOURCE: 1}),
            ({RESOURCE: 1}, {RESOURCE: 0}),
            ({RESOURCE: 0}, {RESOURCE: 0}),
        ], "the key stays"


async def test_a_plugin_that_comes_back_in_time_keeps_the_capacity(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})
        clock.advance(200)
        again = await SmallPlugin("a").serve(kubelet.directory / "2.sock")
        await again.register(kubelet, endpoint="2.sock")
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 1})
        clock.advance(200)
        kubelet.tick()
        assert kubelet.capacity == {RESOURCE: 1}
        await again.stop()


async def test_nothing_is_published_between_two_ticks(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await plugin.send(kubelet)
        await plugin.send(kubelet, "a", "b")
        assert kubelet.node_status.now.capacity == {}
        assert kubelet.tick()
        assert not kubelet.tick()
        assert kubelet.node_status.now.capacity == {RESOURCE: 2}
        assert len(kubelet.node_status) == 2
        await plugin.stop()


async def test_a_kubelet_without_its_checkpoint_publishes_zeros(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.tick()
        await kubelet.stop()
        (kubelet.directory / NAME).unlink()
        await kubelet.start()
        assert kubelet.node_status.now.capacity == {RESOURCE: 0}
        assert kubelet.capacity == {}
        await plugin.stop()


async def test_a_damaged_checkpoint_counts_as_empty(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await kubelet.stop()
        path = kubelet.directory / NAME
        path.write_text(path.read_text().replace("thing", "other"))
        await kubelet.start()
        assert kubelet.capacity == {}
        await plugin.stop()


async def test_a_change_of_health_is_pushed_into_the_status_of_the_pod(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 2})]))
        assert pod.container("c").resources == {RESOURCE: {"a": "Healthy", "b": "Healthy"}}
        await plugin.send(kubelet, device("a", "sick"), "b")
        assert kubelet.health_pushes == ["p"]
        assert pod.container("c").resources == {RESOURCE: {"a": "Unhealthy", "b": "Healthy"}}
        await plugin.send(kubelet, device("a", "sick"), "b")
        assert kubelet.health_pushes == ["p"], "no change, no push"
        await plugin.stop()


async def test_a_device_that_leaves_the_list_is_reported_healthy_and_nothing_is_pushed(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.send(kubelet, device("a", api.UNHEALTHY))
        await plugin.send(kubelet)
        assert kubelet.health_pushes == ["p"]
        assert pod.container("c").resources == {RESOURCE: {"a": "Unhealthy"}}, "as last pushed"
        assert kubelet.resource_health(pod, "c") == {RESOURCE: {"a": "Healthy"}}, (
            "as the next sync reports it"
        )
        assert kubelet.allocated(RESOURCE) == {"a"}
        await plugin.send(kubelet, "a")
        assert kubelet.health_pushes == ["p", "p"], "a device that returns is pushed"
        await plugin.stop()


async def test_a_lost_plugin_pushes_nothing_and_the_last_health_stays(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})
        assert kubelet.health_pushes == []
        assert kubelet.resource_health(pod, "c") == {RESOURCE: {"a": "Healthy"}}


async def test_with_a_period_the_kubelet_publishes_its_node_status_by_itself(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock, status_period_s=10) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        clock.advance(10)
        await kubelet.wait_until(lambda: kubelet.node_status.now.capacity == {RESOURCE: 1})
        await plugin.stop()
