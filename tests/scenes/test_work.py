"""How much work something is: what grows with the square is told apart from what grows in proportion."""

from tests.scenes.work import FACTOR, IN_PROPORTION, growth


def looked_at(size: int, times: int) -> int:
    return sum(1 for _ in range(times) for _ in range(size))


def test_work_that_grows_with_the_square_is_not_in_proportion() -> None:
    assert growth(lambda size: looked_at(size, size), 100) > IN_PROPORTION


def test_work_that_grows_with_its_size_is_in_proportion() -> None:
    assert growth(lambda size: looked_at(size, 100), 100) < IN_PROPORTION


def test_work_that_is_slow_at_first_is_done_again() -> None:
    sizes: list[int] = []

    def work(size: int) -> None:
        sizes.append(size)
        is_first = sizes.count(FACTOR * 100) == 1 and size != 100
        looked_at(size, 10_000 if is_first else 100)

    assert growth(work, 100) < IN_PROPORTION
    assert sizes.count(FACTOR * 100) > 1
