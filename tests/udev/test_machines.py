"""Whole machines through libudev: what the verbs read of them is what tests of the core take for it."""

from pathlib import Path

import pytest

from genericdp.cli.main import main
from genericdp.core.explain.model import NAME_ATTRIBUTES, driver_and_address, identification
from genericdp.core.explain.selection import TYPE_ATTRIBUTES, why_left_out
from genericdp.udev import UdevDevices
from tests.families.machine import entry_of
from tests.scenes.machines import machine, recorded
from tests.udev.testbed import Testbed


@pytest.mark.testbed
@pytest.mark.parametrize("name", ["kvm-guest", "industrial-pc"])
def test_a_machine_is_read_through_libudev_as_its_text_says(
    name: str, bed: Testbed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [entry_of(lines) for lines in recorded(name)]
    for entry in bed.attach(tuple(sorted(entries, key=lambda each: each.path))):
        bed.initialize(entry)
    devices = UdevDevices(NAME_ATTRIBUTES | TYPE_ATTRIBUTES)
    devices.resync()

    wanted = machine(name, *NAME_ATTRIBUTES, *TYPE_ATTRIBUTES)
    nodes = {path for path, each in wanted.items() if each.device_node is not None}
    assert nodes == {path for path, each in devices.devices.items() if each.device_node is not None}
    for path in nodes:
        read, device = devices.devices[path], wanted[path]
        assert read.initialized
        assert (identification(read), driver_and_address(read), why_left_out(read)) == (
            identification(device),
            driver_and_address(device),
            why_left_out(device),
        )
    assert main(["list", "--rules", str(tmp_path), "--all", "rtc"]) == 0
    assert "/dev/rtc0  rtc  rtc_cmos" in capsys.readouterr().out
