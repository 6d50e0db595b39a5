"""`make image`: the container image of genericdp, from Debian's packages and its own.

Writes an OCI archive with an image for each architecture, and for each of them a software bill of materials.
Needs mmdebstrap, dpkg-deb and apt, and no root. --packages builds from those that an earlier run downloaded:
the same packages make the same bytes.
"""

import argparse
import subprocess
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
    parser.add_argument("--architectures", default="amd64 arm64 armhf", help="in Debian's words")
    parser.add_argument("--mirror", help="of Debian, instead of those in apt's configuration")
    parser.add_argument("--packages", type=Path, help="do not download: use ARCHITECTURE/*.deb in there")
    parser.add_argument("--deb", type=Path, help="genericdp's package, instead of the one in dist")
    parser.add_argument(
        "--name", default="ghcr.io/genericdp/genericdp", help="of the image, with its registry"
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
    labels = _labels(product)
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
                labels=labels,
            )

        with ThreadPoolExecutor() as builds:
            return list(builds.map(built, wanted))


def _packages(directory: Path) -> list[Package]:
    return [debian.read(path) for path in sorted(directory.glob("*.deb"))]


def _labels(product: Package) -> dict[str, str]:
    prefix = "org.opencontainers.image"
    labels = {
        f"{prefix}.title": "genericdp",
        f"{prefix}.description": product.fields["Description"],
        f"{prefix}.url": "https://genericdp.io",
        f"{prefix}.source": "https://genericdp.io",
        f"{prefix}.vendor": product.fields["Maintainer"],
        f"{prefix}.version": _version(product),
        f"{prefix}.licenses": "Apache-2.0",
        f"{prefix}.created": oci.moment_of(product.latest),
    }
    revision = _revision()
    return {**labels, f"{prefix}.revision": revision} if revision else labels


def _revision() -> str:
    """The commit that is checked out, marked if there are other changes; "" if git knows none."""
    # It may belong to another user than the one who builds.
    git = ["git", "-c", "safe.directory=*", "-C", str(CHECKOUT)]

    def asked(*arguments: str) -> str:
        return subprocess.run([*git, *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(asked("rev-parse", "--show-toplevel")) != CHECKOUT:
            return ""
        return asked("rev-parse", "HEAD") + ("-dirty" if asked("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _write(images: Sequence[Assembled], product: Package, *, name: str, to: Path) -> None:
    """Write everything and say what it is."""
    version = _version(product)
    to.mkdir(parents=True, exist_ok=True)
    for stale in (*to.glob("genericdp_*.oci.tar"), *to.glob("genericdp_*.cdx.json")):
        stale.unlink()
    archive = to / f"genericdp_{version}.oci.tar"
    top = oci.index([each.image for each in images], _labels(product))
    oci.write([each.image for each in images], top, name=name, tag=version, to=archive)
    for each in images:
        bill = sbom(
            each.packages,
            product,
            architecture=each.architecture,
            digest=each.image.manifest.digest,
            created=oci.moment_of(product.latest),
        )
        (to / f"genericdp_{version}_{each.architecture}.cdx.json").write_text(bill, encoding="utf-8")
        _tell(each)
    print(f"{name}:{version} {top.digest}")
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


def _version(product: Package) -> str:
    """The version of genericdp, without that of its packaging."""
    return product.version.rpartition("-")[0]


if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(status)
