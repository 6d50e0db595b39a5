"""When it is certain that a runtime without the kubelet's pods is not the kubelet's."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.comeback.unknown import LONGEST_MAKING_S, Unknown, certain, follow, next_certainty

A, B = ("default", "a"), ("default", "b")


def test_a_pod_proves_it_once_its_runtime_had_the_time_to_make_it() -> None:
    unknown = follow({}, [A], 10.0)
    assert next_certainty(unknown) == 10.0 + LONGEST_MAKING_S
    unknown = follow(unknown, [A, B], 20.0)
    assert certain(unknown, 9.0 + LONGEST_MAKING_S) is None
    assert certain(unknown, 10.0 + LONGEST_MAKING_S) == A


def test_without_such_a_pod_there_is_nothing_to_wait_for() -> None:
    assert next_certainty({}) == float("inf")
    assert certain({}, 1e9) is None


#: (seconds until the look, the pods that hold a device and that no runtime has)
LOOKS = st.lists(st.tuples(st.integers(0, 400), st.sets(st.sampled_from([A, B]))))


@given(looks=LOOKS)
def test_it_is_certain_exactly_if_one_pod_was_unknown_at_every_look_for_that_long(
    looks: list[tuple[int, set[tuple[str, str]]]],
) -> None:
    unknown: Unknown = {}
    now = 0.0
    seen: list[tuple[float, set[tuple[str, str]]]] = []
    for seconds, pods in looks:
        now += seconds
        unknown = follow(unknown, pods, now)
        seen.append((now, pods))
        lasting = {A: now, B: now}
        for pod in lasting:
            for then, others in reversed(seen):
                if pod not in others:
                    break
                lasting[pod] = then
        proofs = [pod for pod in pods if now - lasting[pod] >= LONGEST_MAKING_S]
        assert certain(unknown, now) == min(proofs, default=None)
        assert not proofs or next_certainty(unknown) <= now
