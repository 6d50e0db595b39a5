"""Resets a USB device, which is all that udev and sysfs cannot do for us.

The rules of this file:

* pyusb is imported when a device is to be reset and not before: it loads libusb, and that costs
  memory and sometimes a thread.
* This is the one place of the project that opens a device node.
"""

import errno
import os

from genericdp.errors import GenericdpError


def reset(busnum: int, devnum: int) -> None:
    """Reset the USB device with these numbers, as if it were unplugged and plugged in again.

    It comes back under the same numbers, or, when its descriptors have changed, as a new device.
    Blocks while the device resets (some 100 ms). Raises GenericdpError.
    """
    node = f"/dev/bus/usb/{busnum:03}/{devnum:03}"
    if not os.path.exists(node):
        raise GenericdpError(f"no USB device '{node}' to reset")
    # Not at the top: see the rules of this file.
    import usb.core  # noqa: PLC0415

    try:
        _reset(busnum, devnum)
    except usb.core.NoBackendError as error:
        raise GenericdpError(
            f"USB device '{node}' is not reset: libusb cannot be loaded",
            hint="install it (Debian: libusb-1.0-0)",
        ) from error
    except (OSError, NotImplementedError) as error:
        refused = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM)
        raise GenericdpError(
            f"USB device '{node}' is not reset: {error}",
            hint="under systemd the service needs DeviceAllow=char-usb_device rw" if refused else "",
        ) from error


def _reset(busnum: int, devnum: int) -> None:
    import usb.core  # noqa: PLC0415
    import usb.util  # noqa: PLC0415

    device = usb.core.find(bus=busnum, address=devnum)
    if device is None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    try:
        device.reset()
    finally:
        usb.util.dispose_resources(device)
