"""The whole daemon on a made-up machine, against the simulated kubelet and its container runtimes."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from genericdp import daemon as daemon_module
from genericdp.files.state import StateFile
from genericdp.simulator import (
    CONTAINERD,
    CRIO,
    Container,
    ContainerState,
    CreatedContainer,
    Generation,
    Kubelet,
    Phase,
    Pod,
    Runtime,
)
from genericdp.watch import DirectoryWatch
from tests.scenes.builders import a_modem, a_usb_serial
from tests.scenes.machine import FixedRules, a_daemon, a_machine, links_in, settings_below, until_allocatable
from tests.scenes.scene import LoopTime

FTDI = "example.com/ftdi"
RULES = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
container_path = "/dev/serial{index}"
"""
MODEM = """
[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
group_by = "usb_device"
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
container_path = "/dev/modem-at"
[[resource.node]]
match = { SUBSYSTEM = "usbmisc" }
container_path = "/dev/modem-qmi"
optional = true
"""

both_runtimes = pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


def a_pod(count: int = 1, resource: str = FTDI) -> Pod:
    return Pod("app", [Container("main", limits={resource: count})])


async def test_a_daemon_that_is_there_first_registers_as_soon_as_a_kubelet_comes(short_dir: Path) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
            async with Kubelet(short_dir) as kubelet:
                await until_allocatable(kubelet, FTDI, 1)
                assert kubelet.node_status.now.capacity == {FTDI: 1}
                assert kubelet.streams(FTDI) == 1
                assert list(kubelet.devices(FTDI)) == ["ftdi_A50285BI"]


@both_runtimes
async def test_a_pod_gets_the_node_that_the_link_points_at(short_dir: Path, runtime: Runtime) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(3))
        async with Kubelet(short_dir, runtime=runtime) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
                pod = await kubelet.admit(a_pod())
                created = pod.container("main").created
                assert created is not None
                (node,) = created.nodes
                assert (node.container_path, node.major, node.minor) == ("/dev/serial0", 188, 3)
                assert created.envs["GENERICDP_EXAMPLE_COM_FTDI"] == "/dev/serial0"
                assert created.envs["GENERICDP_EXAMPLE_COM_FTDI_IDS"] == "ftdi_A50285BI"


@both_runtimes
async def test_an_unplugged_device_stays_listed_as_unhealthy_and_its_container_cannot_restart(
    short_dir: Path, runtime: Runtime
) -> None:
    with a_machine() as machine:
        stick = a_usb_serial(0)
        machine.plug(stick)
        async with Kubelet(short_dir, runtime=runtime) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
                pod = await kubelet.admit(a_pod())
                machine.unplug(stick)
                await until_allocatable(kubelet, FTDI, 0)
                assert kubelet.node_status.now.capacity == {FTDI: 1}
                assert kubelet.resource_health(pod, "main") == {FTDI: {"ftdi_A50285BI": "Unhealthy"}}
                status = await kubelet.restart_container(pod, "main")
                assert status.state is ContainerState.WAITING
                assert "too many" in status.message


@both_runtimes
async def test_a_replug_under_another_name_repoints_the_same_link_before_healthy(
    short_dir: Path, runtime: Runtime
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, runtime=runtime) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
                pod = await kubelet.admit(a_pod())
                machine.unplug(a_usb_serial(0))
                await until_allocatable(kubelet, FTDI, 0)
                machine.plug(a_usb_serial(7))
                await kubelet.wait_until(lambda: kubelet.allocatable[FTDI] == 1)
                link = f"{short_dir}/links/ftdi_A50285BI"
                assert os.readlink(link) == machine.node(a_usb_serial(7))
                status = await kubelet.restart_container(pod, "main")
                assert status.created is not None
                assert [node.minor for node in status.created.nodes] == [7]


@both_runtimes
@pytest.mark.parametrize("daemon_is_up", [True, False], ids=["daemon up", "daemon down"])
async def test_after_a_swap_of_names_a_container_gets_its_own_device_or_none(
    short_dir: Path, runtime: Runtime, daemon_is_up: bool
) -> None:
    """A was ttyUSB0, left; B is ttyUSB0 now; A comes back as ttyUSB1."""
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0, serial="A", port="1"))
        async with Kubelet(short_dir, runtime=runtime) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
                pod = await kubelet.admit(a_pod())
                machine.unplug(a_usb_serial(0, serial="A", port="1"))
                await until_allocatable(kubelet, FTDI, 0)
                if daemon_is_up:
                    machine.plug(a_usb_serial(0, serial="B", port="2"))
                    await until_allocatable(kubelet, FTDI, 1)
                    refused = await kubelet.restart_container(pod, "main")
                    assert refused.state is ContainerState.WAITING
                    machine.plug(a_usb_serial(1, serial="A", port="1"))
                    await until_allocatable(kubelet, FTDI, 2)
                    status = await kubelet.restart_container(pod, "main")
                    assert status.created is not None
                    assert [node.minor for node in status.created.nodes] == [1]
            if not daemon_is_up:
                machine.plug(a_usb_serial(0, serial="B", port="2"))
                refused = await kubelet.restart_container(pod, "main")
                assert refused.state is ContainerState.WAITING


async def test_a_device_that_leaves_during_allocate_is_still_listed(short_dir: Path) -> None:
    """Kubelet 1.36 would crash otherwise, and the simulator with it."""
    with a_machine() as machine:
        stick = a_usb_serial(0)
        machine.plug(stick)
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)) as daemon:
                await until_allocatable(kubelet, FTDI, 1)
                plugin = daemon.plugins.plugins[FTDI]
                before = plugin.offer
                machine.unplug(stick)
                daemon.step()
                assert plugin.offer is not before
                pod = await kubelet.admit(a_pod())
                assert pod.phase in (Phase.FAILED, Phase.PENDING)
                await kubelet.wait_until(lambda: kubelet.allocatable[FTDI] == 0)
                assert kubelet.devices(FTDI).keys() == {"ftdi_A50285BI"}


@both_generations
async def test_the_first_hot_plug_after_each_of_many_kubelet_restarts_arrives(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        async with Kubelet(short_dir, generation=generation) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                for number in range(10):
                    await until_allocatable(kubelet, FTDI, number)
                    await kubelet.restart()
                    machine.plug(a_usb_serial(number, serial=f"S{number}", port=f"{number + 1}"))
                    await until_allocatable(kubelet, FTDI, number + 1)
                    assert kubelet.streams(FTDI) == 1


@both_generations
async def test_a_lost_stream_is_followed_by_a_registration_under_a_fresh_name(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
                kubelet.faults.end_streams(FTDI)
                await kubelet.wait_until(lambda: kubelet.allocatable[FTDI] == 0)
                await until_allocatable(kubelet, FTDI, 1)
                assert kubelet.streams(FTDI) == 1
                endpoints = [attempt.endpoint for attempt in kubelet.registrations]
                assert len(set(endpoints)) == len(endpoints) == 2


async def test_a_refused_registration_is_tried_again(short_dir: Path) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet:
            kubelet.faults.refuse_registrations("not today")
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)) as daemon:
                await kubelet.wait_until(lambda: len(kubelet.registrations) >= 2)
                assert daemon.plugins.registrations[FTDI].progress.error == "not today"
                kubelet.faults.refuse_registrations(None)
                await until_allocatable(kubelet, FTDI, 1)


async def test_a_deleted_kubelet_socket_does_not_end_a_living_stream(short_dir: Path) -> None:
    with a_machine() as machine:
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 0)
                kubelet.faults.remove_socket()
                machine.plug(a_usb_serial(0))
                await until_allocatable(kubelet, FTDI, 1)
                assert len(kubelet.registrations) == 1


async def test_a_directory_that_is_removed_and_made_anew_is_found_again(short_dir: Path) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
                await kubelet.stop()
                kubelet.faults.remove_directory()
                await kubelet.start()
                await until_allocatable(kubelet, FTDI, 1)


async def test_an_idle_daemon_sends_nothing(short_dir: Path) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)) as daemon:
                await until_allocatable(kubelet, FTDI, 1)
                for _ in range(50):
                    daemon.step()
                stick = a_usb_serial(1, serial="B", port="3")
                machine.plug(stick)
                await until_allocatable(kubelet, FTDI, 2)
                assert kubelet.messages(FTDI) == 2


async def test_a_reload_adds_a_resource_without_disturbing_the_others(short_dir: Path) -> None:
    rules = FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0), *a_modem())
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, rules, settings_below(short_dir)) as daemon:
                await until_allocatable(kubelet, FTDI, 1)
                rules.become(RULES + MODEM)
                daemon.reload()
                await until_allocatable(kubelet, "example.com/modem", 1)
                assert [attempt.resource for attempt in kubelet.registrations].count(FTDI) == 1
                assert kubelet.messages(FTDI) == 1
                rules.become(MODEM)
                daemon.reload()
                await kubelet.wait_until(lambda: kubelet.streams(FTDI) == 0)
                assert kubelet.streams("example.com/modem") == 1


async def test_a_composite_device_travels_whole_and_is_healthy_without_its_optional_node(
    short_dir: Path,
) -> None:
    usb, *ports, control = a_modem()
    with a_machine() as machine:
        machine.plug(usb, *ports)
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(MODEM), settings_below(short_dir)) as daemon:
                await until_allocatable(kubelet, "example.com/modem", 1)
                machine.plug(control)
                daemon.step()
                pod = await kubelet.admit(a_pod(resource="example.com/modem"))
                created = pod.container("main").created
                assert created is not None
                assert [(node.container_path, node.major, node.minor) for node in created.nodes] == [
                    ("/dev/modem-at", 188, 3),
                    ("/dev/modem-qmi", 180, 176),
                ]


async def test_twins_keep_their_ids_over_a_restart_of_the_daemon_in_the_other_order(short_dir: Path) -> None:
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    first = a_usb_serial(0, serial="SAME", port="2")
    second = a_usb_serial(1, serial="SAME", port="1")
    with a_machine() as machine:
        machine.plug(first)
        async with a_daemon(machine, rules, settings):
            machine.plug(second)
        async with a_daemon(machine, rules, settings) as daemon:
            ids = {device.port: device.id for device in daemon.inventory.offers[FTDI].devices}
        machine.unplug(first, second)
        machine.plug(a_usb_serial(0, serial="SAME", port="1"), a_usb_serial(1, serial="SAME", port="2"))
        async with a_daemon(machine, rules, settings) as daemon:
            again = {device.port: device.id for device in daemon.inventory.offers[FTDI].devices}
    assert again == ids
    plain = [port for port, id_ in ids.items() if id_ == "ftdi_SAME"]
    assert [port.rpartition(" ")[2] for port in plain] == ["2"]


async def test_which_of_twins_came_first_is_saved_at_once(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "SAVE_AFTER_S", 3600.0)

    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0, serial="SAME", port="2"))
        async with (
            Kubelet(short_dir) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings) as daemon,
        ):
            await until_allocatable(kubelet, FTDI, 1)
            machine.plug(a_usb_serial(1, serial="SAME", port="1"))
            await until_allocatable(kubelet, FTDI, 2)
            assert daemon.memory.ties
            assert StateFile(settings.state_dir).load().ties == daemon.memory.ties


async def test_after_a_reboot_every_pod_has_its_device_again(short_dir: Path) -> None:
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2"))
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 2)
                pods = [await kubelet.admit(a_pod()) for _ in range(2)]
                held = [_minor(pod.container("main").created) for pod in pods]
            machine.unplug(a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2"))
            machine.plug(a_usb_serial(1, serial="A", port="1"), a_usb_serial(0, serial="B", port="2"))
            async with a_daemon(machine, rules, settings):
                await kubelet.reboot(wipe=[], readmit=False)
                await until_allocatable(kubelet, FTDI, 2)
                await kubelet.readmit()
                assert [pod.phase for pod in pods] == [Phase.RUNNING, Phase.RUNNING]
                # The units have exchanged their names, so each pod's minor is the other one.
                assert [_minor(pod.container("main").created) for pod in pods] == [
                    1 - minor for minor in held
                ]


def _minor(created: CreatedContainer | None) -> int:
    assert created is not None
    (node,) = created.nodes
    return node.minor


async def test_an_absent_device_is_forgotten_when_its_grace_has_passed_and_nobody_holds_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "KUBELET_SETTLES_S", 0.0)

    rules = FixedRules(RULES + 'unplug_grace = "0s"\n')
    with a_machine() as machine:
        stick, kept = a_usb_serial(0), a_usb_serial(1, serial="KEPT", port="5")
        machine.plug(kept)
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, rules, settings_below(short_dir), now=lambda: 1000.0) as daemon:
                await until_allocatable(kubelet, FTDI, 1)
                await kubelet.admit(a_pod())
                machine.plug(stick)
                await until_allocatable(kubelet, FTDI, 2)
                machine.unplug(stick, kept)
                await kubelet.wait_until(lambda: list(kubelet.devices(FTDI)) == ["ftdi_KEPT"])
                assert daemon.memory.devices.keys() == {"ftdi_KEPT"}
                assert list(links_in(settings_below(short_dir))) == ["ftdi_KEPT"]


async def test_a_kubelet_that_has_just_started_is_not_believed_that_nobody_holds_anything(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its PodResources answer before it knows its pods."""
    monkeypatch.setattr(daemon_module, "ASK_AGAIN_S", 0.0)

    rules = FixedRules(RULES + 'unplug_grace = "0s"\n')
    with a_machine() as machine:
        stick = a_usb_serial(0)
        machine.plug(stick)
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, rules, settings_below(short_dir)) as daemon:
                await until_allocatable(kubelet, FTDI, 1)
                await kubelet.admit(a_pod())
                machine.unplug(stick)
                await until_allocatable(kubelet, FTDI, 0)
                await kubelet.restart(readmit=False)
                await until_allocatable(kubelet, FTDI, 0)
                for _ in range(50):
                    daemon.step()
                    await asyncio.sleep(0)
                assert daemon.memory.devices.keys() == {"ftdi_A50285BI"}
                # An hour later it is, and the pod is gone.
                await kubelet.readmit()
                for pod in kubelet.pods:
                    kubelet.delete(pod)
                daemon.plugins.kubelet.since -= 3600
                await kubelet.wait_until(lambda: not kubelet.devices(FTDI))


@pytest.mark.parametrize("what", ["link", "directory"])
async def test_links_that_somebody_took_away_are_made_again(
    short_dir: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    directory = short_dir / "links"
    link = directory / "ftdi_A50285BI"
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir)),
        ):
            await until_allocatable(kubelet, FTDI, 1)
            made = asyncio.Event()
            watch = DirectoryWatch(str(directory), lambda _: made.set())
            if what == "link":
                link.unlink()
            else:
                shutil.rmtree(directory)
            while not os.path.lexists(link):
                await made.wait()
                made.clear()
            watch.close()
            assert os.readlink(link) == machine.node(a_usb_serial(0))
    assert caplog.messages.count("somebody changed our links, making them again") == 1


async def test_a_stop_removes_the_sockets_and_leaves_the_links(short_dir: Path) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir) as kubelet:
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)):
                await until_allocatable(kubelet, FTDI, 1)
            assert [name for name in os.listdir(kubelet.directory) if name.startswith("gdp-")] == []
            assert list(links_in(settings_below(short_dir))) == ["ftdi_A50285BI"]


@pytest.mark.parametrize("rounds", range(0, 60, 20))
async def test_a_stop_in_the_middle_of_registering_is_clean(short_dir: Path, rounds: int) -> None:
    """A server of grpc whose start is cancelled cannot be stopped any more."""
    many = FixedRules("".join(RULES.replace("ftdi", f"r{number}") for number in range(10)))
    with a_machine() as machine:
        async with Kubelet(short_dir):
            async with a_daemon(machine, many, settings_below(short_dir)) as daemon:
                await daemon.plugins.kubelet.wait_until_there()
                for _ in range(rounds):
                    await asyncio.sleep(0)


async def test_a_daemon_that_has_ended_tries_no_link_again(short_dir: Path) -> None:
    (short_dir / "links").write_text("no directory")

    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir)) as daemon:
            assert not daemon.inventory.offers[FTDI].devices[0].healthy
        last, time = daemon.inventory, LoopTime()
        time.advance(daemon_module.LINK_AGAIN_S + 1)
        for _ in range(3):
            await asyncio.sleep(0)
        assert daemon.inventory is last
