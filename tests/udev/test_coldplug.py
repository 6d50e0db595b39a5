"""A machine on which udevd runs, but has not looked at the devices that were there before it."""

import runpy
from pathlib import Path

import pytest

from genericdp.cli.main import main
from genericdp.udev import UdevDevices
from tests.families.machine import entry_of
from tests.scenes.machines import recorded
from tests.udev import gadgets
from tests.udev.gadgets import Gadget
from tests.udev.testbed import RUN, Testbed

pytestmark = pytest.mark.testbed

WHY = "udevd runs, but has not looked at 186 of 186 device nodes, and none of these is offered"
HINT = "'udevadm trigger' makes it look at the devices that were there before it"
DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture
def guest(bed: Testbed) -> Gadget:
    """A machine as the kernel made it; its entries."""
    entries = (entry_of(lines) for lines in recorded("kvm-guest"))
    guest = tuple(sorted(entries, key=lambda entry: entry.path))
    bed.attach(guest)
    return guest


def unseen() -> str:
    """What is said of the devices as they are now, and what helps; "" if all is well."""
    devices = UdevDevices()
    devices.resync()
    return "" if devices.unseen is None else f"{devices.unseen}; {devices.unseen.hint}"


def test_most_devices_without_an_entry_of_udev_are_waited_for_in_vain(guest: Gadget, bed: Testbed) -> None:
    nodes = [entry for entry in guest if entry.node]
    assert unseen() == f"{WHY}; {HINT}"

    for entry in nodes[:93]:
        bed.initialize(entry)
    assert unseen().startswith("udevd runs, but has not looked at 93 of 186 device nodes, and none of")

    bed.initialize(nodes[93])
    assert unseen() == ""


def test_a_udevd_that_is_busy_will_look_at_them(guest: Gadget) -> None:
    assert guest
    (RUN / "queue").touch()
    assert unseen() == ""
    (RUN / "queue").unlink()
    assert unseen() != ""


def test_an_event_does_not_look_like_a_cure(guest: Gadget, bed: Testbed) -> None:
    devices = UdevDevices()
    devices.resync()
    assert str(devices.unseen) == WHY
    (RUN / "queue").touch()
    assert str(devices.unseen) == WHY, "while udevd is busy, what was found before stays"
    for entry in guest:
        if entry.node:
            bed.initialize(entry)
    devices.resync()
    assert devices.unseen is None


def test_without_udevd_nothing_is_waited_for(guest: Gadget) -> None:
    assert guest
    (RUN / "control").unlink()
    assert unseen() == ""


def test_a_stick_that_was_just_plugged_in_is_not_worth_a_word(bed: Testbed) -> None:
    bed.attach(gadgets.serial_dongle())
    assert unseen() == ""


def test_list_says_why_there_is_no_device_and_what_helps(
    guest: Gadget, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guest
    rules = tmp_path / "50-fuse.toml"
    rules.write_text('[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n')
    rules.chmod(0o644)

    assert main(["list", "--rules", str(rules)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("genericdp.io/fuse: no device\n")
    assert " ".join(printed.err.split()) == f"note: {WHY}; {HINT}"


def test_the_demo_does_not_begin_before_udevd_has_looked(
    guest: Gadget, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guest
    monkeypatch.setattr("sys.argv", ["demo.py"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(DEMO), run_name="__main__")

    assert end.value.code == 1
    assert capsys.readouterr() == (f"# {WHY}.\n# {HINT}; then run the demo again.\n", "")
