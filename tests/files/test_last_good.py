"""What is in effect after a restart instead of a rule file with a mistake."""

import os
from pathlib import Path

import pytest

from genericdp.core.rules.settings import LAST_GOOD
from genericdp.errors import GenericdpError
from genericdp.files import rulefiles
from genericdp.files.last_good import PLACES, LastGood
from genericdp.files.rulefiles import RuleFiles
from genericdp.files.trust import SIZE_LIMIT
from tests.scenes.last_good import save_next
from tests.scenes.shortage import descriptors_left, no_file_larger_than

DOMAIN = "example.com"
BAD = "[[resource"


def a_rule(name: str) -> str:
    return f'[[resource]]\nname = "{name}"\nmatch = {{ DEVNAME = "/dev/null" }}\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o644)
    return path


class Node:
    """The rule files of a node, and a daemon that reads them."""

    def __init__(self, root: Path, *places: str) -> None:
        self.state = root / "state"
        self.places = tuple(root / each for each in places)
        for each in (self.state, *self.places):
            each.mkdir(mode=0o755, exist_ok=True)
        self.start()

    @property
    def directory(self) -> Path:
        """Where the texts of these rules are kept."""
        return Path(self.last_good.path("10-a.toml")).parent

    @property
    def kept(self) -> dict[str, str]:
        if not self.directory.exists():
            return {}
        return {each.name: each.read_text() for each in self.directory.iterdir() if each.name != PLACES}

    @property
    def names(self) -> list[str]:
        return [resource.name.partition("/")[2] for resource in self.files.resources]

    @property
    def problems(self) -> list[str]:
        return [problem.render() for problem in self.files.problems]

    def start(self) -> None:
        """A new process."""
        self.files = RuleFiles([str(each) for each in self.places], DOMAIN)
        self.last_good = self.files.resume(str(self.state))
        self.reload()

    def reload(self) -> int:
        """Read the files, and keep what is to be kept; how many texts were looked at."""
        self.files.reload()
        count = 0
        while save_next(self.last_good):
            count += 1
        return count


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, "usr", "etc")


def test_a_bad_file_keeps_its_version_over_a_restart(node: Node) -> None:
    usr, _ = node.places
    file = write(usr / "10-a.toml", a_rule("a"))
    write(usr / "20-b.toml", a_rule("b"))
    node.reload()
    (before, other) = node.files.files
    write(file, BAD)
    for _ in range(2):
        node.start()
        assert node.names == ["a", "b"]
        (now, same) = node.files.files
        assert (now.outdated, now.digest, now.resources) == (True, before.digest, before.resources)
        assert same == other
        assert [problem.location.file for problem in node.files.problems] == [str(file)]
        assert node.kept == {"10-a.toml": a_rule("a"), "20-b.toml": a_rule("b")}
    write(file, a_rule("better"))
    node.reload()
    assert (node.names, node.problems) == (["better", "b"], [])
    assert node.kept["10-a.toml"] == a_rule("better")


@pytest.mark.parametrize("bad", ["mistake", "mode", "large", "binary", "directory", "dangling", "open"])
def test_whatever_makes_a_file_bad_keeps_its_version(node: Node, bad: str) -> None:
    usr, _ = node.places
    file = write(usr / "10-a.toml", a_rule("a"))
    node.reload()
    match bad:
        case "mistake":
            write(file, 'x = "1"\n')
        case "mode":
            file.chmod(0o666)
        case "large":
            file.write_bytes(b"#" * (SIZE_LIMIT + 1))
        case "binary":
            file.write_bytes(b"\xff")
        case "directory":
            file.unlink()
            file.mkdir()
        case "dangling":
            file.unlink()
            file.symlink_to("nowhere")
    with (file if bad == "open" else usr / "other").open("a") as writer:
        writer.write("#")
        writer.flush()
        node.start()
        assert (node.names, [each.outdated for each in node.files.files]) == (["a"], [True])
        assert len(node.problems) == 1


def test_what_was_in_effect_before_the_start_wins_over_a_file_that_came_or_changed(node: Node) -> None:
    usr, _ = node.places
    write(usr / "30-c.toml", a_rule("c"))
    write(usr / "50-a.toml", a_rule("a"))
    node.reload()
    kept = node.kept
    write(usr / "30-c.toml", a_rule("a"))
    write(usr / "40-b.toml", a_rule("b") + a_rule("a"))
    for _ in range(2):
        node.start()
        assert node.names == ["c", "a"]
        assert [problem.partition(": ")[0] for problem in node.problems] == [
            f"{usr}/30-c.toml:2:8",
            f"{usr}/40-b.toml:5:8",
        ]
        assert [each.outdated for each in node.files.files] == [True, False, False]
        assert node.kept == kept


def test_a_directory_that_cannot_be_read_keeps_all_that_was_in_effect_before_the_start(node: Node) -> None:
    usr, etc = node.places
    write(usr / "10-a.toml", a_rule("theirs"))
    write(etc / "10-a.toml", a_rule("ours"))
    write(usr / "20-b.toml", a_rule("masked"))
    write(etc / "20-b.toml", "")
    name = f"05-{'c' * 247}.toml"
    write(etc / name, a_rule("c"))
    node.reload()
    kept = node.kept
    os.rename(etc, etc.parent / "away")
    etc.symlink_to("not_mounted")
    for _ in range(2):
        node.start()
        node.reload()
        assert (node.names, node.kept, node.files.unread) == (["c", "ours"], kept, True)
        assert [each.outdated for each in node.files.files] == [True, True]
        (problem,) = node.problems
        assert problem == (
            f"{etc}: error: cannot be read: No such file or directory\n"
            "  hint: check the spelling; a symlink on the way may lead to nothing"
        )
    write(etc.parent / "away" / "10-a.toml", BAD)
    (etc.parent / "away" / name).unlink()
    os.rename(etc.parent / "away", etc.parent / "not_mounted")
    node.reload()
    assert (node.names, node.files.unread) == (["ours"], False)
    assert [problem.location.file for problem in node.files.problems] == [f"{etc}/10-a.toml"]
    assert node.kept == {"10-a.toml": a_rule("ours")}


def test_a_bad_file_keeps_the_version_of_the_file_that_it_replaces(node: Node) -> None:
    usr, etc = node.places
    write(usr / "10-a.toml", a_rule("theirs"))
    node.reload()
    override = write(etc / "10-a.toml", BAD)
    node.start()
    (file,) = node.files.files
    assert (file.path, file.outdated, node.names) == (str(override), True, ["theirs"])
    write(usr / "10-a.toml", a_rule("newer"))
    node.start()
    assert node.names == ["theirs"]  # as without a restart
    override.unlink()
    node.start()
    assert (node.names, node.problems) == (["newer"], [])


def test_a_file_without_a_good_version_has_none(node: Node) -> None:
    write(node.places[0] / "10-a.toml", BAD)
    node.start()
    assert (node.names, len(node.problems), node.kept) == ([], 1, {})


@pytest.mark.parametrize("end", ["removed", "emptied", "masked"])
@pytest.mark.parametrize("running", [True, False])
def test_nothing_is_kept_of_a_file_that_is_ended(node: Node, end: str, running: bool) -> None:
    usr, etc = node.places
    file = write(usr / "10-a.toml", a_rule("a"))
    node.reload()
    match end:
        case "removed":
            file.unlink()
        case "emptied":
            write(file, "")
        case "masked":
            (etc / "10-a.toml").symlink_to("/dev/null")
    if running:
        node.reload()
    else:
        node.start()
    assert (node.names, node.problems, node.kept) == ([], [], {})
    (etc / "10-a.toml").unlink(missing_ok=True)
    write(file, BAD)
    node.start()
    assert node.names == []


def test_what_could_not_be_removed_does_not_come_back(node: Node) -> None:
    usr, _ = node.places
    file = write(usr / "10-a.toml", a_rule("a"))
    node.reload()
    (node.directory).chmod(0o777)
    file.unlink()
    with pytest.raises(GenericdpError) as raised:
        node.reload()
    assert str(raised.value) == (
        f"cannot remove '{node.directory}/10-a.toml': other users can write '{node.directory}'"
    )
    write(file, BAD)
    for _ in range(2):
        with pytest.raises(GenericdpError):
            node.reload()
        assert node.names == []
    (node.directory).chmod(0o700)
    node.reload()
    assert node.kept == {}


def test_only_a_text_that_differs_is_written(node: Node) -> None:
    usr, _ = node.places
    write(usr / "10-a.toml", a_rule("a"))
    write(usr / "20-b.toml", a_rule("b"))
    assert node.reload() == 2
    assert node.reload() == 0
    first, other = (os.stat(node.directory / name).st_ino for name in ("10-a.toml", "20-b.toml"))
    node.start()
    write(usr / "20-b.toml", a_rule("c"))
    assert node.reload() == 1
    assert os.stat(node.directory / "10-a.toml").st_ino == first
    assert os.stat(node.directory / "20-b.toml").st_ino != other


def test_what_somebody_removed_or_changed_is_kept_again_with_the_next_reading(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    (node.directory / "10-a.toml").unlink()
    node.reload()
    assert node.kept == {"10-a.toml": a_rule("a")}
    write(node.directory / "10-a.toml", a_rule("x"))
    node.reload()
    assert node.kept == {"10-a.toml": a_rule("a")}


def test_nobody_else_can_read_what_is_kept(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    assert (node.directory).stat().st_mode & 0o777 == 0o700
    assert (node.directory / "10-a.toml").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_daemon_left_is_removed(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    for name in ("10-a.toml.new", "20-b.toml.new", "20-b.toml", "README"):
        write(node.directory / name, "x")
    node.start()
    assert sorted(node.kept) == ["10-a.toml", "README"]


def spoil(node: Node, text: str | None) -> tuple[Path, Path]:
    """A file gets a mistake, and what is kept of it becomes something else; None: others may write it."""
    file = write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    write(file, BAD)
    kept = node.directory / "10-a.toml"
    if text is None:
        kept.chmod(0o666)
    else:
        kept.write_text(text)
    return file, kept


def test_a_kept_text_with_a_mistake_is_not_used(node: Node) -> None:
    file, kept = spoil(node, '\n[[resource]]\nname = "a"\nmacth = { DEVNAME = "/dev/null" }\n')
    node.start()
    assert node.names == []
    assert node.problems[1] == (
        f"{file}: error: the last good version cannot be used: "
        f"{kept}:4:1: unknown key 'macth' in [[resource]]\n"
        f"  hint: correct '{file}'"
    )
    write(file, a_rule("b"))
    node.reload()
    assert (node.names, node.problems, node.kept) == (["b"], [], {"10-a.toml": a_rule("b")})


def test_a_kept_text_that_others_can_write_is_not_used(node: Node) -> None:
    file, kept = spoil(node, None)
    node.start()
    assert node.names == []
    assert node.problems[1] == (
        f"{file}: error: the last good version cannot be used: "
        f"{kept}: refused: other users can write '{kept}'\n"
        f"  hint: chmod go-w '{kept}'"
    )
    kept.chmod(0o600)
    node.reload()
    assert (node.names, len(node.problems)) == (["a"], 1)


def test_an_empty_kept_text_is_none(node: Node) -> None:
    spoil(node, "")
    node.start()
    assert (node.names, len(node.problems)) == ([], 1)


def test_a_kept_text_that_cannot_be_read_for_want_of_descriptors_is_read_later(node: Node) -> None:
    file = write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    write(file, BAD)
    files = RuleFiles([str(each) for each in node.places], DOMAIN)
    files.resume(str(node.state))
    # Enough for the rule file, which is not as deep.
    depth = len(file.parts)
    with descriptors_left(depth + 1):
        files.reload()
    assert (files.unread, files.resources) == (True, ())
    files.reload()
    assert (files.unread, len(files.resources)) == (False, 1)


def test_a_daemon_that_stood_by_uses_what_the_other_one_has_kept(node: Node) -> None:
    file = write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    second = RuleFiles([str(each) for each in node.places], DOMAIN)
    write(file, a_rule("b"))
    node.reload()
    write(file, BAD)
    node.reload()
    second.resume(str(node.state))
    second.reload()
    assert [resource.name for resource in second.resources] == ["example.com/b"]


def test_a_daemon_that_stood_by_does_not_use_what_was_taken_back_meanwhile(node: Node) -> None:
    file = write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    second = RuleFiles([str(each) for each in node.places], DOMAIN)
    for text in ("", BAD):
        write(file, text)
        node.reload()
    second.resume(str(node.state))
    second.reload()
    assert second.resources == ()


def test_while_the_directories_cannot_be_read_nothing_is_removed(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    with descriptors_left(0):
        node.files = RuleFiles([str(each) for each in node.places], DOMAIN)
        node.last_good = node.files.resume(str(node.state))
        node.reload()
    assert (node.names, node.files.unread) == ([], True)
    assert node.kept == {"10-a.toml": a_rule("a")}


def test_what_cannot_be_kept_keeps_no_other_from_it(node: Node) -> None:
    usr, _ = node.places
    write(usr / "10-a.toml", a_rule("a"))
    write(usr / "20-b.toml", a_rule("b"))
    (node.directory / "20-b.toml").mkdir(parents=True, mode=0o700)
    with pytest.raises(GenericdpError) as raised:
        node.reload()
    assert str(raised.value) == f"cannot save '{node.directory}/20-b.toml': Is a directory"
    assert raised.value.hint == (
        f"remove '{node.directory}/20-b.toml'; "
        "until the rule file is saved there, a mistake in it would end its resources with the next start"
    )
    assert save_next(node.last_good)
    assert (node.directory / "10-a.toml").read_text() == a_rule("a")
    # It is still due.
    with pytest.raises(GenericdpError):
        save_next(node.last_good)
    assert node.names == ["a", "b"]


def test_an_older_version_does_not_come_back_when_the_last_one_could_not_be_saved(node: Node) -> None:
    file = write(node.places[0] / "10-a.toml", a_rule("a") + a_rule("taken-back"))
    node.reload()
    write(file, a_rule("a"))
    with no_file_larger_than(10):
        with pytest.raises(GenericdpError) as raised:
            node.reload()
        assert str(raised.value) == f"cannot save '{node.directory}/10-a.toml': File too large"
        assert node.kept == {}
        write(file, BAD)
        with pytest.raises(GenericdpError):
            node.reload()
    # While the daemon runs, the last good version can still be saved.
    assert node.names == ["a"]
    node.reload()
    assert node.kept == {"10-a.toml": a_rule("a")}


def test_without_room_for_the_last_version_a_mistake_ends_the_resources_at_a_start(node: Node) -> None:
    file = write(node.places[0] / "10-a.toml", a_rule("a") + a_rule("taken-back"))
    node.reload()
    write(file, a_rule("a"))
    with no_file_larger_than(10), pytest.raises(GenericdpError):
        node.reload()
    write(file, BAD)
    node.start()
    assert (node.names, len(node.problems), node.kept) == ([], 1, {})


def test_what_is_kept_already_stays_when_nothing_can_be_saved(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    with no_file_larger_than(10):
        node.start()
    assert node.kept == {"10-a.toml": a_rule("a")}


def test_what_is_kept_of_other_rules_with_the_same_state_directory_stays(node: Node, tmp_path: Path) -> None:
    """`genericdp run --rules X` with the settings of the service."""
    file = write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    other = Node(tmp_path, "other")
    another = write(other.places[0] / "10-a.toml", a_rule("x"))
    other.reload()
    other.start()
    assert node.kept == {"10-a.toml": a_rule("a")}
    assert other.kept == {"10-a.toml": a_rule("x")}
    for each in (file, another):
        write(each, BAD)
    for service, names in ((node, ["a"]), (other, ["x"])):
        service.start()
        assert service.names == names
    another.unlink()
    other.reload()
    node.start()
    assert (node.names, other.kept) == (["a"], {})


def test_nothing_of_other_rules_is_in_effect(node: Node, tmp_path: Path) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    (tmp_path / "other").mkdir(mode=0o755)
    write(tmp_path / "other" / "10-a.toml", BAD)
    other = Node(tmp_path, "other")
    assert (other.names, len(other.problems)) == ([], 1)


def test_what_is_kept_of_the_rules_of_the_system_is_in_no_directory_of_its_own(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulefiles, "RULE_DIRECTORIES", tuple(str(each) for each in node.places))
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.start()
    assert node.directory == node.state / LAST_GOOD
    assert [each.name for each in node.directory.iterdir()] == ["10-a.toml"]


def test_other_rules_say_beside_their_texts_where_they_are(node: Node) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    assert node.directory.parent == node.state / LAST_GOOD
    assert (node.directory / PLACES).read_text() == "".join(f"{each}\n" for each in node.places)
    assert all(each.stat().st_mode & 0o777 == 0o700 for each in (node.directory, node.directory.parent))


def test_the_same_rules_are_the_same_whatever_the_path_is_relative_to(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(node.places[0] / "10-a.toml", a_rule("a"))
    node.reload()
    write(node.places[0] / "10-a.toml", BAD)
    monkeypatch.chdir(tmp_path / "usr")
    files = RuleFiles([".", "../etc", f"{tmp_path}/etc/"], DOMAIN)
    files.resume(str(node.state))
    files.reload()
    assert files.resources == ()
    monkeypatch.chdir(tmp_path)
    files = RuleFiles(["./usr", "etc/"], DOMAIN)
    files.resume(str(node.state))
    files.reload()
    assert [resource.name for resource in files.resources] == ["example.com/a"]


@pytest.mark.parametrize("length", [251, 252, 255])
@pytest.mark.parametrize("letter", ["x", "\u00e9", "\udcff"])
def test_a_text_is_kept_however_long_the_name_of_its_file_is(node: Node, length: int, letter: str) -> None:
    usr, _ = node.places
    size = len(os.fsencode(letter))
    stem = letter * ((length - 6) // size)
    stem += "y" * (length - 6 - len(os.fsencode(stem)))
    file, twin = (write(usr / f"{stem}{end}.toml", a_rule(end)) for end in "ab")
    assert len(os.fsencode(file.name)) == length
    node.reload()
    assert sorted(node.kept.values()) == [a_rule("a"), a_rule("b")]
    write(file, BAD)
    node.start()
    assert (node.names, len(node.problems), len(node.kept)) == (["a", "b"], 1, 2)
    for each in (file, twin):
        each.unlink()
    node.reload()
    assert node.kept == {}


def test_a_line_break_in_a_place_makes_no_other_set_of_places_of_it(tmp_path: Path) -> None:
    one, two = (LastGood(str(tmp_path), places) for places in (["/a\n/b"], ["/a", "/b"]))
    assert one.path("x.toml") != two.path("x.toml")
