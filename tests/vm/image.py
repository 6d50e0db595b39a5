"""The guests' disks and kernels: releases of Debian from this machine's mirror, each made once and cached.

The rules of this file:

* The cached image is named after a hash of everything that it depends on, including this file: an
  image is never changed, only replaced.
* It contains nothing of genericdp or of the tests: each start adds that (seed.py).
* It needs no loop device and no mount: `mke2fs -d` writes a file system from a folder.
"""

import hashlib
import lzma
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

#: Number -> codename.
RELEASES = {"12": "bookworm", "13": "trixie"}

#: The packages of a node, the dependencies of genericdp's package, a shell for the initrd and for containers,
#: and container runtimes: containerd 1.6 in Debian 12, 1.7 in Debian 13. No release of Debian has CRI-O.
PACKAGES = (
    "systemd-sysv",
    "udev",
    "dbus",
    "kmod",
    "procps",
    "python3",
    "python3-grpcio",
    "python3-protobuf",
    "python3-pyudev",
    "python3-usb",
    "python3-tomli",
    "busybox-static",
    "containerd",
    "runc",
    "crun",
)
#: Unpacks the kernel instead of installing it, which would build an initrd; the guest has its own.
_UNPACK_KERNEL = (
    'cd "$1" && export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" && '
    "package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p') && "
    'apt-get -qq download "$package" && dpkg-deb --fsys-tarfile "$package"_*.deb '
    '| tar -x --keep-directory-symlink && rm "$package"_*.deb'
)

#: The modules that the kernel needs to read its disk; their dependencies are added.
_BOOT_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")

#: Debian 13 compresses its modules; the shell in the initrd cannot load those.
_COMPRESSED = ".xz"

#: Drivers for hardware that the guest never has: more than half of the kernel package.
_NOT_NEEDED = (
    "drivers/gpu",
    "drivers/infiniband",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/staging",
    "sound",
)

_SIZE = "2G"

#: Enabled by their packages; a case starts what it needs.
_DISABLED = ("containerd.service",)

#: Units that a guest does not need: logins and periodic jobs.
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "getty@tty1.service",
    "serial-getty@ttyS0.service",
)


@dataclass(frozen=True, slots=True)
class Image:
    """What a guest is started from.

    modules  kernel modules in the order in which they have to be loaded to reach the disk
    """

    kernel: Path
    disk: Path
    busybox: Path
    modules: tuple[Path, ...]


def provide(release: str, cache: Path) -> Image:
    """The image of a release in `cache`, made if it is missing. Needs root and, to make it, the mirror."""
    place = cache / f"image-{release}-{_key()}"
    if not place.exists():
        for outdated in cache.glob(f"image-{release}-*"):
            shutil.rmtree(outdated)
        unfinished = cache / f"image-{release}-unfinished"
        unfinished.mkdir(parents=True)
        _make(RELEASES[release], unfinished)
        unfinished.rename(place)
    order = (place / "modules" / "order").read_text().split()
    return Image(
        kernel=place / "vmlinuz",
        disk=place / "disk",
        busybox=place / "busybox",
        modules=tuple(place / "modules" / name for name in order),
    )


def _key() -> str:
    return hashlib.sha256(Path(__file__).read_bytes() + _mirror().encode()).hexdigest()[:12]


def _mirror() -> str:
    """The mirror from which this machine installs Debian packages."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in targets.stdout.splitlines():
        uri, _, what = line.partition(" ")
        if what == "Debian Debian":
            return uri
    return "http://deb.debian.org/debian/"


def _make(codename: str, place: Path) -> None:
    tree = place / "tree"
    _run(
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        '--aptopt=APT::Sandbox::User "root"',
        f"--include={','.join(PACKAGES)}",
        f"--customize-hook={_UNPACK_KERNEL}",
        codename,
        str(tree),
        _mirror(),
    )
    _set_up(tree)
    (release,) = os.listdir(tree / "lib/modules")
    modules = tree / "lib/modules" / release
    for folder in _NOT_NEEDED:
        shutil.rmtree(modules / "kernel" / folder, ignore_errors=True)
    _run("depmod", "--basedir", str(tree), release)
    shutil.copy(tree / f"boot/vmlinuz-{release}", place / "vmlinuz")
    shutil.copy(tree / "bin/busybox", place / "busybox")
    _copy_boot_modules(modules, place / "modules")
    shutil.rmtree(tree / "boot")
    _run("mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", str(tree), str(place / "disk"), _SIZE)
    shutil.rmtree(tree)


def _set_up(tree: Path) -> None:
    # With this folder the journal survives reboots.
    (tree / "var/log/journal").mkdir(exist_ok=True)
    (tree / "etc/hostname").write_text("node\n")
    for unit in _DISABLED:
        (tree / "etc/systemd/system/multi-user.target.wants" / unit).unlink()
    for unit in _MASKED:
        (tree / "etc/systemd/system" / unit).symlink_to("/dev/null")


def _copy_boot_modules(modules: Path, place: Path) -> None:
    """Copy the boot modules with their dependencies, and a file that lists their order."""
    needs: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        name = _module_name(path)
        paths[name] = path
        # A line of modules.dep lists all dependencies; those to be loaded first are at its end.
        needs[name] = [_module_name(other) for other in reversed(others.split())]
    # Debian 13 has some of them built in.
    wanted = [name for name in _BOOT_MODULES if name in needs]
    order = dict.fromkeys(other for name in wanted for other in (*needs[name], name))
    place.mkdir()
    for name in order:
        module = (modules / paths[name]).read_bytes()
        if paths[name].endswith(_COMPRESSED):
            module = lzma.decompress(module)
        (place / f"{name}.ko").write_bytes(module)
    (place / "order").write_text("".join(f"{name}.ko\n" for name in order))


def _module_name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
