# What genericdp uses of usb.backend.libusb1 (pyusb 1.2 and later).

from collections.abc import Callable

def get_backend(find_library: Callable[[str], str]) -> object | None: ...
