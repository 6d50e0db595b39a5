"""When the memory is saved: a storm of changes together, and every storm."""

from pathlib import Path

from genericdp.core.memory.memory import Memory
from genericdp.files.saving import Saving
from genericdp.files.state import StateFile
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import until


def memory(number: int) -> Memory:
    return Memory(ties={"ftdi_SAME": f"port {number}"})


def saved(directory: Path) -> Memory:
    return StateFile(str(directory)).load()


async def test_changes_that_may_wait_are_saved_together_and_so_are_those_after_them(tmp_path: Path) -> None:
    time, saving = LoopTime(), Saving(str(tmp_path))
    for storm in (1, 11, 21):
        before = saved(tmp_path)
        saving.save_within(10.0, memory(storm))
        time.advance(9.0)
        saving.save_within(10.0, memory(storm + 1))
        assert saved(tmp_path) == before
        time.advance(1.0)
        await until(lambda: saved(tmp_path) != before)  # noqa: B023  (it is asked in this round)
        assert saved(tmp_path) == memory(storm + 1)


async def test_what_may_not_wait_is_saved_at_once_with_what_waits(tmp_path: Path) -> None:
    saving = Saving(str(tmp_path))
    saving.save_within(3600.0, memory(1))
    saving.save_within(0.0, memory(2))
    assert saved(tmp_path) == memory(2)
