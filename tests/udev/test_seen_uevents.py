"""A uevent that arrives several times counts once."""

from genericdp.core.hint import Uevent
from genericdp.udev import SeenUevents
from genericdp.udev.pending import REMEMBERED


def a_uevent(number: int, source: str = "udev") -> Uevent:
    return Uevent("add", "/sys/x", "tty", source, number)


def test_both_sources_tell_of_the_same_uevent() -> None:
    seen = SeenUevents()
    assert [seen.is_new(a_uevent(1, source)) for source in ("kernel", "udev", "kernel")] == [
        True,
        False,
        False,
    ]
    assert seen.is_new(a_uevent(2))


def test_one_without_a_number_is_another_one_each_time() -> None:
    seen = SeenUevents()
    assert [seen.is_new(a_uevent(0)) for _ in range(2)] == [True, True]


def test_not_all_numbers_are_remembered_for_ever() -> None:
    seen = SeenUevents()
    assert all(seen.is_new(a_uevent(number)) for number in range(1, REMEMBERED + 2))
    assert [seen.is_new(a_uevent(number)) for number in (2, 1)] == [False, True]
