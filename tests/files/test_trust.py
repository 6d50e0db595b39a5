"""What is read only if nobody else can have put it there: the file, each directory, each symlink."""

import errno
import os
import shlex
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from genericdp.errors import ConfigError
from genericdp.files import mountinfo
from genericdp.files.trust import BeingWrittenError, read_text, unreadable

STRANGER = 4242


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A directory with a directory in it that has a trusted file: `in/file`."""
    (tmp_path / "in").mkdir(mode=0o755)
    (tmp_path / "in" / "file").write_text("trusted")
    (tmp_path / "in" / "file").chmod(0o644)
    return tmp_path


def refusal(path: Path) -> tuple[str, str]:
    """Why a file is refused, and what to do."""
    with pytest.raises(ConfigError) as refused:
        read_text(str(path))
    (problem,) = refused.value.problems
    assert problem.location.file == str(path)
    return problem.message, problem.hint


#: The directory may be somebody's home.
INSTEAD = "use a directory of root instead; if only genericdp uses it: "


def give_away(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def test_what_only_its_owner_can_change_is_read(room: Path) -> None:
    assert read_text(str(room / "in" / "file")) == "trusted"
    assert read_text(str(room / "in" / ".." / "in" / "." / "file")) == "trusted"


def test_a_relative_path_is_below_the_current_directory(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room / "in")
    assert read_text("file") == "trusted"
    assert read_text("../in/file") == "trusted"
    give_away(room)
    assert refusal(Path("file")) == (
        f"refused: '{room}' belongs to user {STRANGER}",
        f"{INSTEAD}chown root '{room}'",
    )


@pytest.mark.parametrize("which", ["", "in", "in/file"])
def test_the_file_and_every_directory_above_it_belong_to_root_or_to_the_reader(
    room: Path, which: str
) -> None:
    give_away(room / which)
    where = str(room / which).rstrip("/")
    assert refusal(room / "in" / "file") == (
        f"refused: '{where}' belongs to user {STRANGER}",
        f"{'' if which == 'in/file' else INSTEAD}chown root '{where}'",
    )


def test_the_hint_can_be_typed_whatever_somebody_has_called_the_file(room: Path) -> None:
    file = room / "in" / "50-x'; touch pwned; echo '.toml"
    file.write_text("")
    file.chmod(0o666)
    _, hint = refusal(file)
    assert shlex.split(hint) == ["chmod", "go-w", str(file)]


@pytest.mark.parametrize("which", ["", "in", "in/file"])
@pytest.mark.parametrize("mode", [0o757, 0o777])
def test_others_can_write_neither_the_file_nor_any_directory_above_it(
    room: Path, which: str, mode: int
) -> None:
    (room / which).chmod(mode)
    where = str(room / which).rstrip("/")
    assert refusal(room / "in" / "file") == (
        f"refused: other users can write '{where}'",
        f"{'' if which == 'in/file' else INSTEAD}chmod go-w '{where}'",
    )


def test_a_symlink_of_another_user_is_not_followed(room: Path) -> None:
    """The attack: a stranger puts a link to a trusted file into a directory that others may write."""
    link = room / "in" / "link"
    link.symlink_to("file")
    assert read_text(str(link)) == "trusted"
    give_away(link)
    assert refusal(link) == (
        f"refused: the symlink '{link}' belongs to user {STRANGER}",
        f"chown -h root '{link}'",
    )


def test_a_symlink_of_another_user_to_dev_null_does_not_disable_a_file(room: Path) -> None:
    link = room / "in" / "link"
    link.symlink_to("/dev/null")
    assert read_text(str(link)) is None
    give_away(link)
    assert refusal(link)[0] == f"refused: the symlink '{link}' belongs to user {STRANGER}"


@pytest.mark.parametrize("target", ["../other/file", "{room}/other/file"])
def test_what_a_symlink_points_at_is_judged_with_each_directory_above_it(room: Path, target: str) -> None:
    other = room / "other"
    other.mkdir(mode=0o755)
    (other / "file").write_text("elsewhere")
    (other / "file").chmod(0o644)
    link = room / "in" / "link"
    link.symlink_to(target.format(room=room))
    assert read_text(str(link)) == "elsewhere"
    other.chmod(0o777)
    assert refusal(link)[0] == f"refused: other users can write '{other}'"
    other.chmod(0o755)
    give_away(other / "file")
    assert refusal(link)[0] == f"refused: '{other}/file' belongs to user {STRANGER}"


def test_a_symlink_among_the_directories_counts(room: Path) -> None:
    (room / "alias").symlink_to("in")
    assert read_text(str(room / "alias" / "file")) == "trusted"
    give_away(room / "alias")
    assert refusal(room / "alias" / "file")[0] == (
        f"refused: the symlink '{room}/alias' belongs to user {STRANGER}"
    )


def test_the_parent_of_what_a_symlink_points_at_is_where_two_dots_lead(room: Path) -> None:
    (room / "far").mkdir()
    (room / "far" / "deep").mkdir()
    (room / "far" / "file").write_text("beside it")
    (room / "alias").symlink_to("far/deep")
    assert read_text(str(room / "alias" / ".." / "file")) == "beside it"


def test_symlinks_in_a_circle_are_not_followed_for_ever(room: Path) -> None:
    (room / "a").symlink_to("b")
    (room / "b").symlink_to("a")
    assert refusal(room / "a") == (
        "cannot be read: Too many levels of symbolic links",
        "the symlinks on the way lead in a circle; point them at a file",
    )


# Directories like /tmp: everybody may add, and nobody may change what is another's.


def test_in_a_sticky_directory_what_belongs_to_the_reader_is_read(room: Path) -> None:
    room.chmod(0o1777)
    (room / "link").symlink_to("in/file")
    assert read_text(str(room / "in" / "file")) == "trusted"
    assert read_text(str(room / "link")) == "trusted"


@pytest.mark.parametrize("which", ["in", "link"])
def test_in_a_sticky_directory_what_belongs_to_another_user_is_refused(room: Path, which: str) -> None:
    room.chmod(0o1777)
    (room / "link").symlink_to("in")
    give_away(room / which)
    assert f"'{room}/{which}' belongs to user {STRANGER}" in refusal(room / which / "file")[0]


def test_in_a_sticky_directory_a_file_with_a_second_name_is_refused(room: Path) -> None:
    """Where the kernel allows it (fs.protected_hardlinks), everybody can give a file of root a name there."""
    (room / "in").chmod(0o1777)
    os.link(room / "in" / "file", room / "in" / "planted")
    assert refusal(room / "in" / "planted") == (
        f"refused: '{room}/in/planted' has a second name, and other users can add names to its directory",
        "move it to a directory that only its owner can write",
    )
    (room / "in").chmod(0o755)
    assert read_text(str(room / "in" / "planted")) == "trusted"


def test_a_sticky_file_is_writable_all_the_same(room: Path) -> None:
    (room / "in" / "file").chmod(0o1666)
    assert refusal(room / "in" / "file")[0] == f"refused: other users can write '{room}/in/file'"


# Who else may write


def test_the_group_that_has_nobody_but_the_owner_may_write(room: Path) -> None:
    (room / "in" / "file").chmod(0o664)
    assert read_text(str(room / "in" / "file")) == "trusted"
    os.chown(room / "in" / "file", -1, STRANGER)
    assert refusal(room / "in" / "file")[0] == f"refused: other users can write '{room}/in/file'"


def test_an_access_control_list_may_let_another_user_write(room: Path) -> None:
    """With such a list, the bits of the group say what it allows at most (acl(5))."""
    file = room / "in" / "file"
    entries = [(0x01, 6, -1), (0x02, 6, STRANGER), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(file, "system.posix_acl_access", acl)
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    assert refusal(file)[0] == f"refused: other users can write '{file}'"


READ = """exec "$2" -c "from genericdp.files.trust import read_text; print(read_text('$1/10-a.toml'))"\n"""

#: What is mounted into a pod: `$3` of a directory of the node that only root can search.
MOUNTED = f"""
mkdir -m 700 "$1.node"
mount -t tmpfs tmpfs "$1.node"
mkdir -p "$1.node/$3"
cp -a "$1/." "$1.node/$3"
mount --bind "$1.node/$3" "$1"
mount -o "remount,bind,$4" "$1"
{READ}"""
VOLUMES = "kubelet/pods/6a1f/volumes"

#: What `ProtectSystem=strict` of systemd.exec(5) does to every directory, in the eyes of the service alone.
PROTECTED = f"""
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
{READ}"""


def mounted_in_a_pod(rules: Path, source: str, options: str = "ro") -> subprocess.CompletedProcess[str]:
    """What `read_text` makes of a rule file in a mount namespace where `rules` is mounted like this."""
    command = ["unshare", "--mount", "sh", "-euc", MOUNTED, "sh", str(rules), sys.executable, source, options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    Path(f"{rules}.node").rmdir()
    return done


@pytest.mark.parametrize("kind", ["configmap", "projected", "secret", "downward-api"])
def test_a_config_map_is_read_where_kubernetes_mounts_it(room: Path, kind: str) -> None:
    """The kubelet gives its directory to everybody (0777) and mounts it read-only."""
    volume = f"{VOLUMES}/kubernetes.io~{kind}/rules"
    mounted = room / "rules.d"
    (mounted / "..2026_11_22").mkdir(parents=True, mode=0o755)
    (mounted / "..2026_11_22" / "10-a.toml").write_text("rules")
    (mounted / "..data").symlink_to("..2026_11_22")
    (mounted / "10-a.toml").symlink_to("..data/10-a.toml")
    mounted.chmod(0o777)
    assert refusal(mounted / "10-a.toml")[0] == f"refused: other users can write '{mounted}'"
    assert mounted_in_a_pod(mounted, volume).stdout == "rules\n"
    give_away(mounted / "..data")
    stderr = mounted_in_a_pod(mounted, volume).stderr
    assert f"refused: the symlink '{mounted}/..data' belongs to user {STRANGER}" in stderr


@pytest.mark.parametrize(
    ("source", "options"),
    [
        # A directory of the node, which its users can write: they could take rule files away.
        ("etc/genericdp/rules.d", "ro"),
        # The other containers of the pod can write it.
        (f"{VOLUMES}/kubernetes.io~empty-dir/rules", "ro"),
        (f"{VOLUMES}/kubernetes.io~configmap/rules", "rw"),
        (f"{VOLUMES}/kubernetes.io~configmap/rules/below", "ro"),
    ],
)
def test_that_a_mount_is_read_only_does_not_keep_others_from_writing_what_is_mounted(
    room: Path, source: str, options: str
) -> None:
    rules = room / "rules.d"
    rules.mkdir()
    (rules / "10-a.toml").write_text("rules")
    assert mounted_in_a_pod(rules, source, options).stdout == "rules\n"
    rules.chmod(0o777)
    assert f"refused: other users can write '{rules}'" in mounted_in_a_pod(rules, source, options).stderr


def test_without_a_list_of_mounts_a_directory_is_none_of_the_kubelets(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mountinfo, "MOUNTINFO", str(room / "none"))
    (room / "in").chmod(0o777)
    assert refusal(room / "in" / "file")[0] == f"refused: other users can write '{room}/in'"


@pytest.mark.parametrize("writable", [".", "10-a.toml"])
def test_what_only_the_service_cannot_write_is_refused(room: Path, writable: str) -> None:
    """Systemd shows a service a read-only file system, which other users of the host can write."""
    rules = room / "rules.d"
    rules.mkdir()
    (rules / "10-a.toml").write_text("rules")
    (rules / writable).chmod(0o777)
    command = ["unshare", "--mount", "sh", "-euc", PROTECTED, "sh", str(rules), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"refused: other users can write '{(rules / writable).resolve()}'" in done.stderr


# What is no file


def test_what_is_not_a_regular_file_is_not_even_opened(room: Path) -> None:
    os.mkfifo(room / "fifo")
    os.mkfifo(room / "fifo.toml")
    for path in (room / "fifo", room / "in", Path("/"), Path("/dev/zero")):
        assert refusal(path) == ("is not a regular file", "give the path of a TOML file")
    hint = "move or rename it: what ends in .toml must be a file"
    assert refusal(room / "fifo.toml") == ("is not a regular file", hint)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("in/none", "No such file or directory"),
        ("none/file", "No such file or directory"),
        ("in/file/below", "Not a directory"),
        ("in/file/", "Not a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_cannot_be_read_says_why(room: Path, path: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_text(f"{room}/{path}")
    (problem,) = refused.value.problems
    assert problem.message == f"cannot be read: {why}"


def test_no_descriptor_stays_open(room: Path) -> None:
    (room / "link").symlink_to("in/file")
    before = len(os.listdir("/proc/self/fd"))
    read_text(str(room / "link"))
    (room / "in").chmod(0o777)
    refusal(room / "link")
    refusal(room / "none")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_the_user_may_not_read_is_an_error_of_the_whole_file_with_what_to_do() -> None:
    (problem,) = unreadable("50-a.toml", PermissionError(errno.EACCES, os.strerror(errno.EACCES))).problems
    assert problem.render() == (
        "50-a.toml: error: cannot be read: Permission denied\n"
        "  hint: run the command as root, or let this user read the file and search its directories"
    )


#: Reads a file that somebody opens for writing in the middle of it.
_INTERRUPTED = """
import fcntl, os, sys
from genericdp.files.trust import read_text

def read(descriptor, length, read=os.read):
    os.posix_spawn("/bin/sh", ["sh", "-c", ': > "$0"', sys.argv[1]], os.environ)
    while fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
        pass
    return read(descriptor, length)

os.read = read
print(read_text(sys.argv[1]))
os.wait()
"""


def test_a_writer_waits_until_a_text_is_read_and_ends_nobody(tmp_path: Path) -> None:
    """The kernel signals whoever has a lease when another one opens the file for writing."""
    file = tmp_path / "10-a.toml"
    file.write_text("whole")
    file.chmod(0o644)
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED, file], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"whole\n"
    assert file.read_bytes() == b""


def test_a_file_system_that_refuses_every_lease_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no NFS server here: the file is open, and the list of mounts is that of another machine."""
    file, mounts = tmp_path / "10-a.toml", tmp_path / "mountinfo"
    device = os.stat(tmp_path).st_dev
    line = f"29 1 {os.major(device)}:{os.minor(device)} / / rw,relatime shared:1 - {{}} server:/ rw\n"
    monkeypatch.setattr(mountinfo, "MOUNTINFO", str(mounts))
    with file.open("w") as writer:
        file.chmod(0o644)
        writer.write("half")
        writer.flush()
        for remote in ("nfs", "nfs4", "cifs", "smb3"):
            mounts.write_text("30 29 0:99 / /x rw - ext4 x rw\n" + line.format(remote))
            assert read_text(str(file)) == "half"
        mounts.write_text(line.format("ext4"))
        with pytest.raises(BeingWrittenError):
            read_text(str(file))
