"""Wireless devices: all units of a radio hang off one parent, numbered in the order of connecting."""

from genericdp.core.device import UdevDevice
from tests.scenes.builders import a_device, a_usb_device, a_usb_interface

#: Through it, a program such as bluetoothd makes HIDs.
UHID = a_device("/sys/devices/virtual/misc/uhid", node="/dev/uhid", number="c 10:239")

#: A USB adapter for Bluetooth with its link to a unit, where the kernel makes HIDs.
DONGLE = a_usb_device(port="3", vendor="0a12", product="0001", serial=None)
_HCI = a_device(
    f"{DONGLE.sys_path}/1-3:1.0/bluetooth/hci0",
    subsystem="bluetooth",
    parent=a_usb_interface(DONGLE, cls="e0", driver="btusb"),
)
LINK = a_device(f"{_HCI.sys_path}/hci0:256", subsystem="bluetooth", parent=_HCI)

#: A receiver that is one unit with what is paired with it.
RECEIVER = a_device(
    f"{a_usb_device(port='5').sys_path}/1-5:1.2/0003:046D:C52B.0001",
    subsystem="hid",
    parent=a_usb_interface(a_usb_device(port="5", vendor="046d", product="c52b", serial=None), "02"),
)

SCANNER = "0C2E:0B81"


def a_hid(
    parent: UdevDevice,
    instance: int,
    address: str | None,
    minor: int,
    *,
    model: str = SCANNER,
    bus: str = "0005",
    phys: str = "",
    incarnation: int = 0,
) -> UdevDevice:
    """`/dev/hidrawN` of a unit with this address; None: it says none."""
    vendor, _, product = model.partition(":")
    properties = {"HID_ID": f"{bus}:0000{vendor}:0000{product}", "HID_PHYS": phys}
    hid = a_device(
        f"{parent.sys_path}/{bus}:{model}.{instance:04X}",
        subsystem="hid",
        driver="hid-generic",
        properties=properties if address is None else {**properties, "HID_UNIQ": address},
        parent=parent,
    )
    return a_device(
        f"{hid.sys_path}/hidraw/hidraw{minor}",
        subsystem="hidraw",
        node=f"/dev/hidraw{minor}",
        number=f"c 242:{minor}",
        parent=hid,
        incarnation=incarnation or 1000 + instance,
    )


def a_paired(instance: int, serial: str, slot: int, minor: int, *, model: str = "046D:4082") -> UdevDevice:
    """What is paired with the receiver."""
    phys = f"usb-0000:00:14.0-5/input2:{slot}" if slot else ""
    return a_hid(RECEIVER, instance, serial, minor, model=model, bus="0003", phys=phys)
