"""What a udev device knows of itself without a udev database."""

from genericdp.core.device import DeviceNumber, UdevDevice


def test_the_kernels_own_properties_are_there_without_a_database() -> None:
    device = UdevDevice(
        "/sys/devices/x/tty/ttyS0",
        subsystem="tty",
        devtype="port",
        driver="serial",
        device_node="/dev/ttyS0",
        number=DeviceNumber("c", 4, 64),
    )
    names = ("SUBSYSTEM", "DEVTYPE", "DRIVER", "DEVNAME", "DEVPATH", "ID_MODEL")
    assert [device.property(name) for name in names] == [
        "tty",
        "port",
        "serial",
        "/dev/ttyS0",
        "/devices/x/tty/ttyS0",
        None,
    ]
    assert (device.sys_name, device.devname, str(device.number)) == ("ttyS0", "ttyS0", "c 4:64")


def test_what_udev_says_comes_first() -> None:
    device = UdevDevice("/sys/devices/x", subsystem="tty", properties={"SUBSYSTEM": "other"})
    assert device.property("SUBSYSTEM") == "other"
    assert device.property("DRIVER") is None
    assert device.devname == ""
