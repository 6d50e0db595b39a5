"""The OCI image format: layers, configurations, manifests and an index, in one archive.

The formats are those of https://github.com/opencontainers/image-spec, version 1.1.

The rules of this file:

* The same files and labels make the same bytes: entries are sorted, and belong to root.
* All times in a layer are 0, so a layer whose files did not change is the same in the next version.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tree import EmptyDirectory, Tree, parents

_MEDIA = "application/vnd.oci.image"

#: Debian's name of an architecture -> its `platform` in an index.
PLATFORMS: Mapping[str, Mapping[str, str]] = {
    "amd64": {"architecture": "amd64", "os": "linux"},
    "arm64": {"architecture": "arm64", "os": "linux", "variant": "v8"},
    "armhf": {"architecture": "arm", "os": "linux", "variant": "v7"},
}


@dataclass(frozen=True, slots=True)
class Blob:
    """A part of an image, stored under the digest of its content."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, Any]:
        """How other parts refer to it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: its compressed archive, the digest of the uncompressed one, and what made it."""

    blob: Blob
    diff_id: str
    created_by: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image for one platform."""

    platform: Mapping[str, str]
    manifest: Blob
    blobs: Sequence[Blob]

    @property
    def size(self) -> int:
        """What a node downloads, in bytes."""
        return sum(len(blob.content) for blob in self.blobs)


def layer(tree: Tree, created_by: str) -> Layer:
    """A layer with these files."""
    plain = _archive(tree)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as stream:
        stream.write(plain)
    diff_id = f"sha256:{hashlib.sha256(plain).hexdigest()}"
    return Layer(Blob(f"{_MEDIA}.layer.v1.tar+gzip", packed.getvalue()), diff_id, created_by)


def image(
    layers: Sequence[Layer],
    *,
    platform: Mapping[str, str],
    config: Mapping[str, Any],
    labels: Mapping[str, str],
    created: int,
) -> Image:
    """An image of layers, with the settings for its container."""
    moment = moment_of(created)
    content: dict[str, Any] = {
        "created": moment,
        **platform,
        "config": {**config, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in layers]},
        "history": [{"created": moment, "created_by": each.created_by} for each in layers],
    }
    configuration = Blob(f"{_MEDIA}.config.v1+json", _json(content))
    manifest: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": configuration.descriptor,
        "layers": [each.blob.descriptor for each in layers],
        "annotations": labels,
    }
    blobs = [configuration, *(each.blob for each in layers)]
    return Image(platform, Blob(manifest["mediaType"], _json(manifest)), blobs)


def index(images: Sequence[Image], labels: Mapping[str, str]) -> Blob:
    """The index of images for several platforms; its digest is the one to deploy."""
    content: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.index.v1+json",
        "manifests": [{**each.manifest.descriptor, "platform": each.platform} for each in images],
        "annotations": labels,
    }
    return Blob(content["mediaType"], _json(content))


def write(images: Sequence[Image], top: Blob, *, name: str, tag: str, to: Path) -> None:
    """Write an OCI layout into a tar archive, which docker, podman, skopeo and containerd read."""
    # containerd takes the whole name from its own annotation, the others take the tag.
    named = {"io.containerd.image.name": f"{name}:{tag}", "org.opencontainers.image.ref.name": tag}
    entry = {**top.descriptor, "annotations": named}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(
            {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [entry]}
        ),
    }
    for blob in (top, *(blob for each in images for blob in (each.manifest, *each.blobs))):
        files[f"blobs/{blob.digest.replace(':', '/')}"] = blob.content
    with tarfile.open(to, "w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in sorted(files.items()):
            archive.addfile(_regular(path, content), io.BytesIO(content))


def moment_of(seconds: int) -> str:
    """A time as RFC 3339 has it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _archive(tree: Tree) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member, content in _members(tree):
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _members(tree: Tree) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    directories = {above for path in tree for above in parents(path)}
    directories |= {path for path, what in tree.items() if isinstance(what, EmptyDirectory)}
    for path in sorted(directories | tree.keys()):
        what = tree.get(path)
        if what is None or isinstance(what, EmptyDirectory):
            member = tarfile.TarInfo(path)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            yield member, b""
        elif what.target:
            member = tarfile.TarInfo(path)
            member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, what.target
            yield member, b""
        else:
            yield _regular(path, what.content, what.mode), what.content


def _regular(path: str, content: bytes, mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.size, member.mode = len(content), mode
    return member


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
