"""Laws of serial numbers that were not read while rules are edited and units are plugged in anew.

Each pod has nodes of its own units, and no node of another pod's. Two limits are documented: what was not
read when a pod got it means whatever has no serial number at its port, and a unit that is not read at a port
where its pod did not have it may be anything.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.memory import resumed
from tests.properties.pods import allocated, check_lists, healthy
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

TTY = 'SUBSYSTEM = "tty"'
KIT, UNITS = 'group_by = "all"', 'group_by = "usb_device"'


def _match(*keys: str) -> str:
    return f"{{ {', '.join(keys)} }}"


def _at(*ports: str) -> str:
    return _match(TTY, f"usb = {{ port = {[*ports]} }}")


FIRST = _match(TTY, 'ID_USB_INTERFACE_NUM = "00"')
OF_A = _match(TTY, 'parent = { "ATTR{serial}" = "A" }')
REST = rule("rest")

#: What an operator may write, one after the other.
RULES = (
    rule("tty"),
    rule("other"),
    rule("unit", UNITS),
    rule("unit", UNITS, match=FIRST),
    rule("first", match=FIRST),
    rule("first", match=FIRST) + REST,
    rule("kit", KIT),
    rule("kit", KIT, match=FIRST) + REST,
    rule("kit", KIT, match=_at("1")) + REST,
    rule("kit", KIT, match=_at("1", "2")) + REST,
    rule("kit", KIT, match=_at("2", "3")) + rule("rest", UNITS),
    rule("kit", KIT, match=_at("1", "2")) + rule("kot", KIT, match=_at("3")),
    rule("kit", KIT, match=_match(TTY, 'usb = { product = "6015" }')) + REST,
    rule("kit", KIT, match=OF_A) + REST,
    rule("a", match=OF_A) + REST,
    rule("a", match=OF_A),
    rule("left", match=_at("1", "2")) + REST,
    rule("colour", 'group_by = "ID_COLOR"'),
    rule("colour", 'identity = ["ID_COLOR"]'),
    "",
)

#: The units as they really are: serial number, model, and a property that tells them apart.
TRUTH = (("A", "6001", "red"), ("B", "6001", "green"), ("C", "6015", "blue"))
PORTS = "123"

#: In a reason, the ids that it says a pod may hold, and the device node whose serial number was not read.
_HOLDERS = re.compile(r"a pod may still hold it as ([^ ;,]+)|it may be ([^ ,]+), which a pod may still hold")
_UNREAD = re.compile(r"(?:serial number of|or it is) (/dev/[^ ,]+)")


class Part(NamedTuple):
    """One of the two device nodes of a unit."""

    unit: int
    interface: int


class Plug(NamedTuple):
    """That a unit is plugged in: where, for which time, and whether its serial number was read."""

    port: str
    incarnation: int
    is_read: bool


@dataclass(slots=True)
class Pod:
    """A pod with one id.

    got     link -> what it leads to
    ports   unit -> the port where the pod last had it; none if nobody can know that it is this unit
    unread  unit -> the port where the pod got it, for those whose serial number was not read then
    links   what its container gets
    """

    resource: str
    id_: str
    got: dict[str, Part]
    ports: dict[int, str]
    unread: dict[int, str]
    links: tuple[str, ...]
    shared: bool = False


class Machine:
    """A node with a model of the truth: which unit is where, and which ones each pod got."""

    def __init__(self, rules: str) -> None:
        self.rules, self.node = rules, Node()
        self.plugged: dict[int, Plug] = {}
        self.pods: list[Pod] = []
        self.plugs = 0
        self.look()

    def look(self) -> None:
        self.node.look(self.rules, *(each for unit in self.plugged for each in self._devices(unit)))
        self._check()

    def _devices(self, unit: int) -> Iterator[UdevDevice]:
        serial, product, colour = TRUTH[unit]
        port, incarnation, is_read = self.plugged[unit]
        told = serial if is_read else None
        usb = a_usb_device(port, serial=told, product=product, devnum=2 + incarnation)
        yield usb
        for interface in range(2):
            minor = 2 * unit + interface
            name, number, told_by_udev = f"ttyUSB{minor}", f"c 188:{minor}", {"ID_COLOR": colour}
            node = a_usb_node(
                usb, "tty", name, interface=f"0{interface}", number=number, properties=told_by_udev
            )
            yield replace(node, incarnation=incarnation)

    def plug(self, unit: int, port: str, *, is_read: bool) -> None:
        """A unit leaves, or is plugged in if the port is free."""
        self._change(unit, port, is_read=is_read)
        self.look()

    def replug(self, unit: int, *, is_read: bool) -> None:
        """A unit is plugged in anew so fast that nobody sees it leave."""
        if unit in self.plugged:
            port = self.plugged[unit].port
            self._leave(unit)
            self._change(unit, port, is_read=is_read)
        self.look()

    def _change(self, unit: int, port: str, *, is_read: bool) -> None:
        if unit in self.plugged:
            self._leave(unit)
        elif port not in {plug.port for plug in self.plugged.values()}:
            self.plugs += 1
            self.plugged[unit] = Plug(port, self.plugs, is_read)

    def _leave(self, unit: int) -> None:
        del self.plugged[unit]
        for pod in self.pods:
            if unit in pod.unread:
                # Without a serial number, nobody knows it when it is back.
                pod.ports.pop(unit, None)

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.look()

    def restart(self, boot: str) -> None:
        """The daemon starts again, in this boot ("one") or in the next."""
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory, "one"), boot), self.node.now)
        if boot != "one":
            for unit, plug in self.plugged.items():
                self.plugs += 1
                self.plugged[unit] = plug._replace(incarnation=self.plugs)
        self.look()

    def admit(self) -> None:
        """Pods get whatever is offered."""
        while True:
            inventory = self.node.inventory
            free = healthy(inventory) - {pod.id_ for pod in self.pods}
            found = allocated(inventory, free, 0)
            if found is None:
                break
            offer, id_, links = found
            got = {link: part for link in links if (part := _behind(inventory, link)) is not None}
            assert len(got) == len(links)
            for pod in self.pods:
                assert not self._own(pod).intersection(got.values()), (id_, got, pod)
            self.node.allocate(id_)
            ports = {part.unit: self.plugged[part.unit].port for part in got.values()}
            unread = {unit: port for unit, port in ports.items() if not self.plugged[unit].is_read}
            self.pods.append(Pod(offer.resource.name, id_, got, ports, unread, links))

    def delete(self, *ids: str) -> None:
        """The pods with these ids go, or without any the oldest pod."""
        self.pods = [pod for pod in self.pods if pod.id_ not in ids] if ids else self.pods[1:]
        answer = self.node.nobody_holds_anything()
        held = frozenset((pod.resource, pod.id_) for pod in self.pods)
        devices = [each for unit in self.plugged for each in self._devices(unit)]
        self.node.look(self.rules, *devices, answer=replace(answer, ids=held))
        self._check()

    def waiting(self) -> dict[str, str]:
        """What is not offered, as an id or as the path of a device node -> the reason."""
        inventory = self.node.inventory
        ids = (each for offer in inventory.offers.values() for each in offer.ids.items())
        unhealthy = {id_: device.reason for id_, device in ids if not device.healthy}
        return {**unhealthy, **{refusal.node: refusal.reason for refusal in inventory.refusals}}

    def check_advice(self) -> None:
        """Who does what a reason says gets the device, or is told of something else that is in the way."""
        for what, reason in self.waiting().items():
            ids = {found[found.lastindex or 0] for found in _HOLDERS.finditer(reason)}
            assert ids <= {what, *(pod.id_ for pod in self.pods)}, (what, reason)
            if ids:
                after = deepcopy(self)
                after.delete(*ids)
                assert after.waiting().get(what) != reason, (what, reason)
            if "unplug it and plug it in again" in reason:
                after = deepcopy(self)
                named = _UNREAD.search(reason)
                after.replug(_part(what if named is None else named[1]).unit, is_read=True)
                assert after.waiting().get(what) != reason, (what, reason)

    def _own(self, pod: Pod) -> set[Part]:
        """What is a pod's own, as far as anybody can know."""
        return {
            part
            for part in pod.got.values()
            if (plug := self.plugged.get(part.unit)) is not None
            and (plug.port == pod.ports.get(part.unit) or (plug.is_read and part.unit not in pod.unread))
        }

    def _check(self) -> None:
        inventory = self.node.inventory
        check_lists(inventory, self.pods)
        for pod in self.pods:
            for link, own in pod.got.items():
                now = _behind(inventory, link)
                if now == own:
                    pod.ports[own.unit] = self.plugged[own.unit].port
                assert now in (None, own) or self._is_alike(pod, now), (link, now, pod)
            offer = inventory.offers.get(pod.resource)
            device = offer.ids.get(pod.id_) if offer is not None else None
            # What a container would get by CDI.
            for node in device.nodes if device is not None and device.healthy else ():
                part = _part(node.path)
                others = (self._own(other) for other in self.pods if other is not pod)
                assert self._is_alike(pod, part) or not any(part in own for own in others), (part, pod)

    def _is_alike(self, pod: Pod, part: Part | None) -> bool:
        """Whether it has no serial number, and is where the pod got something without one."""
        plug = None if part is None else self.plugged[part.unit]
        return plug is not None and not plug.is_read and plug.port in pod.unread.values()


def _behind(inventory: Inventory, link: str) -> Part | None:
    path = inventory.links()[link]
    return None if path is None else _part(path)


def _part(path: str) -> Part:
    return Part(*divmod(int(path.removeprefix("/dev/ttyUSB")), 2))


Step = tuple[str, dict[str, Any]]


def _step(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


units, ports, rules = st.integers(0, len(TRUTH) - 1), st.sampled_from(PORTS), st.sampled_from(RULES)
plug = _step("plug", unit=units, port=ports, is_read=st.booleans())
first_plugs = st.lists(
    _step("plug", unit=units, port=ports, is_read=st.sampled_from([True, True, False])),
    min_size=1,
    max_size=3,
)
steps = st.one_of(
    _step("replug", unit=units, is_read=st.just(False)),
    _step("replug", unit=units, is_read=st.booleans()),
    plug,
    _step("edit", rules=rules),
    _step("edit", rules=rules),
    _step("restart", boot=st.sampled_from(["one", "two"])),
    _step("delete"),
)


def _plug(unit: int, port: str) -> Step:
    return "plug", {"unit": unit, "port": port, "is_read": True}


#: A unit of a kit is not read any more, and the kit is edited.
NOT_READ: list[Step] = [("replug", {"unit": 0, "is_read": False}), ("edit", {"rules": rule("tty")})]

#: The unit of one pod is not read any more, and another pod's kit would take it in.
WOULD_JOIN: list[Step] = [("replug", {"unit": 0, "is_read": False}), ("edit", {"rules": rule("kit", KIT)})]


@example(rule("kit", KIT), [_plug(0, "1"), _plug(1, "2")], NOT_READ)
@example(
    rule("kit", KIT, match=_at("2", "3")) + rule("rest", UNITS), [_plug(0, "1"), _plug(1, "2")], WOULD_JOIN
)
@given(rules, first_plugs, st.lists(steps, min_size=1, max_size=5))
def test_no_pod_gets_what_is_another_ones_and_each_reason_says_what_helps(
    first: str, plugs: list[Step], history: list[Step]
) -> None:
    machine = Machine(first)
    for number, (name, arguments) in enumerate([*plugs, *history], start=1):
        getattr(machine, name)(**arguments)
        if number >= len(plugs):
            machine.admit()
            machine.check_advice()
