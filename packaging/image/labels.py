"""The labels of an image: what it is, and from where (the annotations of the OCI image specification).

The rules of this file:

* What genericdp's package says is taken from there. The source code is to be found at its homepage.
"""

import subprocess
from pathlib import Path

import oci
from debian import Package

_PREFIX = "org.opencontainers.image"


def labels(product: Package, commit: str) -> dict[str, str]:
    """The labels. `commit`: of the sources, or "" if nobody knows it."""
    fields = product.fields
    found = {
        "title": "genericdp",
        "description": fields["Description"],
        "url": fields["Homepage"],
        "source": fields["Homepage"],
        "vendor": fields["Maintainer"],
        "version": version(product),
        "licenses": "Apache-2.0",
        "created": oci.moment_of(product.latest),
        "revision": commit,
    }
    return {f"{_PREFIX}.{name}": text for name, text in found.items() if text}


def version(product: Package) -> str:
    """The version of genericdp, without that of its packaging."""
    return product.version.rpartition("-")[0]


def revision(checkout: Path) -> str:
    """The commit that is checked out, marked if there are other changes; "" if git knows none."""
    # It may belong to another user than the one who builds.
    git = ["git", "-c", "safe.directory=*", "-C", str(checkout)]

    def asked(*arguments: str) -> str:
        return subprocess.run([*git, *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(asked("rev-parse", "--show-toplevel")) != checkout:
            return ""
        return asked("rev-parse", "HEAD") + ("-dirty" if asked("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
