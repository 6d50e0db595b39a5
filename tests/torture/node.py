"""A whole node in one event loop: artificial devices, the daemon on rule files, a simulated kubelet.

The rules of this file:

* Events happen as on a real node: a rule file is written, a process ends or is killed, a machine
  restarts with an empty /dev.
* Tests observe what others see: the kubelet's lists and node status, the links on disk, the device
  numbers inside a container. The daemon itself is only asked for its status.
"""

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from genericdp.core.comeback.plugs import next_case
from genericdp.core.device import DeviceNumber
from genericdp.core.hint import RescanCause, Resync
from genericdp.core.inventory.shared import is_shared_link
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import HELD
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.status import holdings
from genericdp.core.status.report import report
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.state import SPARE
from genericdp.kubelet import checkpoint
from genericdp.simulator import CreatedContainer, Generation, Kubelet, ManualClock, Runtime
from genericdp.simulator.runtimes.cdi_cache import CdiCache
from tests.scenes.builders import a_kfd, a_usb_serial
from tests.scenes.dev import make_node
from tests.scenes.rules import DOMAIN
from tests.scenes.service import SHORT_PAUSES, Service, links_in, settings_below
from tests.scenes.udev import a_fake_udev
from tests.scenes.waiting import until
from tests.torture.truth import BAD_RULES, UNITS, Place

#: The timeout for anything that a node normally does within milliseconds.
PATIENCE_S = 60.0

CONTROL_MAJOR = 510

LONGEST_CHECKPOINT = checkpoint.LONGEST

#: Why a device is not offered under its id.
_REFUSED = re.compile(r"its id, (.*), (?:belongs|may belong) to another unit, which a pod may still hold")


class TestNode:
    """The node. `udev` holds the plugged devices, `kubelet` shows what the cluster sees.

    bare_control  whether udev does not know the control node
    has_mistake   whether the rule file has a mistake
    """

    __test__ = False

    def __init__(
        self,
        root: Path,
        generation: Generation,
        runtime: Runtime,
        seed: int,
        answer: AnswerBy,
        *,
        bare_control: bool = False,
    ) -> None:
        self.clock = ManualClock()
        self.settings = settings_below(root, answer=answer)
        self.cdi = CdiCache([self.settings.cdi_dir])
        mine = replace(runtime, cdi_cache=self.cdi)
        self.kubelet = Kubelet(root, generation=generation, runtime=mine, clock=self.clock, seed=seed)
        self._rules_dir = root / "rules.d"
        self._rules_dir.mkdir(mode=0o755)
        self._stack = AsyncExitStack()
        self._devnum = 0
        self._bare_control = bare_control
        self.has_mistake = False

    @property
    def up(self) -> bool:
        """Whether the daemon is running."""
        return self.service.runs

    async def open(self, rules: str) -> None:
        """Start everything."""
        self.udev = self._stack.enter_context(a_fake_udev())
        self.service = Service(
            self.settings, self._read_rules(), self.udev, now=self.clock.now, pauses=SHORT_PAUSES
        )
        self.write_rules(rules)
        await self.kubelet.container_runtime.start()
        await self.kubelet.start()
        await self.start_daemon()

    async def close(self) -> None:
        """End everything. Raises the kubelet's panic, if there was one."""
        self.damage_checkpoint(unreadable=False)
        await self.service.stop()
        if self.kubelet.running:
            await self.kubelet.stop()
        await self.kubelet.container_runtime.stop()
        await self._stack.aclose()
        self.cdi.close()
        if self.kubelet.panics:
            raise self.kubelet.panics[0]

    # The daemon.

    async def start_daemon(self) -> None:
        """`systemctl start genericdp`, which reads the rule files."""
        self.service.rules = self._read_rules()
        await self.service.start()

    async def kill_daemon(self) -> None:
        """SIGKILL: nothing more is written, and the sockets stay behind."""
        if self.up:
            left = self._left_behind()
            await self.service.stop()
            left()

    def _left_behind(self) -> Callable[[], None]:
        """Record what a killed process would leave behind; the result restores it."""
        memories = (Path(self.settings.state_dir, "memory.json"), Path(self.settings.link_dir, SPARE))
        saved = {path: path.read_bytes() for path in memories if path.exists()}
        specs = {path: path.read_bytes() for path in Path(self.settings.cdi_dir).glob("*.json")}
        sockets = list(self.kubelet.directory.glob("gdp-*.sock"))

        def leave() -> None:
            for path, text in (*saved.items(), *specs.items()):
                path.write_bytes(text)
            for path in (each for each in sockets if not each.exists()):
                with socket.socket(socket.AF_UNIX) as dead:
                    dead.bind(str(path))

        return leave

    def write_rules(self, text: str) -> None:
        """Save the rule file as an operator does; without text, delete it."""
        self.has_mistake = text == BAD_RULES
        path = self._rules_dir / "50-rules.toml"
        if text:
            new = self._rules_dir / ".50-rules.toml.new"
            new.write_text(text.replace("@DEV@", str(self.udev.dev)))
            new.chmod(0o644)
            new.replace(path)
        else:
            path.unlink(missing_ok=True)
        if self.up:
            self.service.daemon.reload()

    def _read_rules(self) -> RuleFiles:
        rules = RuleFiles([str(self._rules_dir)], DOMAIN)
        assert bool(rules.problems) == self.has_mistake, rules.problems
        return rules

    # The machine.

    def plug(self, unit: str, place: Place) -> None:
        self._devnum = self._devnum % 120 + 1
        # Without a serial number, it is of another model: it would wait where a pod's unit of its model was.
        product = "6015" if UNITS[unit] is None else "6001"
        serial, devnum = UNITS[unit], self._devnum + 1
        self.udev.plug(
            a_usb_serial(place.number, port=place.port, product=product, serial=serial, devnum=devnum)
        )

    def unplug(self, place: Place) -> None:
        path = next(path for path in self.udev.devices if path.endswith(f"/ttyUSB{place.number}"))
        self.udev.unplug(self.udev.devices[path])

    def move_control(self, minor: int | None, *, by_alias: bool = False) -> None:
        """The control node gets another number, or leaves.

        If udev does not know it, it is as good as gone `by_alias`: while another node has its number.
        """
        if self._bare_control:
            node, alias = self.udev.dev / "kfd", self.udev.dev / "kfd-alias"
            if minor is None and by_alias and node.exists():
                if not alias.exists():
                    make_node(alias, os.minor(node.stat().st_rdev), major=CONTROL_MAJOR)
                return
            node.unlink(missing_ok=True)
            alias.unlink(missing_ok=True)
            if minor is not None:
                make_node(node, minor, major=CONTROL_MAJOR)
            return
        device = a_kfd()
        if device.sys_path in self.udev.devices:
            self.udev.unplug(self.udev.devices[device.sys_path])
        if minor is not None:
            self.udev.plug(replace(device, number=DeviceNumber("c", CONTROL_MAJOR, minor)))

    def hint(self) -> None:
        """Make the daemon rescan although nothing has happened."""
        self.udev.tell(Resync(RescanCause.DEAF))

    async def caught_up(self) -> None:
        """Return once the daemon has handled everything that happened so far."""
        before = self.service.steps
        self.hint()
        await self.wait_until("the daemon did not rescan", lambda: self.service.steps > before, self.service)

    @contextmanager
    def kubelet_up_for_long(self) -> Iterator[None]:
        """As if the kubelet had started long ago, so that the daemon believes its list of pods."""
        before, holdings.KUBELET_SETTLES_S = holdings.KUBELET_SETTLES_S, 0.0
        try:
            yield
        finally:
            holdings.KUBELET_SETTLES_S = before

    @property
    def checkpoint_is_damaged(self) -> bool:
        """Whether the daemon cannot read the kubelet's checkpoint."""
        return checkpoint.LONGEST == 0

    def damage_checkpoint(self, *, unreadable: bool) -> None:
        """The daemon cannot read the kubelet's checkpoint from now on, or can again."""
        checkpoint.LONGEST = 0 if unreadable else LONGEST_CHECKPOINT

    async def has_asked(self) -> None:
        """Return once the daemon has asked who holds what, if anything depends on it."""
        forgetting = self.service.daemon._forgetting
        complete, tell = False, forgetting._tell

        def see(answer: Answer | None) -> None:
            nonlocal complete
            tell(answer)
            complete |= answer is not None and answer.complete

        forgetting._tell = see
        forgetting.look_again()
        try:
            await until(lambda: complete or not forgetting._is_needed())
        finally:
            forgetting._tell = tell

    def has_judged(self) -> bool:
        """Whether the daemon stops no container any more before the clock moves. No status tells that."""
        comeback = self.service.daemon._comeback
        due = next_case(comeback._plugs)
        return not comeback._stopping and (due is None or due > self.clock.now())

    # What others see.

    def links(self) -> dict[str, int | None]:
        """Device -> the number of the ttyUSB that a link of it points to; None while all point to themselves.

        A grouped device has its link under another name: the id and a place.
        """
        prefix = f"{self.udev.dev}/ttyUSB"
        links: dict[str, int | None] = {}
        for name, target in links_in(self.settings).items():
            if name.startswith(HELD):
                continue
            device = name.partition("@")[0]
            links.setdefault(device, None)
            if target.startswith(prefix):
                assert links[device] is None, f"two links of {device} lead to a device"
                links[device] = int(target.removeprefix(prefix))
        return links

    def held_links(self) -> set[str]:
        """The devices of which links only tell what pods hold."""
        names = (name.partition("@")[0] for name in links_in(self.settings) if name.startswith(HELD))
        return {name.removeprefix(HELD) for name in names}

    def dead_links(self) -> frozenset[str]:
        """The names of the links that point to themselves."""
        return frozenset(name for name, target in links_in(self.settings).items() if target == name)

    def control_links(self) -> list[bool]:
        """Whether each link to the control node leads to it."""
        links = links_in(self.settings).items()
        return [target == f"{self.udev.dev}/kfd" for name, target in links if is_shared_link(name)]

    def told(self) -> dict[str, dict[str, str]]:
        """Resource -> device -> its health, as `genericdp status` reports it."""
        document: Any = report(self.service.daemon.answers.pages.facts(None))
        for resource in document["resources"]:
            assert all(device["since"] for device in resource["devices"]), document
        return {
            resource["name"]: {device["id"]: device["health"] for device in resource["devices"]}
            for resource in document["resources"]
        }

    def ids_told(self) -> list[tuple[str, int]]:
        """Each present device and the number of its ttyUSB, as `genericdp status` reports them.

        Also those of which no link leads anywhere: devices that wait, or that lack another node.
        """
        document: Any = report(self.service.daemon.answers.pages.facts(None))
        return self._numbered(
            (device["id"], node["path"])
            for resource in document["resources"]
            for device in resource["devices"]
            for node in device["nodes"]
            if node["present"]
        )

    def ids_refused(self) -> list[tuple[str, int]]:
        """The same of devices whose id means what a pod got, so that they are not offered under it yet."""
        document: Any = report(self.service.daemon.answers.pages.facts(None))
        found = ((_REFUSED.fullmatch(each["reason"]), each["node"]) for each in document["notOffered"])
        return self._numbered((refused[1], path) for refused, path in found if refused)

    def _numbered(self, nodes: Iterable[tuple[str, str]]) -> list[tuple[str, int]]:
        prefix = f"{self.udev.dev}/ttyUSB"
        return [(id_, int(path.removeprefix(prefix))) for id_, path in nodes if path.startswith(prefix)]

    def waiting(self) -> dict[str, str]:
        """Device -> the id under which a pod may still hold it, as `genericdp status` reports it."""
        document: Any = report(self.service.daemon.answers.pages.facts(None))
        reasons = {
            device["id"]: device["waiting"]
            for resource in document["resources"]
            for device in resource["devices"]
            if device["waiting"]
        }
        words = "a pod may still hold it as "
        waiting = {id_: reason.removeprefix(words).partition(" ")[0] for id_, reason in reasons.items()}
        for each in document["notOffered"]:
            found = _REFUSED.fullmatch(each["reason"])
            if found:
                waiting[found[1]] = found[1]
        return waiting

    async def wait_until(self, what: str, condition: Callable[[], object], of: Kubelet | Service) -> None:
        """Return once `condition()` is true, checked after each step of the daemon or change of the kubelet.

        AssertionError with `what` and the state of the node when it takes too long.
        """
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
        """The devices of a resource in the kubelet: id -> health."""
        return {id_: device.health for id_, device in self.kubelet.devices(resource).items()}


def numbers_in(created: CreatedContainer | None) -> list[int]:
    """The minor numbers of a container's ttyUSBs. It has nothing else but the control node."""
    assert created is not None
    assert {node.major for node in created.nodes} <= {188, CONTROL_MAJOR}
    return [node.minor for node in created.nodes if node.major == 188]


def links_of(created: CreatedContainer | None) -> frozenset[str]:
    """The names of the links in the answers that a container was created with."""
    devices = created.config.devices if created is not None else ()
    return frozenset(os.path.basename(each.host_path) for each in devices)


def controls_in(created: CreatedContainer | None) -> list[int]:
    """The minor numbers of the control node in a container."""
    assert created is not None
    return [node.minor for node in created.nodes if node.major == CONTROL_MAJOR]


def ids_in(created: CreatedContainer | None, resources: Iterable[str]) -> list[str]:
    """The ids in a container's environment."""
    assert created is not None
    names = (resource.upper().replace(".", "_").replace("/", "_").replace("-", "_") for resource in resources)
    found = (created.envs.get(f"GENERICDP_{name}_IDS") for name in names)
    return [id_ for text in found if text for id_ in text.split(",")]
