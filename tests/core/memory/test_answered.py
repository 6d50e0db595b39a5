"""Which CDI devices stay known, so that the names in saved answers keep their meaning."""

import json

import pytest

from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.answered import CdiDevice, answer, learn_names, resumed_at, still_held
from genericdp.core.memory.held import PODS_SETTLE_S, Held, Holding
from genericdp.core.memory.memory import Memory

FTDI = "example.com/ftdi"


def ftdi(*ids: str) -> CdiDevice:
    return CdiDevice(FTDI, ids)


def names(*devices: CdiDevice) -> set[str]:
    return {device.name for device in devices}


def test_a_name_depends_on_the_ids_alone() -> None:
    assert ftdi("a").name == "example.com/ftdi=a"
    assert ftdi("a", "b").name.startswith("example.com/ftdi=a:")
    assert len(names(ftdi("a", "b"), ftdi("a", "c"), ftdi("a", "b", "c"), ftdi("a"))) == 4


def test_within_one_admission_containers_may_get_the_same_ids() -> None:
    named = answer({}, ftdi("a", "b"), now=10.0)
    named = answer(named, ftdi("a"), now=10.0 + PODS_SETTLE_S)
    assert set(named) == names(ftdi("a", "b"), ftdi("a"))


def test_later_an_id_that_is_given_again_was_free_so_its_earlier_names_are_of_no_pod() -> None:
    named = answer({}, ftdi("a", "b"), now=10.0)
    named = answer(named, ftdi("c"), now=10.0)
    named = answer(named, ftdi("b", "d"), now=10.1 + PODS_SETTLE_S)
    assert set(named) == names(ftdi("c"), ftdi("b", "d"))


def test_a_name_goes_when_one_of_its_ids_is_free() -> None:
    named = answer(answer({}, ftdi("a", "b"), now=1.0), ftdi("c"), now=1.0)
    held = {id_: Holding(FTDI, id_, shared=False) for id_ in ("a", "c")}
    assert set(still_held(named, held)) == names(ftdi("c"))


def holding(*ids: str, resource: str = FTDI) -> Held:
    return {id_: Holding(resource, id_, shared=False) for id_ in ids}


def checkpointed(*named: Named, asked: float = 0.0) -> Answer:
    return Answer(frozenset(), asked, complete=False, named=named)


def test_a_name_that_was_not_saved_is_learned_from_the_checkpoint() -> None:
    one, two = ftdi("c.1"), ftdi("a2", "a10")
    learned = learn_names(
        {},
        checkpointed(
            Named(FTDI, frozenset({"c.1"}), (one.name,)),
            Named(FTDI, frozenset({"a10", "a2"}), (f"{FTDI}=a2", f"{FTDI}=a10", two.name)),
        ),
        holding("a2", "a10", "c.1"),
    )
    assert learned == {one.name: one, two.name: two}


@pytest.mark.parametrize(
    ("named", "held"),
    [
        (Named(FTDI, frozenset({"a", "b"}), (ftdi("a", "b").name,)), holding("a")),
        (Named(FTDI, frozenset({"a"}), (f"{FTDI}=a",)), holding("a", resource="example.com/other")),
        (Named(FTDI, frozenset({"a"}), (f"{FTDI}=b", "example.com/ftdi2=a")), holding("a", "b")),
        (Named(FTDI, frozenset({"a", "b"}), (f"{FTDI}=a", f"{FTDI}=a:0123456789")), holding("a", "b")),
        (Named(FTDI, frozenset(), (f"{FTDI}=",)), holding("a")),
    ],
    ids=["free", "of another resource", "of another id", "another hash", "of no id"],
)
def test_of_the_checkpoint_only_a_name_of_ids_that_are_held_counts(named: Named, held: Held) -> None:
    assert learn_names({}, checkpointed(named), held) == {}


def test_a_name_that_is_known_is_not_learned_again() -> None:
    known = answer({}, ftdi("a"), now=1.0)
    again = checkpointed(Named(FTDI, frozenset({"a"}), (f"{FTDI}=a",)), asked=500.0)
    assert learn_names(known, again, holding("a")) is known


def test_a_restart_within_an_admission_takes_no_name_from_an_init_container() -> None:
    before = Memory(answered=answer({}, ftdi("a", "b"), now=1.0))
    start = 7.0
    saved_names = resumed_at(saved.load(saved.dump(before)).answered, start)
    learned = learn_names(
        {}, checkpointed(Named(FTDI, frozenset("ab"), (ftdi("a", "b").name,)), asked=start), holding(*"ab")
    )
    for named in (saved_names, learned):
        assert set(answer(named, ftdi("a"), start + PODS_SETTLE_S)) == names(ftdi("a", "b"), ftdi("a"))
        assert set(answer(named, ftdi("a"), start + 0.1 + PODS_SETTLE_S)) == names(ftdi("a"))


def test_names_survive_a_restart() -> None:
    named = answer(answer({}, ftdi("a", "b"), now=1.0), ftdi("a"), now=1.0)
    memory = Memory(answered=named)
    assert saved.load(saved.dump(memory)) == memory
    earlier = saved.load(saved.dump(Memory()).replace(b'"answered": [], ', b""))
    assert earlier == Memory(is_of_earlier_release=True)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"resource": "ftdi", "ids": ["a"]}, "'ftdi' is not the name of a resource"),
        ({"resource": FTDI, "ids": []}, "a CDI device without ids"),
        ({"resource": FTDI, "ids": ["../a"]}, "'../a' is not an id"),
        ({"resource": FTDI, "ids": "a"}, "'a' is not a list"),
        ({"resource": FTDI, "ids": [1]}, "1 is not a string"),
    ],
)
def test_what_this_program_cannot_have_saved_makes_the_memory_unreadable(entry: object, why: str) -> None:
    text = saved.dump(Memory()).replace(b'"answered": []', b'"answered": [%s]' % json.dumps(entry).encode())
    with pytest.raises(saved.UnreadableMemoryError) as caught:
        saved.load(text)
    assert why in str(caught.value)
