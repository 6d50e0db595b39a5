"""From packages to the image for one architecture.

The rules of this file:

* genericdp is the upper layer, Debian the lower one: an update of genericdp downloads the upper one only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contents
import oci
from bytecode import Compiler
from debian import Package
from tree import File, Tree

#: How the image is run.
CONFIG: Mapping[str, Any] = {
    "Entrypoint": ["/usr/bin/genericdp"],
    "Cmd": ["run"],
    # For malloc, see the systemd unit.
    "Env": ["PATH=/usr/bin", "LANG=C.UTF-8", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"],
    "StopSignal": "SIGTERM",
    "User": "0:0",
    "WorkingDir": "/",
}


@dataclass(frozen=True, slots=True)
class Assembled:
    """The image for one architecture, and what it was made from."""

    architecture: str
    image: oci.Image
    packages: Sequence[Package]
    tree: Tree


def assembled(
    packages: Sequence[Package],
    product: Package,
    compiler: Compiler,
    work: Path,
    *,
    architecture: str,
    labels: Mapping[str, str],
) -> Assembled:
    """Assemble an image. `work` is an empty directory for the compiler."""
    used = contents.used([*packages, product])
    files = contents.files(used)
    tree: Tree = {**contents.frame(files), **files, **compiler.compiled(files, work)}
    lower = {path: what for path, what in tree.items() if not _is_of_product(path)}
    upper = {path: what for path, what in tree.items() if _is_of_product(path)}
    layers = (oci.layer(lower, "Debian's packages"), oci.layer(upper, f"genericdp {product.version}"))
    image = oci.image(
        layers,
        platform=oci.PLATFORMS[architecture],
        config=CONFIG,
        labels=labels,
        created=product.latest,
    )
    return Assembled(architecture, image, used, tree)


def largest(tree: Tree, count: int) -> list[tuple[str, int]]:
    """The largest files: path and size in bytes."""
    sizes = [(path, len(what.content)) for path, what in tree.items() if isinstance(what, File)]
    return sorted(sizes, key=lambda each: -each[1])[:count]


def unpacked_size(tree: Tree) -> int:
    """What the files of an image need, in bytes."""
    return sum(len(what.content) for what in tree.values() if isinstance(what, File))


def _is_of_product(path: str) -> bool:
    return "genericdp" in path.split("/")
