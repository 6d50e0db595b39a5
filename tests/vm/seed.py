"""The initrd: it mounts the guest's disk and adds what belongs to this run.

The rules of this file:

* It is made for each run, so a changed agent, kubelet or package needs no new image.
* A reboot of the guest goes through it again and adds the same files.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.vm.image import Image

_INSIDE = Path(__file__).parent / "inside"

#: The folder of this run in the guest.
HOME = "/opt/vm"

#: The files of `inside` in the guest: below HOME as in the checkout, so that one can import another.
INSIDE = f"{HOME}/tests/vm/inside"

#: The link that makes systemd start the agent.
ENABLED = "/etc/systemd/system/multi-user.target.wants/vm-agent.service"

_INIT = f"""#!/bin/busybox sh
set -e
/bin/busybox mkdir -p /dev /disk
/bin/busybox mount -t devtmpfs dev /dev
while read module; do
    /bin/busybox insmod /modules/$module
done </modules/order
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /disk
# After a reboot the link exists already, and cp would not replace it.
/bin/busybox rm -f /disk{ENABLED}
/bin/busybox cp -a /seed/. /disk/
/bin/busybox umount /dev
exec /bin/busybox switch_root /disk /sbin/init
"""

_AGENT = f"""[Unit]
Description=Runs commands for the test outside
[Service]
ExecStart=/usr/bin/python3 -u {INSIDE}/agent.py
Restart=always
[Install]
WantedBy=multi-user.target
"""

#: Named like the real one, so that units ordered before kubelets are ordered before it.
_KUBELET = f"""[Unit]
Description=Simulated kubelet
[Service]
Environment=PYTHONPATH=/usr/share/genericdp
ExecStart=/usr/bin/python3 -u {INSIDE}/kubelet.py
[Install]
WantedBy=multi-user.target
"""

#: What drives the container runtime.
_RUNTIME = f"""[Unit]
Description=Drives the container runtime for the test outside
[Service]
Environment=PYTHONPATH=/usr/share/genericdp:{HOME}
ExecStart=/usr/bin/python3 -u {INSIDE}/runtime.py
"""


def initrd(image: Image, packages: Mapping[str, bytes]) -> bytes:
    """The initrd's archive. `packages`: further files for HOME."""
    archive = _Archive()
    archive.add("init", _INIT.encode(), mode=0o100755)
    archive.add("bin/busybox", image.busybox.read_bytes(), mode=0o100755)
    archive.add("modules/order", "".join(f"{module.name}\n" for module in image.modules).encode())
    for module in image.modules:
        archive.add(f"modules/{module.name}", module.read_bytes())
    units = "seed/etc/systemd/system"
    archive.add(f"{units}/vm-agent.service", _AGENT.encode())
    archive.add(f"{units}/kubelet.service", _KUBELET.encode())
    archive.add(f"{units}/vm-runtime.service", _RUNTIME.encode())
    archive.add(f"{units}/multi-user.target.wants/vm-agent.service", b"../vm-agent.service", mode=0o120777)
    for source in sorted(_INSIDE.glob("*.py")):
        archive.add(f"seed{INSIDE}/{source.name}", source.read_bytes())
    for name, data in packages.items():
        archive.add(f"seed{HOME}/{name}", data)
    return archive.finish()


class _Archive:
    """cpio's "newc" format, as the kernel reads it (initramfs buffer format)."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._names: set[str] = set()

    def add(self, name: str, data: bytes, mode: int = 0o100644) -> None:
        """Add a file (or, by its mode, a link to `data`) and the folders that contain it."""
        folder = name.rpartition("/")[0]
        if folder and folder not in self._names:
            self.add(folder, b"", mode=0o40755)
        self._names.add(name)
        self._entry(name, data, mode)

    def finish(self) -> bytes:
        """The archive."""
        self._entry("TRAILER!!!", b"", 0)
        return bytes(self._data)

    def _entry(self, name: str, data: bytes, mode: int) -> None:
        # inode, mode, uid, gid, links, mtime, size, device (major, minor), node (major, minor), name, check
        fields = (len(self._names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        self._data += b"070701" + b"".join(b"%08X" % number for number in fields)
        self._data += name.encode() + b"\0"
        self._pad()
        self._data += data
        self._pad()

    def _pad(self) -> None:
        self._data += b"\0" * (-len(self._data) % 4)
