"""What the operator's verbs take from the daemon."""

from dataclasses import replace
from pathlib import Path

from genericdp.cli.survey import remembered
from genericdp.core.inventory.offer import Device
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.files.directories import name_each_other
from genericdp.files.state import StateFile, this_boot
from tests.scenes.rules import FTDI
from tests.scenes.service import settings_below


def test_after_an_edit_of_state_dir_they_read_the_memory_that_the_daemon_goes_on_with(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    StateFile(before.state_dir, this_boot()).save(Memory({"ftdi_A": Remembered(FTDI, Device("ftdi_A"))}))
    name_each_other(before)
    memory, remarks = remembered(replace(before, state_dir=f"{tmp_path}/other"))
    assert (list(memory.devices), remarks) == (["ftdi_A"], ())
