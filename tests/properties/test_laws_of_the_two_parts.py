"""Laws of two units in one socket of USB 3: once they were there for a minute, each stays with its pod."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.memory import resumed
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import a_tty_in_socket

RULES = {
    "serial": rule("x", 'unplug_grace = "1s"'),
    "port": rule("x", 'identity = "port"'),
    "model": rule("x", 'group_by = "ID_MODEL_ID"'),
    "model at a port": rule("x", 'group_by = "ID_MODEL_ID"', 'identity = "port"'),
    "two": rule("y", match='{ usb = { product = "6015" } }') + rule("x", 'identity = "port"'),
}
SERIALS = (None, "0001", "A5")
PRODUCTS = {False: "6001", True: "6015"}


class Parts:
    """A socket in which a unit of USB 2 and one of USB 3 come and go; `fast` says which one."""

    def __init__(self, rules: str, serials: tuple[str | None, str | None]) -> None:
        self.node, self.rules, self.serials = Node(), RULES[rules], serials
        self.there: dict[bool, UdevDevice] = {}
        self.pods: dict[str, tuple[str, bool]] = {}
        self.plugs, self.boot = 0, 1
        self.both_since: float | None = None
        self.are_two = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing is there that may be a unit that comes back at another speed."""
        lasting = self.both_since is not None and self.node.now - self.both_since >= TWO_AFTER_S
        return self.are_two or lasting or len(self.there) < 2

    @property
    def last(self) -> bool:
        """Which one came last."""
        return [*self.there][-1]

    def look(self, answer: Answer | None = None) -> None:
        self.are_two |= len(self.there) == 2 and self.is_settled
        self.node.look(self.rules, *self.there.values(), answer=answer)
        both = len(self.there) == 2
        self.both_since = (self.both_since or self.node.now) if both else None

    def plug(self, fast: bool) -> None:
        # One that comes alone where another one was may be that one, at its other speed.
        may_be_the_other = bool(self.pods or self.node.memory.devices) and not self.are_two and not self.there
        if fast not in self.there and not may_be_the_other:
            self.plugs += 1
            serial, product = self.serials[fast], PRODUCTS[fast]
            part = a_tty_in_socket(
                int(fast), fast=fast, serial=serial, product=product, shift=4, devnum=self.plugs
            )
            self.there[fast] = replace(part, incarnation=self.plugs)
            self.look()

    def unplug(self, fast: bool) -> None:
        if fast in self.there and (self.is_settled or fast is self.last):
            self.are_two |= len(self.there) == 2 and self.is_settled
            del self.there[fast]
            self.look()

    def wait(self) -> None:
        """Time in which nothing is looked at."""
        self.node.now += 2 * TWO_AFTER_S

    def admit(self, fast: bool) -> None:
        """A pod gets what it is offered, at any moment."""
        has_pod = fast in [each for _, each in self.pods.values()]
        for offer in () if has_pod else self.node.inventory.offers.values():
            for device in offer.devices:
                paths = [node.path for node in device.nodes]
                if device.healthy and device.id not in offer.refused and f"/dev/ttyACM{int(fast)}" in paths:
                    self.node.allocate(device.id)
                    self.pods[device.links[0]] = (device.id, fast)

    def delete(self, fast: bool) -> None:
        self.pods = {link: each for link, each in self.pods.items() if each[1] is not fast}

    def answer(self) -> None:
        self.wait()
        held = frozenset(id_ for id_, _ in self.pods.values())
        ids = frozenset((f"example.com/{id_[0]}", id_) for id_ in held)
        self.look(Answer(ids, self.node.now, complete=True, checkpointed=held))

    def restart(self) -> None:
        boot = str(self.boot)
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory, boot), boot), self.node.now)
        # What was not recorded is counted anew.
        self.both_since = None
        self.look()

    def reboot(self) -> None:
        if self.are_two and self.node.memory.apart:
            memory = saved.load(saved.dump(self.node.memory, str(self.boot)), str(self.boot + 1))
            self.node.memory, self.boot = resumed(memory, self.node.now), self.boot + 1
            self.plugs += 2
            self.there = {
                fast: replace(part, incarnation=self.plugs + fast) for fast, part in self.there.items()
            }
            self.look()

    def check(self) -> None:
        links = self.node.inventory.links()
        for link, (id_, fast) in self.pods.items():
            assert links[link] in (f"/dev/ttyACM{int(fast)}", None), (id_, fast, links)
        nodes = [path for path in links.values() if path]
        assert len(nodes) == len({*nodes})
        if len(self.there) == 2 or self.are_two:
            self.look()
            links = self.node.inventory.links()
            for link, (id_, fast) in self.pods.items():
                assert fast not in self.there or links[link] == f"/dev/ttyACM{int(fast)}", (id_, links)


parts = st.booleans()
steps = st.one_of(
    st.tuples(st.sampled_from(["plug", "plug", "unplug", "admit", "delete"]), parts),
    st.tuples(st.sampled_from(["wait", "wait", "look", "answer", "restart", "reboot"])),
)


@example(
    "port",
    (None, None),
    [
        *[("plug", True), ("plug", False), ("wait",), ("admit", True), ("admit", False)],
        *[("look",), ("reboot",), ("answer",)],
    ],
)
@given(
    st.sampled_from(sorted(RULES)),
    st.tuples(st.sampled_from(SERIALS), st.sampled_from(SERIALS)),
    st.lists(steps, max_size=20),
)
def test_two_parts_of_a_socket_do_not_exchange_their_pods(
    rules: str, serials: tuple[str | None, str | None], history: list[tuple[object, ...]]
) -> None:
    socket = Parts(rules, serials)
    for name, *arguments in history:
        getattr(socket, str(name))(*arguments)
        socket.check()
