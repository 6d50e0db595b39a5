"""The whole daemon on a made-up machine, against the simulated kubelet and its container runtimes."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from genericdp import forgetting
from genericdp.core.hint import Hint
from genericdp.core.memory import held
from genericdp.core.memory.saved import delay
from genericdp.core.status import holdings
from genericdp.errors import GenericdpError
from genericdp.files import link_upkeep
from genericdp.files.link_upkeep import LinkUpkeep
from genericdp.files.state import StateFile, this_boot
from genericdp.simulator import ContainerState, Generation, Phase, Runtime
from genericdp.simulator.changes import Changes
from genericdp.watch import DirectoryWatch
from tests.scenes.builders import a_modem, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE, MODEM, MODEM_RULE
from tests.scenes.scene import LoopTime, a_scene, both_generations, both_runtimes, minors_in, nodes_in
from tests.scenes.service import links_in
from tests.scenes.udev import FakeUdev
from tests.scenes.waiting import idle, until

WITHOUT_GRACE = FTDI_RULE + 'unplug_grace = "0s"\n'


async def test_a_daemon_that_is_there_first_registers_as_soon_as_a_kubelet_comes(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene, scene.kubelet as kubelet:
        await scene.until_allocatable(1)
        assert kubelet.node_status.now.capacity == {FTDI: 1}
        assert kubelet.streams(FTDI) == 1
        assert list(kubelet.devices(FTDI)) == ["ftdi_A50285BI"]


@both_runtimes
async def test_a_pod_gets_the_node_that_the_link_points_at(short_dir: Path, runtime: Runtime) -> None:
    async with a_scene(short_dir, a_usb_serial(3), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        created = pod.container("main").created
        assert created is not None
        assert nodes_in(pod.container("main")) == [("/dev/serial0", 188, 3)]
        assert created.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/serial0"
        assert created.envs["GENERICDP_EXAMPLE_COM_FTDI_IDS"] == "ftdi_A50285BI"


@both_runtimes
async def test_an_unplugged_device_stays_listed_as_unhealthy_and_its_container_cannot_restart(
    short_dir: Path, runtime: Runtime
) -> None:
    stick = a_usb_serial(0)
    async with a_scene(short_dir, stick, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(stick)
        await scene.until_allocatable(0)
        assert scene.kubelet.node_status.now.capacity == {FTDI: 1}
        assert scene.kubelet.resource_health(pod, "main") == {FTDI: {"ftdi_A50285BI": "Unhealthy"}}
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING
        assert "too many" in status.message


@both_runtimes
async def test_a_replug_under_another_name_repoints_the_same_link_before_healthy(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(a_usb_serial(0))
        await scene.until_allocatable(0)
        scene.plug(a_usb_serial(7))
        await scene.kubelet.wait_until(lambda: scene.kubelet.allocatable[FTDI] == 1)
        link = f"{short_dir}/links/ftdi_A50285BI"
        assert os.readlink(link) == scene.udev.node(a_usb_serial(7))
        assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [7]


@both_runtimes
@pytest.mark.parametrize("daemon_is_up", [True, False], ids=["daemon up", "daemon down"])
async def test_after_a_swap_of_names_a_container_gets_its_own_device_or_none(
    short_dir: Path, runtime: Runtime, daemon_is_up: bool
) -> None:
    """A was ttyUSB0, left; B is ttyUSB0 now; A comes back as ttyUSB1."""
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(0, serial="B", port="2")
    async with a_scene(short_dir, a, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.unplug(a)
        await scene.until_allocatable(0)
        if not daemon_is_up:
            await scene.service.stop()
        scene.plug(b)
        if daemon_is_up:
            await scene.until_allocatable(1)
        refused = await scene.kubelet.restart_container(pod, "main")
        assert refused.state is ContainerState.WAITING
        if daemon_is_up:
            scene.plug(a_usb_serial(1, serial="A", port="1"))
            await scene.until_allocatable(2)
            status = await scene.kubelet.restart_container(pod, "main")
            assert minors_in(status) == [1]


async def test_a_device_that_leaves_during_allocate_is_still_listed(short_dir: Path) -> None:
    """Kubelet 1.36 would crash otherwise, and the simulator with it."""
    stick = a_usb_serial(0)
    async with a_scene(short_dir, stick) as scene:
        await scene.until_allocatable(1)
        plugin = scene.daemon.plugins.plugins[FTDI]
        before = plugin.offer
        scene.unplug(stick)
        scene.daemon.step()
        assert plugin.offer is not before
        pod = await scene.admit()
        assert pod.phase in (Phase.FAILED, Phase.PENDING)
        await scene.kubelet.wait_until(lambda: scene.kubelet.allocatable[FTDI] == 0)
        assert scene.kubelet.devices(FTDI).keys() == {"ftdi_A50285BI"}


@both_generations
async def test_the_first_hot_plug_after_each_of_many_kubelet_restarts_arrives(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, generation=generation) as scene:
        for number in range(10):
            await scene.until_allocatable(number)
            await scene.kubelet.restart()
            scene.plug(a_usb_serial(number, serial=f"S{number}", port=f"{number + 1}"))
            await scene.until_allocatable(number + 1)
            assert scene.kubelet.streams(FTDI) == 1


@both_generations
async def test_a_lost_stream_is_followed_by_a_registration_under_a_fresh_name(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        scene.kubelet.faults.end_streams(FTDI)
        await scene.kubelet.wait_until(lambda: scene.kubelet.allocatable[FTDI] == 0)
        await scene.until_allocatable(1)
        assert scene.kubelet.streams(FTDI) == 1
        endpoints = [attempt.endpoint for attempt in scene.kubelet.registrations]
        assert len(set(endpoints)) == len(endpoints) == 2


async def test_a_refused_registration_is_tried_again(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), daemon_runs=False) as scene:
        scene.kubelet.faults.refuse_registrations("not today")
        await scene.service.start()
        await scene.kubelet.wait_until(lambda: len(scene.kubelet.registrations) >= 2)
        assert scene.daemon.plugins.registrations[FTDI].progress.error == "not today"
        scene.kubelet.faults.refuse_registrations(None)
        await scene.until_allocatable(1)


async def test_a_deleted_kubelet_socket_does_not_end_a_living_stream(short_dir: Path) -> None:
    async with a_scene(short_dir) as scene:
        await scene.until_allocatable(0)
        scene.kubelet.faults.remove_socket()
        scene.plug(a_usb_serial(0))
        await scene.until_allocatable(1)
        assert len(scene.kubelet.registrations) == 1


async def test_a_directory_that_is_removed_and_made_anew_is_found_again(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        await scene.kubelet.stop()
        scene.kubelet.faults.remove_directory()
        await scene.kubelet.start()
        await scene.until_allocatable(1)


async def test_a_step_knows_what_was_told_before_it(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a runtime did not answer at the start, another device took the node: the first step linked it."""
    stick, other = a_usb_serial(0), a_usb_serial(0, serial="OTHER")
    async with a_scene(short_dir, stick) as scene:
        await scene.until_allocatable(1)
        there, seen = scene.udev.devices, dict(scene.udev.devices)

        def look(*hints: Hint) -> bool:
            if hints:
                seen.clear()
                seen.update(there)
            return bool(hints)

        monkeypatch.setattr(scene.udev, "apply", look)
        monkeypatch.setattr(FakeUdev, "devices", seen)
        monkeypatch.setattr(scene.daemon._devices, "_all", seen)
        scene.unplug(stick)
        scene.plug(other)
        scene.daemon.step()
        assert links_in(scene.settings) == {
            "ftdi_A50285BI": "ftdi_A50285BI",
            "ftdi_OTHER": scene.udev.node(other),
        }


async def test_an_idle_daemon_sends_nothing(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        for _ in range(50):
            scene.daemon.step()
        stick = a_usb_serial(1, serial="B", port="3")
        scene.plug(stick)
        await scene.until_allocatable(2)
        assert scene.kubelet.messages(FTDI) == 2


async def test_a_reload_adds_a_resource_without_disturbing_the_others(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), *a_modem()) as scene:
        await scene.until_allocatable(1)
        scene.edit_rules(FTDI_RULE + MODEM_RULE)
        await scene.until_allocatable(1, MODEM)
        assert [attempt.resource for attempt in scene.kubelet.registrations].count(FTDI) == 1
        assert scene.kubelet.messages(FTDI) == 1
        scene.edit_rules(MODEM_RULE)
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
        assert scene.kubelet.streams(MODEM) == 1


async def test_a_composite_device_travels_whole_and_is_healthy_without_its_optional_node(
    short_dir: Path,
) -> None:
    usb, *ports, control = a_modem()
    async with a_scene(short_dir, usb, *ports, rules=MODEM_RULE + "optional = true\n") as scene:
        await scene.until_allocatable(1, MODEM)
        scene.plug(control)
        scene.daemon.step()
        pod = await scene.admit(resource=MODEM)
        assert nodes_in(pod.container("main")) == [("/dev/modem-at", 188, 3), ("/dev/modem-qmi", 180, 176)]


async def test_twins_keep_their_ids_over_a_restart_of_the_daemon_in_the_other_order(short_dir: Path) -> None:
    first = a_usb_serial(0, serial="SAME", port="2")
    second = a_usb_serial(1, serial="SAME", port="1")
    async with a_scene(short_dir, first, kubelet_runs=False) as scene:
        scene.plug(second)
        await scene.service.stop()
        await scene.service.start()
        ids = {device.port: device.id for device in scene.daemon.inventory.offers[FTDI].devices}
        await scene.service.stop()
        scene.unplug(first, second)
        scene.plug(a_usb_serial(0, serial="SAME", port="1"), a_usb_serial(1, serial="SAME", port="2"))
        await scene.service.start()
        again = {device.port: device.id for device in scene.daemon.inventory.offers[FTDI].devices}
    assert again == ids
    plain = [port for port, id_ in ids.items() if id_ == "ftdi_SAME"]
    assert [port.rpartition(" ")[2] for port in plain] == ["2"]


async def test_which_of_twins_came_first_is_saved_at_once(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delay, "SAVE_WITHIN_S", 3600.0)

    async with a_scene(short_dir, a_usb_serial(0, serial="SAME", port="2")) as scene:
        await scene.until_allocatable(1)
        scene.plug(a_usb_serial(1, serial="SAME", port="1"))
        await scene.until_allocatable(2)
        assert scene.daemon.memory.ties
        assert StateFile(scene.settings.state_dir).load().ties == scene.daemon.memory.ties


async def test_a_daemon_that_is_killed_knows_where_the_links_of_pods_lead(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is kept before a link changes: a container may start between the two."""
    rules = FTDI_RULE + 'identity = "port"\n'
    async with a_scene(short_dir, a_usb_serial(0, serial="A", port="2"), rules=rules) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        settings, change, kept = scene.settings, LinkUpkeep.apply, list[str]()

        def applied(upkeep: LinkUpkeep, links: Mapping[str, str | None]) -> dict[str, str]:
            memory = StateFile(settings.state_dir, this_boot(), settings.link_dir).load()
            kept.extend(spot.serial for known in memory.devices.values() for spot in known.device.spots)
            return change(upkeep, links)

        monkeypatch.setattr(LinkUpkeep, "apply", applied)
        scene.unplug(a_usb_serial(0, serial="A", port="2"))
        scene.plug(a_usb_serial(1, serial="B", port="2"))
        scene.daemon.step()
        assert kept == ["B"]


async def test_after_a_reboot_every_pod_has_its_device_again(short_dir: Path) -> None:
    sticks = (a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2"))
    async with a_scene(short_dir, *sticks) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit() for _ in range(2)]
        held = [minors_in(pod.container("main")) for pod in pods]
        await scene.service.stop()
        scene.unplug(*sticks)
        scene.plug(a_usb_serial(1, serial="A", port="1"), a_usb_serial(0, serial="B", port="2"))
        await scene.service.start()
        await scene.kubelet.reboot(wipe=[], readmit=False)
        await scene.until_allocatable(2)
        await scene.kubelet.readmit()
        assert [pod.phase for pod in pods] == [Phase.RUNNING, Phase.RUNNING]
        # The units have exchanged their names, so each pod's minor is the other one.
        assert [minors_in(pod.container("main")) for pod in pods] == [[1 - minor] for (minor,) in held]


async def test_an_absent_device_is_forgotten_when_its_grace_has_passed_and_nobody_holds_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)

    stick, kept = a_usb_serial(0), a_usb_serial(1, serial="KEPT", port="5")
    async with a_scene(short_dir, kept, rules=WITHOUT_GRACE, now=lambda: 1000.0) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        scene.plug(stick)
        await scene.until_allocatable(2)
        scene.unplug(stick, kept)
        await scene.kubelet.wait_until(lambda: list(scene.kubelet.devices(FTDI)) == ["ftdi_KEPT"])
        assert scene.daemon.memory.devices.keys() == {"ftdi_KEPT"}
        assert list(links_in(scene.settings)) == ["ftdi_KEPT"]


async def test_a_kubelet_that_has_just_started_is_not_believed_that_nobody_holds_anything(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its PodResources answer before it knows its pods."""
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_SOON_S", 0.0)
    monkeypatch.setattr(held, "PODS_SETTLE_S", 0.0)

    async with a_scene(short_dir, a_usb_serial(0), rules=WITHOUT_GRACE) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        scene.unplug(a_usb_serial(0))
        await scene.until_allocatable(0)
        await scene.kubelet.restart(readmit=False)
        await scene.until_allocatable(0)
        process = scene.kubelet._process
        assert process is not None
        # When it is asked again, its answers until then have been acted on.
        await until(lambda: process.pod_resources.calls >= 5)
        assert scene.daemon.memory.devices.keys() == {"ftdi_A50285BI"}
        # An hour later it is, and the pod is gone.
        await scene.kubelet.readmit()
        for pod in scene.kubelet.pods:
            scene.kubelet.delete(pod)
        scene.daemon._forgetting._since -= 3600
        await scene.kubelet.wait_until(lambda: not scene.kubelet.devices(FTDI))


@pytest.mark.parametrize("what", ["link", "directory"])
async def test_links_that_somebody_took_away_are_made_again(
    short_dir: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    directory = short_dir / "links"
    link = directory / "ftdi_A50285BI"
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        made = Changes()
        watch = DirectoryWatch(str(directory), lambda _: made.notify())
        if what == "link":
            link.unlink()
        else:
            shutil.rmtree(directory)
        await until(lambda: os.path.lexists(link), made)
        watch.close()
        assert os.readlink(link) == scene.udev.node(a_usb_serial(0))
    assert caplog.messages.count("the stable links were changed, restoring them") == 1


async def test_a_stop_removes_the_sockets_and_leaves_the_links(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        await scene.service.stop()
        assert [name for name in os.listdir(scene.kubelet.directory) if name.startswith("gdp-")] == []
        assert list(links_in(scene.settings)) == ["ftdi_A50285BI"]


@pytest.mark.parametrize("rounds", range(0, 60, 20))
async def test_a_stop_in_the_middle_of_registering_is_clean(short_dir: Path, rounds: int) -> None:
    """A server of grpc whose start is cancelled cannot be stopped any more."""
    many = "".join(FTDI_RULE.replace('"ftdi"', f'"r{number}"') for number in range(10))
    async with a_scene(short_dir, rules=many) as scene:
        await scene.daemon.plugins.kubelet.wait_until_there()
        for _ in range(rounds):
            await asyncio.sleep(0)


async def test_a_daemon_that_has_ended_tries_no_link_again(short_dir: Path) -> None:
    (short_dir / "links").write_text("no directory")

    async with a_scene(short_dir, a_usb_serial(0), kubelet_runs=False) as scene:
        assert not scene.daemon.inventory.offers[FTDI].devices[0].healthy
        await scene.service.stop()
        last, time = scene.daemon.inventory, LoopTime()
        time.advance(link_upkeep.AGAIN_S + 1)
        await idle()
        assert scene.daemon.inventory is last


async def test_a_daemon_that_cannot_read_its_memory_does_not_serve_without_it(short_dir: Path) -> None:
    """A device that a pod holds would be forgotten, and the memory replaced by one without it."""
    stick = a_usb_serial(0)
    async with a_scene(short_dir, stick) as scene:
        await scene.until_allocatable(1)
        await scene.service.stop()
        memory_file = Path(scene.settings.state_dir, "memory.json")
        saved = memory_file.read_bytes()
        scene.unplug(stick)
        memory_file.chmod(0o666)
        with pytest.raises(GenericdpError, match="is refused: other users can write"):
            await scene.service.start()
        assert memory_file.read_bytes() == saved
        memory_file.chmod(0o600)
        await scene.service.start()
        assert [device.id for device in scene.daemon.inventory.offers[FTDI].devices] == ["ftdi_A50285BI"]
