"""Debian packages: from the mirror that this machine uses, and what is in them.

The rules of this file:

* No maintainer script runs and nothing is installed, so packages for other architectures are no different.
* apt's configuration names the mirror.
"""

import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree import File, merged

SUITE = "trixie"
PYTHON = "python3.13"


class MirrorError(Exception):
    """The packages cannot be had."""


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package: its control fields and files. `latest` is the newest mtime of its files."""

    control: str
    fields: Mapping[str, str]
    sha256: str
    files: Mapping[str, File]
    latest: int

    @property
    def name(self) -> str:
        return self.fields["Package"]

    @property
    def version(self) -> str:
        return self.fields["Version"]


def native() -> str:
    """The architecture of this machine, in Debian's words."""
    return _output("dpkg", "--print-architecture").strip()


def mirror() -> list[str]:
    """The lines of sources.list for SUITE, from the mirrors in apt's configuration. Raises MirrorError."""
    targets = _output(
        "apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"
    )
    lines = []
    for origin, label, uri in (line.split("|") for line in dict.fromkeys(targets.splitlines())):
        if (origin, label) == ("Debian", "Debian"):
            lines += [f"deb {uri} {SUITE} main", f"deb {uri} {SUITE}-updates main"]
        elif (origin, label) == ("Debian", "Debian-Security"):
            lines.append(f"deb {uri} {SUITE}-security main")
    if not lines:
        raise MirrorError(
            "apt knows no mirror of Debian: run apt-get update, or name one with make image MIRROR=http://…"
        )
    return lines


def fetch(names: Iterable[str], architecture: str, sources: Sequence[str], to: Path) -> None:
    """Download packages and all that they depend on into a new directory. Raises MirrorError."""
    shutil.rmtree(to, ignore_errors=True)
    (to / "tmp").mkdir(parents=True)
    command = [
        "mmdebstrap",
        "--variant=extract",
        # Nothing is executed in the tree, so a user needs no namespace.
        f"--mode={'root' if os.geteuid() == 0 else 'chrootless'}",
        f"--architectures={architecture}",
        "--skip=check/qemu",
        f"--include={','.join(names)}",
        "--format=null",
        f'--extract-hook=cp "$1"/var/cache/apt/archives/*.deb {to.absolute()}',
        SUITE,
        "-",
        *sources,
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "TMPDIR": str((to / "tmp").absolute())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    shutil.rmtree(to / "tmp")
    if done.returncode:
        shutil.rmtree(to)
        errors = [line for line in done.stderr.splitlines() if line.startswith(("E:", "Err:"))]
        raise MirrorError("\n".join([f"cannot download the packages for {architecture}:", *errors]))


def read(deb: Path) -> Package:
    """A package from its file."""
    control = _output("dpkg-deb", "--field", str(deb))
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(deb)], capture_output=True, check=True).stdout
    files: dict[str, File] = {}
    latest = 0
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            latest = max(latest, int(member.mtime))
            path = merged(os.path.normpath(member.name))
            if member.issym():
                files[path] = File(target=member.linkname)
            elif member.islnk():
                files[path] = files[merged(os.path.normpath(member.linkname))]
            elif member.isfile():
                files[path] = File(_content(archive, member))
    fields = dict(re.findall(r"^([A-Za-z-]+): *(.*)$", control, re.MULTILINE))
    return Package(control, fields, hashlib.sha256(deb.read_bytes()).hexdigest(), files, latest)


def depends(package: Package) -> list[str]:
    """The names of the packages on which one depends, without versions; of alternatives the first."""
    wanted = package.fields["Depends"].split(",")
    return sorted({re.split(r"[ (:|]", each.strip())[0] for each in wanted})


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with archive.extractfile(member) or io.BytesIO() as file:
        return file.read()


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
