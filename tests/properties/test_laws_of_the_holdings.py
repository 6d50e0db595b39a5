"""Laws of what pods hold, over any history of plugging, edits, pods, restarts and answers of the kubelet.

A pod gets the links of its ids, once. Whenever its container starts again, it gets the device nodes at which
they point then, or does not start when one of them points nowhere. A pod that was answered by CDI gets what
its ids mean then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.grouping import NODE, AllNodes, Grouping, SameProperty
from genericdp.core.status.holdings import Holder, Holdings, stranded
from tests.properties.pods import allocated, apart, behind_cdi, behind_links, check_lists, healthy
from tests.scenes.builders import a_usb_device, a_usb_node, by_sys_path, resources_of


@dataclass(frozen=True)
class Unit:
    """A USB adapter with some ports that only their order tells apart, or with one port.

    apart  whether each of its ports is at an interface of its own instead
    """

    serial: str | None
    ports: int
    foo: str
    bar: str
    apart: bool = False


#: Twins, units without a serial number, and values that are those of others under another name.
UNITS = {
    "A": Unit("SAME", 1, "x", "y"),
    "B": Unit("OTHER", 1, "y", "x"),
    "C": Unit("SAME", 1, "z", "x"),
    "D": Unit(None, 1, "x", "z"),
    "E": Unit("MANY", 2, "w", "v"),
    "F": Unit("MANY", 3, "v", "w"),
    "G": Unit("APART", 3, "x", "v", apart=True),
    "H": Unit("0001", 1, "u", "t"),
    "I": Unit("0001", 1, "t", "u"),
}
PORTS = ("1", "2", "3", "4")

_TTY = 'SUBSYSTEM = "tty"'
_USB = 'usb = { vendor = "0403" }'


def table(name: str, *keys: str, match: str = _TTY) -> str:
    return "\n".join(
        ["[[resource]]", f'name = "{name}"', f"match = {{ {match} }}", 'unplug_grace = "1s"', *keys, ""]
    )


#: A kit whose parts are told by their ports.
KIT = table("x", 'group_by = "all"') + "".join(
    f'[[resource.node]]\nmatch.usb = {{ port = "{port}" }}\noptional = true\n'
    f'container_path = "/dev/part{port}"\n'
    for port in PORTS
)

RULES = {
    "a kit": KIT,
    "a kit without its first port": table("y", match=f'{_TTY}, usb = {{ port = "1" }}') + KIT,
    "base": table("x"),
    "renamed": table("y"),
    "in the other domain": table("other.org/x"),
    "shared": table("x", "replicas = 2"),
    "one replica": table("x", "replicas = 1"),
    "by port": table("x", 'identity = "port"'),
    "by all, at one port": table("x", 'identity = ["ALL"]', match=f'{_TTY}, usb = {{ port = "1" }}'),
    "by all, at another port": table("x", 'identity = ["ALL"]', match=f'{_TTY}, usb = {{ port = "2" }}'),
    "by foo": table("x", 'identity = ["FOO"]'),
    "by bar": table("x", 'identity = ["BAR"]'),
    "grouped by foo": table("x", 'group_by = "FOO"'),
    "grouped by bar": table("x", 'group_by = "BAR"'),
    "grouped by port, identified by the unit's": table("x", 'group_by = "EACH"', 'identity = "port"'),
    "grouped by port, identified by foo": table("x", 'group_by = "EACH"', 'identity = ["FOO"]'),
    "grouped by line, identified by port": table("x", 'group_by = "LINE"', 'identity = "port"'),
    "all in one": table("x", 'group_by = "ALL"'),
    "all but one serial number": table("y", match=f'{_TTY}, usb = {{ serial = "OTHER" }}')
    + table("x", 'group_by = "ALL"'),
    "all but one port": table("y", match=f'{_TTY}, usb = {{ port = "1" }}') + table("x", 'group_by = "ALL"'),
    "whole units": table("x", 'group_by = "usb_device"', match=_USB),
    "only the terminals of units": table("x", 'group_by = "usb_device"'),
    "only odd names": table("x", match='SUBSYSTEM = "tty", DEVNAME = "*[13579]"'),
    "odd names apart": table("y", match='SUBSYSTEM = "tty", DEVNAME = "*[13579]"')
    + table("x", 'group_by = "usb_device"'),
    "nothing": "",
}

#: A device node: its unit, which one of the unit it is, and since when the unit is plugged in.
Physical = tuple[str, int, int]


def properties_of(name: str, n: int) -> dict[str, str]:
    """What udev says of a port of a unit."""
    unit = UNITS[name]
    return {"FOO": unit.foo, "BAR": unit.bar, "ALL": "all", "EACH": f"{name}{n}", "LINE": f"line {n}"}


@dataclass
class Pod:
    """A pod with one id of a resource.

    shared  whether the device was offered to several pods when it got it
    links   what its container gets
    of      what made the device when it got it
    first   what that was at first, None before it could start
    has     what its running container has of it
    init    whether only an init container got it: PodResources never lists it
    behind  the units to which each link has led
    """

    resource: str
    id_: str
    shared: bool
    links: tuple[str, ...]
    of: Grouping
    first: Mapping[str, tuple[Physical, str]] | None = None
    has: frozenset[Physical] = frozenset()
    init: bool = False
    behind: dict[str, set[str]] = field(default_factory=dict)


@dataclass
class Node:
    """A machine with its daemon, its kubelet and its pods."""

    rules: str = "base"
    domain: str = "example.com"
    plugged: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """unit -> port, first kernel number, when it was plugged in"""
    unbound: set[tuple[str, int]] = field(default_factory=set)
    """the ports of units that have no device node, because no driver is bound to them"""
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    pods: list[Pod] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.at: dict[str, tuple[Physical, str]] = {}
        self.heard: set[str] = set()
        self.asked: Answer | None = None

    def tables(self) -> str:
        return RULES[self.rules]

    def devices(self) -> dict[str, UdevDevice]:
        self.at = {}
        found: list[UdevDevice] = []
        for name, (port, first, since) in self.plugged.items():
            unit = UNITS[name]
            usb = a_usb_device(port, serial=unit.serial, devnum=int(port) + 1)
            found.append(usb)
            self.at[usb.device_node or ""] = ((name, -1, since), port)
            for n in range(unit.ports):
                if (name, n) in self.unbound:
                    continue
                tty = a_usb_node(
                    usb,
                    "tty",
                    f"ttyACM{first + n}",
                    interface=f"{n if unit.apart else 0:02}",
                    number=f"c 166:{first + n}",
                    properties=properties_of(name, n),
                )
                found.append(replace(tty, incarnation=since + 1))
                self.at[tty.device_node or ""] = ((name, n, since), port)
        return by_sys_path(*found)

    def step(self, answer: Answer | None = None) -> None:
        self.now += 1000.0
        self.heard = healthy(self.inventory)
        devices = self.devices()
        builder = Builder(resources_of(self.tables(), domain=self.domain), self.domain)
        self.inventory, self.memory = take_inventory(builder, devices, self.memory, self.now, answer)
        there = {(unit, since) for unit, (_, _, since) in self.plugged.items()}
        for pod in self.pods:
            # A driver that takes a port again gives it the number that it had.
            pod.has = frozenset(each for each in pod.has if (each[0], each[2]) in there)

    def plug(self, name: str, port: str, first: int) -> None:
        taken = {each for each, _, _ in self.plugged.values()}
        numbers = {
            number
            for other, (_, start, _) in self.plugged.items()
            for number in range(start, start + UNITS[other].ports)
        }
        if name in self.plugged or port in taken or numbers & {*range(first, first + UNITS[name].ports)}:
            return
        self.plugged[name] = (port, first, int(self.now))
        self.step()

    def unplug(self, name: str) -> None:
        if self.plugged.pop(name, None) is not None:
            self.step()

    def bind(self, name: str, number: int) -> None:
        """A driver lets a port of a unit go, or takes it again."""
        self.unbound ^= {(name, number % UNITS[name].ports)}
        self.step()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.step()

    def admit(self, number: int, container: str = "main") -> None:
        """The kubelet gives a free id to a pod, whether it has heard of the last change or not."""
        usable = (healthy(self.inventory) | self.heard) - {pod.id_ for pod in self.pods}
        found = allocated(self.inventory, usable, number)
        if found is None:
            return
        offer, id_, links = found
        self.memory = replace(self.memory, held=give(self.memory.held, offer, [id_], self.now))
        shared = (offer.resource.replicas or 1) > 1
        of, init = offer.resource.group_by, container == "init"
        self.pods.append(Pod(offer.resource.name, id_, shared, links, of, init=init))
        self.start(self.pods[-1])
        self.step()

    def start(self, pod: Pod) -> None:
        """The container starts, again or for the first time."""
        now = behind_links(self.inventory, pod, self.at)
        pod.has = frozenset(physical for physical, _ in now.values()) if now else frozenset()
        pod.first = pod.first or now

    def delete(self, number: int) -> None:
        if self.pods:
            self.pods.pop(number % len(self.pods))

    def ask(self) -> None:
        """The kubelet works out its answer, which comes later."""
        listed = frozenset((pod.resource, pod.id_) for pod in self.pods if not pod.init)
        self.asked = self.asked or Answer(listed, self.now, complete=True)

    def answer(self) -> None:
        """The answer comes, and the checkpoint is read."""
        self.ask()
        answer, self.asked = self.asked, None
        if answer is not None:
            self.step(replace(answer, checkpointed=frozenset(pod.id_ for pod in self.pods)))

    def restart(self, domain: str) -> None:
        self.domain = domain
        self.asked = None
        self.memory = saved.load(saved.dump(self.memory))
        self.step()

    def reboot(self, number: int) -> None:
        """The kernel finds the units one by one, in another order; then all containers start again."""
        self.asked = None
        self.memory = saved.load(saved.dump(self.memory, "this boot"), "the next boot")
        before, self.plugged, first = self.plugged, {}, 0
        names = sorted(before)
        for name in (*names[number % max(1, len(names)) :], *names[: number % max(1, len(names))]):
            self.plugged[name] = (before[name][0], first, int(self.now))
            first += UNITS[name].ports
            self.step()
            self.check()
        self.step()
        for pod in self.pods:
            self.start(pod)

    def start_again(self, number: int) -> None:
        if self.pods:
            self.start(self.pods[number % len(self.pods)])

    def check(self) -> None:
        self.check_links()
        for one, other in apart(self.pods):
            for mine in self.possibly(one):
                for theirs in self.possibly(other):
                    assert not mine & theirs, (one, other)
        check_lists(self.inventory, self.pods)
        self.check_stranded()
        self.check_groups()

    def check_links(self) -> None:
        """A pod has its own device nodes, or what may stand in for them."""
        for pod in self.pods:
            now = behind_links(self.inventory, pod, self.at)
            if now and pod.first:
                for link, (physical, port) in now.items():
                    was, its_port = pod.first[link]
                    behind = pod.behind.setdefault(link, {was[0]})
                    # As long as it is plugged in, no other one is taken for it.
                    is_open = was[0] not in self.plugged or port == its_port or physical[0] in behind
                    assert is_open, (pod, link, physical)
                    assert self.may_stand_in(was, its_port, physical, port), (pod, link, physical)
                    behind.add(physical[0])
            by_cdi = behind_cdi(self.inventory, pod, self.at)
            if pod.first and len(pod.first) == len(by_cdi) == 1:
                ((was, its_port),), ((physical, port),) = pod.first.values(), by_cdi.values()
                assert self.may_stand_in(was, its_port, physical, port) or self.is_the_same(
                    pod.of, was, physical
                ), (pod, physical)

    def check_groups(self) -> None:
        """The id of a group by a property, or of all nodes, follows from that alone, whatever was before."""
        builder = Builder(resources_of(self.tables(), domain=self.domain), self.domain)
        fresh = builder.build(self.devices()).offers
        for name, offer in self.inventory.offers.items():
            if isinstance(offer.resource.group_by, SameProperty | AllNodes):
                there = {each.id for each in offer.devices if any(node.sys_path for node in each.nodes)}
                assert there <= {each.id for each in fresh[name].devices}, name

    def check_stranded(self) -> None:
        """`status` names the pods that cannot start again although their device is Healthy, and no others."""
        pods = {(pod.resource, pod.id_): pod for pod in self.pods if pod.resource in self.inventory.offers}
        holdings: Holdings = {key: (Holder("default", "app", "main"),) for key in pods}
        found = stranded(holdings, self.memory.held, self.memory.answered, self.inventory)
        named = {(name, each.id) for name, several in found.items() for each in several}
        for (name, id_), pod in pods.items():
            device = self.inventory.offers[name].device(id_)
            is_healthy = device is not None and device.healthy
            assert ((name, id_) in named) is (
                is_healthy and behind_links(self.inventory, pod, self.at) is None
            ), pod

    def may_stand_in(self, was: Physical, its_port: str, now: Physical, port: str) -> bool:
        """Whether a container that had a device node first may have another one later."""
        first, unit = UNITS[was[0]], UNITS[now[0]]
        return was[1] == now[1] and (
            was[0] == now[0]
            or its_port == port
            or (first.serial is not None and first.serial == unit.serial)
            or first.foo == unit.foo
            or first.bar == unit.bar
        )

    def is_the_same(self, of: Grouping, was: Physical, now: Physical) -> bool:
        """Whether both are parts of what makes one device."""
        if isinstance(of, SameProperty):
            return properties_of(was[0], was[1])[of.name] == properties_of(now[0], now[1])[of.name]
        return of != NODE

    def possibly(self, pod: Pod) -> Iterator[frozenset[Physical]]:
        """What the container has, and what it would have if it started now."""
        yield pod.has
        yield frozenset(physical for physical, _ in behind_cdi(self.inventory, pod, self.at).values())
        now = behind_links(self.inventory, pod, self.at)
        if now:
            yield frozenset(physical for physical, _ in now.values())


numbers = st.integers(0, 7)
operations = st.one_of(
    st.tuples(st.just("plug"), st.sampled_from(sorted(UNITS)), st.sampled_from(PORTS), numbers),
    st.tuples(st.just("unplug"), st.sampled_from(sorted(UNITS))),
    st.tuples(st.just("bind"), st.sampled_from(sorted(UNITS)), numbers),
    st.tuples(st.just("edit"), st.sampled_from(sorted(RULES))),
    st.tuples(st.just("admit"), numbers),
    st.tuples(st.just("admit"), numbers, st.just("init")),
    st.tuples(st.just("start_again"), numbers),
    st.tuples(st.just("delete"), numbers),
    st.tuples(st.just("ask")),
    st.tuples(st.just("answer")),
    st.tuples(st.just("reboot"), numbers),
    st.tuples(st.just("restart"), st.sampled_from(["example.com", "other.org"])),
)


@example(
    "shared",
    # The kubelet gives a pod that arrives before the next list what one that has just gone had.
    [("plug", "A", "1", 1), ("admit", 0), ("admit", 0), ("delete", 1), ("edit", "base"), ("admit", 0)],
)
@example(
    "grouped by port, identified by the unit's",
    [("plug", "G", "1", 0), ("admit", 0), ("bind", "G", 0), ("start_again", 0)],
)
@example(
    "grouped by port, identified by foo",
    [("plug", "G", "1", 0), ("admit", 0), ("bind", "G", 0), ("bind", "G", 0), *[("admit", 0)] * 2],
)
@example(
    "base",
    # The answer lists the pod that had the id before.
    [
        *[("plug", "A", "1", 0), ("admit", 0), ("ask",), ("delete", 0), ("admit", 0, "init"), ("answer",)],
        *[("answer",), ("edit", "renamed"), ("admit", 0)],
    ],
)
@example("base", [("plug", "B", "1", 0), ("admit", 0), ("bind", "B", 0), ("edit", "whole units")])
@example(
    "a kit",
    [("plug", "A", "2", 1), ("plug", "B", "1", 0), ("admit", 0), ("unplug", "A"), ("restart", "example.com")],
)
@example(
    "base",
    [
        *[("plug", "A", "1", 0), ("admit", 0), ("bind", "A", 0), ("plug", "C", "2", 1), ("bind", "A", 0)],
        ("admit", 0),
    ],
)
@example(
    "by foo",
    [
        *[
            ("plug", "D", "1", 0),
            ("plug", "A", "2", 1),
            ("edit", "grouped by foo"),
            ("answer",),
            ("admit", 0),
        ],
        ("unplug", "D"),
    ],
)
@given(st.sampled_from(sorted(RULES)), st.lists(operations, max_size=25))
def test_no_two_pods_have_one_device_node_and_none_gets_what_it_did_not_have(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    node = Node(rules)
    node.step()
    for name, *arguments in history:
        getattr(node, name)(*arguments)
        node.check()
