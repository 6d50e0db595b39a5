"""A whole node in one event loop: made-up devices, the daemon on rule files, the simulated kubelet.

The rules of this file:

* What is done is done as on a real node: a rule file is written, a process ends with or without a
  last word, a machine restarts with an empty /dev.
* What is seen is what others see: the kubelet's lists and node status, the links on disk, the device
  numbers inside a container. The daemon is asked nothing but what an operator asks: how it is.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from genericdp import daemon
from genericdp.core.status.report import report
from genericdp.files.rulefiles import RuleFiles
from genericdp.simulator import CreatedContainer, Generation, Kubelet, ManualClock, Runtime
from genericdp.udev import Resync
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import DOMAIN
from tests.scenes.service import SHORT_PAUSES, Service, links_in, settings_below
from tests.scenes.udev import a_fake_udev
from tests.torture.truth import UNITS, Place

#: How long anything may take that a node does within milliseconds.
PATIENCE_S = 60.0


class TestNode:
    """The node. `udev` is what is plugged, `kubelet` what the cluster sees of it."""

    __test__ = False

    def __init__(self, root: Path, generation: Generation, runtime: Runtime, seed: int) -> None:
        self.clock = ManualClock()
        self.settings = settings_below(root)
        self.kubelet = Kubelet(root, generation=generation, runtime=runtime, clock=self.clock, seed=seed)
        self._rules_dir = root / "rules.d"
        self._rules_dir.mkdir(mode=0o755)
        self._stack = AsyncExitStack()
        self._devnum = 0

    @property
    def up(self) -> bool:
        """Whether there is a daemon."""
        return self.service.runs

    async def open(self, rules: str) -> None:
        """Start everything."""
        self.udev = self._stack.enter_context(a_fake_udev())
        self.service = Service(
            self.settings, self._read_rules(), self.udev, now=self.clock.now, pauses=SHORT_PAUSES
        )
        self.write_rules(rules)
        await self.kubelet.start()
        await self.start_daemon()

    async def close(self) -> None:
        """End everything. Raises what the kubelet died of."""
        await self.service.stop()
        if self.kubelet.running:
            await self.kubelet.stop()
        await self._stack.aclose()
        if self.kubelet.panics:
            raise self.kubelet.panics[0]

    # The daemon.

    async def start_daemon(self) -> None:
        """`systemctl start genericdp`, which reads the rule files."""
        self.service.rules = self._read_rules()
        await self.service.start()

    async def kill_daemon(self) -> None:
        """SIGKILL: nothing more is written, and its sockets stay behind."""
        if self.up:
            left = self._left_behind()
            await self.service.stop()
            left()

    def _left_behind(self) -> Callable[[], None]:
        """What a process leaves that ends without a word: makes it so afterwards."""
        memory = Path(self.settings.state_dir, "memory.json")
        saved = memory.read_bytes() if memory.exists() else None
        sockets = list(self.kubelet.directory.glob("gdp-*.sock"))

        def leave() -> None:
            if saved is not None:
                memory.write_bytes(saved)
            for path in sockets:
                with socket.socket(socket.AF_UNIX) as dead:
                    dead.bind(str(path))

        return leave

    def write_rules(self, text: str) -> None:
        """An operator saves the rule file; without text, deletes it."""
        path = self._rules_dir / "50-rules.toml"
        if text:
            new = self._rules_dir / ".50-rules.toml.new"
            new.write_text(text)
            new.chmod(0o644)
            new.replace(path)
        else:
            path.unlink(missing_ok=True)
        if self.up:
            self.service.daemon.reload()

    def _read_rules(self) -> RuleFiles:
        rules = RuleFiles([str(self._rules_dir)], DOMAIN)
        assert not rules.problems, rules.problems
        return rules

    # The machine.

    def plug(self, unit: str, place: Place) -> None:
        self._devnum = self._devnum % 120 + 1
        self.udev.plug(
            a_usb_serial(place.number, port=place.port, serial=UNITS[unit], devnum=self._devnum + 1)
        )

    def unplug(self, place: Place) -> None:
        path = next(path for path in self.udev.devices if path.endswith(f"/ttyUSB{place.number}"))
        self.udev.unplug(self.udev.devices[path])

    def hint(self, why: str) -> None:
        """Something for the daemon to look after, without anything having happened."""
        self.udev.tell(Resync(why))

    async def caught_up(self) -> None:
        """Return once the daemon has looked after everything that happened so far."""
        before = self.service.steps
        self.hint("the test wants to know")
        await self.wait_until("the daemon does not look", lambda: self.service.steps > before, self.service)

    @contextmanager
    def kubelet_up_for_long(self) -> Iterator[None]:
        """As if the kubelet had started long ago: what it says about its pods is believed."""
        before, daemon.KUBELET_SETTLES_S = daemon.KUBELET_SETTLES_S, 0.0
        try:
            yield
        finally:
            daemon.KUBELET_SETTLES_S = before

    # What others see.

    def links(self) -> dict[str, int | None]:
        """Link -> the number of the ttyUSB that it leads to; None for one that leads nowhere."""
        prefix = f"{self.udev.dev}/ttyUSB"
        return {
            name: int(target.removeprefix(prefix)) if target.startswith(prefix) else None
            for name, target in links_in(self.settings).items()
        }

    def told(self) -> dict[str, dict[str, str]]:
        """Resource -> device -> its health, as `genericdp status` tells it."""
        document: Any = report(self.service.daemon.witness.facts(None))
        for resource in document["resources"]:
            assert all(device["since"] for device in resource["devices"]), document
        return {
            resource["name"]: {device["id"]: device["health"] for device in resource["devices"]}
            for resource in document["resources"]
        }

    async def wait_until(self, what: str, condition: Callable[[], object], of: Kubelet | Service) -> None:
        """Return once it is so; it is asked after each change of the kubelet or each step of the daemon."""
        try:
            await of.wait_until(condition, timeout_s=PATIENCE_S)
        except TimeoutError:
            phases = (
                [
                    f"{each.progress.phase}: {each.progress.error}"
                    for each in self.service.daemon.plugins.registrations.values()
                ]
                if self.up
                else []
            )
            raise AssertionError(
                f"{what}: daemon {phases}, links {self.links()}, kubelet {self.kubelet.describe()}, "
                f"lists { {name: self.listed(name) for name in self.kubelet.capacity} }, "
                f"streams { {name: self.kubelet.streams(name) for name in self.kubelet.capacity} }"
            ) from None

    def listed(self, resource: str) -> Mapping[str, str]:
        """The ids and their health, as the kubelet has it."""
        return {id_: device.health for id_, device in self.kubelet.devices(resource).items()}


def numbers_in(created: CreatedContainer | None) -> list[int]:
    """The numbers of the ttyUSBs that a container was created with."""
    assert created is not None
    assert all(node.major == 188 for node in created.nodes)
    return [node.minor for node in created.nodes]


def ids_in(created: CreatedContainer | None, resources: Iterable[str]) -> list[str]:
    """The ids that a container was told."""
    assert created is not None
    names = (resource.upper().replace(".", "_").replace("/", "_").replace("-", "_") for resource in resources)
    found = (created.envs.get(f"GENERICDP_{name}_IDS") for name in names)
    return [id_ for text in found if text for id_ in text.split(",")]
