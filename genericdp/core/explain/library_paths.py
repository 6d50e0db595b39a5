"""The paths under which libraries look for device nodes, whatever the container calls them.

Most programs that open a serial port or a camera are told its path. libdrm, alsa-lib and the like make the
path themselves, from the kernel's name: a graphics card under another name does not exist for them.

The rules of this file:

* Only kinds of device nodes are here whose usual library has no way to be told another path.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Library:
    """A library that looks for a kind of device node.

    subsystem  of these device nodes
    paths      the paths that it looks for
    examples   some of them
    name       of the library or program
    """

    subsystem: str
    paths: re.Pattern[str]
    examples: tuple[str, ...]
    name: str

    def finds(self, path: str) -> bool:
        """Whether a device node of this kind is found under a path in the container."""
        return self.paths.fullmatch(path) is not None


LIBRARIES = tuple(
    Library(subsystem, re.compile(paths), tuple(examples.split()), name)
    for subsystem, paths, examples, name in (
        ("usb", r"/dev/bus/usb/\d{3}/\d{3}", "/dev/bus/usb/001/004", "libusb"),
        ("hidraw", r"/dev/hidraw\d+", "/dev/hidraw0", "hidapi"),
        ("drm", r"/dev/dri/(?:card|renderD)\d+", "/dev/dri/renderD128 /dev/dri/card0", "libdrm"),
        ("accel", r"/dev/accel/accel\d+", "/dev/accel/accel0", "the driver's library"),
        ("kfd", "/dev/kfd", "/dev/kfd", "ROCm"),
        ("sound", r"/dev/snd/.+", "/dev/snd/controlC0 /dev/snd/pcmC0D0p", "alsa-lib"),
        ("dvb", r"/dev/dvb/adapter\d+/.+", "/dev/dvb/adapter0/frontend0", "libdvbv5"),
        ("infiniband_verbs", r"/dev/infiniband/uverbs\d+", "/dev/infiniband/uverbs0", "libibverbs"),
        ("infiniband_mad", r"/dev/infiniband/.+", "/dev/infiniband/umad0", "libibumad"),
        ("media", r"/dev/media\d+", "/dev/media0", "libcamera"),
        ("dma_heap", r"/dev/dma_heap/.+", "/dev/dma_heap/system", "libcamera"),
        ("gpio", r"/dev/gpiochip\d+", "/dev/gpiochip0", "libgpiod before 2.0"),
        ("vfio", r"/dev/vfio/(?:\d+|vfio)", "/dev/vfio/12", "QEMU"),
        ("vfio-dev", r"/dev/vfio/devices/vfio\d+", "/dev/vfio/devices/vfio0", "QEMU"),
        ("misc", "/dev/fuse", "/dev/fuse", "libfuse"),
        ("misc", "/dev/kvm", "/dev/kvm", "QEMU"),
        ("misc", "/dev/net/tun", "/dev/net/tun", "nearly every program"),
    )
)


def library_for(path: str) -> Library | None:
    """The library that looks for a device node under `path`, the kernel's name; None if none does."""
    return next((each for each in LIBRARIES if each.finds(path)), None)
