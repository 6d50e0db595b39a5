"""Law of sockets with two parts: what a pod has of one of them never becomes the other one."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import a_tty_in_socket

RULES = {"nodes": rule("x"), "ports": rule("x", 'identity = "port"')}
#: What the parts of USB 2 and of USB 3 say: product and serial number.
PARTS = {
    "models": (("6001", None), ("6015", None)),
    "serials": (("6001", "SA"), ("6001", "SF")),
    "both": (("6001", "SA"), ("6015", "SF")),
}


def part(says: str, fast: bool, since: int) -> UdevDevice:
    product, serial = PARTS[says][fast]
    number = 2 * since + fast
    tty = a_tty_in_socket(int(fast), fast=fast, product=product, serial=serial, devnum=number)
    return replace(tty, incarnation=number)


steps = st.sampled_from(["slow", "fast", "forget", "restart", "reboot", "wait"])


@example("ports", "models", True, True, ["slow", "fast", "forget", "reboot", "fast", "slow"])
@example("nodes", "models", True, False, ["slow", "fast", "reboot", "slow", "fast"])
@given(
    st.sampled_from(sorted(RULES)),
    st.sampled_from(sorted(PARTS)),
    st.booleans(),
    st.booleans(),
    st.lists(steps, max_size=12),
)
def test_what_a_pod_has_of_one_part_is_never_the_other_one(
    rules: str, says: str, is_fast: bool, came_together: bool, history: list[str]
) -> None:
    """The socket has held both for a while. Each step plugs in or unplugs a part, or time passes."""
    node, boot = Node(), 1
    there = {fast: part(says, fast, 1) for fast in (False, True)}
    mine = there[is_fast].device_node
    node.look(RULES[rules], *(there.values() if came_together else [there[is_fast]]))
    (id_,) = (link for link, path in node.inventory.links().items() if path == mine)
    node.allocate(id_)
    for _ in range(2):
        node.look(RULES[rules], *there.values())
        node.now += TWO_AFTER_S
    node.look(RULES[rules], *there.values())
    for since, step in enumerate([*history, "end"], 2):
        answer = None
        if step in ("slow", "fast"):
            fast = step == "fast"
            if there.pop(fast, None) is None:
                there[fast] = part(says, fast, since)
        elif step == "forget":
            node.now += 10_000.0 + PODS_SETTLE_S
            answer = Answer(frozenset({("example.com/x", id_)}), node.now, complete=True)
        elif step in ("restart", "reboot"):
            before = str(boot)
            boot += step == "reboot"
            node.memory = saved.load(saved.dump(node.memory, before), str(boot))
        elif step == "end":
            there = {fast: there.get(fast) or part(says, fast, since) for fast in (False, True)}
        told = node.look(RULES[rules], *there.values(), answer=answer)
        assert node.inventory.links()[id_] == (mine if is_fast in there else None)
        assert (told[id_] == "Healthy") is (is_fast in there)
