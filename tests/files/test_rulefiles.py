"""Which rule files count, which version of each is in effect, and when they are read again."""

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from genericdp.files import rulewatch, trust
from genericdp.files.rulefiles import PATIENCE_S, RuleFiles, find
from genericdp.files.rulewatch import SETTLE_S
from genericdp.files.trust import SIZE_LIMIT
from tests.scenes.last_good import save_next
from tests.scenes.shortage import descriptors_left
from tests.scenes.waiting import idle

DOMAIN = "example.com"


def a_rule(name: str, node: str = "/dev/null") -> str:
    return f'[[resource]]\nname = "{name}"\nmatch = {{ DEVNAME = "{node}" }}\n'


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    """Two directories, of which the later wins."""
    pair = (tmp_path / "usr", tmp_path / "etc")
    for each in pair:
        each.mkdir(mode=0o755)
    return pair


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o644)
    return path


def names(files: RuleFiles) -> list[str]:
    return [resource.name.partition("/")[2] for resource in files.resources]


def load(*places: Path) -> RuleFiles:
    return RuleFiles([str(place) for place in places], DOMAIN)


def messages(files: RuleFiles) -> list[str]:
    return [problem.message for problem in files.problems]


def test_files_are_read_in_the_order_of_their_names_whatever_the_directory(
    directories: tuple[Path, Path],
) -> None:
    usr, etc = directories
    write(etc / "10-a.toml", a_rule("a"))
    write(usr / "20-b.toml", a_rule("b"))
    write(etc / "30-c.toml", a_rule("c"))
    assert names(load(usr, etc)) == ["a", "b", "c"]


def test_a_file_replaces_the_one_of_the_same_name_in_an_earlier_directory(
    directories: tuple[Path, Path],
) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("theirs"))
    write(etc / "10-a.toml", a_rule("ours"))
    assert names(load(usr, etc)) == ["ours"]


def test_an_empty_file_or_a_link_to_dev_null_masks(directories: tuple[Path, Path]) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("a"))
    write(usr / "20-b.toml", a_rule("b"))
    write(etc / "10-a.toml", "")
    (etc / "20-b.toml").symlink_to("/dev/null")
    files = load(usr, etc)
    assert names(files) == []
    assert messages(files) == []


def test_a_byte_order_mark_is_not_a_mistake(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", "\ufeff" + a_rule("a"))
    files = load(usr)
    assert names(files) == ["a"]
    assert messages(files) == []


def test_other_files_are_ignored(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    for name in (".10-a.toml.swp", "10-a.toml~", "10-a.toml.dpkg-new", ".hidden.toml", "README"):
        write(usr / name, "not TOML at all")
    assert find([str(usr)]) == ()


def test_a_missing_directory_is_not_a_mistake(tmp_path: Path) -> None:
    assert messages(load(tmp_path / "nowhere")) == []


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (
            "a dangling symlink",
            "No such file or directory\n  hint: check the spelling; a symlink on the way may lead to nothing",
        ),
        (
            "a dangling symlink above",
            "No such file or directory\n  hint: check the spelling; a symlink on the way may lead to nothing",
        ),
        (
            "a file",
            "Not a directory\n  hint: check the spelling; something on the way is not a directory",
        ),
    ],
)
def test_what_stands_for_a_directory_and_is_none_is_a_mistake_and_every_file_keeps_its_version(
    tmp_path: Path, what: str, why: str
) -> None:
    """A file system that is mounted late must not mean other rules until then."""
    etc = tmp_path / "etc"
    rules = etc / "rules.d"
    rules.mkdir(parents=True, mode=0o755)
    write(rules / "10-a.toml", a_rule("a"))
    files = load(rules)
    os.rename(etc, tmp_path / "away")
    match what:
        case "a dangling symlink":
            etc.mkdir(mode=0o755)
            rules.symlink_to(tmp_path / "not_mounted")
        case "a dangling symlink above":
            etc.symlink_to(tmp_path / "not_mounted")
        case _:
            etc.mkdir(mode=0o755)
            write(rules, "")
    files.reload()
    assert [problem.render() for problem in files.problems] == [f"{rules}: error: cannot be read: {why}"]
    # A mount causes no event.
    assert (names(files), files.unread) == (["a"], True)
    (rules if what != "a dangling symlink above" else etc).unlink()
    files.reload()
    assert (names(files), files.unread, messages(files)) == ([], False, [])


def test_a_symlink_to_dev_null_in_the_place_of_a_directory_means_no_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.d").symlink_to("/dev/null")
    assert messages(load(tmp_path / "rules.d", Path("/dev/null"))) == []


def test_a_file_whose_symlink_leads_to_nothing_is_to_be_read_again(directories: tuple[Path, Path]) -> None:
    """Nothing reports that the target of the symlink appears."""
    _, etc = directories
    (etc / "10-a.toml").symlink_to("../later.toml")
    files = load(etc)
    assert (messages(files), files.unread) == (["cannot be read: No such file or directory"], True)
    write(etc.parent / "later.toml", a_rule("a"))
    files.reload()
    assert (names(files), files.unread, messages(files)) == (["a"], False, [])


def test_a_bad_file_keeps_its_version_that_was_in_force(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", a_rule("a"))
    file = write(usr / "20-b.toml", a_rule("b"))
    files = load(usr)
    write(file, "[[resource")
    files.reload()
    assert names(files) == ["a", "b"]
    assert [entry.outdated for entry in files.files] == [False, True]
    assert len(files.problems) == 1
    files.reload()
    assert names(files) == ["a", "b"]
    write(file, a_rule("better"))
    files.reload()
    assert names(files) == ["a", "better"]
    assert messages(files) == []


@pytest.mark.parametrize("readable", [True, False], ids=["with a mistake", "unreadable"])
def test_a_bad_file_keeps_the_version_of_the_file_that_it_replaces(
    directories: tuple[Path, Path], readable: bool
) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("theirs"))
    files = load(usr, etc)
    (theirs,) = files.files
    override = etc / "10-a.toml"
    if readable:
        write(override, "[[resource")
    else:
        override.symlink_to("nowhere")
    for _ in range(2):
        files.reload()
        (file,) = files.files
        assert (file.path, file.digest, file.outdated) == (str(override), theirs.digest, True)
        assert names(files) == ["theirs"]
        assert [problem.location.file for problem in files.problems] == [str(override)]
    override.unlink()
    files.reload()
    assert (names(files), messages(files)) == (["theirs"], [])
    assert files.files == (theirs,)


def test_a_bad_file_keeps_its_version_also_if_it_replaced_another(directories: tuple[Path, Path]) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("theirs"))
    override = write(etc / "10-a.toml", a_rule("ours"))
    files = load(usr, etc)
    write(override, "[[resource")
    files.reload()
    assert names(files) == ["ours"]


def test_a_mistake_is_reported_where_it_is_when_a_file_replaces_one_with_the_same_text(
    directories: tuple[Path, Path],
) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", "x = 1\n")
    files = load(usr, etc)
    write(etc / "10-a.toml", "x = 1\n")
    files.reload()
    assert [problem.location.file for problem in files.problems] == [f"{etc}/10-a.toml"]


def test_a_bad_file_does_not_bring_back_what_an_empty_one_disabled(directories: tuple[Path, Path]) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("theirs"))
    override = write(etc / "10-a.toml", "")
    files = load(usr, etc)
    write(override, "[[resource")
    files.reload()
    assert names(files) == []


def test_a_bad_file_at_the_start_leaves_the_good_ones(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", "x = 1\n")
    write(usr / "20-b.toml", a_rule("b"))
    files = load(usr)
    assert names(files) == ["b"]
    assert messages(files) == ["unknown key 'x'"]


def test_what_did_not_change_stays_the_same_value(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", a_rule("a"))
    files = load(usr)
    before = files.resources[0]
    write(usr / "20-b.toml", a_rule("b"))
    files.reload()
    assert files.resources[0] is before


def test_of_two_resources_with_one_name_the_first_in_file_order_has_it(
    directories: tuple[Path, Path],
) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("x", "/dev/null"))
    write(etc / "20-b.toml", a_rule("x", "/dev/zero"))
    files = load(usr, etc)
    assert names(files) == ["x"]
    assert str(files.resources[0].location).endswith("usr/10-a.toml:2:8")
    assert messages(files) == ["the resource 'example.com/x' is already defined"]


def test_a_clash_within_a_file_is_a_mistake_of_the_file(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a", "/dev/null"))
    files = load(usr)
    before = files.resources
    write(file, a_rule("a", "/dev/zero") + a_rule("a", "/dev/null"))
    files.reload()
    assert files.resources == before
    assert ([file.outdated for file in files.files], messages(files)) == (
        [True],
        ["the resource 'example.com/a' is already defined"],
    )


def test_a_file_that_defines_what_another_one_does_is_not_used(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "50-a.toml", a_rule("a", "/dev/null"))
    files = load(usr)
    before = files.resources
    new = write(usr / "40-copy.toml", a_rule("a", "/dev/zero") + a_rule("b"))
    for _ in range(2):
        files.reload()
        assert files.resources == before
        (problem,) = files.problems
        assert problem.render() == (
            f"{new}:2:8: error: the resource 'example.com/a' is already defined\n"
            '    2 | name = "a"\n'
            "      |        ^^^\n"
            f"  hint: it is also defined at {usr}/50-a.toml:2:8; rename one of them or merge their matches"
        )
        assert [(file.digest != "", file.outdated) for file in files.files] == [(False, False), (True, False)]
    # The other file may be changed as well.
    write(usr / "50-a.toml", a_rule("c"))
    files.reload()
    assert (names(files), messages(files)) == (["a", "b", "c"], [])


def test_a_file_that_begins_to_define_what_another_one_does_keeps_its_version(
    directories: tuple[Path, Path],
) -> None:
    usr, _ = directories
    file = write(usr / "40-b.toml", a_rule("b"))
    write(usr / "50-a.toml", a_rule("a"))
    files = load(usr)
    write(file, a_rule("a"))
    files.reload()
    assert (names(files), files.files[0].outdated) == (["b", "a"], True)
    assert messages(files) == ["the resource 'example.com/a' is already defined"]
    (usr / "50-a.toml").unlink()
    files.reload()
    assert (names(files), files.files[0].outdated, messages(files)) == (["a"], False, [])


def test_a_copy_that_is_not_used_does_not_stand_in_the_way_of_its_original(
    directories: tuple[Path, Path],
) -> None:
    usr, _ = directories
    both = a_rule("a") + a_rule("b")
    file = write(usr / "50-a.toml", both)
    files = load(usr)
    write(usr / "50-a-old.toml", both)
    for text, expected in ((a_rule("a"), ["a"]), (both, ["a", "b"])):
        write(file, text)
        files.reload()
        assert (names(files), [each.outdated for each in files.files]) == (expected, [False, False])
        assert {problem.location.file for problem in files.problems} == {str(usr / "50-a-old.toml")}


@pytest.mark.parametrize("name", ["10-b.toml", "90-b.toml"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_is_not_used_does_not_keep_another_one_from_being_edited(
    name: str, directories: tuple[Path, Path], *, restarts: bool
) -> None:
    usr, etc = directories
    other, owner = write(usr / name, a_rule("b")), write(usr / "50-a.toml", a_rule("a"))
    files = load(usr)
    last_good = files.resume(str(etc))
    files.reload()
    while save_next(last_good):
        pass
    write(other, a_rule("b") + a_rule("a"))
    files.reload()
    write(owner, a_rule("a", "/dev/zero") + a_rule("c"))
    if restarts:
        files = load(usr)
        files.resume(str(etc))
    files.reload()
    assert {*names(files)} == {"a", "b", "c"}
    assert [each.path for each in files.files if each.outdated] == [str(other)]
    assert messages(files) == ["the resource 'example.com/a' is already defined"]


def test_what_is_in_effect_again_after_a_mistake_comes_before_what_has_changed(
    directories: tuple[Path, Path],
) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", a_rule("a"))
    file = write(usr / "40-b.toml", a_rule("b"))
    files = load(usr)
    write(file, "[[")
    files.reload()
    write(file, a_rule("b"))
    write(usr / "10-a.toml", a_rule("a") + a_rule("b"))
    files.reload()
    assert (names(files), [each.outdated for each in files.files]) == (["a", "b"], [True, False])


def test_a_resource_may_move_to_another_file(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "50-a.toml", a_rule("a") + a_rule("b"))
    files = load(usr)
    write(usr / "40-b.toml", a_rule("b"))
    write(usr / "50-a.toml", a_rule("a"))
    files.reload()
    assert (names(files), messages(files)) == (["b", "a"], [])


def test_a_file_that_other_users_can_write_is_refused(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    file.chmod(0o646)
    files = load(usr)
    assert names(files) == []
    (problem,) = files.problems
    assert problem.message == f"refused: other users can write '{file}'"
    assert problem.hint == f"chmod go-w '{file}'"


def test_a_directory_that_other_users_can_write_is_refused(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    write(usr / "10-a.toml", a_rule("a"))
    usr.chmod(0o777)
    assert messages(load(usr)) == [f"refused: other users can write '{usr}'"]


def test_a_file_of_another_user_is_refused(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    os.chown(file, 4242, -1)
    assert messages(load(usr)) == [f"refused: '{file}' belongs to user 4242"]


def test_the_private_group_of_an_owner_may_write(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    file.chmod(0o664)
    assert names(load(usr)) == ["a"]
    os.chown(file, -1, 4242)
    assert messages(load(usr)) == [f"refused: other users can write '{file}'"]


def test_what_cannot_be_read_is_a_problem(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    (usr / "10-a.toml").symlink_to("nowhere")
    (usr / "20-b.toml").mkdir()
    (usr / "30-c.toml").write_bytes(b"x" * (SIZE_LIMIT + 1))
    (usr / "40-d.toml").write_bytes(b"a = 1\n# caf\xe9\n")
    os.mkfifo(usr / "50-e.toml")
    files = load(usr)
    assert messages(files) == [
        "cannot be read: No such file or directory",
        "is not a regular file",
        "is larger than 1 MiB",
        "not UTF-8",
        "is not a regular file",
    ]
    assert files.problems[0].render() == (
        f"{usr}/10-a.toml: error: cannot be read: No such file or directory\n"
        "  hint: check the spelling; a symlink on the way may lead to nothing"
    )
    assert files.problems[1].render() == (
        f"{usr}/20-b.toml: error: is not a regular file\n"
        "  hint: move or rename it: what ends in .toml must be a file"
    )
    assert files.problems[3].location.line == 2
    assert files.problems[2].render() == (
        f"{usr}/30-c.toml: error: is larger than 1 MiB\n  hint: split it into several files"
    )


@pytest.mark.parametrize(("left", "unread"), [(0, "etc"), (1, "etc/10-a.toml")], ids=["directory", "file"])
def test_what_cannot_be_read_for_lack_of_descriptors_keeps_its_version_and_is_to_be_read_again(
    directories: tuple[Path, Path], left: int, unread: str
) -> None:
    _, etc = directories
    write(etc / "10-a.toml", a_rule("a"))
    files = load(etc)
    write(etc / "10-a.toml", a_rule("b"))
    with descriptors_left(left):
        files.reload()
    assert (names(files), files.unread) == (["a"], True)
    (problem,) = files.problems
    assert problem.render() == (
        f"{etc.parent / unread}: error: cannot be read: Too many open files\n"
        "  hint: raise the limit of open files: LimitNOFILE= of the unit, or 'ulimit -n'"
    )
    files.reload()
    assert (names(files), files.unread, files.problems) == (["b"], False, ())


OPEN = (
    "{file}: error: is open for writing and may be incomplete\n"
    "  hint: it is read once it is closed; to see which process has it open: fuser -v '{file}'"
)


def test_a_file_that_is_still_being_written_is_not_used(directories: tuple[Path, Path]) -> None:
    _, etc = directories
    write(etc / "20-b.toml", a_rule("b"))
    files = load(etc)
    file = etc / "10-a.toml"
    with file.open("w") as writer:
        writer.write(a_rule("a"))
        writer.flush()
        file.chmod(0o644)
        # A write of a moment is not worth a word.
        files.reload()
        assert (names(files), files.unread, files.problems) == (["b"], True, ())
        # A command that reads the files but a single time says it.
        assert [each.render() for each in load(etc).problems] == [OPEN.format(file=file)]
    files.reload()
    assert (names(files), files.unread, files.problems) == (["a", "b"], False, ())


def test_a_file_that_stays_open_keeps_its_last_complete_version_and_blocks_no_other(
    directories: tuple[Path, Path],
) -> None:
    usr, etc = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    now = [0.0]
    files = RuleFiles([str(usr), str(etc)], DOMAIN, now=lambda: now[0])
    with file.open("r+") as writer:
        # As long as nothing was written, nothing is missing.
        files.reload()
        assert (names(files), files.unread) == (["a"], False)
        writer.truncate()
        for _ in range(2):
            files.reload()
            assert (names(files), files.unread, files.problems) == (["a"], True, ())
        now[0] = PATIENCE_S
        write(etc / "20-b.toml", a_rule("b"))
        files.reload()
        (problem,) = files.problems
        assert (names(files), problem.render()) == (["a", "b"], OPEN.format(file=file))
        assert files.files[0].outdated
    files.reload()
    assert (names(files), files.unread, files.problems) == (["b"], False, ())


def test_a_file_that_is_being_written_replaces_none_yet(directories: tuple[Path, Path]) -> None:
    usr, etc = directories
    write(usr / "10-a.toml", a_rule("a"))
    files = load(usr, etc)
    with (etc / "10-a.toml").open("w"):
        (etc / "10-a.toml").chmod(0o644)
        files.reload()
        assert names(files) == ["a"]
    files.reload()
    assert names(files) == []


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EACCES])
def test_where_nobody_can_tell_whether_a_file_is_open_for_writing_it_is_used(
    directories: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(_descriptor: int, operation: int, _argument: int) -> None:
        if operation == fcntl.F_SETLEASE:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr("fcntl.fcntl", refuse)
    _, etc = directories
    file = write(etc / "10-a.toml", a_rule("a"))
    with file.open("a"):
        assert names(load(etc)) == ["a"]


def test_what_is_not_a_file_is_not_read_again(directories: tuple[Path, Path]) -> None:
    _, etc = directories
    (etc / "10-a.toml").mkdir()
    files = load(etc)
    assert (len(files.problems), files.unread) == (1, False)


def test_a_single_file_can_be_named(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    assert names(load(file)) == ["a"]


async def heard_when(files: RuleFiles, act: Callable[[], object]) -> None:
    """Act, and return when the watch says that something happened."""
    heard = asyncio.Event()
    close = files.watch(heard.set)
    act()
    await heard.wait()
    close()


async def test_an_edit_a_new_file_and_a_removal_are_heard(directories: tuple[Path, Path]) -> None:
    usr, etc = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    files = load(usr, etc)
    await heard_when(files, lambda: write(file, a_rule("b")))
    await heard_when(files, lambda: write(etc / "20-b.toml", a_rule("b")))
    await heard_when(files, (etc / "20-b.toml").unlink)
    await heard_when(files, lambda: os.replace(write(usr / "x", a_rule("c")), file))


async def test_a_file_that_is_copied_over_is_not_read_while_it_is_empty(
    directories: tuple[Path, Path],
) -> None:
    usr, _ = directories
    file, other = write(usr / "10-a.toml", a_rule("a")), usr / "20-b.toml"
    files = load(usr)
    heard = asyncio.Event()

    def read() -> None:
        files.reload()
        seen.append(names(files))
        heard.set()

    seen: list[list[str]] = []
    close = files.watch(read)
    with file.open("w") as writer:
        write(other, a_rule("b"))
        await asyncio.sleep(SETTLE_S / 5)  # the watch hears of the other file
        writer.write(a_rule("a"))
    await heard.wait()
    close()
    assert seen == [["a", "b"]]


async def test_without_leases_writing_to_a_file_is_heard_only_when_it_is_closed(
    directories: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise half a file would be read."""
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    heard, looked = asyncio.Event(), asyncio.Event()
    close = load(usr).watch(heard.set)

    def leases(_: int) -> bool:
        looked.set()
        return True

    monkeypatch.setattr(trust, "_leases", leases)
    with file.open("w"):
        await looked.wait()
        await idle()
        assert not heard.is_set()
    await heard.wait()
    close()


@pytest.mark.parametrize("is_known", [False, True])
async def test_writing_to_a_file_is_heard_until_it_is_known_to_be_open(
    directories: tuple[Path, Path], *, is_known: bool
) -> None:
    usr, _ = directories
    file = write(usr / "10-a.toml", a_rule("a"))
    heard, asked = asyncio.Event(), asyncio.Event()

    def known_open() -> tuple[str, ...]:
        asked.set()
        return (str(file),) if is_known else ()

    close = rulewatch.watch([str(usr)], heard.set, known_open)
    with file.open("w"):
        await asked.wait()
        await idle()
        assert heard.is_set() is not is_known
    await heard.wait()
    close()


async def test_changes_without_end_are_not_waited_for(directories: tuple[Path, Path]) -> None:
    usr, _ = directories
    files = load(usr)
    heard = asyncio.Event()
    close = files.watch(heard.set)
    while not heard.is_set():
        write(usr / "10-a.toml", a_rule("a"))
        await asyncio.sleep(SETTLE_S / 5)
    close()


async def test_a_directory_that_appears_is_heard(tmp_path: Path) -> None:
    files = load(tmp_path / "etc" / "genericdp" / "rules.d")
    await heard_when(files, (tmp_path / "etc").mkdir)
    await heard_when(files, lambda: (tmp_path / "etc" / "genericdp" / "rules.d").mkdir(parents=True))


async def test_a_mounted_config_map_that_changes_is_heard(tmp_path: Path) -> None:
    """Kubernetes exchanges the link `..data`; the names of the files never change."""
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        write(tmp_path / f"..{version}" / "10-a.toml", a_rule(f"a{version}"))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "10-a.toml").symlink_to("..data/10-a.toml")
    files = load(tmp_path)
    assert names(files) == ["a1"]

    def exchange() -> None:
        (tmp_path / "..new").symlink_to("..2")
        (tmp_path / "..new").rename(tmp_path / "..data")

    await heard_when(files, exchange)
    files.reload()
    assert names(files) == ["a2"]
