"""Images of Debian systems: made once from the archive, cached below .cache.

The rules of this file:

* An image contains a small server's packages, but not genericdp's dependencies. Those are in apt's
  cache, because the machine has no network and `apt install` must find them.
* The wheels that pip needs for an installation from the sources are beside it, for the same reason.
* An image is an archive, because its files have other owners than the checkout.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

MIRROR = "http://deb.debian.org/debian"

#: In addition to apt and essential packages: those of a bootable machine, and the cases' tools.
PACKAGES = ("systemd-sysv", "dbus", "udev", "iproute2", "procps", "mount", "man-db", "rpm")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Debian."""

    number: str
    name: str
    python: str

    def __str__(self) -> str:
        return f"Debian {self.number}"


RELEASES = (Release("12", "bookworm", "3.11"), Release("13", "trixie", "3.13"))

#: Further files of an image: path -> content.
FILES = {
    # apt and dpkg must not ask; they take Debian's default answers.
    "etc/apt/apt.conf.d/50-unattended": (
        'APT::Get::Assume-Yes "true";\n'
        'Dpkg::Use-Pty "false";\n'
        'Dpkg::Options { "--force-confdef"; "--force-confold"; };\n'
    ),
    # systemd-nspawn mounts /sys read-only, where udevd does not start.
    "etc/systemd/system/writable-sys.service": (
        "[Unit]\n"
        "DefaultDependencies=no\n"
        "Before=systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udevd-varlink.socket\n"
        "Before=systemd-udevd.service systemd-udev-trigger.service\n"
        "[Service]\n"
        "Type=oneshot\n"
        "ExecStart=/bin/sh -c 'for part in /sys /sys/*; do"
        ' ! mountpoint -q "$part" || mount -o remount,rw "$part" || exit 1; done\'\n'
        "[Install]\n"
        "WantedBy=sysinit.target\n"
    ),
    # The kernel is shared with the host: at boot only devices of these kinds are triggered. They are most of
    # all. Otherwise, the daemon would say that udevd has not looked at most of them.
    "etc/systemd/system/systemd-udev-trigger.service.d/few.conf": (
        "[Service]\n"
        "ExecStart=\n"
        "ExecStart=udevadm trigger --action=add"
        " --subsystem-match=mem --subsystem-match=misc --subsystem-match=tty"
        " --subsystem-match=vc --subsystem-match=macvtap\n"
    ),
    # A container's /dev is not a devtmpfs, so udevd makes the nodes that the kernel would make.
    "etc/udev/rules.d/10-nodes.rules": (
        'SUBSYSTEM!="vc|macvtap|misc", GOTO="end"\n'
        'SUBSYSTEM=="misc", KERNEL!="fuse", GOTO="end"\n'
        'ACTION!="remove", PROGRAM=="/bin/sh -c \'test -e $devnode || mknod -m 600 $devnode c %M %m\'"\n'
        'ACTION=="remove", RUN+="/bin/rm -f $devnode"\n'
        'LABEL="end"\n'
    ),
}


def available(release: Release, deb: Path, cache: Path) -> bool:
    """Whether the image exists or the mirror serves the release."""
    if _place(release, deb, cache).exists():
        return True
    with contextlib.suppress(urllib.error.URLError):
        urllib.request.urlopen(f"{MIRROR}/dists/{release.name}/Release", timeout=30).close()  # noqa: S310
        return True
    return False


def image(release: Release, deb: Path, cache: Path) -> Path:
    """The image of a release, with the dependencies of `deb` in apt's cache. Raises CalledProcessError."""
    archive = _place(release, deb, cache)
    if archive.exists():
        return archive
    for stale in cache.glob(f"debian-{release.number}-*.tar"):
        stale.unlink()
    print(f"making an image of {release} ({release.name}) from {MIRROR}", flush=True)
    work = cache / f"unfinished-{release.number}"
    shutil.rmtree(work, ignore_errors=True)
    _write_files(work / "files")
    command = [
        # Its mounts disappear with it, however it ends.
        "unshare",
        "--mount",
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        # The lists stay, so that apt finds the packages in its cache.
        "--skip=cleanup/apt",
        f"--include={','.join(PACKAGES)}",
        f"--customize-hook=copy-in {work}/files/etc /",
        '--customize-hook=chroot "$1" systemctl --quiet enable writable-sys.service',
        # The kernel's settings and modules are the host's.
        '--customize-hook=chroot "$1" systemctl --quiet mask systemd-sysctl.service kmod.service',
        f"--customize-hook=copy-in {deb} /root",
        # With recommended packages, as `apt install` will do it.
        (
            '--customize-hook=chroot "$1" apt-get -qq install --download-only '
            f"--option=APT::Install-Recommends=true /root/{deb.name} python3-venv"
        ),
        f'--customize-hook=rm "$1/root/{deb.name}"',
        release.name,
        str(work / archive.name),
        MIRROR,
    ]
    with (cache / f"debian-{release.number}.log").open("wb") as log:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Its work folder; the next run removes one that a killed run left.
            env={**os.environ, "TMPDIR": str(work)},
            check=True,
        )
    (work / archive.name).rename(archive)
    shutil.rmtree(work)
    return archive


def wheels(release: Release, cache: Path) -> Path:
    """A folder with the wheels that the sources require on a release. Raises CalledProcessError."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    required = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    key = hashlib.sha256(repr(required).encode()).hexdigest()[:12]
    place = cache / f"wheels-{release.python}-{key}"
    if not place.exists():
        unfinished = cache / f"unfinished-wheels-{release.python}"
        shutil.rmtree(unfinished, ignore_errors=True)
        pip = (sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check")
        which = ("--only-binary=:all:", f"--python-version={release.python}", f"--dest={unfinished}")
        subprocess.run([*pip, *which, *required], stdin=subprocess.DEVNULL, check=True)
        unfinished.rename(place)
    return place


def unpack(archive: Path, to: Path) -> None:
    """Unpack an image into a new tree."""
    to.mkdir()
    subprocess.run(
        ["tar", "--extract", "--numeric-owner", f"--directory={to}", f"--file={archive}"], check=True
    )


def _place(release: Release, deb: Path, cache: Path) -> Path:
    """The path of the image, named after a hash of everything that it is made from."""
    depends = subprocess.run(
        ["dpkg-deb", "--field", str(deb), "Depends", "Recommends"], capture_output=True, check=True
    )
    key = hashlib.sha256(Path(__file__).read_bytes() + depends.stdout).hexdigest()[:12]
    return cache / f"debian-{release.number}-{key}.tar"


def _write_files(root: Path) -> None:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
