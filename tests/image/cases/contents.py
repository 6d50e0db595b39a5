"""What is in the image, and that it can be made again."""

import gzip
import io
import json
import os
import re
import stat
import sys
import tarfile
from _imp import source_hash
from collections.abc import Iterator
from pathlib import Path

from tests.image.case import Case
from tests.image.node import Node
from tests.image.unpacked import CHECKOUT, Unpacked, run, unpack

#: What a node may have to download, in MB.
LIMIT_MB = 30

#: The architecture in the header of an ELF file: e_machine.
_MACHINES = {"amd64": 62, "arm64": 183, "armhf": 40}


async def there_is_no_way_to_more_privileges(node: Node) -> None:
    for path in _paths(node.image):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (0, 0), path
        assert not os.listxattr(path, follow_symlinks=False), f"{path} has capabilities"
        if not stat.S_ISLNK(status.st_mode):
            assert stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode), path
            assert not status.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX | 0o022), path


async def there_is_no_program_but_python_and_genericdp(node: Node) -> None:
    programs = {
        str(path.relative_to(node.image.root))
        for path in _paths(node.image)
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o111
    }
    linker = {path for path in programs if re.fullmatch(r"usr/lib/[^/]+/ld-linux[^/]*", path)}
    assert programs - linker == {"usr/bin/genericdp", "usr/bin/python3.13"}


async def every_module_is_compiled_and_its_source_never_compared(node: Node) -> str:
    counted = 0
    for path in _paths(node.image):
        if path.suffix == ".py" and not path.is_symlink():
            compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
            header = compiled.read_bytes()[:16]
            # PEP 552: hash-based, not to be checked.
            assert header[4:8] == (1).to_bytes(4, "little"), path
            assert header[8:] == source_hash(int.from_bytes(header[:4], "little"), path.read_bytes()), path
            counted += 1
    assert counted > 500
    return f"{counted} modules"


async def every_library_that_a_file_needs_is_there_on_every_platform(node: Node) -> str:
    images = _all(node.image)
    for image in images:
        needed: dict[str, str] = {}
        there = set()
        for path in _paths(image):
            if path.is_file() and _is_elf(path, _MACHINES[image.architecture]):
                there.add(path.name)
                if not path.is_symlink():
                    dynamic = run("readelf", "--dynamic", "--wide", str(path))
                    needed |= dict.fromkeys(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic), str(path))
        assert {name: by for name, by in needed.items() if name not in there} == {}, image.architecture
    return ", ".join(image.architecture for image in images)


async def each_package_has_its_licence_and_is_known_to_scanners(node: Node) -> str:
    names: set[str] = set()
    for image in _all(node.image):
        entries = sorted((image.root / "var/lib/dpkg/status.d").iterdir())
        bill = json.loads(_bill(image).read_text(encoding="utf-8"))
        listed = {each["name"]: each for each in bill["components"]}
        assert {path.name for path in entries} <= listed.keys()
        for path in entries:
            copyright_file = image.root / "usr/share/doc" / path.name / "copyright"
            assert copyright_file.resolve().is_relative_to(image.root.resolve())
            assert copyright_file.stat().st_size, path.name
            fields = dict(
                re.findall(r"^([A-Z][A-Za-z-]+): (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            )
            assert fields["Status"] == "install ok installed"
            assert listed[path.name]["version"] == fields["Version"]
        for name in ("Apache-2.0", "GPL-3", "LGPL-2.1"):
            assert (image.root / "usr/share/common-licenses" / name).stat().st_size
        assert "ID=debian\n" in (image.root / "etc/os-release").read_text(encoding="utf-8")
        names |= {path.name for path in entries}
    return f"{len(names)} packages"


async def an_image_is_small_and_says_what_it_is(node: Node) -> str:
    sizes = []
    for image in _all(node.image):
        manifest = json.loads(run("skopeo", "inspect", "--raw", f"oci:{image.root.parents[1]}/layout:it"))
        size = sum(each["size"] for each in (manifest["config"], *manifest["layers"])) / 1e6
        assert size < LIMIT_MB
        sizes.append(f"{image.architecture} {size:.1f} MB")
        labels = image.config["config"]["Labels"]
        names = {key.removeprefix("org.opencontainers.image.") for key in labels}
        assert names >= {"title", "description", "source", "version", "licenses", "created", "vendor", "url"}
        assert image.config["config"]["User"] == "0:0"
        assert image.config["config"]["Entrypoint"] == ["/usr/bin/genericdp"]
        assert image.config["config"]["Cmd"] == ["run"]
    return ", ".join(sizes)


async def an_update_of_genericdp_leaves_the_layer_of_debian_as_it_is(node: Node) -> str:
    with tarfile.open(node.image.archive) as archive:
        layout = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        manifest = json.loads(
            run("skopeo", "inspect", "--raw", f"oci:{node.image.root.parents[1]}/layout:it")
        )
        lower, upper = manifest["layers"]
        blob = layout[f"blobs/{lower['digest'].replace(':', '/')}"]
        assert blob is not None
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob.read()))) as debian:
            members = debian.getmembers()
    assert {member.mtime for member in members} == {0}
    assert [member.name for member in members if "genericdp" in member.name and member.isfile()] == []
    return f"{upper['size'] / 1e6:.1f} of {(lower['size'] + upper['size']) / 1e6:.1f} MB"


async def the_same_packages_make_the_same_image_wherever_and_by_whomever(node: Node) -> None:
    again = Path("/run/image-again")
    again.mkdir(mode=0o777)
    again.chmod(0o777)
    architectures = " ".join(image.architecture for image in _all(node.image))
    # A user who can read the checkout, whoever it belongs to, but may do nothing else.
    nobody = ("--reuid=65534", "--regid=65534", "--clear-groups")
    reads = (
        "--bounding-set=-all,+dac_read_search",
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    )
    other = ("PATH=/usr/bin:/bin", "TZ=Asia/Tokyo", f"TMPDIR={again}", "PYTHONHASHSEED=1", f"HOME={again}")
    run(
        *("setpriv", *nobody, *reads, "env", "-i", *other),
        *("sh", "-c", 'umask 077; exec "$0" "$@"', f"{CHECKOUT}/.ci/image"),
        *(f"--packages={CHECKOUT}/.cache/image", f"--to={again}", f"--architectures={architectures}"),
    )
    (archive,) = again.glob("*.oci.tar")
    same = archive.read_bytes() == node.image.archive.read_bytes()
    assert same, "not the same; an image of another commit has another label, so run make image first"
    for bill in again.glob("*.cdx.json"):
        assert bill.read_bytes() == (node.image.archive.parent / bill.name).read_bytes()


def _paths(image: Unpacked) -> Iterator[Path]:
    for top, directories, files in os.walk(image.root):
        for name in (*directories, *files):
            yield Path(top, name)


def _all(own: Unpacked) -> list[Unpacked]:
    """The images of all platforms in the archive, this machine's first."""
    others = sorted(
        path.name.removesuffix(".cdx.json").rpartition("_")[2]
        for path in own.archive.parent.glob("*.cdx.json")
    )
    assert own.architecture in others
    images = [own]
    for architecture in others:
        if architecture != own.architecture:
            place = Path("/run/image-others") / architecture
            images.append(unpack(own.archive, architecture, place))
    return images


def _bill(image: Unpacked) -> Path:
    (found,) = image.archive.parent.glob(f"*_{image.architecture}.cdx.json")
    return found


def _is_elf(path: Path, machine: int) -> bool:
    with path.open("rb") as file:
        header = file.read(20)
    if header[:4] != b"\x7fELF":
        return False
    assert int.from_bytes(header[18:20], sys.byteorder) == machine, path
    return True


CASES: tuple[Case, ...] = (
    there_is_no_way_to_more_privileges,
    there_is_no_program_but_python_and_genericdp,
    every_module_is_compiled_and_its_source_never_compared,
    every_library_that_a_file_needs_is_there_on_every_platform,
    each_package_has_its_licence_and_is_known_to_scanners,
    an_image_is_small_and_says_what_it_is,
    an_update_of_genericdp_leaves_the_layer_of_debian_as_it_is,
    the_same_packages_make_the_same_image_wherever_and_by_whomever,
)
