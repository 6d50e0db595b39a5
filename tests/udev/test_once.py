"""A uevent that is heard several times is one."""

from genericdp.udev import Uevent
from genericdp.udev.once import REMEMBERED, Once


def a_uevent(number: int, source: str = "udev") -> Uevent:
    return Uevent("add", "/sys/x", "tty", source, number)


def test_both_sources_tell_of_the_same_uevent() -> None:
    once = Once()
    assert [once.first(a_uevent(1, source)) for source in ("kernel", "udev", "kernel")] == [
        True,
        False,
        False,
    ]
    assert once.first(a_uevent(2))


def test_one_without_a_number_is_another_one_each_time() -> None:
    once = Once()
    assert [once.first(a_uevent(0)) for _ in range(2)] == [True, True]


def test_not_all_numbers_are_remembered_for_ever() -> None:
    once = Once()
    assert all(once.first(a_uevent(number)) for number in range(1, REMEMBERED + 2))
    assert [once.first(a_uevent(number)) for number in (2, 1)] == [False, True]
