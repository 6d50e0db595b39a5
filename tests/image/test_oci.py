"""Layers, manifests and archives: the same input makes the same bytes, and all files are root's."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import oci
from tree import EmptyDirectory, File, Tree

NAMES = st.text("abc.-", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FILES = st.builds(File, st.binary(max_size=9), st.sampled_from(["", "", "a", "../b"]), st.booleans())


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A tree in which nothing is below a file."""
    found: dict[str, File | EmptyDirectory] = draw(
        st.dictionaries(PATHS, FILES | st.just(EmptyDirectory()), max_size=8)
    )
    return {
        path: what
        for path, what in found.items()
        if not any(f"{path}/" in f"{other}/" for other in found if other != path)
    }


def members_of(layer: oci.Layer) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob.content))) as archive:
        return archive.getmembers()


@given(trees(), st.randoms())
def test_a_layer_does_not_depend_on_the_order_in_which_files_were_found(tree: Tree, random: Any) -> None:
    shuffled = list(tree.items())
    random.shuffle(shuffled)
    one, other = oci.layer(tree, "x"), oci.layer(dict(shuffled), "x")
    assert (one.blob.digest, one.diff_id) == (other.blob.digest, other.diff_id)
    assert one.blob.content[4:8] == bytes(4)  # the time of gzip's header


@given(trees())
def test_in_a_layer_everything_is_roots_and_nobody_else_may_write(tree: Tree) -> None:
    seen = set()
    for member in members_of(oci.layer(tree, "x")):
        assert (member.uid, member.gid, member.mtime) == (0, 0, 0)
        assert member.isfile() or member.isdir() or member.issym()
        assert member.issym() or member.mode in (0o755, 0o644)
        assert all(above in seen for above in [member.name.rpartition("/")[0]] if above)
        seen.add(member.name)
    assert seen >= tree.keys()


def unpacked_digest(packed: bytes) -> str:
    return f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"


def an_image(architecture: str = "amd64", content: bytes = b"1") -> oci.Image:
    layers = (
        oci.layer({"usr/lib/libc.so.6": File(b"c")}, "Debian"),
        oci.layer({"a": File(content)}, "genericdp"),
    )
    return oci.image(
        layers,
        platform=oci.PLATFORMS[architecture],
        config={"Entrypoint": ["/usr/bin/genericdp"]},
        labels={"org.opencontainers.image.title": "genericdp"},
        created=1_767_225_600,
    )


def test_another_file_of_genericdp_leaves_the_layer_of_debian_as_it_is() -> None:
    one, other = (json.loads(an_image(content=content).manifest.content) for content in (b"1", b"2"))
    assert one["layers"][0] == other["layers"][0]
    assert one["layers"][1] != other["layers"][1]


def test_an_archive_holds_what_its_index_names_under_the_digest_of_the_content(tmp_path: Path) -> None:
    images = [an_image(), an_image("armhf")]
    top = oci.index(images, {"org.opencontainers.image.title": "genericdp"})
    oci.write(images, top, name="registry.example.com/genericdp", tag="0.1.0", to=tmp_path / "one.tar")
    oci.write(images, top, name="registry.example.com/genericdp", tag="0.1.0", to=tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as archive:
        opened = {member.name: archive.extractfile(member) for member in archive}
        content = {name: file.read() for name, file in opened.items() if file is not None}
    assert json.loads(content.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(content.pop("index.json"))["manifests"]
    assert entry["annotations"] == {
        "io.containerd.image.name": "registry.example.com/genericdp:0.1.0",
        "org.opencontainers.image.ref.name": "0.1.0",
    }
    for name, blob in content.items():
        assert name == f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"

    def blob_of(descriptor: Mapping[str, Any]) -> bytes:
        blob = content[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert len(blob) == descriptor["size"]
        return blob

    def at(descriptor: Mapping[str, Any]) -> Any:
        return json.loads(blob_of(descriptor))

    manifests = at(entry)["manifests"]
    assert [each["platform"] for each in manifests] == [
        {"architecture": "amd64", "os": "linux"},
        {"architecture": "arm", "os": "linux", "variant": "v7"},
    ]
    for each in manifests:
        manifest = at(each)
        config = at(manifest["config"])
        assert config["config"]["Labels"] == manifest["annotations"]
        assert config["created"] == "2026-01-01T00:00:00Z"
        assert config["rootfs"]["diff_ids"] == [
            unpacked_digest(blob_of(layer)) for layer in manifest["layers"]
        ]
