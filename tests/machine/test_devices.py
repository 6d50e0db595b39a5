"""All devices of a machine: those of udev and bare nodes together, kept up to date by hints."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from genericdp.core.device import DeviceNumber
from genericdp.core.hint import Hint, NodeChange, RescanCause, Resync, Uevent
from genericdp.machine.devices import MachineDevices
from genericdp.simulator.changes import Changes
from genericdp.udev import sysfs
from tests.scenes.builders import a_usb_serial, resources_of
from tests.scenes.dev import make_node
from tests.scenes.udev import FakeUdev, a_fake_udev
from tests.scenes.waiting import until


@pytest.fixture
def udev() -> Iterator[FakeUdev]:
    with a_fake_udev() as udev:
        yield udev


def a_machine(udev: FakeUdev, *patterns: str) -> MachineDevices:
    machine = MachineDevices(
        resources_of("".join(rule(*each) for each in enumerate(patterns))), udev=udev, listen=udev.listen
    )
    machine.resync()
    return machine


def rule(number: int, pattern: str) -> str:
    return f'[[resource]]\nname = "x{number}"\nmatch = {{ DEVNAME = "{pattern}" }}\n'


def test_both_kinds_of_devices_are_there(udev: FakeUdev) -> None:
    udev.plug(a_usb_serial(0))
    make_node(udev.dev / "acme0", 0)

    devices = a_machine(udev, f"{udev.dev}/*").devices

    assert sorted(device.devname.rpartition("/")[2] for device in devices.values() if device.device_node) == [
        "acme0",
        "ttyUSB0",
    ]
    assert devices[f"{udev.dev}/acme0"].is_bare


def test_without_bare_nodes_the_devices_of_udev_are_all(udev: FakeUdev) -> None:
    assert a_machine(udev, f"{udev.dev}/acme*").devices is udev.devices


def test_a_number_that_udev_knows_is_an_alias_under_any_other_path(udev: FakeUdev) -> None:
    stick = a_usb_serial(0)
    machine = a_machine(udev, f"{udev.dev}/acme*")
    make_node(udev.dev / "acme0", 0, major=188)
    assert machine.apply(NodeChange(f"{udev.dev}/acme0"))
    assert machine.devices[f"{udev.dev}/acme0"].refusal == ""

    udev.plug(stick)
    assert machine.apply(Uevent("add", stick.sys_path, "tty", "udev"))
    assert machine.devices[f"{udev.dev}/acme0"].refusal == (
        f"it has the number of '{udev.dev}/ttyUSB0', c 188:0; match that device node instead"
    )


def test_a_hint_at_a_node_that_udev_knows_changes_nothing(udev: FakeUdev) -> None:
    udev.plug(a_usb_serial(0))
    machine = a_machine(udev, f"{udev.dev}/*")

    assert not machine.apply(NodeChange(f"{udev.dev}/ttyUSB0"))


def test_bare_nodes_are_judged_once_for_all_hints_that_came_together(
    udev: FakeUdev, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 300 nodes, one judgement for each hint stopped the daemon for seconds."""
    machine = a_machine(udev, f"{udev.dev}/acme*")
    asked: list[DeviceNumber] = []
    really = sysfs.node_of

    def node_of(number: DeviceNumber) -> str | None:
        asked.append(number)
        return really(number)

    monkeypatch.setattr(sysfs, "node_of", node_of)
    paths = [udev.dev / f"acme{number}" for number in range(50)]
    for number, path in enumerate(paths):
        make_node(path, number)

    assert machine.apply(*(NodeChange(str(path)) for path in paths), Uevent("change", "/sys/x", "", "udev"))
    assert machine.devices.keys() == {str(path) for path in paths}
    assert len(asked) == len(set(asked)) == 50


def test_a_node_whose_times_changed_is_not_judged_again(
    udev: FakeUdev, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changed the times of one of 600 nodes 90 times a second took a whole processor."""
    make_node(udev.dev / "acme0", 0)
    machine = a_machine(udev, f"{udev.dev}/acme*")
    asked: list[DeviceNumber] = []
    monkeypatch.setattr(sysfs, "node_of", asked.append)

    os.utime(udev.dev / "acme0")
    assert not machine.apply(NodeChange(f"{udev.dev}/acme0"))
    assert asked == []
    # What udev, the kernel or a rescan may know by now is asked for.
    machine.apply(Uevent("add", "/sys/devices/x", "tty", "kernel"))
    machine.apply(Resync(RescanCause.UNREAD))
    os.chown(udev.dev / "acme0", 1000, 1000)
    assert machine.apply(NodeChange(f"{udev.dev}/acme0"))
    assert len(asked) == 3


def test_what_happens_to_a_directory_and_to_what_is_in_it_is_one_look(udev: FakeUdev) -> None:
    machine = a_machine(udev, f"{udev.dev}/caps/acme*")
    (udev.dev / "caps").mkdir(mode=0o755)
    make_node(udev.dev / "caps" / "acme0", 0)
    paths = [udev.dev / "caps", udev.dev / "caps" / "acme0", udev.dev / "elsewhere" / "acme0"]

    assert machine.apply(*(NodeChange(str(path)) for path in paths))
    assert list(machine.devices) == [f"{udev.dev}/caps/acme0"]
    (udev.dev / "caps" / "acme0").unlink()
    (udev.dev / "caps").rmdir()
    assert machine.apply(*(NodeChange(str(path)) for path in reversed(paths)))
    assert list(machine.devices) == []


@pytest.mark.parametrize("when", ["from the beginning", "together with the node"])
def test_a_node_in_a_directory_that_others_can_change_is_not_looked_at(udev: FakeUdev, when: str) -> None:
    """A hint about the node alone must not lead past its directory."""
    caps, node = udev.dev / "caps", udev.dev / "caps" / "acme0"
    caps.mkdir(mode=0o755)
    hints = [NodeChange(str(node))]
    if when == "from the beginning":
        caps.chmod(0o777)
    else:
        hints.append(NodeChange(str(caps)))
    machine = a_machine(udev, f"{caps}/acme*")
    caps.chmod(0o777)
    make_node(node, 0)
    machine.apply(*hints)
    assert list(machine.devices) == []


def test_no_hint_is_no_change(udev: FakeUdev) -> None:
    assert not a_machine(udev, f"{udev.dev}/acme*").apply()


def test_a_bare_node_is_read_again_like_a_udev_device(udev: FakeUdev) -> None:
    make_node(udev.dev / "acme0", 0)
    machine = a_machine(udev, f"{udev.dev}/acme*")
    (udev.dev / "acme0").unlink()

    assert machine.apply(Uevent("change", f"{udev.dev}/acme0", "", "udev"))
    assert machine.devices is udev.devices


def test_a_rescan_looks_at_everything(udev: FakeUdev) -> None:
    machine = a_machine(udev, f"{udev.dev}/acme*")
    make_node(udev.dev / "acme0", 0)

    assert machine.apply(Resync(RescanCause.RELOAD))
    assert f"{udev.dev}/acme0" in machine.devices


def test_other_rules_look_at_other_nodes(udev: FakeUdev) -> None:
    make_node(udev.dev / "acme0", 0)
    make_node(udev.dev / "other0", 1)
    machine = a_machine(udev, f"{udev.dev}/acme*")

    assert machine.want(resources_of(rule(0, f"{udev.dev}/other*")))
    assert [path for path in machine.devices if path.startswith("/dev")] == [f"{udev.dev}/other0"]


class Listener:
    """Hears hints, follows them, and knows what the machine has then."""

    def __init__(self, machine: MachineDevices) -> None:
        self.machine = machine
        self.hints: list[Hint] = []
        self._changes = Changes()

    def hear(self, hint: Hint) -> None:
        self.hints.append(hint)
        self.machine.apply(hint)
        self._changes.notify()

    async def until_there(self, path: Path, *, there: bool = True) -> None:
        await until(lambda: (str(path) in self.machine.devices) is there, self._changes)


async def test_nodes_are_noticed_as_they_come_and_go(udev: FakeUdev) -> None:
    machine = a_machine(udev, f"{udev.dev}/caps/acme*", f"{udev.dev}/acme*")
    listener = Listener(machine)
    end = machine.listen(listener.hear, 10.0)
    machine.resync()
    try:
        make_node(udev.dev / "acme0", 0)
        await listener.until_there(udev.dev / "acme0")
        # A directory that appears is watched before it is read, and the one that replaces it, too.
        for _ in range(2):
            (udev.dev / "caps").mkdir()
            make_node(udev.dev / "caps/acme1", 1)
            await listener.until_there(udev.dev / "caps/acme1")
            (udev.dev / "caps/acme1").unlink()
            await listener.until_there(udev.dev / "caps/acme1", there=False)
            make_node(udev.dev / "caps/acme1", 2)
            await listener.until_there(udev.dev / "caps/acme1")
            (udev.dev / "caps").rename(udev.dev / "away")
            await listener.until_there(udev.dev / "caps/acme1", there=False)
            (udev.dev / "away/acme1").unlink()
            (udev.dev / "away").rmdir()
    finally:
        end()


async def test_nothing_is_told_of_names_that_no_rule_names(udev: FakeUdev) -> None:
    machine = a_machine(udev, f"{udev.dev}/acme*")
    listener = Listener(machine)
    end = machine.listen(listener.hear, 10.0)
    machine.resync()
    try:
        make_node(udev.dev / "other", 0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert listener.hints == []
    finally:
        end()
