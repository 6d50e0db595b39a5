"""`make image`: the container image of genericdp, from Debian's packages and its own.

Writes an OCI archive with an image for each architecture, and for each of them a software bill of materials.
Needs mmdebstrap, dpkg-deb and apt, and no root. --packages builds from those that an earlier run downloaded:
the same packages make the same bytes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import contents
import debian
import oci
from assembly import Assembled, assembled, largest, unpacked_size
from bytecode import Compiler
from debian import MirrorError, Package
from labels import labels, revision, version
from sbom import sbom

CHECKOUT = Path(__file__).resolve().parents[2]

#: In addition to what genericdp's package depends on: /etc/os-release and the texts of the licences.
_INCLUDED = ("base-files",)

#: Built if the mirror serves it.
_OPTIONAL = ("armhf",)

#: What a node may have to download, in bytes.
LIMIT = 30_000_000


def main() -> int:
    """Build the images. Returns 0, or 1 if that fails or one is too large."""
    options = _options()
    try:
        product = debian.read(options.deb or _deb())
        wanted = options.architectures.split()
        downloaded = options.packages
        if downloaded is None:
            downloaded = CHECKOUT / ".cache/image"
            sources = [options.mirror] if options.mirror else debian.mirror()
            wanted = _download(product, wanted, sources, downloaded)
        images = _build(product, wanted, downloaded)
    except MirrorError as error:
        print(error, file=sys.stderr)
        return 1
    _write(images, product, name=options.name, to=options.to)
    return 1 if any(each.image.size > LIMIT for each in images) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="packaging/image", description="Build the container image.")
    parser.add_argument(
        "--architectures", default="amd64 arm64 armhf", help="Debian's names of the architectures"
    )
    parser.add_argument("--mirror", help="a mirror of Debian, instead of those in apt's configuration")
    parser.add_argument(
        "--packages", type=Path, help="use ARCHITECTURE/*.deb in this directory instead of downloading"
    )
    parser.add_argument("--deb", type=Path, help="genericdp's package, instead of the one in dist")
    parser.add_argument(
        "--name", default="ghcr.io/genericdp/genericdp", help="the name of the image, with its registry"
    )
    parser.add_argument("--to", type=Path, default=CHECKOUT / "build/image")
    return parser.parse_args()


def _deb() -> Path:
    found = sorted((CHECKOUT / "dist").glob("genericdp_*_all.deb"))
    if len(found) != 1:
        raise MirrorError(f"dist holds {len(found)} packages of genericdp instead of one: run make deb")
    return found[0]


def _download(product: Package, wanted: Sequence[str], sources: Sequence[str], to: Path) -> list[str]:
    """Download for each architecture and for this machine. Returns those to build. Raises MirrorError."""
    names = [*_INCLUDED, *debian.depends(product)]

    def missing(architecture: str) -> str:
        try:
            debian.fetch(names, architecture, sources, to / architecture)
        except MirrorError as error:
            if architecture not in _OPTIONAL:
                raise
            return str(error)
        return ""

    architectures = list(dict.fromkeys([*wanted, debian.native()]))
    with ThreadPoolExecutor() as downloads:
        problems = dict(zip(architectures, downloads.map(missing, architectures), strict=True))
    for architecture, problem in problems.items():
        if problem:
            print(f"{architecture} is left out: {problem}", file=sys.stderr)
    return [each for each in wanted if not problems[each]]


def _build(product: Package, wanted: Sequence[str], downloaded: Path) -> list[Assembled]:
    described = labels(product, revision(CHECKOUT))
    with tempfile.TemporaryDirectory(prefix="genericdp-image-") as work:
        python = contents.files(_packages(downloaded / debian.native()))
        compiler = Compiler(python, Path(work) / "python")

        def built(architecture: str) -> Assembled:
            return assembled(
                _packages(downloaded / architecture),
                product,
                compiler,
                Path(work) / architecture,
                architecture=architecture,
                labels=described,
            )

        with ThreadPoolExecutor() as builds:
            return list(builds.map(built, wanted))


def _packages(directory: Path) -> list[Package]:
    return [debian.read(path) for path in sorted(directory.glob("*.deb"))]


def _write(images: Sequence[Assembled], product: Package, *, name: str, to: Path) -> None:
    """Write everything and print what it is."""
    tag = version(product)
    to.mkdir(parents=True, exist_ok=True)
    for stale in (*to.glob("genericdp_*.oci.tar"), *to.glob("genericdp_*.cdx.json")):
        stale.unlink()
    archive = to / f"genericdp_{tag}.oci.tar"
    top = oci.index([each.image for each in images], labels(product, revision(CHECKOUT)))
    oci.write([each.image for each in images], top, name=name, tag=tag, to=archive)
    for each in images:
        bill = sbom(
            each.packages,
            product,
            architecture=each.architecture,
            digest=each.image.manifest.digest,
            created=oci.moment_of(product.latest),
        )
        (to / f"genericdp_{tag}_{each.architecture}.cdx.json").write_text(bill, encoding="utf-8")
        _tell(each)
    print(f"{name}:{tag} {top.digest}")
    print(archive)


def _tell(built: Assembled) -> None:
    size, unpacked = built.image.size / 1e6, unpacked_size(built.tree) / 1e6
    print(
        f"{built.architecture:<6}{size:5.1f} MB, unpacked {unpacked:.1f} MB, {len(built.packages)} packages"
    )
    print(f"      {built.image.manifest.digest}")
    for path, length in largest(built.tree, 5):
        print(f"      {length / 1e6:5.1f} MB {path}")
    if built.image.size > LIMIT:
        print(f"      too large: at most {LIMIT / 1e6:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(status)
