"""What a daemon tells those who listen, and what is seen without one."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from genericdp.cli.observer import Observer
from genericdp.core.hint import Deafness, RescanCause, Resync, Silence, SilenceCause, Uevent
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.simulator.changes import Changes
from genericdp.status.protocol import SOCKET
from tests.scenes.asking import Client, connected
from tests.scenes.builders import a_usb_serial, resources_of
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene
from tests.scenes.service import settings_below
from tests.scenes.waiting import idle, until
from tests.udev.hotplug import Console, udevd

Event = dict[str, Any]


class Listener:
    """A client that reads events."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.heard: list[Event] = []

    async def read_to(self, kind: str, **what: object) -> list[Event]:
        """All events up to one of this kind that says this."""
        begin = len(self.heard)
        while True:
            event = json.loads(await self._client.reader.readline())
            self.heard.append(event)
            if event["event"] == kind and what.items() <= event.items():
                return self.heard[begin:]


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[Listener]:
    async with connected(Path(settings.run_dir) / SOCKET) as client:
        client.writer.write(b'{"ask": "events"}\n')
        listener = Listener(client)
        (begin,) = await listener.read_to("begin")
        assert (begin["from"], begin["state"]) == ("daemon", "serving")
        yield listener


async def test_a_plug_is_shown_from_the_uevent_to_the_list_for_the_kubelet(short_dir: Path) -> None:
    async with a_scene(short_dir) as scene:
        await scene.until_allocatable(0)
        # The kubelet may have the list before the daemon has told that it is registered.
        await until(lambda: scene.daemon.plugins.registered == 1)
        async with listening(scene.settings) as listener:
            stick = a_usb_serial(0)
            scene.plug(stick)
            uevent, change, told = await listener.read_to("list")
            touched = [{"resource": FTDI, "device": "ftdi_A50285BI"}]
            assert (uevent["event"], uevent["action"], uevent["touched"]) == (
                "uevent",
                "add",
                touched,
            )
            assert (change["message"], change["device"]) == ("device appeared", "ftdi_A50285BI")
            assert (told["sent"], told["ids"], told["healthy"]) == (True, 1, 1)
            assert told["changes"] == [{"device": "ftdi_A50285BI", "health": "Healthy"}]
            await scene.until_allocatable(1)
            await scene.admit()
            (allocation,) = await listener.read_to("allocation")
            assert (allocation["ids"], allocation["error"]) == (["ftdi_A50285BI"], "")
            scene.unplug(stick)
            uevent, change, told = await listener.read_to("list")
            assert (uevent["action"], uevent["touched"]) == ("remove", touched)
            assert change["fields"]["why"] == "it is unplugged"
            assert (told["ids"], told["healthy"]) == (1, 0)


async def test_uevents_that_change_nothing_are_told_and_only_once(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False) as scene, listening(scene.settings) as listener:
        for source in ("kernel", "udev"):
            scene.udev.tell(Uevent("remove", "/sys/x", "tty", source, seqnum=7))
        scene.udev.tell(Resync(RescanCause.DEAF))
        scene.udev.tell(Deafness(Silence(SilenceCause.UNANSWERED)))
        scene.daemon.reload()
        heard = await listener.read_to("uevent")
        assert [event["event"] for event in heard] == ["resync", "udev", "resync", "rules", "uevent"]
        assert heard[-1]["touched"] == []
        scene.udev.tell(Uevent("add", "/sys/y", "tty", "udev"))
        (event,) = await listener.read_to("uevent")
        assert (event["sysPath"], event["source"]) == ("/sys/y", "udev")


async def test_uevents_are_told_even_if_no_device_was_read_differently(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False) as scene, listening(scene.settings) as listener:
        scene.udev.changes = False
        scene.udev.tell(Uevent("change", "/sys/x", "tty", "udev"))
        (event,) = await listener.read_to("uevent")
        assert (event["sysPath"], event["touched"]) == ("/sys/x", [])


async def test_of_a_storm_of_uevents_between_two_steps_a_limited_number_is_told(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.status.recorder.UEVENT_LIMIT", 2)
    async with a_scene(short_dir, kubelet_runs=False) as scene, listening(scene.settings) as listener:
        for number in range(1, 4):
            scene.udev.tell(Uevent("change", f"/sys/{number}", "tty", "udev", seqnum=number))
        await until(lambda: not scene.daemon.recorder._uevents)
        scene.udev.tell(Uevent("change", "/sys/4", "tty", "udev", seqnum=4))
        await listener.read_to("uevent", sysPath="/sys/4")
        told = [event["sysPath"] for event in listener.heard if event["event"] == "uevent"]
        assert told == ["/sys/1", "/sys/2", "/sys/4"]


async def test_a_kubelet_that_starts_is_shown_with_each_registration(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False) as scene, listening(scene.settings) as listener:
        async with scene.kubelet:
            heard = await listener.read_to("registration", registered=True)
            assert [event["event"] for event in heard] == [
                "kubelet",
                "registration",
                "list",
                "registration",
            ]
            assert heard[2]["changes"] == []


async def test_nothing_is_kept_for_those_who_do_not_listen(short_dir: Path) -> None:
    async with a_scene(short_dir, kubelet_runs=False) as scene:
        async with listening(scene.settings):
            pass
        await until(lambda: not scene.daemon.recorder.events)
        scene.udev.tell(Uevent("add", "/sys/y", "tty", "udev"))
        assert scene.daemon.recorder._uevents == []


@pytest.mark.hotplug
async def test_without_a_daemon_the_same_is_seen(short_dir: Path, console: Console) -> None:
    """A console of the real kernel comes and goes, and a real udevd tells of it."""
    with udevd():
        rules = f'[[resource]]\nname = "screen"\nmatch = {{ DEVNAME = "{console.node}" }}\n'
        told: list[Event] = []
        changes = Changes()

        def tell(event: Any) -> None:
            told.append(event)
            changes.notify()

        async def a_list_with(health: str) -> Event:
            def lists() -> list[Event]:
                return [
                    event
                    for event in told
                    if event["event"] == "list" and event["changes"][0]["health"] == health
                ]

            await until(lists, changes, describe=lambda: f"told {told}")
            return lists()[0]

        observer = Observer(settings_below(short_dir), resources_of(rules), Memory(), tell)
        watching = asyncio.ensure_future(observer.watch())
        await idle()
        with console.plugged():
            event = await a_list_with("Healthy")
            assert (event["sent"], event["ids"], event["healthy"]) == (False, 1, 1)
        event = await a_list_with("Unhealthy")
        assert (event["ids"], event["healthy"]) == (1, 0)
        uevents = [
            (event["action"], event["touched"][0]["resource"])
            for event in told
            if event["event"] == "uevent" and event["touched"]
        ]
        assert uevents == [("add", "example.com/screen"), ("remove", "example.com/screen")]
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.hotplug
def test_the_verb_shows_a_plug_as_it_happens(short_dir: Path, console: Console) -> None:
    rules = short_dir / "rules.toml"
    rules.write_text(f'[[resource]]\nname = "screen"\nmatch = {{ DEVNAME = "{console.node}" }}\n')
    settings = short_dir / "genericdp.toml"
    settings.write_text(f'state_dir = "{short_dir}/state"\n')
    for path in (rules, settings):
        path.chmod(0o644)
    # Tests that run in the background ignore SIGINT, and so would the processes that they start.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "genericdp", "monitor", "--touched"]
    name = console.node.removeprefix("/dev/")
    with udevd():
        watching = subprocess.Popen(
            [*command, "--rules", str(rules), "--config", str(settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        shown: list[str] = []

        def read(text: str) -> None:
            while not shown or text not in shown[-1]:
                shown.append(watching.stdout.readline().rstrip()[13:])  # type: ignore[union-attr]  # asserted above

        read("without the daemon")
        with console.plugged():
            read("would be told")
        read("0 of 1 Healthy")
        watching.send_signal(signal.SIGINT)
        _, error = watching.communicate(timeout=20)
    assert (watching.returncode, error) == (130, "")
    # Of the removal, the kernel tells first; one that is slow may read udev's message before.
    shown[4] = shown[4].replace(f"{name} (from the kernel)", console.node)
    assert shown == [
        "begin    without the daemon: what the rules would do on this machine; Ctrl-C to stop",
        f"uevent   add vc {console.node} -> genericdp.io/screen screen_{name}",
        f"change   genericdp.io/screen screen_{name}: device appeared; nodes={console.node}",
        f"kubelet  would be told genericdp.io/screen: 1 of 1 Healthy; screen_{name} Healthy",
        f"uevent   remove vc {console.node} -> genericdp.io/screen screen_{name}",
        f"change   genericdp.io/screen screen_{name}: device is unhealthy; why=it is unplugged",
        f"kubelet  would be told genericdp.io/screen: 0 of 1 Healthy; screen_{name} Unhealthy",
    ]
