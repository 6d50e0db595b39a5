"""Resets a USB device, which is all that udev and sysfs cannot do for us.

The rules of this file:

* pyusb is imported when a device is to be reset and not before: it loads libusb, and that costs
  memory and sometimes a thread.
* This is the one place of the project that opens a device node.
"""

import errno
import os
import time

from genericdp.errors import GenericdpError

#: How long the kernel may take to disconnect a device that has become another by its reset, in seconds.
DISCONNECT_S = 5.0


def reset(busnum: int, devnum: int) -> None:
    """Reset the USB device with these numbers, as if it were unplugged and plugged in again.

    It comes back under the same numbers, or, when its descriptors have changed, as a new device;
    then this returns when the old one is gone. Blocks meanwhile (some 100 ms). Raises GenericdpError.
    """
    node = f"/dev/bus/usb/{busnum:03}/{devnum:03}"
    if not os.path.exists(node):
        raise GenericdpError(f"no USB device '{node}' to reset")
    # Not at the top: see the rules of this file.
    import usb.core  # noqa: PLC0415

    try:
        if not _reset(busnum, devnum):
            _wait_until_gone(node)
    except usb.core.NoBackendError as error:
        raise GenericdpError(
            f"USB device '{node}' is not reset: libusb cannot be loaded",
            hint="install it (Debian: libusb-1.0-0)",
        ) from error
    except (OSError, NotImplementedError) as error:
        raise _failure(node, error) from error


def _failure(node: str, error: OSError | NotImplementedError) -> GenericdpError:
    number = error.errno if isinstance(error, OSError) else None
    # libusb knows EACCES; of the EPERM of DevicePolicy= it makes an error of input or output.
    if number == errno.EIO and not os.access(node, os.R_OK | os.W_OK):
        number, error = errno.EPERM, PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    is_refused = number in (errno.EACCES, errno.EPERM)
    return GenericdpError(
        f"USB device '{node}' is not reset: {error}",
        hint="under systemd the service needs DeviceAllow=char-usb_device rw" if is_refused else "",
    )


def _reset(busnum: int, devnum: int) -> bool:
    """Whether it is the same device afterwards."""
    import usb.core  # noqa: PLC0415
    import usb.util  # noqa: PLC0415

    device = usb.core.find(bus=busnum, address=devnum)
    if device is None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    try:
        device.reset()
    except usb.core.USBError as error:
        # libusb_reset_device: "if re-enumeration is required, or if the device has been disconnected".
        if error.errno != errno.ENOENT:
            raise
        return False
    finally:
        usb.util.dispose_resources(device)
    return True


def _wait_until_gone(node: str) -> None:
    """The kernel disconnects it later, in a thread of its own."""
    deadline = time.monotonic() + DISCONNECT_S
    while os.path.exists(node) and time.monotonic() < deadline:
        time.sleep(0.01)
