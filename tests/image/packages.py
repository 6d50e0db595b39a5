"""Debian packages that no archive has, for the tests of `packaging/image`."""

from collections.abc import Mapping

from debian import Package
from tree import File, text

#: The fields that every package has.
_FIELDS = {
    "Version": "1.0-1",
    "Architecture": "all",
    "Maintainer": "A Maintainer <maintainer@example.com>",
    "Description": "a package",
}


def a_package(name: str, files: Mapping[str, File | str] | None = None, **fields: str) -> Package:
    """A package with these files, texts or links. The fields are those of its control file."""
    known = {"Package": name, **_FIELDS, **fields}
    control = "".join(f"{key}: {value}\n" for key, value in known.items())
    found = {path: text(what) if isinstance(what, str) else what for path, what in (files or {}).items()}
    return Package(control, known, "ab" * 32, found, latest=1_767_225_600)


def the_product(**fields: str) -> Package:
    """The package of genericdp."""
    files: dict[str, File | str] = {
        "usr/bin/genericdp": "#!/usr/bin/python3\n",
        "usr/share/genericdp/genericdp/__init__.py": "",
        "usr/share/genericdp/inotify_simple.py": "__version__ = '2.0.1'\n",
        "usr/share/doc/genericdp/copyright": "License: Apache-2.0\n\nLicense: BSD-2-Clause\n",
    }
    known = {"Version": "0.1.0-1", "Homepage": "https://genericdp.io", "Depends": "python3 (>= 3.11), dpkg"}
    return a_package("genericdp", files, **{**known, **fields})
