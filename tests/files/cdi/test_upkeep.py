"""When the CDI spec files are written again, and what happens to devices meanwhile."""

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from genericdp.core.cdi import file_name
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.answered import Answered, CdiDevice
from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.errors import GenericdpError
from genericdp.files.cdi.specs import LOCK, CdiSpecs
from genericdp.files.cdi.upkeep import CdiUpkeep
from tests.scenes.builders import a_fuse, a_kfd, a_usb_serial
from tests.scenes.inventories import devices_of, inventory_of
from tests.scenes.scene import LoopTime
from tests.scenes.shortage import no_file_larger_than
from tests.scenes.waiting import idle, until

RULES = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty" }
[[resource]]
name = "fuse"
match = { DEVNAME = "/dev/fuse" }
answer = "devices"
"""
SHARES = 'node = [{ match = { SUBSYSTEM = "kfd" }, shared = true }]'
A, B = a_usb_serial(0, port="1", serial="A"), a_usb_serial(0, port="2", serial="B")
FILE = file_name("example.com/ftdi")


class Daemon:
    """What a daemon does with the spec files: a step for each inventory."""

    def __init__(self, directory: Path, rules: str = RULES) -> None:
        self._rules = rules
        self.tried: list[GenericdpError | None] = []
        self.inventory = self.after = Inventory()
        self.steps = 0
        self.rival = False
        self.answered: Answered = {}
        # The links that udev's rule has pointed at themselves.
        self.dead: Collection[str] = ()
        # Each look finds one more of these dead; until then, the files name it.
        self.die_at_each_look: Sequence[str] = ()
        # What the file said each time that these were asked for.
        self.seen: list[str] = []
        settings = Settings(cdi_dir=str(directory), answer=AnswerBy.CDI)
        self.cdi = CdiUpkeep(
            settings,
            self._again,
            self.tried.append,
            lambda: self.rival,
            self._see_dead,
        )

    def _see_dead(self) -> Collection[str]:
        file = Path(self.cdi._settings.cdi_dir, FILE)
        self.seen.append(file.read_text() if file.exists() else "")
        one, self.die_at_each_look = self.die_at_each_look[:1], self.die_at_each_look[1:]
        self.dead = [*self.dead, *one]
        return self.dead

    def step(self, *devices: UdevDevice) -> Mapping[str, str]:
        """Id -> why the device is Unhealthy, or ""."""
        self.inventory = inventory_of(self._rules, *devices)
        self._again()
        return {device.id: device.reason for device in devices_of(self.after)}

    def _again(self) -> None:
        self.steps += 1
        self.after = self.cdi.apply(self.inventory, self.answered)


async def test_on_a_full_disk_nobody_gets_the_device_of_another_and_it_is_tried_again(tmp_path: Path) -> None:
    time, daemon = LoopTime(), Daemon(tmp_path)
    with daemon.cdi.serving():
        assert daemon.step(A, a_fuse()) == {"ftdi_A": "", "fuse_fuse": ""}
        with no_file_larger_than(10):
            why = f"cannot write '{tmp_path}/{FILE}': File too large"
            assert daemon.step(B, a_fuse()) == {"ftdi_B": why, "fuse_fuse": ""}
            assert [path.name for path in tmp_path.iterdir()] == [LOCK], "what it says of A is B by now"
            time.advance(1.0)
            await until(lambda: daemon.steps == 3)
        assert [str(error or "") for error in daemon.tried] == ["", why, why]
        time.advance(2.0)
        await until(lambda: daemon.steps == 4)
        assert daemon.tried[-1] is None
        assert '"ftdi_B"' in (tmp_path / FILE).read_text()


async def test_a_file_that_cannot_be_written_concerns_only_its_resource_whatever_is_shared(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, RULES.replace("match", f"{SHARES}\nmatch"))
    with daemon.cdi.serving(), no_file_larger_than(10):
        told = daemon.step(A, a_fuse(), a_kfd())
        assert told == {"ftdi_A": f"cannot write '{tmp_path}/{FILE}': File too large", "fuse_fuse": ""}
        assert [device.shared[0].link for device in devices_of(daemon.after)] == ["shared+kfd"] * 2


async def test_a_device_with_which_the_rule_lets_no_container_start_is_unhealthy(tmp_path: Path) -> None:
    mounts = 'mounts = [{ host_path = "/srv", container_path = "/dev/ttyUSB0" }]'
    daemon = Daemon(tmp_path, RULES.replace("match", f"{mounts}\nmatch", 1))
    other = a_usb_serial(1, port="2", serial="B")
    why = (
        "a mount and a device node would both be '/dev/ttyUSB0' in the container; "
        "choose another 'container_path' for one of the two in the rule"
    )
    with daemon.cdi.serving():
        assert daemon.step(A, other, a_fuse()) == {"ftdi_A": why, "ftdi_B": "", "fuse_fuse": ""}
        assert [each["name"] for each in json.loads((tmp_path / FILE).read_text())["devices"]] == ["ftdi_B"]
        with no_file_larger_than(10):
            unwritten = f"cannot write '{tmp_path}/{FILE}': File too large"
            assert daemon.step(A, a_usb_serial(2, port="2", serial="B")) == {
                "ftdi_A": why,
                "ftdi_B": unwritten,
            }
        daemon._rules = RULES
        assert daemon.step(A, other) == {"ftdi_A": "", "ftdi_B": ""}


async def test_what_others_change_is_restored_but_not_all_the_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time, daemon = LoopTime(), Daemon(tmp_path)
    with daemon.cdi.serving():
        daemon.step(A)
        (tmp_path / "nvidia.yaml").write_text("of somebody else")
        (tmp_path / FILE).write_text("{}")
        (tmp_path / FILE).unlink()
        await until(lambda: daemon.cdi._retry._timer is not None)
        assert daemon.steps == 1
        time.advance(1.0)
        await until(lambda: daemon.steps == 2)
        assert '"ftdi_A"' in (tmp_path / FILE).read_text()
        assert caplog.messages == ["the CDI spec files were changed, restoring them"]


async def test_files_whose_directory_is_replaced_are_written_again_at_once_but_not_all_the_time(
    tmp_path: Path,
) -> None:
    time, cdi = LoopTime(), tmp_path / "cdi"
    daemon = Daemon(cdi)
    with daemon.cdi.serving():
        daemon.step(A)
        cdi.rename(tmp_path / "before")
        await until(lambda: daemon.steps == 2)
        assert '"ftdi_A"' in (cdi / FILE).read_text()
        cdi.rename(tmp_path / "again")
        await until(lambda: daemon.cdi._retry.waits)
        assert daemon.steps == 2
        time.advance(1.0)
        await until(lambda: daemon.steps == 3)
        assert '"ftdi_A"' in (cdi / FILE).read_text()


async def test_what_the_udev_rule_removes_at_an_unplug_the_next_step_makes_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time, daemon = LoopTime(), Daemon(tmp_path)
    with daemon.cdi.serving():
        daemon.step(A)
        text = (tmp_path / FILE).read_text()
        (tmp_path / FILE).unlink()
        await until(lambda: daemon.cdi._retry._timer is not None)
        # It came back at once, under the same name.
        daemon.step(A)
        assert (tmp_path / FILE).read_text() == text
        time.advance(1.0)
        await idle()
        assert (daemon.steps, caplog.messages) == (2, [])


async def test_what_the_udev_rule_took_out_stays_out_until_the_device_is_read_again(tmp_path: Path) -> None:
    """A step may be under way for another device while a third one already has the name."""
    daemon, file = Daemon(tmp_path), tmp_path / FILE
    with daemon.cdi.serving():
        daemon.step(A, B)
        both = file.read_text()
        file.unlink()
        daemon.dead = ["ftdi_A"]
        assert daemon.step(A, B) == {"ftdi_A": "", "ftdi_B": ""}
        assert ('"ftdi_A"' in file.read_text(), '"ftdi_B"' in file.read_text()) == (False, True)
        daemon.step(A, B)
        assert '"ftdi_A"' not in file.read_text()
        # Nor was it there for a moment.
        assert '"ftdi_A"' not in "".join(daemon.seen[1:])
        daemon.dead = ()
        daemon.step(A, B)
        assert file.read_text() == both


@pytest.mark.parametrize("in_the_way", [False, True])
async def test_what_the_udev_rule_took_out_during_a_write_goes_at_once(
    tmp_path: Path, *, in_the_way: bool
) -> None:
    """Also while another file cannot be written."""
    daemon, file = Daemon(tmp_path), tmp_path / FILE
    if in_the_way:
        (tmp_path / "genericdp_other.json").mkdir()
    with daemon.cdi.serving():
        # Nobody has changed a file yet, so the links are looked at only after the write.
        daemon.dead = ["ftdi_A"]
        daemon.step(A, B)
        assert ('"ftdi_A"' in file.read_text(), '"ftdi_B"' in file.read_text()) == (False, True)


STICKS = [a_usb_serial(number, port=f"{number}", serial=f"S{number}") for number in range(1, 9)]


async def test_devices_that_go_faster_than_files_are_written_do_not_keep_the_daemon_busy(
    tmp_path: Path,
) -> None:
    """A hub with hundreds of devices is unplugged, and the udev rule runs for several at a time."""
    rules = f'{RULES}\n[[resource]]\nname = "kfd"\nmatch = {{ SUBSYSTEM = "kfd" }}\n'
    other, file = tmp_path / file_name("example.com/kfd"), tmp_path / FILE
    time, daemon = LoopTime(), Daemon(tmp_path, rules)
    daemon.die_at_each_look = [f"ftdi_S{number}" for number in range(1, 7)]
    with daemon.cdi.serving():
        why = f"devices are unplugged faster than the CDI spec files in '{tmp_path}' are written"
        gone = {f"ftdi_S{number}": why for number in range(1, 9)}
        assert daemon.step(*STICKS, a_kfd()) == {**gone, "kfd_kfd": ""}
        assert ['"ftdi_S1"' in text for text in daemon.seen] == [True, False], "written twice"
        assert (file.exists(), other.exists()) == (False, True), "what may lead to other devices"
        assert not daemon.cdi.see_answered(daemon.inventory, {}), "a step has to do it"
        time.advance(1.0)
        await until(lambda: daemon.steps == 2)
        assert not file.exists(), "links still die"
        assert [str(error or "") for error in daemon.tried] == [why, why]
        time.advance(2.0)
        await until(lambda: daemon.steps == 3)
        named = [each["name"] for each in json.loads(file.read_text())["devices"]]
        assert named == ["ftdi_S7", "ftdi_S8"]
        assert daemon.tried[-1] is None
        assert not daemon.cdi._retry.waits


async def test_links_that_no_file_needs_may_die_at_any_time(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.die_at_each_look = ["fuse_fuse", "other", "more"]
    with daemon.cdi.serving():
        assert daemon.step(A, a_fuse()) == {"ftdi_A": "", "fuse_fuse": ""}
        assert len(daemon.seen) == 1
        assert '"ftdi_A"' in (tmp_path / FILE).read_text()


async def test_a_storm_of_unplugs_removes_no_file_of_another_genericdp(tmp_path: Path) -> None:
    other, daemon = CdiSpecs(str(tmp_path)), Daemon(tmp_path)
    other.apply({FILE: "of the other one"})
    daemon.die_at_each_look = [f"ftdi_S{number}" for number in range(1, 7)]
    with daemon.cdi.serving():
        daemon.step(*STICKS)
        assert (tmp_path / FILE).read_text() == "of the other one"
    other.withdraw()


async def test_a_file_that_cannot_be_removed_in_a_storm_is_said_to_be_dangerous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = Daemon(tmp_path)
    daemon.die_at_each_look = [f"ftdi_S{number}" for number in range(1, 7)]
    really = os.unlink

    def unlink(path: str, **options: int) -> None:
        if path == FILE:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        really(path, **options)

    with daemon.cdi.serving(), monkeypatch.context() as patch:
        patch.setattr(os, "unlink", unlink)
        assert set(daemon.step(*STICKS).values()) == {
            f"devices are unplugged faster than the CDI spec files in '{tmp_path}' are written"
        }
    assert caplog.messages == ["a CDI spec file cannot be changed and may lead to other devices"]


@pytest.mark.parametrize("others", [(), (a_kfd(),)], ids=["no file is left", "another file is left"])
async def test_a_file_that_comes_back_after_its_devices_have_left_goes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[UdevDevice, ...]
) -> None:
    """The program of the udev rule drops one line of several, while all devices of the file leave."""
    rules = f'{RULES}\n[[resource]]\nname = "kfd"\nmatch = {{ SUBSYSTEM = "kfd" }}\n'
    time, daemon, back = LoopTime(), Daemon(tmp_path, rules), tmp_path / "back"
    put_off: list[float] = []
    put_it_off = daemon.cdi._retry.failed

    def failed() -> None:
        put_off.append(asyncio.get_running_loop().time())
        put_it_off()

    monkeypatch.setattr(daemon.cdi._retry, "failed", failed)
    with daemon.cdi.serving():
        daemon.step(A, *others)
        back.write_text((tmp_path / FILE).read_text())
        daemon.step(*others)
        for steps in (3, 4):
            assert not (tmp_path / FILE).exists()
            shutil.copy(back, tmp_path / "new")
            (tmp_path / "new").rename(tmp_path / FILE)
            if steps == 4:
                # Not all the time.
                await until(lambda: daemon.cdi._retry.waits)
                time.advance(1.0)
            await until(lambda: not (tmp_path / FILE).exists())
            assert (daemon.steps, bool(put_off)) == (steps, steps == 4)
        assert (tmp_path / file_name("example.com/kfd")).exists() is bool(others)
        assert daemon.tried == [None] * 4


async def test_a_file_of_another_genericdp_is_left_alone(tmp_path: Path) -> None:
    time, daemon, other = LoopTime(), Daemon(tmp_path), CdiSpecs(str(tmp_path))
    with daemon.cdi.serving():
        daemon.step(A)
        daemon.step()
        other.apply({FILE: "theirs"})
        await until(lambda: daemon.steps == 3)
        other.apply({FILE: "theirs, too"})
        await idle()
        time.advance(2.0)
        await idle()
        assert (daemon.steps, (tmp_path / FILE).read_text()) == (3, "theirs, too")
    assert other.intact()
    other.withdraw()


async def test_the_files_go_when_genericdp_stops_serving(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with daemon.cdi.serving():
        daemon.step(A)
        assert {path.name for path in tmp_path.iterdir()} == {FILE, LOCK}
    assert list(tmp_path.iterdir()) == []


async def test_a_rival_removes_what_its_killed_predecessor_left_and_looks_no_more(tmp_path: Path) -> None:
    time, daemon = LoopTime(), Daemon(tmp_path)
    left, others = tmp_path / FILE, tmp_path / "nvidia.yaml"
    left.touch()
    others.touch()
    daemon.rival = True
    with daemon.cdi.serving():
        assert daemon.step(A) == {"ftdi_A": ""}
        assert list(tmp_path.iterdir()) == [others]
        left.touch()
        daemon.step(A)
        time.advance(20.0)
        await idle()
        assert (left.exists(), daemon.tried) == (True, [None, None])
        # It serves for a while, and is the rival again.
        daemon.rival = False
        daemon.step(A)
        assert '"ftdi_A"' in left.read_text()
        daemon.rival = True
        daemon.step(A)
        assert list(tmp_path.iterdir()) == [others]


async def test_a_rival_leaves_the_files_of_another_genericdp_until_that_one_is_killed(tmp_path: Path) -> None:
    time, daemon, other = LoopTime(), Daemon(tmp_path), CdiSpecs(str(tmp_path))
    other.apply({FILE: "theirs"})
    daemon.rival = True
    with daemon.cdi.serving():
        daemon.step(A)
        time.advance(1.0)
        await until(lambda: len(daemon.tried) == 2)
        assert (daemon.tried, daemon.steps) == ([None, None], 1)
        assert other.intact()
        other._lock.release()
        other._kept.close()
        time.advance(2.0)
        await until(lambda: len(daemon.tried) == 3)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_rival", [False, True])
async def test_what_an_earlier_process_left_goes_as_soon_as_its_directory_appears(
    tmp_path: Path, *, is_rival: bool
) -> None:
    cdi, away = tmp_path / "cdi", tmp_path / "away"
    daemon = Daemon(cdi)
    daemon.rival = is_rival
    with daemon.cdi.serving():
        daemon.step()
        assert not cdi.exists()
        away.mkdir(mode=0o755)
        for name in (FILE, "nvidia.yaml"):
            (away / name).touch()
        away.rename(cdi)
        await until(lambda: not (cdi / FILE).exists())
        assert [path.name for path in cdi.iterdir()] == ["nvidia.yaml"]


@pytest.mark.parametrize("answered", [{}, {"a": CdiDevice("example.com/ftdi", ("ftdi_A",))}])
async def test_without_answers_by_cdi_the_directory_is_watched_only_if_a_pod_had_one(
    answered: Answered, tmp_path: Path
) -> None:
    daemon = Daemon(tmp_path / "cdi", RULES.replace('"ftdi"', '"ftdi"\nanswer = "devices"'))
    daemon.answered = answered
    with daemon.cdi.serving():
        daemon.step(a_fuse())
        assert (daemon.cdi._watch is not None) is bool(answered)
        assert list(tmp_path.iterdir()) == []


async def test_what_a_rival_cannot_remove_is_said_and_tried_again(tmp_path: Path) -> None:
    time, daemon, left = LoopTime(), Daemon(tmp_path), tmp_path / FILE
    left.mkdir()
    daemon.rival = True
    with daemon.cdi.serving():
        assert daemon.step(A) == {"ftdi_A": ""}
        left.rmdir()
        left.touch()
        time.advance(1.0)
        await until(lambda: not left.exists())
    why = f"cannot remove '{left}': Is a directory"
    assert [str(error or "") for error in daemon.tried] == [why, ""]


async def test_a_name_that_cannot_be_removed_makes_no_device_unhealthy(tmp_path: Path) -> None:
    time, daemon, stray = LoopTime(), Daemon(tmp_path), tmp_path / "genericdp_x.json"
    with daemon.cdi.serving():
        daemon.step(A, B)
        stray.mkdir()
        await until(lambda: any(daemon.tried))
        assert daemon.step(A) == {"ftdi_A": ""}
        assert '"ftdi_B"' not in (tmp_path / FILE).read_text()
        stray.rmdir()
        time.advance(10.0)
        await until(lambda: daemon.tried[-1] is None)
    error = next(filter(None, daemon.tried))
    assert str(error) == f"cannot remove '{stray}': Is a directory"
    assert error.hint == (
        "remove it: it has the name of a CDI spec file of genericdp, and container runtimes may read it"
    )


async def test_no_file_is_written_or_left_before_the_directory_is_noted(tmp_path: Path) -> None:
    time, daemon, left = LoopTime(), Daemon(tmp_path), tmp_path / FILE
    left.touch()
    full = True

    def note() -> None:
        if full:
            raise GenericdpError("no room for a note")

    with daemon.cdi.serving(note):
        assert daemon.step(A, a_fuse()) == {"ftdi_A": "no room for a note", "fuse_fuse": ""}
        assert list(tmp_path.iterdir()) == []
        full = False
        time.advance(1.0)
        await until(lambda: daemon.steps == 2)
        assert '"ftdi_A"' in left.read_text()
    assert [str(error or "") for error in daemon.tried] == ["no room for a note", ""]
