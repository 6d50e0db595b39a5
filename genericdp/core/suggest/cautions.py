"""What a container can do to its host with device nodes that are not meant for one program.

`allow_dangerous` is for disks and memory, which are the host. With the nodes here, a container can do more
than its operator expects, so a suggestion says what.

The rules of this file:

* The sentence says what the container can do, not that it is bad.
* Nobody shares such a node by accident: it is suggested without `replicas`.
"""

import re
from collections.abc import Mapping

from genericdp.core.device import UdevDevice

#: The name of a device node below /dev -> what a container can do with it.
_CAN: Mapping[str, str] = {
    "uinput|uhid": "create keyboards and mice, and so type into every console and session of the host",
    "vhci": "create Bluetooth controllers that the host takes for real ones",
    "cuse": "create device nodes that other programs of the host open",
    r"usbmon\d+": "read all that is sent over the host's USB buses, including what is typed on keyboards",
    "cpu/microcode": "load microcode into the host's processors",
    r"cpu/\d+/cpuid": "read the processor's features, which every program can do without it",
    r"vbox(?:drv|drvu|netctl|guest|user)": "run code in the host's kernel through VirtualBox",
    "vmcp": "send commands to the hypervisor z/VM, which can stop the machine",
    "vmci|vsock": "talk to the hypervisor and to other virtual machines",
    "nvram": "overwrite the settings of the firmware",
    r"gpiomem\d*": "switch every pin of the board, also those that the host uses",
    "vcio": "send commands to the firmware, such as other clocks and voltages",
    r"rpivid-.*": "write to the registers of the video decoder, and through it to memory",
    r"ipmi(?:dev)?/?\d+": "switch the machine off and change who may log in to its management controller",
    r"mei\d*": "talk to the management engine of the mainboard",
    r"watchdog\d*": "restart the machine: it must write to the timer as long as it runs",
    "rfkill": "switch the host's radios off",
    r"rtc\d*": "set the clock with which the machine starts",
    r"ptp\d+": "set the clock of a network card",
    "cpu_dma_latency": "keep the host's processors from saving power",
    "vga_arbiter": "take graphics cards away from other programs",
    "userfaultfd": "handle page faults of the kernel, which helps attacks on it; programs do without it",
    "sgx_provision": "learn a number of the processor that lasts and identifies the machine",
    "qat_adf_ctl": "configure the accelerators for the whole host",
    r"xclmgmt\d+": "load another design into the card, for everybody who uses it",
    r"mmcblk\d+rpmb": "write to the protected part of the host's flash, where keys are",
    r"teepriv\d+": "answer the secure world in place of the host",
    "lightnvm/control|rpmsg_ctrl.*": "create and remove devices of the host",
}
_CAUTIONS = {re.compile(name): text for name, text in _CAN.items()}


def what_it_can_do(node: UdevDevice) -> str:
    """What a container can do to the host with a device node; "" for one that is for programs."""
    return next((text for name, text in _CAUTIONS.items() if name.fullmatch(node.devname)), "")
