"""The CDI spec files on disk: whole or not there, never stale, nothing of others touched."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from genericdp.errors import GenericdpError
from genericdp.files.cdi.specs import LOCK, CdiSpecs
from genericdp.simulator.runtimes.cdi_cache import CdiCache
from tests.scenes.shortage import descriptors_left, no_file_larger_than

FTDI, FUSE = "genericdp_genericdp.io_ftdi.json", "genericdp_genericdp.io_fuse.json"


def files_in(directory: Path) -> dict[str, str]:
    """Name -> content, without the lock."""
    return {path.name: path.read_text() for path in directory.iterdir() if path.name != LOCK}


@pytest.fixture
def cdi(tmp_path: Path) -> Path:
    return tmp_path / "cdi"


@pytest.fixture
def specs(cdi: Path) -> CdiSpecs:
    return CdiSpecs(str(cdi))


def test_without_any_file_the_directory_is_not_made(specs: CdiSpecs, cdi: Path) -> None:
    specs.apply({})
    assert not cdi.exists()


def test_the_directory_and_the_files_are_for_everybody_to_read_whatever_the_umask(
    specs: CdiSpecs, cdi: Path
) -> None:
    before = os.umask(0o077)
    try:
        specs.apply({FTDI: "one"})
    finally:
        os.umask(before)
    assert files_in(cdi) == {FTDI: "one"}
    assert stat.S_IMODE(cdi.stat().st_mode) == 0o755
    assert stat.S_IMODE((cdi / FTDI).stat().st_mode) == 0o644


def test_a_file_is_replaced_only_when_it_changes(specs: CdiSpecs, cdi: Path) -> None:
    specs.apply({FTDI: "one", FUSE: "one"})
    inodes = {name: (cdi / name).stat().st_ino for name in (FTDI, FUSE)}
    specs.apply({FTDI: "one", FUSE: "two"})
    specs.apply({FTDI: "one", FUSE: "two"})
    assert files_in(cdi) == {FTDI: "one", FUSE: "two"}
    assert (cdi / FTDI).stat().st_ino == inodes[FTDI]
    assert (cdi / FUSE).stat().st_ino != inodes[FUSE]


def test_a_cache_of_a_runtime_sees_each_change(specs: CdiSpecs, cdi: Path) -> None:
    device = '{"name": "%s", "containerEdits": {"env": ["A=b"]}}'
    spec = '{"cdiVersion": "0.5.0", "kind": "genericdp.io/ftdi", "devices": [%s]}'
    with CdiCache([str(cdi)]) as cache:
        for name in ("A", "B"):
            specs.apply({FTDI: spec % (device % name)})
            assert list(cache.devices()) == [f"genericdp.io/ftdi={name}"]
        specs.apply({})
        assert list(cache.devices()) == []


def test_what_is_not_wanted_any_more_goes(specs: CdiSpecs, cdi: Path) -> None:
    specs.apply({FTDI: "one", FUSE: "one"})
    specs.apply({FUSE: "one"})
    assert files_in(cdi) == {FUSE: "one"}
    specs.apply({})
    assert files_in(cdi) == {}


@pytest.mark.parametrize("wanted", [{}, {FUSE: "two"}])
def test_files_of_an_earlier_process_go_and_those_of_others_stay(
    wanted: dict[str, str], specs: CdiSpecs, cdi: Path
) -> None:
    earlier = CdiSpecs(str(cdi))
    earlier.apply({FTDI: "one", FUSE: "one"})
    earlier._lock.release()
    others = {"nvidia.yaml": "x", "genericdp.json": "x", ".genericdp-mine": "x"}
    for name in (*others, ".genericdp-0123456789abcdef"):
        (cdi / name).write_text("x")
    specs.apply(wanted)
    assert files_in(cdi) == {**others, **wanted}


@pytest.mark.parametrize("before", ["absent", "empty", "written"])
def test_files_of_an_earlier_process_go_from_a_directory_that_appears_later_and_those_of_others_stay(
    before: str, specs: CdiSpecs, cdi: Path, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    if before != "absent":
        cdi.symlink_to("one")
    if before == "written":
        specs.apply({FUSE: "one"})
    specs.apply({})
    assert not specs.leads_elsewhere()
    (tmp_path / "two").mkdir(mode=0o755)
    for name in (FTDI, "nvidia.yaml"):
        (tmp_path / "two" / name).write_text("of before")
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(cdi)
    assert specs.leads_elsewhere()
    specs.apply({})
    assert files_in(cdi) == {"nvidia.yaml": "of before"}
    assert not specs.leads_elsewhere()


def test_a_directory_that_disappears_and_comes_back_is_looked_at_again(specs: CdiSpecs, cdi: Path) -> None:
    cdi.mkdir(mode=0o755)
    specs.apply({})
    cdi.rename(f"{cdi}.away")
    specs.apply({})
    assert not specs.leads_elsewhere()
    Path(f"{cdi}.away", FTDI).write_text("of before")
    Path(f"{cdi}.away").rename(cdi)
    specs.apply({})
    assert files_in(cdi) == {}


def test_the_files_of_another_genericdp_stay_in_a_directory_that_appears_later(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    specs.apply({})
    other.apply({FTDI: "theirs"})
    specs.apply({})
    assert (files_in(cdi), specs.leads_elsewhere()) == ({FTDI: "theirs"}, False)


@pytest.mark.parametrize(("age_s", "left"), [(10.0, True), (600.0, False)])
def test_what_a_killed_program_of_udevs_rule_left_goes_when_it_is_old(
    specs: CdiSpecs, cdi: Path, age_s: float, left: bool
) -> None:
    cdi.mkdir(mode=0o755)
    gone = cdi / ".genericdp-gone-4711"
    gone.touch()
    os.utime(gone, (time.time() - age_s,) * 2)
    specs.apply({})
    assert gone.exists() is left


def test_what_somebody_else_removed_or_changed_is_written_again(specs: CdiSpecs, cdi: Path) -> None:
    wanted = {FTDI: "one", FUSE: "one"}
    specs.apply(wanted)
    (cdi / FTDI).unlink()
    (cdi / FUSE).write_text("evil")
    assert not specs.intact()
    assert not specs.intact((FUSE,))
    assert specs.intact(("nvidia.yaml",))
    specs.apply(wanted)
    assert files_in(cdi) == wanted


def test_a_removed_directory_is_made_again(specs: CdiSpecs, cdi: Path) -> None:
    specs.apply({FTDI: "one"})
    shutil.rmtree(cdi)
    specs.apply({FTDI: "one"})
    assert files_in(cdi) == {FTDI: "one"}


def test_on_a_full_disk_a_stale_file_goes_and_nothing_is_left_behind(specs: CdiSpecs, cdi: Path) -> None:
    specs.apply({FTDI: "one", FUSE: "one"})
    with no_file_larger_than(2), pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "two", FUSE: "2"})
    assert str(caught.value) == f"cannot write '{cdi}/{FTDI}': File too large"
    assert caught.value.hint == "until then, the container runtime refuses containers with these devices"
    assert files_in(cdi) == {FUSE: "2"}
    assert specs.says(FUSE, "2")
    assert not specs.says(FTDI, "two")
    specs.apply({FTDI: "two", FUSE: "2"})
    assert files_in(cdi) == {FTDI: "two", FUSE: "2"}


def test_without_a_descriptor_what_was_written_still_counts(specs: CdiSpecs) -> None:
    specs.apply({FTDI: "one"})
    with descriptors_left(0):
        specs.apply({FTDI: "one"})
        with pytest.raises(GenericdpError, match="Too many open files"):
            specs.apply({FTDI: "one", FUSE: "one"})
        assert specs.says(FTDI, "one")


def test_a_symlink_or_directory_in_the_place_of_a_file_is_not_followed(
    specs: CdiSpecs, cdi: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cdi.mkdir()
    target = cdi.parent / "target"
    target.write_text("precious")
    (cdi / FTDI).symlink_to(target)
    specs.apply({FTDI: "one"})
    assert (target.read_text(), (cdi / FTDI).read_text()) == ("precious", "one")
    (cdi / FUSE).mkdir()
    with pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "one", FUSE: "one"})
    assert str(caught.value) == f"cannot write '{cdi}/{FUSE}': Is a directory"
    assert caught.value.hint == (
        "remove it; until then, the container runtime refuses containers with these devices"
    )
    assert caplog.messages == []


def test_a_name_that_cannot_be_removed_does_not_hold_up_the_other_files(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    strays = [cdi / "genericdp_1.json", cdi / "genericdp_2.json"]
    cdi.mkdir()
    for each in (*strays, cdi / FUSE):
        each.mkdir()
    (cdi / "genericdp_3.json").touch()
    for text in ("one", "two"):
        with pytest.raises(GenericdpError) as caught:
            specs.apply({FTDI: text})
        assert str(caught.value) == f"cannot remove '{strays[0]}': Is a directory"
        assert (cdi / FTDI).read_text() == text
    with pytest.raises(GenericdpError):
        specs.apply({})
    assert {*cdi.iterdir()} - {cdi / LOCK} == {*strays, cdi / FUSE}
    for each in (*strays, cdi / FUSE):
        each.rmdir()
    # The lock is free, although not all could be removed.
    other.apply({FTDI: "three"})


def test_the_lock_is_kept_while_an_own_file_cannot_be_removed(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    specs.apply({FTDI: "one"})
    (cdi / FTDI).unlink()
    (cdi / FTDI).mkdir()
    with pytest.raises(GenericdpError):
        specs.apply({})
    with pytest.raises(GenericdpError, match="another genericdp writes to it"):
        other.apply({FUSE: "two"})


def test_a_directory_that_others_can_write_is_refused(specs: CdiSpecs, cdi: Path) -> None:
    cdi.mkdir()
    cdi.chmod(0o777)
    with pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "one"})
    assert str(caught.value) == f"cannot use the CDI directory '{cdi}': other users can write '{cdi}'"
    assert (
        caught.value.hint == f"use a directory of root instead; if only genericdp uses it: chmod go-w '{cdi}'"
    )
    assert files_in(cdi) == {}


def test_a_symlink_that_leads_to_nothing_is_an_error_that_says_so(specs: CdiSpecs, cdi: Path) -> None:
    cdi.symlink_to("target")
    with pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "one"})
    assert str(caught.value) == f"cannot use the CDI directory '{cdi}': No such file or directory"
    target = cdi.parent / "target"
    assert caught.value.hint == f"it is a symlink that leads to nothing: make the directory '{target}'"
    target.mkdir()
    specs.apply({FTDI: "one"})


def test_a_file_in_the_place_of_the_directory_is_an_error(specs: CdiSpecs, cdi: Path) -> None:
    cdi.write_text("")
    with pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "one"})
    assert str(caught.value) == f"cannot use the CDI directory '{cdi}': Not a directory"
    assert caught.value.hint == (
        "it must be a directory that genericdp can write to; see 'cdi_dir' in genericdp.toml"
    )


@pytest.fixture
def other(cdi: Path) -> CdiSpecs:
    """Another genericdp."""
    return CdiSpecs(str(cdi))


def test_the_files_of_another_genericdp_are_left_alone(specs: CdiSpecs, other: CdiSpecs, cdi: Path) -> None:
    other.apply({FTDI: "theirs"})
    with pytest.raises(GenericdpError) as caught:
        specs.apply({FTDI: "ours", FUSE: "ours"})
    assert str(caught.value) == f"cannot use the CDI directory '{cdi}': another genericdp writes to it"
    assert caught.value.hint == (
        "remove one of the two; if each serves its own kubelet, give each its own 'cdi_dir' in genericdp.toml"
    )
    specs.apply({})
    specs.withdraw()
    assert files_in(cdi) == {FTDI: "theirs"}


def test_who_needs_no_files_keeps_in_mind_that_another_genericdp_has_some(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    other.apply({FTDI: "theirs"})
    for _ in range(2):
        specs.apply({})
        assert not specs.notice_foreign()
    assert not specs.withdraw()
    assert files_in(cdi) == {FTDI: "theirs"}


@pytest.mark.parametrize("end", [CdiSpecs.withdraw, lambda specs: specs.apply({})], ids=["withdraw", "none"])
def test_who_has_no_files_any_more_lets_another_genericdp_write(
    end: Callable[[CdiSpecs], None], specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    other.apply({FTDI: "theirs"})
    end(other)
    assert list(cdi.iterdir()) == []
    specs.apply({FTDI: "ours"})
    assert files_in(cdi) == {FTDI: "ours"}


def test_who_has_no_files_makes_no_lock(specs: CdiSpecs, cdi: Path) -> None:
    cdi.mkdir(mode=0o755)
    before = cdi.stat().st_mtime_ns
    specs.apply({})
    assert (list(cdi.iterdir()), cdi.stat().st_mtime_ns) == ([], before)


def test_what_a_killed_genericdp_wrote_after_this_one_had_looked_goes(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    specs.apply({})
    other.apply({FTDI: "theirs", FUSE: "theirs"})
    other._lock.release()
    specs.apply({FTDI: "ours"})
    assert files_in(cdi) == {FTDI: "ours"}


def test_a_lock_that_was_removed_is_made_again(specs: CdiSpecs, other: CdiSpecs, cdi: Path) -> None:
    specs.apply({FTDI: "ours"})
    (cdi / LOCK).rmdir()
    assert specs.keeps_lock()
    with pytest.raises(GenericdpError, match="another genericdp writes to it"):
        other.apply({FTDI: "theirs"})
    assert files_in(cdi) == {FTDI: "ours"}


def test_who_has_lost_the_lock_to_another_genericdp_leaves_its_files_alone(
    specs: CdiSpecs, other: CdiSpecs, cdi: Path
) -> None:
    specs.apply({FTDI: "ours"})
    (cdi / LOCK).rmdir()
    other.apply({FTDI: "theirs"})
    assert not specs.keeps_lock()
    specs.withdraw()
    assert files_in(cdi) == {FTDI: "theirs"}
