"""What the image contains, decided by path.

The rules of this file:

* A file is in the image if _KEPT has its path and _DROPPED does not. Everything else stays out: there is no
  shell, and no program except Python and genericdp.
* A whole package stays out if the programs that need it do. The others keep their copyright file.
* A library that a new version of Debian adds is in the image: it becomes larger, not broken.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping

from debian import Package
from tree import EmptyDirectory, File, Tree, text, without_dangling_links

#: Needed by the maintainer scripts and programs that are not in the image.
_UNUSED_PACKAGES = frozenset(
    {
        # dpkg, and what it needs
        "debconf", "dpkg", "libacl1", "libmd0", "libpcre2-8-0", "libselinux1", "tar",
        # extension modules of Python in _DROPPED
        "libdb5.3t64", "libncursesw6", "libreadline8t64", "libsqlite3-0", "libtinfo6", "readline-common",
        # awk, file types, names of ports, old ciphers, time zones
        "mawk", "media-types", "netbase", "openssl-provider-legacy", "tzdata",
    }
)  # fmt: skip

_KEPT = re.compile(
    r"""
      etc/(genericdp/.* | os-release)
    | usr/bin/(genericdp | python3(\.\d+)?)
    | usr/lib/(genericdp | python3(\.\d+)?)/.*
    | usr/lib/os-release
    | usr/lib(64)?/ld-linux[^/]*             # the paths of the dynamic linker in programs
    | usr/lib/[^/]+-linux-[^/]+/[^/]+\.so(\.[^/]+)?
    | usr/share/(common-licenses | genericdp)/.*
    | usr/share/doc/[^/]+(/copyright)?       # some are links to the directory of another package
    """,
    re.VERBOSE,
)

_DROPPED = re.compile(
    r"""
      # Debian compiles Python when it installs a package; here, everything is compiled already.
      usr/lib/python3/dist-packages/(debpython/.* | lsb_release.* | .*\.egg-info(/.*)?)
    | .*/__pycache__/.*
      # Of the standard library: tests, interfaces for people, installers, databases.
    | usr/lib/python3\.\d+/( __phello__ | _pyrepl | config-[^/]* | curses | dbm | ensurepip | idlelib
        | lib2to3 | pydoc_data | sqlite3 | test | tkinter | turtledemo | venv | wsgiref )/.*
    | usr/lib/python3\.\d+/(antigravity|pydoc|this|turtle)\.py
    | usr/lib/python3\.\d+/lib-dynload/( _codecs_(cn|hk|iso2022|jp|kr|tw) | _curses.* | _dbm | _gdbm
        | _sqlite3 | _test.* | _tkinter | _xx.* | _ctypes_test | nis | readline | xxlimited.* )\.cpython-.*
      # Of the C library: for profilers and debuggers, for vector arithmetic.
    | usr/lib/[^/]+/lib(BrokenLocale|c_malloc_debug|memusage|mvec|nss_.*|pcprofile|thread_db)\.so.*
    """,
    re.VERBOSE,
)

#: Where the DaemonSet mounts something, and where an operator may.
_MOUNT_POINTS = (
    "dev",
    "etc/genericdp/rules.d",
    "proc",
    "run/cdi",
    "run/genericdp",
    "run/udev",
    "sys",
    "var/lib/genericdp",
    "var/lib/kubelet/device-plugins",
    "var/lib/kubelet/pod-resources",
)


def used(packages: Iterable[Package]) -> list[Package]:
    """The packages of which files are in the image, by name."""
    return sorted(
        (package for package in packages if package.name not in _UNUSED_PACKAGES), key=lambda each: each.name
    )


def kept(path: str) -> bool:
    """Whether a file with this path is in the image."""
    return bool(_KEPT.fullmatch(path)) and not _DROPPED.fullmatch(path)


def files(packages: Iterable[Package]) -> dict[str, File]:
    """The files of these packages that are in the image, and for each of them what dpkg knows about it."""
    found: dict[str, File] = {}
    for package in packages:
        found |= {path: _with_mode(path, file) for path, file in package.files.items() if kept(path)}
        found[f"var/lib/dpkg/status.d/{package.name}"] = text(_status(package))
    return without_dangling_links(found)


def frame(tree: Mapping[str, File]) -> Tree:
    """What belongs to no package: the links of a merged /usr, the one user, the mount points."""
    tops = {path.split("/")[1] for path in tree if path.startswith("usr/")}
    return {
        **{top: File(target=f"usr/{top}") for top in ("bin", "lib", "lib64") if top in tops},
        "etc/group": text("root:x:0:\n"),
        "etc/passwd": text("root:x:0:0:root:/:/usr/sbin/nologin\n"),
        **dict.fromkeys(_MOUNT_POINTS, EmptyDirectory()),
    }


def _with_mode(path: str, file: File) -> File:
    """The file, executable only if it is a program or the dynamic linker: modules are not scripts."""
    return dataclasses.replace(file, executable=bool(re.search(r"^usr/bin/|/ld-linux[^/]*$", path)))


def _status(package: Package) -> str:
    """The entry that scanners of images look for (as in the distroless images)."""
    name, _, others = package.control.partition("\n")
    return f"{name}\nStatus: install ok installed\n{others}"
