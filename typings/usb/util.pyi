# What genericdp uses of usb.util (pyusb 1.2 and later).

from usb.core import Device

def dispose_resources(device: Device) -> None: ...
