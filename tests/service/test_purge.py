"""What `apt purge` removes: the real script of the package, in directories of its own.

The rules of this file:

* The script knows fixed paths. So it runs in a mount namespace with other file systems there.
"""

import subprocess
from pathlib import Path

import pytest

POSTRM = Path(__file__).resolve().parents[2] / "packaging/debian/genericdp.postrm"

#: What the package and a DaemonSet on the same node use. The script needs /dev/null.
_NODE = """
mount --bind /dev/null "$1"
for each in /var/lib /run /etc /dev; do mount -t tmpfs -o mode=755 tmpfs "$each"; done
touch /dev/null; mount --bind "$1" /dev/null
mkdir -p /var/lib/kubelet/device-plugins/.genericdp-lock /run/cdi/.genericdp-daemon
mkdir -p /var/lib/genericdp/last-good /run/cdi /run/genericdp /etc/genericdp/rules.d /dev/genericdp
touch /var/lib/genericdp/memory.json /var/lib/genericdp/.lock /dev/genericdp/.lock /dev/genericdp/.memory
touch /var/lib/genericdp/last-good/50-fuse.toml
touch /run/cdi/genericdp_fuse.json /run/cdi/others.json /run/genericdp/control.sock
touch /etc/genericdp/rules.d/50-fuse.toml /etc/genericdp/rules.d/README
ln -s /dev/fuse /dev/genericdp/fuse
"""

_LIST = "find /var/lib /run /etc /dev '(' ! -type d -o -name '.*' ')' ! -path /dev/null | sort"

OTHERS = ["/etc/genericdp/rules.d/README", "/run/cdi/others.json"]

ALL = sorted(
    [
        *OTHERS,
        "/dev/genericdp/.lock",
        "/dev/genericdp/.memory",
        "/dev/genericdp/fuse",
        "/etc/genericdp/rules.d/50-fuse.toml",
        "/run/cdi/.genericdp-daemon",
        "/run/cdi/genericdp_fuse.json",
        "/run/genericdp/control.sock",
        "/var/lib/genericdp/.lock",
        "/var/lib/genericdp/memory.json",
        "/var/lib/genericdp/last-good/50-fuse.toml",
        "/var/lib/kubelet/device-plugins/.genericdp-lock",
    ]
)


def run(tmp_path: Path, purge: str) -> list[str]:
    """What the script says, and which files are there after it."""
    (tmp_path / "null").touch()
    script = f"cp {POSTRM} {tmp_path}/postrm; {_NODE}\n{purge}\n{_LIST}"
    command = ["unshare", "--mount", "sh", "-euc", script, "sh", str(tmp_path / "null")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def test_a_purge_removes_the_files_of_genericdp_and_no_others(tmp_path: Path) -> None:
    assert run(tmp_path, f"sh {tmp_path}/postrm purge") == OTHERS


def test_a_remove_leaves_everything(tmp_path: Path) -> None:
    assert run(tmp_path, f"sh {tmp_path}/postrm remove") == ALL


@pytest.mark.parametrize("directory", ["/dev/genericdp", "/var/lib/genericdp"])
def test_while_another_genericdp_serves_a_purge_leaves_everything_and_says_so(
    tmp_path: Path, directory: str
) -> None:
    said, *left = run(tmp_path, f"flock {directory}/.lock sh {tmp_path}/postrm purge")
    assert said == (
        "another genericdp serves this node: the rule files, memory, links and CDI files are left to it"
    )
    assert left == ALL


def test_whoever_starts_during_a_purge_waits_until_it_ends(tmp_path: Path) -> None:
    """Otherwise, the purge would remove what the new one has just made."""
    slow = f"sed 's/rm -rf/flock --nonblock $locks true \\&\\& echo free; rm -rf/' {tmp_path}/postrm"
    for lock in ("/dev/genericdp/.lock", "/var/lib/genericdp/.lock"):
        told = run(
            tmp_path, f"locks={lock}; export locks; {slow} > {tmp_path}/slow; sh {tmp_path}/slow purge"
        )
        assert told == OTHERS
