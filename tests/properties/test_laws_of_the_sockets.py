"""Laws of sockets of USB 3: what is in one is one device, at whichever speed, and two sockets never are."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S, give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import a_usb_node, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN
from tests.scenes.sockets import SHIFT, in_socket

SOCKETS = ("2", "3", "4.1")
RULES = {
    "units": '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "usb", ID_VENDOR_ID = "0403" }\n'
    'identity = "port"\n',
    "nodes": '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\n',
    "groups": '[[resource]]\nname = "x"\nmatch = { usb = { vendor = "0403" } }\ngroup_by = "usb_device"\n'
    'identity = "port"\n',
}


class Machine:
    """A machine with a unit in each socket, for which a pod gets it as soon as it is plugged in."""

    def __init__(self, rules: str, shift: int, was_fast: Mapping[str, bool]) -> None:
        self.rules, self.shift = rules, shift
        self.there: dict[str, dict[bool, int]] = {}
        self.held: dict[str, str] = {}
        self.memory, self.inventory, self.now, self.plugs = Memory(), Inventory(), 0.0, 0
        self.peer = True
        self.snapshots: dict[int, Mapping[str, UdevDevice]] = {}
        self.builder = Builder(resources_of(RULES[rules]), DOMAIN)
        if was_fast:
            # An earlier release gave them to pods.
            self.peer = False
            for socket, fast in was_fast.items():
                self.run_at(socket, fast)
                self.give(socket)
            self.peer = True
            self.snapshots.clear()
        self.restart()

    def devices(self) -> Mapping[str, UdevDevice]:
        """What is there, as the same snapshots as long as it stays."""
        for socket, speeds in self.there.items():
            number = SOCKETS.index(socket)
            for fast, since in speeds.items():
                if since not in self.snapshots:
                    where = {"port": socket, "fast": fast, "shift": self.shift, "peer": self.peer}
                    usb = in_socket(**where, devnum=number + 2)  # type: ignore[arg-type]
                    minor = 2 * number + fast
                    tty = a_usb_node(
                        replace(usb, incarnation=since), "tty", f"ttyACM{minor}", number=f"c 166:{minor}"
                    )
                    self.snapshots[since] = by_sys_path(replace(tty, incarnation=since))
        found = [since for speeds in self.there.values() for since in speeds.values()]
        return {path: device for since in found for path, device in self.snapshots[since].items()}

    def look(self, answer: Answer | None = None) -> None:
        self.now += 1.0
        devices = self.devices()
        anew = Builder(resources_of(RULES[self.rules]), DOMAIN)
        expected, _ = take_inventory(anew, devices, self.memory, self.now, answer)
        self.inventory, self.memory = take_inventory(self.builder, devices, self.memory, self.now, answer)
        assert self.inventory == expected, "what is kept between two looks shows"

    def run_at(self, socket: str, fast: bool) -> None:
        self.plugs += 1
        there = self.there.get(socket, {})
        self.there[socket] = {fast: there.get(fast, self.plugs)}
        self.look()

    def overlap(self, socket: str) -> None:
        """The unit changes its speed, and the kernel shows it at both ports for a moment."""
        if socket in self.there:
            (fast,) = self.there[socket]
            self.plugs += 1
            self.there[socket][not fast] = self.plugs
            self.look()
            self.check()
            self.run_at(socket, not fast)

    def unplug(self, socket: str) -> None:
        self.there.pop(socket, None)
        self.look()

    def restart(self) -> None:
        self.memory = saved.load(saved.dump(self.memory))
        self.builder = Builder(resources_of(RULES[self.rules]), DOMAIN)
        self.look()

    def forget(self) -> None:
        """The kubelet says what pods hold, and grace times end."""
        for _ in range(3):
            self.now += 10_000.0 + PODS_SETTLE_S
            ids = frozenset((f"{DOMAIN}/x", id_) for id_ in self.held.values())
            self.look(Answer(ids, self.now, complete=True))

    def delete_pod(self, socket: str) -> None:
        self.held.pop(socket, None)
        self.forget()

    def give(self, socket: str) -> None:
        """A pod gets what is in a socket, if it is offered."""
        (offer,) = self.inventory.offers.values()
        for device in offer.devices:
            if device.healthy and device.id not in offer.refused and self.sockets_of(device.id) == {socket}:
                assert self.held.get(socket, device.id) == device.id, "a second pod gets what one has"
                self.held[socket] = device.id
                self.memory = replace(self.memory, held=give(self.memory.held, offer, [device.id], self.now))

    def sockets_of(self, id_: str) -> set[str]:
        """Where the links of an id lead."""
        at = {each.device_node: path for path, each in self.devices().items()}
        return {
            next(s for s in SOCKETS if self._is_in(at[node], s))
            for link, node in self.inventory.links().items()
            if link.partition("@")[0] == id_ and node is not None
        }

    def _is_in(self, path: str, socket: str) -> bool:
        return any(
            path == usb or path.startswith(f"{usb}/")
            for fast in (False, True)
            for usb in (in_socket(socket, fast=fast, shift=self.shift).sys_path,)
        )

    def check(self) -> None:
        (offer,) = self.inventory.offers.values()
        nodes = [node for node in self.inventory.links().values() if node is not None]
        assert len(nodes) == len({*nodes})
        for device in offer.devices:
            where = self.sockets_of(device.id)
            assert len(where) <= 1
            for socket in where:
                if socket in self.held and device.healthy and device.id not in offer.refused:
                    assert self.held[socket] == device.id, "a second pod can get what one has"
        for socket, id_ in self.held.items():
            assert self.sockets_of(id_) <= {socket}
            if len(self.there.get(socket, ())) == 1:
                told = self.inventory.offers[f"{DOMAIN}/x"].called(id_)
                assert told is not None
                assert told.healthy, told.reason
                assert self.sockets_of(id_) == {socket}


sockets = st.sampled_from(SOCKETS)
steps = st.one_of(
    st.tuples(st.just("run_at"), sockets, st.booleans()),
    st.tuples(st.just("overlap"), sockets),
    st.tuples(st.just("unplug"), sockets),
    st.tuples(st.just("give"), sockets),
    st.tuples(st.just("restart")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("delete_pod"), sockets),
)


@example("units", 0, {}, [("run_at", "2", False), ("give", "2"), ("unplug", "2"), ("run_at", "2", True)])
@example("nodes", SHIFT, {"2": True}, [("run_at", "2", False), ("delete_pod", "2"), ("run_at", "2", True)])
@given(
    st.sampled_from(sorted(RULES)),
    st.sampled_from([0, SHIFT]),
    st.dictionaries(sockets, st.booleans(), max_size=2),
    st.lists(steps, max_size=12),
)
def test_what_is_in_a_socket_is_one_device_at_any_speed(
    rules: str, shift: int, was_fast: dict[str, bool], history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules, shift, was_fast)
    machine.check()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)
        machine.check()
