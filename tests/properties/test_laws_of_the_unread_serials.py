"""Laws of serial numbers that were not read: no node goes to a second pod, whichever these are."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.memory import saved
from tests.core.memory.test_without_nodes import a_unit
from tests.scenes.edits import Node, rule

RULES = (
    rule(),
    rule("ftdi", 'group_by = "usb_device"'),
    rule("ftdi", 'identity = ["ID_SERIAL"]'),
    rule("ftdi", 'group_by = "ID_SERIAL"'),
    rule("ftdi", 'identity = "port"'),
    rule("ftdi", match='{ SUBSYSTEM = "tty", parent = { "ATTR{serial}" = "A" } }') + rule("any"),
    rule("ftdi", 'group_by = "all"', match='{ SUBSYSTEM = "tty", parent = { "ATTR{serial}" = "A" } }')
    + rule("any"),
)

#: The unit at each port, and what its serial number really is: that of the last one is a filler.
UNITS = {"1": "A", "2": "B", "3": "0001"}

#: For each port: whether its unit is plugged in, whether its serial number can be read, and whether it has
#: been plugged in anew.
plugs = st.tuples(*[st.tuples(st.booleans(), st.booleans(), st.booleans())] * len(UNITS))
steps = st.lists(st.tuples(plugs, st.booleans(), st.sampled_from(["", "this boot", "next boot"])), max_size=8)

THERE, UNREAD, GONE = (True, True, True), (True, False, True), (False, True, True)


def _number(port: str) -> str:
    """The number of a port, from its exact form."""
    return port.rpartition(" ")[2]


@example(rule(), [((THERE, GONE, GONE), True, ""), ((UNREAD, GONE, GONE), True, "")])
@example(rule(), [((UNREAD, GONE, GONE), True, ""), ((THERE, GONE, GONE), True, "")])
@given(st.sampled_from(RULES), steps)
def test_no_node_of_a_unit_that_a_pod_may_hold_is_offered_to_another_one(
    rules: str,
    history: list[tuple[tuple[tuple[bool, bool, bool], ...], bool, str]],
) -> None:
    node = Node()
    holders: dict[str, str] = {}
    plugged: dict[str, tuple[bool, int]] = {}
    for step, (now, takes, restarts) in enumerate(history, start=1):
        for port, (is_there, is_read, is_anew) in zip(UNITS, now, strict=True):
            if not is_there:
                plugged.pop(port, None)
            elif is_anew or port not in plugged:
                plugged[port] = (is_read, step)
        if restarts:
            node.memory = saved.load(saved.dump(node.memory, "this boot"), restarts)
        devices = []
        for port, (is_read, since) in plugged.items():
            serial = UNITS[port] if is_read else None
            told = {"ID_SERIAL": f"FTDI_{serial}" if serial else "FTDI"}
            usb, tty = a_unit(port, int(port), serial=serial, properties=told)
            devices += [usb, replace(tty, incarnation=10 * since + int(port))]
        told_now = node.look(rules, *devices)
        at = {
            id_: {spot.port for spot in device.spots}
            for offer in node.inventory.offers.values()
            for id_, device in offer.ids.items()
            if told_now[id_] == "Healthy"
        }
        for id_, ports in at.items():
            for port in ports:
                assert holders.get(port, id_) == id_
        free = sorted(
            id_
            for id_ in at.keys() - holders.values()
            # Without a serial number, ID_SERIAL is the name of the model: then any unit of it is the pod's.
            if "ID_SERIAL" not in rules or all(plugged[_number(port)][0] for port in at[id_])
        )
        if takes and free:
            node.allocate(free[0])
            holders |= dict.fromkeys(at[free[0]], free[0])
        # A group that a pod holds may gain a unit, which is the pod's from then on.
        held = {holding.device for holding in node.memory.held.values()}
        holders |= {port: id_ for id_, ports in at.items() if id_ in held for port in ports}
