"""Attacks by what devices say about themselves: through every verb, and all the way into a container."""

import asyncio
import io
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import genericdp.udev
from genericdp import log
from genericdp.cli import dry_run
from genericdp.cli.main import main
from genericdp.cli.output import Output
from genericdp.cli.verbs.monitor import Show
from genericdp.core.device import UdevDevice
from genericdp.core.rules.settings import LogFormat
from genericdp.daemon import Daemon
from genericdp.simulator import CreatedContainer
from genericdp.status.protocol import question, socket_path
from genericdp.udev.uevent_file import WITH_TEXTS, without_forged
from tests.fuzz.files import assert_calm
from tests.fuzz.grammar import ODD_TEXTS
from tests.fuzz.target import Target
from tests.properties.strategies import Boot, Unit, booted, machines, names
from tests.scenes.asking import answer_to, connected
from tests.scenes.rules import DOMAIN
from tests.scenes.running import run
from tests.scenes.scene import a_scene
from tests.scenes.scrape import read
from tests.scenes.service import links_in, settings_below
from tests.scenes.udev import FakeUdev, a_fake_udev

#: Takes every device node, and lets the device choose all that a rule can leave to it.
TRUSTING = """
[[resource]]
name = "tty"
match = { SUBSYSTEM = "tty" }
identity = ["ID_SERIAL_SHORT", "ID_MODEL"]
container_path = ["/dev/by-model/{ID_MODEL|none}/{ID_SERIAL|none}", "{link}", "/dev/{devname}"]
devlinks = ["/dev/*"]
env = { MODEL = "{ID_MODEL|none}", ALL = "{ID_SERIAL|}{ID_VENDOR|}", "X_{ID_MODEL|}{link}" = "{sysname}" }
mounts = [{ host_path = "/srv/{ID_MODEL|none}", container_path = "/cal/{ID_SERIAL|none}" }]
annotations = { "example.com/model" = "{ID_MODEL|none}" }
kubevirt = true
[[resource]]
name = "unit"
match = { SUBSYSTEM = ["usb", "input", "video4linux", "usbmisc", "hidraw"] }
group_by = [{ ID_MODEL = "*_*" }, { SUBSYSTEM = "usb" }]
prefer = "same-hub"
[[resource]]
name = "rest"
match = { DEVPATH = "*" }
replicas = 3
health = { ID_MODEL = { not = "broken" } }
"""

texts = st.one_of(
    st.sampled_from(
        [*ODD_TEXTS, "x" * 4096, "/" * 200, "tty_S", "tty-1-2", "unit_A.0", "a\tb", "{id}", "%n"]
    ),
    names,
    st.text(max_size=6),
    st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
).map(lambda text: text.replace("\0", ""))
said = st.dictionaries(
    st.sampled_from(
        ["ID_MODEL", "ID_VENDOR", "ID_SERIAL", "ID_SERIAL_SHORT", "ID_MODEL_FROM_DATABASE", "ID_PATH"]
    ),
    texts,
    max_size=4,
)
attributes = st.dictionaries(
    st.sampled_from(
        ["name", "serial", "product", "idVendor", "numa_node", "busnum", "devnum", "authorized", "index"]
    ),
    texts,
    max_size=3,
)
#: Lines of a `uevent` file that a device writes into its name.
lines = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("SUBSYSTEM", "DRIVER", "DEVTYPE", "DEVNAME", "MAJOR", "PRODUCT", "PHYS", "HID_PHYS", ""),
                *("TAGS", "DEVLINKS", "ID_VENDOR_ID", "ID_SERIAL_SHORT", "PCI_ID", "OF_NAME", "\x1b[2J"),
            ]
        ),
        texts,
    ).map("=".join),
    max_size=4,
).map(lambda lines: "\n".join(["Pad", *lines]))
#: What the kernel writes into `uevent` files and into its events as it is.
unescaped = st.dictionaries(
    st.sampled_from(
        [
            *("HID_NAME", "HID_PHYS", "HID_UNIQ", "NAME", "PHYS", "UNIQ", "OF_NAME", "OF_COMPATIBLE_0"),
            *("MODALIAS", "MMC_NAME", "DEV_NAME"),
        ]
    ),
    texts | lines,
    max_size=4,
)
kernel = st.tuples(unescaped, st.booleans())
nodes = st.tuples(machines(3), said, attributes, st.lists(texts, max_size=2), kernel)


def speaking(
    units: Sequence[Unit],
    properties: Mapping[str, str],
    attributes: Mapping[str, str],
    links: Sequence[str],
    kernel: tuple[Mapping[str, str], bool],
) -> dict[str, UdevDevice]:
    """The devices of a machine, each of which says these things about itself.

    kernel  what the kernel writes for it, and whether that is read from its `uevent` file or from an event
    """
    unescaped, in_a_file = kernel
    told: dict[str, UdevDevice] = {}
    devices = booted(units, Boot())
    for device in sorted(devices.values(), key=lambda each: each.sys_path.count("/")):
        told[device.sys_path] = replace(
            device,
            parent=None if device.parent is None else told[device.parent.sys_path],
            properties={
                **device.properties,
                **(_read_from_a_file(device, unescaped) if in_a_file else unescaped),
                **properties,
            },
            attributes={**device.attributes, **attributes},
            devlinks=(*device.devlinks, *(f"/dev/{link}" for link in links)),
        )
    return told


def _read_from_a_file(device: UdevDevice, unescaped: Mapping[str, str]) -> dict[str, str]:
    """What a snapshot has of a `uevent` file, where a line feed ends a line and the last line counts."""
    written = "".join(f"{name}={value}\n" for name, value in unescaped.items())
    text = written.encode("utf-8", "surrogateescape")
    lines = (line.partition(b"=") for line in re.split(rb"[\r\n\0]", text))
    listed = {name: value for name, equals, value in lines if equals}
    own = without_forged(text, device.subsystem) if device.subsystem in WITH_TEXTS else None
    # What sysfs has elsewhere is read there.
    elsewhere = {b"SUBSYSTEM", b"DRIVER", b"DEVPATH", b"DEVNAME", b"MAJOR", b"MINOR"}
    return {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in (listed if own is None else own).items()
        if name not in elsewhere
    }


#: How each verb that looks at devices is asked; WORD is a word of the attack.
ASKED = [
    ["list"],
    ["list", "--all"],
    ["list", "--all", "--json"],
    ["explain", "WORD"],
    ["explain", "--json", "WORD"],
    ["explain", "--serial=WORD"],
    ["explain", "--json", "--serial=WORD"],
    ["explain", "--usb=WORD"],
    ["explain", "--usb=0403:6001"],
    ["suggest", "WORD"],
    ["suggest", "--json", "WORD"],
    ["suggest", "--node", "WORD"],
    ["suggest", "--all"],
    ["suggest", "--all", "--json"],
]
words = st.sampled_from(
    [
        "ttyUSB0",
        "1-2",
        "/dev/video0",
        "tty",
        "rest",
        "unit_A",
        "event0",
        "/dev/bus/usb/001/002",
        "/sys/devices",
    ]
)


def verbs(attack: tuple[tuple[Any, ...], list[str], str]) -> None:
    """Devices with hostile names, and hostile words, through every verb that looks at devices."""
    machine, asked, word = attack
    devices = speaking(*machine)
    with _rules() as options, _a_machine_with(devices):
        arguments = [part.replace("WORD", word) for part in asked]
        status, shown, complained = _run(*arguments, *options)
    assert status in (0, 1, 2), complained
    assert_calm(shown)
    assert_calm(complained)
    if "--json" in asked and shown:
        json.loads(shown)


def running_daemon(attack: tuple[tuple[Any, ...], bool]) -> None:
    """Devices with hostile names, in a daemon: its log, links, status, metrics, events, containers."""
    machine, simulated = attack
    devices = [
        device
        for device in speaking(*machine).values()
        if device.device_node is not None and device.number is not None
    ]
    if simulated:
        _simulate(devices)
        return
    root = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
    root.chmod(0o755)
    lines, disabled = io.StringIO(), logging.root.manager.disable
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        logging.disable(logging.NOTSET)
        log.configure(LogFormat.TEXT, "debug", stream=lines)
        run(_serve(root, devices))
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        logging.disable(disabled)
        shutil.rmtree(root)
    assert_calm(lines.getvalue())


async def _serve(root: Path, devices: Sequence[UdevDevice]) -> None:
    metrics = root / "m.sock"
    settings = settings_below(root, metrics=f"unix:{metrics}")
    async with a_scene(root, rules=TRUSTING, settings=settings) as scene:
        control = Path(socket_path(settings.run_dir))
        async with connected(control) as watching:
            watching.writer.write(question("events"))
            await watching.reader.readline()
            await scene.kubelet.wait_until(lambda: len(scene.kubelet.capacity) == 3)
            scene.plug(*devices)
            # Whatever is plugged in after them has arrived when they have.
            await scene.service.wait_until(
                lambda: len(scene.udev.devices) == len(devices) and not scene.daemon._pending
            )
            for name in ("tty", "unit", "rest"):
                full = f"{DOMAIN}/{name}"
                offer = scene.daemon.inventory.offers[full]
                healthy = sum(device.healthy for device in offer.ids.values())
                await scene.until_allocatable(healthy, full)
                if healthy:
                    status = await scene.admit(1, full, name=f"pod-{name}")
                    created = status.containers["main"].created
                    assert created is not None, status
                    _assert_harmless(created)
            (root / "genericdp.toml").write_text(f'run_dir = "{settings.run_dir}"\n')
            (root / "genericdp.toml").chmod(0o644)
            for form in ([], ["--json"], ["--quiet"]):
                config = str(root / "genericdp.toml")
                status_, shown, complained = await asyncio.to_thread(
                    _run, "status", *form, "--config", config
                )
                assert status_ in (0, 1), complained
                assert_calm(shown)
            page = await answer_to(metrics, b"GET /metrics HTTP/1.1\r\n\r\n")
            text = page.partition(b"\r\n\r\n")[2].decode()
            assert read(text)
            for link in links_in(settings):
                assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+:@=-]*", link)
            scene.unplug(*devices)
            await scene.until_allocatable(0, f"{DOMAIN}/rest")
            await scene.service.stop()
            _assert_shown((await watching.rest()).splitlines())


def _assert_harmless(created: CreatedContainer) -> None:
    for node in created.nodes:
        assert re.fullmatch(r"(/[A-Za-z0-9._+:@=-]+)+", node.container_path)
        assert not {".", ".."} & {*node.container_path.split("/")}
    for name, value in (*created.envs.items(), *created.annotations.items()):
        assert f"{name}{value}".isascii()
        assert f"{name}{value}".isprintable()


def _assert_shown(lines: Sequence[bytes]) -> None:
    """Events are JSON, and calm when `monitor` shows them."""
    for as_json in (False, True):
        shown = io.StringIO()
        with redirect_stdout(shown):
            show = Show(Output(shown), json=as_json, touched=False, folded=True)
            for line in lines:
                show.event(json.loads(line))
        assert_calm(shown.getvalue())


def _simulate(devices: Sequence[UdevDevice]) -> None:
    with _rules() as options, a_fake_udev() as udev, _a_dry_run_on(udev):
        udev.plug(*devices)
        allocate = [f"--allocate={name}" for name in ("tty", "unit", "rest")]
        status, shown, complained = _run("simulate", "--json", *allocate, *options)
    assert status in (0, 1), complained
    assert_calm(shown)
    assert_calm(complained)
    json.loads(shown)


def _run(*arguments: str) -> tuple[int, str, str]:
    """A verb: its status, and what it printed."""
    shown, complained = io.StringIO(), io.StringIO()
    with redirect_stdout(shown), redirect_stderr(complained):
        status = main(arguments)
    return status, shown.getvalue(), complained.getvalue()


@contextmanager
def _rules() -> Iterator[list[str]]:
    """Options that name the trusting rules, and settings of an empty directory."""
    with tempfile.TemporaryDirectory() as directory:
        rules, config = Path(directory) / "50-all.toml", Path(directory) / "genericdp.toml"
        rules.write_text(TRUSTING)
        config.write_text(f'domain = "{DOMAIN}"\nstate_dir = "{directory}/s"\nrun_dir = "{directory}/r"\n')
        for path in (rules, config):
            path.chmod(0o644)
        yield ["--rules", str(rules), "--config", str(config)]


@contextmanager
def _a_machine_with(devices: Mapping[str, UdevDevice]) -> Iterator[None]:
    """Verbs find these devices behind the door to udev."""
    door = vars(genericdp.udev)
    before = door["UdevDevices"]
    udev = FakeUdev(Path("/dev"))
    udev._devices = dict(devices)
    door["UdevDevices"] = lambda *_: udev
    try:
        yield
    finally:
        door["UdevDevices"] = before


@contextmanager
def _a_dry_run_on(udev: FakeUdev) -> Iterator[None]:
    """The daemon of a dry run finds the devices of this udev."""
    vars(dry_run)["Daemon"] = partial(Daemon, devices=udev)
    try:
        yield
    finally:
        vars(dry_run)["Daemon"] = Daemon


TARGETS = (
    Target(verbs, st.tuples(nodes, st.sampled_from(ASKED), words | texts), few=50),
    Target(running_daemon, st.tuples(nodes, st.sampled_from([False, False, True])), few=5, cpu_s=4.0),
)
