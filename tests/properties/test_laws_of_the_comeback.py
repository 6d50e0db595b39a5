"""Laws of who is stopped: whatever a device does and whatever is answered, at most once for each plug."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.allocate import allocate
from genericdp.core.comeback.container import Container, Inside
from genericdp.core.comeback.judge import Evidence, Saved, judge, newest
from genericdp.core.comeback.plugs import (
    ASK_AGAIN_S,
    LONGEST_START_S,
    Plugs,
    cases,
    follow,
    judged,
    next_case,
)
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.answered import CdiDevice
from genericdp.core.memory.memory import Memory, after_allocate
from genericdp.core.memory.saved import dump, load
from genericdp.core.memory.take import take_inventory
from genericdp.core.status.holdings import Holder, Holdings, unlisted
from tests.scenes.builders import a_usb_serial, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN, FTDI, FTDI_RULE, KIT, KIT_RULE

DEBOUNCE_S = 3.0
RULES = FTDI_RULE + 'on_unplug = "stop"\non_replug = "restart"\n'
STICKS = {number: a_usb_serial(number, serial="A") for number in range(3)}
HOLDER = Holder("default", "app", "main")
INSIDE = Inside({"/dev/serial0": DeviceNumber("c", 188, 0)})

#: (seconds until it, number of its ttyUSB now or None, whether there is an answer to everything)
MOMENTS = st.lists(
    st.tuples(st.sampled_from([0.5, 2.0, 5.0, 20.0]), st.sampled_from([None, 0, 1, 2]), st.booleans())
)


@given(moments=MOMENTS)
def test_a_container_is_stopped_once_for_a_plug_and_only_for_one_that_rested(
    moments: list[tuple[float, int | None, bool]],
) -> None:
    """The container is created again at once after each stop, and always with the number 0."""
    builder, memory, plugs = Builder(resources_of(RULES, domain=DOMAIN), DOMAIN), Memory(), Plugs()
    now, id_, plug, since = 0.0, 0, 0, 0.0
    last: int | None = -1
    stopped_for: list[int] = []
    for seconds, number, answered in moments:
        now += seconds
        plugged = [] if number is None else [STICKS[number]]
        inventory, memory = take_inventory(builder, by_sys_path(*plugged), memory, now)
        plugs = follow(plugs, inventory, builder.claims.plugged, now)
        if number != last:
            last, plug, since = number, plug + 1, now
        for case in cases(plugs, now):
            assert now - since >= DEBOUNCE_S, "it has not rested"
            assert case.unplugged == (number is None)
            running = Container(str(id_), HOLDER, "uid-1", created=id_)
            evidence = Evidence({str(id_): INSIDE} if answered else {}, {}, "/l")
            judgement = judge(case, [HOLDER], newest([running]), evidence)
            for _ in judgement.stops:
                assert number != 0, "nothing was wrong with it"
                stopped_for.append(plug)
                id_ += 1
            again_at = None if judgement.sure and answered else now + ASK_AGAIN_S
            plugs = judged(plugs, [(case, judgement.stops)], again_at=again_at)
            due = next_case(plugs)
            assert due is None or due > now, "it would be asked again without a pause"
    assert len(stopped_for) == len(set(stopped_for))


#: (seconds until it, number of its ttyUSB from then on or None, whether the start of the container goes on)
STARTS = st.lists(
    st.tuples(st.sampled_from([0.5, 5.0, 50.0]), st.sampled_from([None, 0, 1]), st.booleans()), max_size=8
)


@given(starts=STARTS)
def test_a_container_that_starts_in_time_keeps_no_number_that_its_device_no_longer_has(
    starts: list[tuple[float, int | None, bool]],
) -> None:
    """The runtime finds the number 0 at its device. Later it lists the container, and starts it."""
    builder, memory, plugs = Builder(resources_of(RULES, domain=DOMAIN), DOMAIN), Memory(), Plugs()
    now, steps = 0.0, 0
    is_stopped = False
    last = starts[-1][1] if starts else 0
    for seconds, number, goes_on in [(0.0, 0, False), *starts, *[(ASK_AGAIN_S, last, True)] * 4]:
        now += seconds
        steps += goes_on
        if now >= LONGEST_START_S and steps < 2:
            return
        plugged = [] if number is None else [STICKS[number]]
        inventory, memory = take_inventory(builder, by_sys_path(*plugged), memory, now)
        plugs = follow(plugs, inventory, builder.claims.plugged, now)
        listed = [Container("1", HOLDER, "uid-1", runs=steps > 1)] if steps and not is_stopped else []
        for case in cases(plugs, now):
            judgement = judge(case, [HOLDER], newest(listed), Evidence({"1": INSIDE}, {}, "/l"))
            assert not judgement.stops or number != 0, "nothing was wrong with it"
            is_stopped = is_stopped or judgement.stops != ()
            final = judgement.sure and (not judgement.starting or case.has_outlasted_starts(now))
            plugs = judged(plugs, [(case, judgement.stops)], again_at=None if final else now + ASK_AGAIN_S)
    assert is_stopped or number == 0


#: The number of the ttyUSB of each of three sticks; None for one that stays away.
ORDERS = st.permutations(range(4)).map(lambda order: order[:3])
AFTERWARDS = st.tuples(ORDERS, st.sets(st.integers(0, 2))).map(
    lambda drawn: [None if index in drawn[1] else number for index, number in enumerate(drawn[0])]
)


@given(before=ORDERS, after=AFTERWARDS, has_restarted=st.booleans())
def test_a_program_finds_each_device_at_the_path_that_it_was_told_or_is_stopped(
    before: list[int], after: list[int | None], has_restarted: bool
) -> None:
    """The container got all three, by CDI, and paths with the kernel's names."""
    rules = RULES.replace("/dev/serial{index}", "/dev/{devname}")
    builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)

    def plugged(numbers: Sequence[int | None], incarnation: int) -> dict[str, UdevDevice]:
        sticks = [
            replace(a_usb_serial(number, serial="ABC"[index], port=str(index + 1)), incarnation=incarnation)
            for index, number in enumerate(numbers)
            if number is not None
        ]
        return by_sys_path(*sticks)

    inventory, memory = take_inventory(builder, plugged(before, 1), Memory(), 0.0)
    ids = tuple(inventory.offers[FTDI].ids)
    envs = allocate(inventory.offers[FTDI], ids, "/l").envs
    memory = after_allocate(memory, inventory.offers[FTDI], ids, CdiDevice(FTDI, ids), 0.0)
    inside = Inside({f"/dev/ttyUSB{number}": DeviceNumber("c", 188, number) for number in before}, envs)
    saved = {("uid-1", "main", FTDI): Saved({}, tuple(f"{FTDI}={id_}" for id_ in ids), ids)}
    if has_restarted:
        memory = load(dump(memory))
    inventory, memory = take_inventory(builder, plugged(after, 2), memory, 1.0)
    plugs = follow(Plugs(), inventory, builder.claims.plugged, 1.0)
    containers, evidence = newest([Container("1", HOLDER, "uid-1")]), Evidence({"1": inside}, saved, "/l")
    replugged = {case.device.id: case for case in cases(plugs, 10.0) if not case.unplugged}
    present = {id_: index for index, id_ in enumerate(ids) if after[index] is not None}
    assert replugged.keys() == present.keys()
    for id_, index in present.items():
        judgement = judge(replugged[id_], [HOLDER], containers, evidence)
        assert bool(judgement.stops) is (before[index] != after[index])


#: What may happen to a pod and to the kubelet, which knows no pod before it has reached the API server.
HAPPENS = st.lists(
    st.sampled_from(
        ["admit", "end", "kubelet restarts", "API server", "kubelet writes", "asked", "daemon restarts"]
    )
)


@given(happens=HAPPENS)
def test_an_answer_that_does_not_list_a_device_that_a_pod_has_is_not_final_for_it(happens: list[str]) -> None:
    """The kubelet's checkpoint names it, and pods that have gone until it is written again."""
    builder = Builder(resources_of(RULES, domain=DOMAIN), DOMAIN)
    present = by_sys_path(STICKS[0])
    inventory, memory = take_inventory(builder, present, Memory(), 0.0)
    now, has, knows, first = 0.0, False, True, True
    names: frozenset[str] = frozenset()
    for what in happens:
        now += 1000.0
        if what == "admit" and not has and knows:
            memory = after_allocate(memory, inventory.offers[FTDI], ["ftdi_A"], None, now)
            has, names = True, frozenset({"ftdi_A"})
        elif what == "end":
            has = False
        elif what == "kubelet restarts":
            knows, first = False, True
        elif what == "API server":
            knows = True
        elif what == "kubelet writes" and knows and not has:
            names = frozenset()
        elif what == "daemon restarts":
            memory, first = load(dump(memory)), True
        holdings: Holdings = {(FTDI, "ftdi_A"): (HOLDER,)} if has and knows else {}
        if what == "asked":
            answer = Answer(frozenset(holdings), now, complete=True, checkpointed=names, first=first)
            inventory, memory = take_inventory(builder, present, memory, now, answer)
            first = False
        if has and not knows:
            assert unlisted(memory.held, holdings) == {(FTDI, "ftdi_A")}
        if knows and what == "asked" and not names:
            assert unlisted(memory.held, holdings) == set(), "it would be asked for ever"


PARTS = [a_usb_serial(number, port=str(number + 1), serial="ABC"[number]) for number in range(3)]
OPTIONAL = '[[resource.node]]\nmatch.usb = { port = "3" }\noptional = true\n'

#: (which parts are plugged in from then on, whether the daemon has restarted meanwhile)
DAYS = st.lists(st.tuples(st.sets(st.integers(0, 2)), st.booleans()), max_size=6)


@given(first=st.booleans(), has_optional=st.booleans(), days=DAYS)
def test_a_part_that_is_missed_stops_a_container_over_restarts_and_no_other_part_does(
    first: bool, has_optional: bool, days: list[tuple[set[int], bool]]
) -> None:
    """A pod has a kit of two parts, which may have an optional one."""
    rules = KIT_RULE + OPTIONAL if has_optional else KIT_RULE
    builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)
    inventory, memory = take_inventory(builder, by_sys_path(*PARTS[: 2 + first]), Memory(), 0.0)
    plugs = follow(Plugs(), inventory, builder.claims.plugged, 0.0, memory.devices)
    memory = after_allocate(memory, inventory.offers[KIT], ["kit"], None, 0.0)
    may_miss = False
    for number, (there, has_restarted) in enumerate(days):
        now = 1000.0 * (number + 1)
        if has_restarted:
            memory, plugs = load(dump(memory)), Plugs()
            # What is lost may be the optional part, as far as anybody knows.
            may_miss = has_optional
        present = by_sys_path(*(PARTS[index] for index in there))
        inventory, memory = take_inventory(builder, present, memory, now)
        plugs = follow(plugs, inventory, builder.claims.plugged, now, memory.devices)
        is_missed = not {0, 1} <= there
        may_miss = may_miss and is_missed
        found = [case.unplugged for case in cases(plugs, now + 999.0)]
        assert found == [is_missed] or (may_miss and found == [])
