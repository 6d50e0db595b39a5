"""Everything that can happen to a node, in any order, and the laws that hold whatever happens.

The laws:

* A container only ever gets the unit that it got first, one that cannot be told apart from it, or a
  refusal. See `truth.may_stand_in`.
* A container whose unit is plugged gets it again, whatever has happened to its replicas.
* By CDI, a container finds its units under the paths that they have now, and is told these paths.
* A container has the control node once if its units come with it, with the number of now; without that node,
  none of these units is given out.
* An id means the same unit forever. It is dropped only when no pod holds it and its grace has passed, and
  until then none of its links goes.
* Two running containers never have one unit, unless both got it while it was shared. Nor does another one get
  what an init container has had of a pod that exists. An id waits only for a unit that a pod may hold under
  another id.
* As soon as nothing blocks it, the kubelet has every plugged unit, Healthy, over exactly one stream
  for each resource.
* Only a container that holds a device is stopped, once for each move of that device, and only if the device
  has another number than in the container or, where the rule wants that, is unplugged. By CDI, an edit that
  gives the device another node counts as a move. Of a resource whose containers follow their device, none
  runs for long without the device that is there now.
* While the rule file has a mistake, its last good version is in effect, after restarts too: all laws hold for
  it.
* No list is sent in vain: a storm of events that arrive at once costs at most two messages.
* The kubelet never crashes (the simulator raises where a real one would).
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from genericdp.core.comeback.plugs import ASK_AGAIN_S
from genericdp.core.rules.name import env_names
from genericdp.core.rules.resource import UNPLUG_GRACE_S
from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator import (
    CONTAINERD,
    CRIO,
    Container,
    ContainerState,
    ContainerStatus,
    CreatedContainer,
    Generation,
    Phase,
    Pod,
    PodStatus,
    Runtime,
)
from tests.scenes.running import HANGS_S
from tests.scenes.waiting import until
from tests.torture.node import CONTROL_MAJOR, TestNode, controls_in, ids_in, links_of, numbers_in
from tests.torture.truth import BAD_RULES, FOLLOWING, PORTS, RULES, UNITS, Place, Table, Truth, may_stand_in

T = TypeVar("T")

#: How often each kind of step was done in this process. For `make torture`.
DONE: Counter[str] = Counter()

#: The largest number of pods at once.
MANY_PODS = 6

#: Longer than any grace period: the daemon's, and the kubelet's for a plugin that has gone.
LONG_S = 1000.0


@dataclass(eq=False)
class Workload:
    """A pod, of which one container gets units.

    init   whether that is an init container, which ends at once; its units are the pod's until that has gone
    units  the (unit, port) pairs that it got first
    inside what its last container was created with: number -> (unit, port)
    control the numbers of the control node in that container
    without_control  the last container that had another control node than it should have
    moves  how often one of its units, or one like it, was plugged or unplugged since its admission
    stopped  the same when its container was last stopped
    has    the units that its container was created with and that have been plugged in since; they are its own
    last   the units that its last container was created with
    """

    status: PodStatus
    table: Table
    init: bool = False
    units: list[tuple[str, str]] = field(default_factory=list)
    checked: CreatedContainer | None = None
    has: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    created: CreatedContainer | None = None
    inside: dict[int, tuple[str, str] | None] = field(default_factory=dict)
    control: list[int] = field(default_factory=list)
    without_control: CreatedContainer | None = None
    moves: int = 0
    stopped: int = 0

    @property
    def container(self) -> ContainerStatus:
        """The container that gets the units."""
        return self.status.container("init" if self.init else "main")

    def is_stopped_by(self, tables: Iterable[Table]) -> bool:
        """Whether its container is stopped while its device is unplugged."""
        return any(table.stops for table in tables if table.name == self.table.name)


class NodeMachine(RuleBasedStateMachine):
    """The steps of a node and its laws. `settle`: wait after the step until everything has caught up."""

    def __init__(self) -> None:
        super().__init__()
        self.truth = Truth()
        self.pods: list[Workload] = []
        self.pods_gone: list[Workload] = []
        self.ids: dict[tuple[object, ...], str] = {}
        self.listed: dict[str, set[str]] = {}
        self.given: set[str] = set()
        self.ties: dict[str, str] = {}
        self.side_by_side = False
        self.last_ports: dict[str, str] = {}
        self.offered_before: dict[str, tuple[str, Place]] = {}
        self.names_when_it_went_down: dict[int, str] = {}
        self.control_when_it_went_down: int | None = None
        self.tables_when_it_went_down: tuple[Table, ...] = ()
        self.refused = self.socket_gone = self.time_passed = self.deaf = False
        self.pods_created = 0
        self.stops_seen = 0
        self.outdated: list[CreatedContainer] = []
        self.seconds = 0.0
        self._loop = asyncio.new_event_loop()
        self._root = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
        self._root.chmod(0o755)

    def do(self, kind: str, work: Coroutine[object, object, T]) -> T:
        """Do one step and count it."""
        DONE[kind] += 1
        DONE["steps"] += 1
        return self._loop.run_until_complete(asyncio.wait_for(work, HANGS_S))

    def teardown(self) -> None:
        try:
            if hasattr(self, "node"):
                self._loop.run_until_complete(self._end())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            shutil.rmtree(self._root)

    async def _end(self) -> None:
        try:
            await self._settle()
        finally:
            DONE["registrations seen"] += len(self.node.kubelet.registrations)
            await self.node.close()

    @initialize(
        generation=st.sampled_from(list(Generation)),
        runtime=st.sampled_from([CONTAINERD, CRIO]),
        answer=st.sampled_from(list(AnswerBy)),
        rules=st.sampled_from(sorted(RULES)),
        seed=st.integers(0, 99),
        units=st.permutations(sorted(UNITS)),
        ports=st.permutations(PORTS),
        count=st.integers(1, len(UNITS)),
        bare_control=st.booleans(),
    )
    def begin(
        self,
        *,
        generation: Generation,
        runtime: Runtime,
        answer: AnswerBy,
        rules: str,
        seed: int,
        units: list[str],
        ports: list[str],
        count: int,
        bare_control: bool,
    ) -> None:
        self.node = TestNode(self._root, generation, runtime, seed, answer, bare_control=bare_control)
        self.truth.rules = rules
        DONE["nodes with a control node that udev does not know"] += bare_control
        DONE[f"node: {generation.name.lower()}, {'containerd' if runtime is CONTAINERD else 'cri-o'}"] += 1
        self.do("start", self._first(rules, dict(zip(units[:count], ports, strict=False))))

    async def _first(self, rules: str, units: dict[str, str]) -> None:
        await self.node.open(text_of(rules))
        self.node.move_control(self.truth.control)
        for number, (unit, port) in enumerate(units.items()):
            await self._settle()
            self._plug(unit, Place(port, number))
        await self._settle()

    # Events of the machine.

    @precondition(lambda self: len(self.truth.plugged) < len(UNITS))
    @rule(data=st.data(), settle=st.booleans())
    def plug(self, data: st.DataObject, settle: bool) -> None:
        unit = data.draw(st.sampled_from(sorted(UNITS.keys() - self.truth.plugged.keys())))
        place = self._draw_place(data, unit)
        self.do("plug", self._after_twins(settle, lambda: self._plug(unit, place)))

    @precondition(lambda self: self.truth.plugged)
    @rule(data=st.data(), settle=st.booleans())
    def unplug(self, data: st.DataObject, settle: bool) -> None:
        unit = data.draw(st.sampled_from(sorted(self.truth.plugged)))
        self.do("unplug", self._after(settle, lambda: self._unplug(unit)))

    @precondition(lambda self: self.truth.plugged)
    @rule(data=st.data(), settle=st.booleans())
    def replug_elsewhere(self, data: st.DataObject, settle: bool) -> None:
        unit = data.draw(st.sampled_from(sorted(self.truth.plugged)))
        place = self._draw_place(data, unit)

        def act() -> None:
            self._unplug(unit)
            self._plug(unit, place)

        self.do("re-plug elsewhere", self._after_twins(settle, act))

    @precondition(lambda self: self.truth.plugged)
    @rule(which=st.integers(0, len(UNITS) - 1), rules=st.sampled_from(FOLLOWING), seen=st.booleans())
    def replug_in_place(self, which: int, rules: str, seen: bool) -> None:
        """A unit of a pod is unplugged, which the daemon may notice, and returns under the same number."""
        self.do("re-plug in place", self._replug_in_place(which, rules, seen=seen))

    @precondition(lambda self: len(self.truth.plugged) >= 2)
    @rule(data=st.data(), settle=st.booleans())
    def exchange_names(self, data: st.DataObject, settle: bool) -> None:
        """Two units are unplugged and return to their ports in the other order."""
        one, two = data.draw(st.permutations(sorted(self.truth.plugged)))[:2]

        def act() -> None:
            first, second = self.truth.plugged[one], self.truth.plugged[two]
            self._unplug(one)
            self._unplug(two)
            self._plug(two, Place(second.port, first.number))
            self._plug(one, Place(first.port, second.number))

        self.do("exchange names", self._after_twins(settle, act))

    @precondition(lambda self: self.truth.plugged)
    @rule(data=st.data(), times=st.integers(1, 20))
    def storm(self, data: st.DataObject, times: int) -> None:
        """A loose cable makes a unit flap faster than the daemon can follow."""
        unit = data.draw(st.sampled_from(sorted(self.truth.plugged)))
        self.do("storm", self._storm(unit, times))

    @rule(number=st.sampled_from([None, 0, 0, 1]), by_alias=st.booleans(), settle=st.booleans())
    def move_control(self, number: int | None, by_alias: bool, settle: bool) -> None:
        """The control node leaves, comes, or gets another number; or another node has its number."""

        def act() -> None:
            self._check_stops()
            self._look_into_containers()
            for pod in self.pods:
                pod.moves += 1
            self.truth.control = number
            self.node.move_control(number, by_alias=by_alias)
            self._look_into_containers()

        self.do("control node moves", self._after(settle, act))

    # Actions of operators.

    @rule(rules=st.sampled_from([*sorted(RULES), "a mistake"]), settle=st.booleans())
    def edit_rules(self, rules: str, settle: bool) -> None:
        """Edit the rule file; after a mistake the rules in effect stay in effect until the next edit."""

        def act() -> None:
            if rules != "a mistake":
                self._edit_rules(rules)
            elif self.node.up:
                self.node.write_rules(BAD_RULES)

        self.do(f"edit of rules: {rules}", self._after_twins(settle, act))

    @precondition(lambda self: self.node.up)
    @rule(what=st.sampled_from(["restarted", "killed", "reboot"]), numbers=st.permutations(range(5)))
    def restart_with_mistake(self, what: str, numbers: list[int]) -> None:
        """The daemon starts again while the rule file has a mistake, twice: nothing else is in effect."""
        self.do(f"with a mistake in the rule file: {what}", self._restart_with_mistake(what, numbers))

    @rule(what=st.sampled_from(["restarted", "killed", "stopped", "killed for good"]), settle=st.booleans())
    def end_daemon(self, what: str, settle: bool) -> None:
        self.do(f"daemon {what}", self._end_daemon(what, settle=settle))

    @precondition(lambda self: not self.node.up)
    @rule(settle=st.booleans())
    def start_daemon(self, settle: bool) -> None:
        self.do("daemon started", self._start_daemon(settle=settle))

    @rule(daemon_first=st.booleans(), numbers=st.permutations(range(5)))
    def reboot(self, *, daemon_first: bool, numbers: list[int]) -> None:
        """The machine restarts: /dev is empty, and the kernel assigns new names."""
        kind = "reboot, daemon first" if daemon_first else "reboot, kubelet first"
        self.do(kind, self._reboot(numbers, daemon_first=daemon_first))

    @rule()
    def let_time_pass(self) -> None:
        """Every grace period ends."""
        self.do("time passes", self._let_time_pass())

    @precondition(lambda self: any(table.follows for table in self.truth.tables))
    @rule()
    def let_containers_follow(self) -> None:
        """Some seconds pass, in which containers that lack their device are stopped and started again."""
        self.do("containers follow", self._let_containers_follow())

    # Events of the kubelet.

    @rule(
        what=st.sampled_from(
            [
                "restart",
                "twice",
                "crash",
                "stop",
                "deaf",
                "stream lost",
                "stream lost",
                "refuses",
                "socket deleted",
            ]
        ),
        data=st.data(),
        settle=st.booleans(),
    )
    def disturb_kubelet(self, what: str, data: st.DataObject, settle: bool) -> None:
        kubelet = self.node.kubelet
        if what in ("restart", "crash") or not kubelet.running:
            self.do(f"kubelet: {what}", self._restart_kubelet(crash=what == "crash", settle=settle))
        elif what == "twice":
            self.do(
                "kubelet: twice", self._restart_kubelet_twice(data.draw(st.integers(0, 60)), settle=settle)
            )
        elif what == "stop":
            self.do("kubelet: stop", kubelet.stop())
        elif what == "deaf":
            self.do("kubelet: without the API server", self._restart_deaf(settle=settle))
        elif what == "refuses":
            self.refused = not self.refused
            kubelet.faults.refuse_registrations("no" if self.refused else None)
            self.do("kubelet: refuses" if self.refused else "kubelet: accepts", self._settle())
        elif what == "socket deleted" and not self.socket_gone:
            self.socket_gone = True
            kubelet.faults.remove_socket()
            self.do("kubelet: socket deleted", self._settle())
        elif self.truth.tables:
            name = full(data.draw(st.sampled_from(self.truth.tables)))
            self.do("kubelet: stream lost", self._after(settle, lambda: kubelet.faults.end_streams(name)))

    @rule(unreadable=st.booleans())
    def damage_checkpoint(self, unreadable: bool) -> None:
        """The daemon cannot read the kubelet's checkpoint, or can again."""
        DONE["checkpoint cannot be read"] += unreadable
        self.node.damage_checkpoint(unreadable=unreadable)

    # Pods.

    # The set of pods depends on timing, so nothing that is drawn may depend on it.

    @rule(which=st.integers(0, 9), count=st.integers(1, 2), init=st.booleans())
    def admit(self, which: int, count: int, init: bool) -> None:
        self.do("everything mended", self._mend())
        free = self._free()
        if free and len(self.pods) < MANY_PODS:
            table, most = free[which % len(free)]
            kind = "pod with an init container admitted" if init else "pod admitted"
            self.do(kind, self._admit(table, min(count, most), init=init))

    @rule(which=st.integers(0, MANY_PODS - 1))
    def delete(self, which: int) -> None:
        self._check_stops()
        if which < len(self.pods):
            DONE["pod deleted"] += 1
            self._delete(self.pods[which])

    @precondition(lambda self: self.node.kubelet.running)
    @rule(which=st.integers(0, 9))
    def restart_container(self, which: int) -> None:
        if self.pods:
            self.do("container restarted", self._restart_container(self.pods[which % len(self.pods)]))

    @precondition(lambda self: self.node.kubelet.running)
    @rule()
    def restart_all_containers(self) -> None:
        for pod in list(self.pods):
            self.do("container restarted", self._restart_container(pod))

    # The steps.

    def _free(self) -> list[tuple[Table, int]]:
        """The tables with free devices and their number, for which a scheduler could bind a pod."""
        kubelet = self.node.kubelet
        counts = [
            (table, kubelet.allocatable.get(full(table), 0) - len(kubelet.allocated(full(table))))
            for table in self.truth.tables
            if kubelet.running
        ]
        return [(table, free) for table, free in counts if free > 0]

    def _draw_place(self, data: st.DataObject, unit: str) -> Place:
        """A free place, or the unit's own."""
        own = self.truth.plugged.get(unit)
        ports, numbers = self.truth.free_ports(), self.truth.free_numbers()
        if own is not None:
            ports, numbers = [*ports, own.port], [*numbers, own.number]
        return Place(data.draw(st.sampled_from(ports)), data.draw(st.sampled_from(numbers)))

    def _plug(self, unit: str, place: Place) -> None:
        self._move(unit, place)
        self.truth.plugged[unit] = place
        self._look_into_containers()
        self.node.plug(unit, place)

    def _unplug(self, unit: str) -> None:
        self._move(unit, self.truth.plugged[unit])
        place = self.truth.plugged.pop(unit)
        self._look_into_containers()
        self.node.unplug(place)
        for pod in self.pods:
            pod.has -= {unit}

    def _move(self, unit: str, place: Place) -> None:
        """A unit is about to be plugged or unplugged."""
        self._check_stops()
        self._look_into_containers()
        for pod in self.pods:
            if any(
                (unit, place.port) == known or place.port == known[1] or UNITS[unit] == UNITS[known[0]]
                for known in pod.units
            ):
                pod.moves += 1

    def _edit_rules(self, rules: str) -> None:
        self._look_into_containers()
        self.truth.rules = rules
        self.node.write_rules(text_of(rules))

    async def _after(self, settle: bool, act: Callable[[], None]) -> None:
        act()
        if settle or self._may_tie():
            await self._settle()

    async def _after_twins(self, settle: bool, act: Callable[[], None]) -> None:
        """Like `_after`, for a step that may plug a twin: the model must know which one was first."""
        await self._settle()
        act()
        if settle or self._may_tie():
            await self._settle()

    def _may_tie(self) -> bool:
        """Whether the daemon may decide now which twin has the plain id. The model must see what it decides.

        One twin is enough if an edit gives it to a resource for the first time.
        """
        new = (
            unit
            for unit in self.truth.plugged
            if self._are_known_twins(unit)
            and (table := self.truth.table_of(unit)) is not None
            and table.identity == "serial"
            and table.name not in self.ties
        )
        return self._twins_are_plugged() or any(new)

    def _twins_are_plugged(self) -> bool:
        return any(len(self.truth.twins_of(unit)) > 1 for unit in self.truth.plugged)

    async def _replug_in_place(self, which: int, rules: str, *, seen: bool) -> None:
        await self._after_twins(True, lambda: self._edit_rules(rules))
        await self._mend()
        free = self._free()
        if free and len(self.pods) < MANY_PODS:
            await self._admit(free[0][0], 1)
        held = {unit for pod in self.pods for unit in pod.has}
        units = sorted(held & self.truth.plugged.keys() or self.truth.plugged)
        unit = units[which % len(units)]
        place = self.truth.plugged[unit]
        await self._until_judged()
        await self._after_twins(seen, lambda: self._unplug(unit))
        await self._after_twins(True, lambda: self._plug(unit, place))
        await self._until_judged()

    async def _until_judged(self) -> None:
        """Wait until the daemon has stopped what it stops before the clock moves, and check that."""
        await self._settle()
        await until(self.node.has_judged)
        self._check_stops()

    async def _storm(self, unit: str, times: int) -> None:
        await self._settle()
        kubelet, place = self.node.kubelet, self.truth.plugged[unit]
        table = self.truth.table_of(unit)
        counted = table is not None and self.node.up and self._reachable
        before = kubelet.messages(full(table)) if table is not None and counted else 0
        for _ in range(times):
            self._unplug(unit)
            self._plug(unit, place)
        await self._settle()
        if table is not None and counted:
            sent = kubelet.messages(full(table)) - before
            assert sent <= 2, f"{sent} messages for a storm that arrived at once"

    async def _end_daemon(self, what: str, *, settle: bool) -> None:
        if self.node.up:
            await self._settle()
            self.names_when_it_went_down = {place.number: unit for unit, place in self.truth.plugged.items()}
            self.control_when_it_went_down = self.truth.control
            self.tables_when_it_went_down = self.truth.tables
            await (self.node.kill_daemon() if "killed" in what else self.node.service.stop())
        if what in ("restarted", "killed"):
            await self._start_daemon(settle=settle)

    async def _start_daemon(self, *, settle: bool) -> None:
        await self.node.start_daemon()
        if settle or self._may_tie():
            await self._settle()

    async def _restart_with_mistake(self, what: str, numbers: list[int]) -> None:
        await self._after_twins(True, lambda: self.node.write_rules(BAD_RULES))
        for _ in range(2):
            if what == "reboot":
                await self._reboot(numbers, daemon_first=True)
            else:
                await self._end_daemon(what, settle=True)
            self._check_mistake()

    def _check_mistake(self) -> None:
        """Check that the last good version of the rule file is in effect, and the mistake is reported."""
        rules = self.node.service.daemon.rules
        assert rules.problems, "the mistake is not reported"
        assert [each.name for each in rules.resources] == [full(table) for table in self.truth.tables]

    async def _let_time_pass(self) -> None:
        await self._settle()
        self.node.clock.advance(LONG_S)
        self.time_passed = True
        await self._settle()
        if self.node.up and self._reachable:
            with self.node.kubelet_up_for_long():
                await self.node.has_asked()
                if not self.deaf and not self.node.checkpoint_is_damaged:
                    await self.node.wait_until(
                        "a device that no pod holds is kept", self._only_held_is_kept, self.node.kubelet
                    )
                    self.pods_gone.clear()
                await self._settle()
            await self._until_containers_follow()

    async def _let_containers_follow(self) -> None:
        await self._settle()
        if self.node.up and self._reachable:
            await self._until_containers_follow()

    async def _restart_kubelet(self, *, crash: bool, settle: bool) -> None:
        kubelet = self.node.kubelet
        if kubelet.running:
            await (kubelet.crash() if crash else kubelet.stop())
        self.socket_gone = False
        await kubelet.start(readmit=False)
        if settle:
            await self._settle()
        await self._readmit()

    async def _restart_deaf(self, *, settle: bool) -> None:
        """The kubelet restarts while the API server is away, and knows no pod until `_readmit`."""
        self.socket_gone = False
        await self.node.kubelet.restart(readmit=False)
        self.deaf = True
        if settle:
            await self._settle()

    async def _restart_kubelet_twice(self, rounds: int, *, settle: bool) -> None:
        """The second time while everybody is busy with the first."""
        await self.node.kubelet.restart(readmit=False)
        for _ in range(rounds):
            await asyncio.sleep(0)
        await self._restart_kubelet(crash=True, settle=settle)

    def _overlook(self, pod: Workload) -> None:
        """Do not check what the kubelet created by itself meanwhile: when that was, nobody knows."""
        created = pod.container.created
        if created is not pod.checked:
            pod.checked, pod.has = created, frozenset()

    async def _readmit(self) -> None:
        for pod in self.pods:
            self._overlook(pod)
        await self.node.kubelet.readmit()
        self.deaf = False
        for pod in list(self.pods):
            self._check_container(pod)

    async def _reboot(self, numbers: list[int], *, daemon_first: bool) -> None:
        await self._settle()
        expected = self._recoverable() if daemon_first else []
        await self.node.service.stop()
        if self.node.kubelet.running:
            await self.node.kubelet.stop()
        places = dict(self.truth.plugged)
        for unit in places:
            self._unplug(unit)
        shutil.rmtree(self.node.settings.link_dir, ignore_errors=True)
        shutil.rmtree(self.node.settings.cdi_dir, ignore_errors=True)
        for (unit, place), number in zip(sorted(places.items()), numbers, strict=False):
            self._plug(unit, Place(place.port, number))
        if self.truth.control is not None:
            self.truth.control = len(numbers) - self.truth.control
            self.node.move_control(self.truth.control)
        self.names_when_it_went_down = {}
        self.control_when_it_went_down = self.truth.control
        self.socket_gone = False
        if daemon_first:
            await self.node.start_daemon()
        await self.node.kubelet.reboot(readmit=False)
        if not daemon_first:
            await self._readmit()
            await self.node.start_daemon()
        await self._settle()
        if daemon_first:
            await self._readmit()
            if not self.refused:
                for pod in expected:
                    assert pod.status.phase is Phase.RUNNING, f"{pod.status.message} after a reboot"

    def _recoverable(self) -> list[Workload]:
        """The running pods whose devices are all Healthy: they must run after a reboot, too."""
        if not (self.node.up and self._reachable):
            return []
        return [
            pod
            for pod in self.pods
            if pod.status.phase is Phase.RUNNING
            and not pod.init
            and pod.table in self.truth.tables
            and all(
                health == "Healthy"
                for of_resource in self.node.kubelet.resource_health(pod.status, "main").values()
                for health in of_resource.values()
            )
        ]

    async def _mend(self) -> None:
        """Start what is down and remove what blocks the node."""
        if not self.node.up:
            await self._start_daemon(settle=False)
        if self.refused:
            self.refused = False
            self.node.kubelet.faults.refuse_registrations(None)
        if self.socket_gone or not self.node.kubelet.running:
            await self._restart_kubelet(crash=False, settle=True)
        if self.deaf:
            await self._settle()
            await self._readmit()
        self.node.damage_checkpoint(unreadable=False)
        if not self.truth.tables:
            self.truth.rules = "base"
            self.node.write_rules(text_of("base"))
        await self._settle()

    async def _admit(self, table: Table, count: int, *, init: bool = False) -> None:
        kubelet = self.node.kubelet
        kubelet.tick()
        limits = {full(table): count}
        containers = [Container("main", limits={} if init else limits), Container("beside")]
        self.pods_created += 1
        inits = [Container("init", limits=limits)] if init else []
        spec = Pod(f"pod-{self.pods_created}", containers, init_containers=inits)
        status = await kubelet.admit(spec)
        self.given |= self._allocated()
        if status.phase is Phase.FAILED:
            kubelet.delete(status)
            return
        pod = Workload(status, table, init)
        self.pods.append(pod)
        self._check_container(pod)

    def _delete(self, pod: Workload) -> None:
        """The kubelet forgets a pod. The daemon does not know that before it has asked."""
        self.pods.remove(pod)
        self.pods_gone.append(pod)
        self.node.kubelet.delete(pod.status)

    async def _restart_container(self, pod: Workload) -> None:
        if self.node.up:
            await self._until_links_are_right()
        status = pod.status.container("main")
        if not pod.status.active:
            return
        self._overlook(pod)
        if status.created is None:
            await self.node.kubelet.sync(pod.status)
        else:
            await self.node.kubelet.restart_container(pod.status, "main")
        waits = status.state is ContainerState.WAITING
        DONE["  of which refused"] += waits
        # Rules that have just been edited away may have asked for PreStartContainer.
        refused = waits and "PreStartContainer" not in status.message
        assert not (refused and self._keeps_its_device(pod)), f"its device is plugged: {status.message}"
        self._check_container(pod)

    # The laws.

    def _check_stops(self) -> None:
        """Check what the container runtime was asked to stop since the last look."""
        self._look_into_containers()
        calls = self.node.kubelet.container_runtime.stops[self.stops_seen :]
        self.stops_seen += len(calls)
        for call in calls:
            DONE["container stopped"] += 1
            assert call.container == "main", "a container was stopped that holds no device"
            assert any(call.created is each for each in self.outdated), (
                f"{call.pod.name} was stopped although it had its devices: {call.created.nodes}"
            )
            for pod in self.pods:
                if pod.status is call.pod:
                    assert pod.moves > pod.stopped, f"{pod.status.name} was stopped twice for one plug"
                    pod.stopped = pod.moves

    def _look_into_containers(self) -> None:
        """Note which containers do not have their devices any more. Called before and after each move."""
        for pod in self.pods:
            created = pod.status.container("main").created
            if created is None or pod.init:
                continue
            if created is not pod.created:
                pod.created = created
                pod.inside = {number: self._unit_at(number) for number in numbers_in(created)}
                pod.control = controls_in(created)
                if not self.node.up or not created.nodes:
                    # Nobody has kept the links right: CRI-O starts a container whose link leads nowhere.
                    self.outdated.append(created)
            if any(self._is_outdated(pod, number, unit) for number, unit in pod.inside.items()):
                self.outdated.append(created)
            if any(self._is_another_device(pod, unit) for unit in pod.inside.values()):
                self.outdated.append(created)
            if pod.control != self._control_of(pod, created):
                # Edited rules may have added the node to its CDI devices, which moves nothing.
                pod.moves += created is not pod.without_control
                pod.without_control = created
                self.outdated.append(created)

    def _control_of(self, pod: Workload, created: CreatedContainer) -> list[int]:
        """The control node that a container should have now: names of CDI devices follow the rules."""
        # While the daemon is down, a name means what it meant before.
        tables = self.truth.tables if self.node.up else self.tables_when_it_went_down
        now = [table.control for table in tables if table.name == pod.table.name]
        wanted = any(now) if created.cdi_devices else pod.table.control
        return [self.truth.control] if wanted and self.truth.control is not None else []

    def _is_outdated(self, pod: Workload, number: int, was: tuple[str, str] | None) -> bool:
        """Whether the device that a container has under a number may be elsewhere, or unplugged."""
        if was is None:
            return True
        identity = self._identity_of(pod.table)
        numbers = {
            place.number
            for unit, place in self.truth.plugged.items()
            if may_stand_in(identity, was, (unit, place.port))
        }
        if not numbers:
            return pod.is_stopped_by(self.truth.tables)
        return numbers != {number}

    def _is_another_device(self, pod: Workload, was: tuple[str, str] | None) -> bool:
        """Whether a unit that is known by its port is in another one: its device is unplugged."""
        if was is None or (self._identity_of(pod.table) != "port" and UNITS[was[0]] is not None):
            return False
        now = self.truth.plugged.get(was[0])
        return now is not None and now.port != was[1]

    def _containers_follow(self) -> bool:
        """Whether the containers that run of a resource that follows have what its links point to now."""
        following = [full(table) for table in self.truth.tables if table.follows]
        links, waiting = self.node.links(), self.node.waiting()
        for pod in self.pods:
            status = pod.status.container("main")
            if status.state is not ContainerState.RUNNING or not set(status.spec.limits) & {*following}:
                continue
            ids = ids_in(status.created, following)
            devices = sorted({id_.partition(".")[0] for id_ in ids})
            listed = self.node.listed(full(pod.table))
            if set(devices) & waiting.keys() or not set(ids) <= listed.keys():
                continue
            if set(devices) & devices_of(waiting.values()):
                # Edited rules call its unit otherwise. It has not been unplugged, and it has no new plug.
                continue
            numbers = [links.get(device) for device in devices]
            if None in numbers and self._is_plugged(pod):
                # So do they here, and another pod may hold the id that they give it.
                continue
            if None not in numbers and links_of(status.created) & self.node.dead_links():
                # Edited rules call its links otherwise: a container that is created again would be refused.
                continue
            if None in numbers and (self._lacks_control(pod) or not pod.is_stopped_by(self.truth.tables)):
                continue
            if sorted(numbers_in(status.created)) != sorted(each for each in numbers if each is not None):
                return False
            if self.node.checkpoint_is_damaged:
                # Nobody knows whether it got the control node.
                continue
            created = status.created
            if created is None or {*self._control_of(pod, created)} - {*controls_in(created)}:
                return False
        return True

    def _is_plugged(self, pod: Workload) -> bool:
        """Whether the units of a container are plugged in, whatever the rules call them."""
        return pod.created is pod.status.container("main").created and all(
            was is not None and was[0] in self.truth.plugged and not self._is_another_device(pod, was)
            for was in pod.inside.values()
        )

    def _lacks_control(self, pod: Workload) -> bool:
        """Whether all devices of its resource are Unhealthy for want of the control node."""
        tables = [table for table in self.truth.tables if table.name == pod.table.name]
        return self.truth.control is None and any(table.control for table in tables)

    async def _until_containers_follow(self) -> None:
        """What runs has what is there. Both the daemon and the kubelet may have to ask more than once."""
        for _ in range(0 if self.deaf else 50):
            self.node.clock.advance(ASK_AGAIN_S)
            self.seconds += ASK_AGAIN_S
            self.time_passed = self.time_passed or self.seconds > UNPLUG_GRACE_S - 100.0
            await self.node.caught_up()
            with suppress(TimeoutError):
                await self.node.kubelet.wait_until(self._containers_follow, timeout_s=0.1)
                break
        assert self.deaf or self._containers_follow(), f"{self.node.links()}, {self.node.kubelet.describe()}"

    @property
    def _reachable(self) -> bool:
        return self.node.kubelet.running and not self.refused and not self.socket_gone

    def _check_container(self, pod: Workload) -> None:
        """Check that a running container has the right units."""
        if not pod.status.active:
            self._delete(pod)
            return
        status = pod.container
        if status.state is not (ContainerState.TERMINATED if pod.init else ContainerState.RUNNING):
            pod.has = frozenset()
            return
        if status.created is pod.checked:
            return
        pod.checked, pod.has = status.created, frozenset()
        numbers = numbers_in(status.created)
        if not self.node.up and (
            self._a_name_has_changed(pod) or self.truth.control != self.control_when_it_went_down
        ):
            return  # the links are stale while the daemon is down; only prestart guards this
        assert len(numbers) == status.spec.limits[full(pod.table)] or pod.table.replicas, (
            "a device is missing"
        )
        assert numbers, "a container without its device"
        found = []
        for number in numbers:
            unit = self._at(number)
            assert unit is not None, f"ttyUSB{number} is in a container and is not plugged"
            found.append((unit, self.truth.plugged[unit].port))
        self._check_paths(pod)
        self._check_control(pod, status.created)
        if not pod.units:
            pod.units = found
            DONE["containers created"] += 1
        for was, now in zip(pod.units, found, strict=True):
            assert may_stand_in(self._identity_of(pod.table), was, now), f"first had {was}, has {now}"
        pod.has = pod.last = frozenset(unit for unit, _ in found)
        for other in self.pods:
            if other is not pod and not (is_shared(pod.table) and is_shared(other.table)):
                assert not pod.has & other.has, f"{pod.has & other.has} is in two containers"

    def _keeps_its_device(self, pod: Workload) -> bool:
        """Whether the unit that has a serial number of its own is plugged and still what the pod has."""
        now = self.truth.table_of("B")
        return (
            [unit for unit, _ in pod.units] == ["B"]
            and "B" in self.truth.plugged
            # One that got it under another name may find it again where it was, so nobody else gets it there.
            and not any(
                "B" in [unit for unit, _ in other.units]
                for other in (*self.pods, *self.pods_gone)
                if other is not pod
            )
            and now is not None
            and self.node.up
            and not self._is_another_device(pod, pod.units[0])
            and not any(table.control or table.prestart for table in (now, pod.table))
            and (now.name, now.identity, now.grouped)
            == (pod.table.name, pod.table.identity, pod.table.grouped)
        )

    def _check_paths(self, pod: Workload) -> None:
        """Check that a container that got its units by CDI finds them where they are now."""
        created = pod.checked
        if created is None or not created.cdi_devices:
            return
        DONE["containers created by CDI"] += 1
        assert all(node.container_path == node.source for node in created.nodes), "a path of earlier"
        paths = [node.container_path for node in created.nodes if node.major != CONTROL_MAJOR]
        assert created.envs[env_names(full(pod.table))[0]].split(",") == paths, "told another path"

    def _check_control(self, pod: Workload, created: CreatedContainer | None) -> None:
        """Check that a container has the control node exactly if its units come with it."""
        assert created is not None
        wanted = self._control_of(pod, created)
        assert controls_in(created) == wanted, f"control {self.truth.control}, {pod.table}"
        DONE["containers with the control node"] += bool(wanted)

    def _identity_of(self, table: Table) -> str:
        """What the ids of a table depend on: on the port, too, if the operator has said so since."""
        now = {each.identity for each in self.truth.tables if each.name == table.name}
        return "port" if "port" in now else table.identity

    def _a_name_has_changed(self, pod: Workload) -> bool:
        """Whether the name of one of the pod's units has changed hands since the daemon went down."""
        units = {unit for unit, _ in pod.units} | pod.last
        return any(
            self._at(number) != unit
            for number, unit in self.names_when_it_went_down.items()
            if unit in units or not units
        )

    def _unit_at(self, number: int) -> tuple[str, str] | None:
        unit = self._at(number)
        return None if unit is None else (unit, self.truth.plugged[unit].port)

    def _at(self, number: int) -> str | None:
        try:
            return self.truth.at(number)
        except KeyError:
            return None

    async def _settle(self) -> None:
        """Wait until everything has caught up, then check the laws."""
        if not self.node.up:
            return
        await self._until_links_are_right()
        if self._reachable:
            await self.node.wait_until(
                "the kubelet's lists are wrong", self._kubelet_is_right, self.node.kubelet
            )
            self._check_lists()
            self._check_told()
        self._check_ids()
        self._check_stops()

    async def _until_links_are_right(self) -> None:
        """Wait until the daemon has handled everything, then check the links."""
        await self.node.caught_up()
        assert self._links_are_right(), (
            f"links {self.node.links()}, plugged {self.truth.plugged}, waiting {self.node.waiting()}, "
            f"given {self.given}"
        )

    def _links_are_right(self) -> bool:
        """Whether exactly the units that a rule takes and that do not have to wait have one link each."""
        links = self.node.links()
        pointed = [number for number in links.values() if number is not None]
        lacking = [table for table in self.truth.tables if self.truth.lacks_control(table)]
        taken = {
            place.number
            for unit, place in self.truth.plugged.items()
            if self.truth.table_of(unit) not in (None, *lacking)
        }
        waiting = {
            device
            for device in self.node.waiting()
            if links.get(device) is None and not any(is_of(device, table) for table in lacking)
        }
        # An id that means no unit, because two pods got it under two names, has no control node either.
        refused = [device for device in waiting if self.node.waiting()[device] == device]
        shares = any(
            table.control
            and len(self.truth.taken_by(table)) > sum(is_of(device, table) for device in refused)
            for table in self.truth.tables
        )
        leads = shares and self.truth.control is not None
        return (
            set(self.node.control_links()) <= {leads}
            and len(pointed) == len(set(pointed)) == len(taken) - len(waiting)
            and taken.issuperset(pointed)
            and devices_of(self.node.waiting().values()) <= devices_of(self.given)
            and self.node.held_links() <= devices_of(self.given).union(self.given)
        )

    def _kubelet_is_right(self) -> bool:
        """Whether the kubelet has one stream for each resource, whose list agrees with the links."""
        kubelet = self.node.kubelet
        for table in self.truth.tables:
            name = full(table)
            there, absent = self._ids_behind_links(table)
            listed = self.node.listed(name)
            healthy = {id_ for id_, health in listed.items() if health == "Healthy"}
            waiting = self.node.waiting()
            wait = {id_ for device in waiting for id_ in made_of(device, table.replicas)}
            links = self.node.links()
            dead = sum(is_of(device, table) and links.get(device) is None for device in waiting)
            if self.truth.lacks_control(table):
                if healthy or there or kubelet.streams(name) != 1 or absent - listed.keys():
                    return False
                continue
            if (
                kubelet.streams(name) != 1
                or there - wait - healthy
                or healthy - there
                or (healthy & wait) - self.given
                or (there | absent) - listed.keys()
                or len(there) + dead * (table.replicas or 1)
                != len(self.truth.taken_by(table)) * (table.replicas or 1)
                or kubelet.allocatable.get(name) != len(healthy)
            ):
                return False
        wanted = {full(table) for table in self.truth.tables}
        return all(kubelet.streams(name) == 0 for name in kubelet.capacity if name not in wanted)

    def _only_held_is_kept(self) -> bool:
        """Whether every absent device that is still listed is held by a pod."""
        kubelet = self.node.kubelet
        for table in self.truth.tables:
            if self.truth.lacks_control(table):
                continue
            held = {id_.partition(".")[0] for id_ in kubelet.allocated(full(table))}
            listed = self.node.listed(full(table))
            kept = {id_.partition(".")[0] for id_, health in listed.items() if health != "Healthy"}
            there = {id_.partition(".")[0] for id_, health in listed.items() if health == "Healthy"}
            waiting = self.node.waiting()
            in_vain = devices_of(waiting.values()) - devices_of(self._allocated())
            if in_vain or kept - held - there - waiting.keys():
                return False
        return True

    def _ids_behind_links(self, table: Table) -> tuple[set[str], set[str]]:
        """The ids of the present devices of a resource, and those of the absent ones."""
        there: set[str] = set()
        absent: set[str] = set()
        for id_, number in self.node.links().items():
            if is_of(id_, table):
                (absent if number is None else there).update(made_of(id_, table.replicas))
        return there, absent

    def _check_told(self) -> None:
        """Check that `status` reports the same health as the kubelet has."""
        told = self.node.told()
        assert told.keys() == {full(table) for table in self.truth.tables}
        for table in self.truth.tables:
            listed = self.node.listed(full(table))
            for device, health in told[full(table)].items():
                wait = device in self.node.waiting()
                heard = {listed[id_] for id_ in made_of(device, table.replicas)}
                assert heard == {health} or (wait and health == "Healthy"), (told, listed)

    def _allocated(self) -> set[str]:
        """The ids that pods hold, also those of resources that are no longer in the rules."""
        names = {full(table) for tables in RULES.values() for table in tables}
        return {id_ for name in names for id_ in self.node.kubelet.allocated(name)}

    def _check_lists(self) -> None:
        """Check that only ids without a holder were dropped, and only after their grace; links stay."""
        links = self.node.links()
        for id_ in self._allocated():
            assert id_.partition(".")[0] in links, f"the link of {id_} went while a pod holds it"
        for table in self.truth.tables:
            name = full(table)
            now = set(self.node.listed(name))
            dropped = self.listed.get(name, set()) - now
            if dropped:
                held = self.node.kubelet.allocated(name)
                assert self.time_passed, f"{dropped} dropped before the grace passed"
                assert not dropped & held, f"{dropped & held} dropped while a pod holds it"
                DONE["ids forgotten"] += len(dropped)
            self.listed[name] = now

    def _check_ids(self) -> None:
        """Check that every id still means the same unit."""
        links = [(id_, number) for id_, number in self.node.links().items() if number is not None]
        offered = list(self._found([*links, *self.node.ids_told()]))
        found = [*offered, *self._found(self.node.ids_refused())]
        self.side_by_side |= self._twins_are_plugged()
        for table, unit, id_ in found:
            if table.identity == "serial":
                self._note_tie(table, unit, id_)
        self._note_tie_elsewhere(found, offered)
        for table, unit, id_ in found:
            key = self._key(table, unit)
            known = self.ids.setdefault(key, id_)
            assert known == id_, f"{key} was {known} and is {id_}"
        assert len(set(self.ids.values())) == len(self.ids), f"two units share an id: {self.ids}"
        self.offered_before = {unit: (table.name, self.truth.plugged[unit]) for table, unit, _ in offered}

    def _found(self, numbers: Iterable[tuple[str, int]]) -> Iterator[tuple[Table, str, str]]:
        """The table, the unit and the id of each device with a number of a ttyUSB."""
        for id_, number in numbers:
            unit = self.truth.at(number)
            table = self.truth.table_of(unit)
            assert table is not None
            yield table, unit, id_

    def _are_known_twins(self, unit: str) -> bool:
        """Whether a unit has been seen beside its twin, under whatever name."""
        return self.side_by_side and UNITS[unit] == "SAME"

    def _note_tie(self, table: Table, unit: str, id_: str) -> None:
        """Record which twin has the plain id from the moment when both were there: the one that was first."""
        twins = self.truth.twins_of(unit)
        plain = (table.name, "serial", UNITS[unit], "")
        if not self._are_known_twins(unit) or table.name in self.ties or id_ != f"{table.name}_{UNITS[unit]}":
            return
        # Where a unit was under another name, before an edit, says nothing about the ids of this name.
        before = [
            twin for twin in twins if self.offered_before.get(twin) == (table.name, self.truth.plugged[twin])
        ]
        if len(before) == 1 and plain in self.ids and len(twins & self.offered_before.keys()) == 1:
            assert before == [unit], f"{id_} belongs to {unit}, but {before[0]} was there first"
        self.ties[table.name] = self.truth.plugged[unit].port
        self.ids[plain] = id_

    def _note_tie_elsewhere(
        self, found: Iterable[tuple[Table, str, str]], offered: Collection[tuple[Table, str, str]]
    ) -> None:
        """Record that twins came to other ports than where the first one was: neither has its id.

        What is refused under that id may be another unit than the one that a pod got.
        """
        for table, unit, id_ in found:
            plain, port = f"{table.name}_{UNITS[unit]}", self.truth.plugged[unit].port
            if id_ == plain:
                if (table, unit, id_) in offered:
                    self.last_ports[plain] = port
            elif table.identity == "serial" and self._are_known_twins(unit) and table.name not in self.ties:
                was = self.last_ports[plain]
                twins = self.truth.twins_of(unit) & self.truth.taken_by(table)
                assert was not in {self.truth.plugged[twin].port for twin in twins}
                self.ties[table.name] = was

    def _key(self, table: Table, unit: str) -> tuple[object, ...]:
        """The identity of a unit, which determines its id."""
        serial, port = UNITS[unit], self.truth.plugged[unit].port
        if table.identity == "port" or serial is None:
            return (table.name, "port", port)
        tie = self.ties.get(table.name)
        at = "" if UNITS[unit] != "SAME" or tie in (None, port) else port
        return (table.name, "serial", serial, at)


def full(table: Table) -> str:
    """The full name of a table's resource."""
    return f"example.com/{table.name}"


def devices_of(ids: Iterable[str]) -> set[str]:
    """The devices behind these ids, without the numbers of replicas."""
    return {id_.partition(".")[0] for id_ in ids}


def is_of(device: str, table: Table) -> bool:
    """Whether a device is of a table's resource."""
    return device.startswith(f"{table.name}_")


def is_shared(table: Table) -> bool:
    """Whether several containers may have a device of the resource."""
    return (table.replicas or 1) > 1


def text_of(rules: str) -> str:
    """The text of a rule file."""
    return "\n".join(table.text() for table in RULES[rules])


def made_of(id_: str, replicas: int | None) -> list[str]:
    """The ids that one device has in the kubelet's list."""
    return [id_] if replicas is None else [f"{id_}.{number}" for number in range(replicas)]
