"""What a device says it is.

The rules of this file:

* Everything here is untrusted text of the device, exactly as read.
"""

from genericdp.core.device import UdevDevice


def identification(device: UdevDevice) -> str:
    """Which device this is, as an operator needs it for a rule: USB ids, model, serial number."""
    usb = device.usb_device
    name = model_name(device)
    if usb is None:
        return name or device.attributes.get("name", "").strip()
    serial = usb.attributes.get("serial")
    parts = (f"usb {usb_ids(usb)}", name, f"serial {serial}" if serial else "")
    return " ".join(part for part in parts if part)


def usb_ids(usb: UdevDevice) -> str:
    """Vendor and product of a USB device as `lsusb` prints them."""
    return f"{usb.attributes.get('idVendor', '?')}:{usb.attributes.get('idProduct', '?')}"


def model_name(device: UdevDevice) -> str:
    """What the device, or the nearest of its parents that says it, calls itself; "" when none does.

    A USB device speaks for all that hangs off it. Its entry in udev's hardware database does not count:
    that names what many makers build in.
    """
    usb = device.usb_device
    # Where udev has no name for the model of a USB device, it repeats the number.
    numbers = [] if usb is None else [usb.attributes.get(key) for key in ("idVendor", "idProduct")]
    for each in device.self_and_ancestors():
        for key in ("ID_MODEL_FROM_DATABASE", "ID_MODEL") if usb is None else ("ID_MODEL",):
            if (name := each.properties.get(key)) and name not in numbers:
                return name
        if usb is None and each.subsystem == "input" and (name := each.attributes.get("name", "").strip()):
            return name
        if each is usb:
            return each.attributes.get("product", "")
    return ""
