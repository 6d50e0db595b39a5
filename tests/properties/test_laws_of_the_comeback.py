"""Laws of who is stopped: whatever a device does and whatever is answered, at most once for each plug."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.comeback.container import Container
from genericdp.core.comeback.judge import Evidence, judge, newest
from genericdp.core.comeback.plugs import (
    ASK_AGAIN_S,
    LONGEST_START_S,
    Plugs,
    cases,
    follow,
    judged,
    next_case,
)
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.status.holdings import Holder
from tests.scenes.builders import a_usb_serial, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN, FTDI_RULE

DEBOUNCE_S = 3.0
RULES = FTDI_RULE + 'on_unplug = "stop"\non_replug = "restart"\n'
STICKS = {number: a_usb_serial(number, serial="A") for number in range(3)}
HOLDER = Holder("default", "app", "main")

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
            inside = {str(id_): {"/dev/serial0": STICKS[0].number}} if answered else {}
            evidence = Evidence(inside, {}, "/l")  # type: ignore[arg-type]
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
    inside = {"1": {"/dev/serial0": STICKS[0].number}}
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
            evidence = Evidence(inside, {}, "/l")  # type: ignore[arg-type]
            judgement = judge(case, [HOLDER], newest(listed), evidence)
            assert not judgement.stops or number != 0, "nothing was wrong with it"
            is_stopped = is_stopped or judgement.stops != ()
            final = judgement.sure and (not judgement.starting or case.has_outlasted_starts(now))
            plugs = judged(plugs, [(case, judgement.stops)], again_at=None if final else now + ASK_AGAIN_S)
    assert is_stopped or number == 0
