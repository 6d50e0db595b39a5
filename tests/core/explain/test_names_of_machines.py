"""What the devices of whole machines are called: by what they are, never by what they hang off."""

import pytest

from genericdp.core.explain.model import (
    NAME_ATTRIBUTES,
    driver_and_address,
    identification,
    model_name,
)
from tests.scenes.machines import MACHINES, machine

NAMES = {
    "laptop-intel": {
        "dri/card0": "pci 8086:9a49 TigerLake-LP GT2 [Iris Xe Graphics]",
        "i2c-1": "i915 gmbus dpb, 0000:00:02.0",
        "i2c-15": "SMBus I801 adapter at efa0, 0000:00:1f.4",
        "i2c-14": "Synopsys DesignWare I2C adapter, i2c_designware.0",
        "drm_dp_aux0": "AUX B/DDI B/PHY B, 0000:00:02.0",
        "snd/pcmC0D0p": "pci 8086:a0c8 Tiger Lake-LP Smart Sound Technology Audio Controller",
        "snd/pcmC2D0p": "usb 17ef:3083 ThinkPad_Thunderbolt_3_Dock_USB_Audio serial 000000000000",
        "hidraw2": "SYNA8004:00 06CB:CD8B",
        "input/mouse2": "SYNA8004:00 06CB:CD8B Touchpad",
        "input/event9": "PC Speaker",
        "mei0": "pci 8086:a0e0 Tiger Lake-LP Management Engine Interface",
        "tpmrm0": "tpm_crb MSFT0101:00",
        "rtc0": "rtc_cmos 00:01",
        "watchdog0": "iTCO_wdt",
        "gpiochip0": "tigerlake-pinctrl INT34C5:00",
        "mtd0": "BIOS",
        "video0": "usb 13d3:5405 Integrated Camera: Integrated C serial 0000",
        "video2": "usb 13d3:5405 Integrated Camera: Integrated I serial 0000",
        "video4": "OBS Virtual Camera",
    },
    "laptop-amd": {
        "dri/renderD128": "pci 1002:15bf Advanced Micro Devices, Inc. [AMD/ATI] VGA compatible controller",
        "accel/accel0": "pci 1022:1502 Advanced Micro Devices, Inc. [AMD] Signal processing controller",
        "wwan0mbim0": "pci 8086:7560 Intel Corporation Wireless controller",
        "hidraw2": "MX Anywhere 3",
        "ttyACM0": "usb 1a86:55d4",
        "bus/usb/001/005": "usb 1a86:55d4",
        "i2c-4": "AMDGPU DM aux hw bus 0, 0000:c4:00.0",
    },
    "workstation": {
        "apex_0": "pci 1ac1:089a apex",
        "dri/card1": "pci 10de:2204 GA102 [GeForce RTX 3090]",
        "i2c-2": "NVIDIA i2c adapter 1 at 0a:00.0",
        "hidraw2": "usb 046d:c52b USB_Receiver",
        "hidraw3": "usb 046d:c52b Logitech Wireless Mouse MX Master 3",
        "sg0": "Samsung SSD 860",
        "sda": "Samsung_SSD_860_PRO_512GB",
        "lp0": "parport_pc 00:05",
    },
    "gpu-server": {
        "infiniband/uverbs1": "pci 15b3:101b MT28908 Family [ConnectX-6]",
        "dri/renderD129": "pci 10de:20b0 GA100 [A100 SXM4 40GB]",
        "accel/accel0": "pci 1da3:1020 Gaudi2 AI Training Accelerator",
        "ng0n1": "SAMSUNG MZWLJ3T8HBLS-00007",
        "watchdog": "sp5100-tco",
        "md0": "dgx:0",
    },
    "raspberry-pi-4": {
        "video0": "unicam-image",
        "video10": "bcm2835-codec-decode",
        "lirc0": "gpio_ir_recv",
        "i2c-1": "bcm2835 (i2c@7e804000), fe804000.i2c",
        "gpiochip0": "pinctrl-bcm2835 fe200000.gpio",
        "spidev0.1": "spidev spi0.1",
        "ttyAMA0": "uart-pl011 fe201000.serial",
        "snd/controlC0": "bcm2835_audio",
        "mmcblk0p2": "SC32G",
        "ttyS0": "bcm2835-aux-uart fe215040.serial",
    },
    "raspberry-pi-5": {
        "hailo0": "",
        "i2c-4": "Synopsys DesignWare I2C adapter, 1f00088000.i2c",
        "video8": "usb 046d:0825 Webcam C270 serial 5A1B2C30",
        "media3": "rp1-cfe",
    },
    "rockchip-board": {"dri/card1": "RKNPU fdab0000.npu", "iio:device0": "fec10000.saradc"},
    "imx-board": {"ttyRPMSG30": "rpmsg_tty virtio0.rpmsg-tty-channel.-1.30"},
    "industrial-pc": {
        "ttyUSB13": "usb 1a86:7523 CH340 serial converter",
        "ttyS4": "pci 1393:1181 Smartio CP-118EL-A (8-port RS-232/422/485)",
        "ptp0": "pci 8086:1533 I210 Gigabit Network Connection",
        "swradio0": "usb 0bda:2838 Realtek RTL2832 SDR serial 00000001",
    },
    "kvm-guest": {
        "vport2p1": "org.qemu.guest_agent.0",
        "vda": "pci 1af4:1042 Virtio 1.0 block device",
        "sr0": "QEMU_DVD-ROM",
    },
    "server": {
        "dri/card0": "pci 102b:0536 Integrated Matrox G200eW3 Graphics Controller",
        "watchdog0": "IPMI",
        "sg0": "PERC H730P Mini",
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_a_device_is_called_what_it_is(name: str) -> None:
    found = machine(name, *NAME_ATTRIBUTES)
    called = {each.devname: identification(each) or driver_and_address(each) for each in found.values()}

    assert {node: called[node] for node in NAMES[name]} == NAMES[name]


@pytest.mark.parametrize("attributes", [True, False], ids=["", "without-attributes"])
@pytest.mark.parametrize("name", MACHINES)
def test_every_device_on_a_bus_is_called_something_and_none_like_what_it_hangs_off(
    name: str, attributes: bool
) -> None:
    found = machine(name, *NAME_ATTRIBUTES, attributes=attributes)
    for each in found.values():
        # An image of Ceph is on no bus either.
        if each.device_node is None or each.is_virtual or each.sys_path.startswith("/sys/devices/rbd/"):
            continue
        called = identification(each) or driver_and_address(each)
        assert called, each.device_node
        for word in ("Root Port", "PCI Express", "Host Controller", "xHCI"):
            is_root_hub = each.properties.get("ID_VENDOR_ID") == "1d6b"
            assert is_root_hub or word not in called, (each.device_node, called)


def test_the_name_of_a_model_is_that_of_the_unit_and_not_of_the_card_that_a_bus_belongs_to() -> None:
    found = {each.devname: each for each in machine("laptop-intel", *NAME_ATTRIBUTES).values()}

    assert model_name(found["dri/card0"]) == "TigerLake-LP GT2 [Iris Xe Graphics]"
    assert [model_name(found[each]) for each in ("i2c-1", "rtc0", "tpm0")] == ["", "", ""]
    assert model_name(found["video2"]) == "Integrated_Camera"
