"""Runs in the guest as root, once: gives containerd its settings and two images, and starts it.

The rules of this file:

* No registry is asked: both images are made of Debian's static busybox.
* The settings are those of a node that kubeadm sets up, with CDI switched on where containerd has it (1.7).
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = "/bin/busybox"

#: Ends by SIGTERM as Kubernetes' own does; otherwise systemd would wait for it for 90 s at each shutdown.
_PAUSE = "trap 'exit 0' TERM; while :; do sleep 1000000 & wait; done"

#: Image name -> its command. Both contain the same.
IMAGES = {"localhost/pause:1": ["/bin/sh", "-c", _PAUSE], "localhost/busybox:1": ["/bin/sh"]}

#: A regular file in the images, at a path that a case takes for a device node.
FILE = "srv/file"

SETTINGS = """
version = 2

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
enable_cdi = true
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
BinaryName = "/usr/bin/crun"
SystemdCgroup = true
"""

#: The network of pods that have one of their own: none, but containerd insists on an address.
NETWORK = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}
PLUGIN = """#!/bin/sh
cat >/dev/null
case $CNI_COMMAND in
ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "'$CNI_IFNAME'", "sandbox": "'$CNI_NETNS'"}],
    "ips": [{"version": "4", "interface": 0, "address": "10.1.0.2/24"}]}' ;;
VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.4.0"]}' ;;
esac
"""


def main() -> None:
    """Do it. Once it is done, another time only starts containerd."""
    _write("/etc/containerd/config.toml", SETTINGS)
    # Copied into every pod.
    _write("/etc/hosts", "127.0.0.1 localhost\n")
    _write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    _write("/etc/cni/net.d/10-none.conflist", json.dumps(NETWORK))
    for name in ("none", "loopback"):
        _write(f"/opt/cni/bin/{name}", PLUGIN, mode=0o755)
    subprocess.run(["systemctl", "restart", "containerd"], check=True)
    done = Path("/opt/vm/images-are-there")
    if not done.exists():
        archive = "/opt/vm/images.tar"
        Path(archive).write_bytes(_archive())
        subprocess.run(
            ["ctr", "--namespace", "k8s.io", "images", "import", archive],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        done.touch()


def _write(path: str, text: str, mode: int = 0o644) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    os.chmod(path, mode)


def _archive() -> bytes:
    """An OCI image layout with all images (image-spec, image-layout.md), as a tar archive."""
    files: dict[str, bytes] = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    layer = _layer()
    manifests = []
    for name, command in IMAGES.items():
        configuration = _json(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": command, "Env": ["PATH=/bin"]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            }
        )
        manifest = _json(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": _blob(files, "application/vnd.oci.image.config.v1+json", configuration),
                "layers": [
                    _blob(files, "application/vnd.oci.image.layer.v1.tar+gzip", gzip.compress(layer, 1))
                ],
            }
        )
        entry = _blob(files, "application/vnd.oci.image.manifest.v1+json", manifest)
        entry["annotations"] = {"io.containerd.image.name": name}
        manifests.append(entry)
    files["index.json"] = _json({"schemaVersion": 2, "manifests": manifests})
    with io.BytesIO() as memory:
        with tarfile.open(fileobj=memory, mode="w") as archive:
            for name, data in files.items():
                _add(archive, name, data)
        return memory.getvalue()


def _layer() -> bytes:
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with io.BytesIO() as memory:
        with tarfile.open(fileobj=memory, mode="w") as archive:
            _add(archive, "bin/busybox", Path(BUSYBOX).read_bytes(), mode=0o755)
            for applet in applets:
                if applet != "busybox":
                    link = tarfile.TarInfo(f"bin/{applet}")
                    link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                    archive.addfile(link)
            _add(archive, "etc/passwd", b"root:x:0:0::/:/bin/sh\n")
            _add(archive, FILE, b"a regular file\n")
        return memory.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _blob(files: dict[str, bytes], kind: str, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    files[f"blobs/sha256/{digest}"] = data
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


if __name__ == "__main__":
    main()
