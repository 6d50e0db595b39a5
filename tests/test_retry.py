"""When something that failed is tried again."""

from genericdp.retry import Retry
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle


async def test_each_failure_in_a_row_doubles_the_pause_up_to_the_longest() -> None:
    time, tries = LoopTime(), [0]

    def again() -> None:
        tries[0] += 1
        retry.failed()

    retry = Retry(again, longest_s=8.0)
    retry.failed()
    for number, pause in enumerate((1.0, 2.0, 4.0, 8.0, 8.0), 1):
        time.advance(pause - 0.5)
        await idle()
        assert tries == [number - 1]
        time.advance(0.5)
        await idle()
        assert tries == [number]
    retry.succeeded()


async def test_after_a_success_nothing_is_tried_and_the_next_pause_is_short_again() -> None:
    time, tries = LoopTime(), [0]

    def again() -> None:
        tries[0] += 1

    retry = Retry(again)
    for number, pause in enumerate((1.0, 2.0), 1):
        retry.failed()
        time.advance(pause)
        await idle()
        assert tries == [number]
    tries[0] = 0
    retry.failed()
    retry.succeeded()
    time.advance(40.0)
    await idle()
    assert tries == [0]
    retry.failed()
    time.advance(1.0)
    await idle()
    assert tries == [1]


async def test_a_further_failure_does_not_put_off_the_next_try() -> None:
    time, tries = LoopTime(), [0]

    def again() -> None:
        tries[0] += 1

    retry = Retry(again)
    retry.failed()
    time.advance(0.9)
    retry.failed()
    time.advance(0.1)
    await idle()
    assert tries == [1]
