"""What a container can do to its host with device nodes that are not meant for one program, and which several
containers can share.

`allow_dangerous` is for disks and memory, which are the host. With the nodes here, a container can do more
than its operator expects, so a suggestion says what.

The rules of this file:

* The sentence says what the container can do, not that it is bad.
* Nobody shares such a node by accident: it is suggested without `replicas`.
* `replicas` are offered in a comment for software of the kernel, and where a driver keeps the work of several
  programs apart.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from genericdp.core.device import UdevDevice

#: The name of a device node below /dev -> what a container can do with it.
#:
#: The comments are the sources: files of the kernel (below Documentation, unless another folder is named),
#: manual pages, and documents of makers.
_CAN: Mapping[str, str] = {
    # input/uinput.rst, hid/uhid.rst
    "uinput|uhid": "create keyboards and mice, and so type into every console and session of the host",
    # drivers/bluetooth/hci_vhci.c
    "vhci": "create Bluetooth controllers that the host takes for real ones",
    # fs/fuse/cuse.c
    "cuse": "create device nodes that other programs of the host open",
    # usb/usbmon.rst
    r"usbmon\d+": "read all that is sent over the host's USB buses, including what is typed on keyboards",
    # arch/x86/microcode.rst
    "cpu/microcode": "load microcode into the host's processors",
    # cpuid(4)
    r"cpu/\d+/cpuid": "read the processor's features, which every program can do without it",
    # VirtualBox User Manual, "Security Guide"
    r"vbox(?:drv|drvu|netctl|guest|user)": "run code in the host's kernel through VirtualBox",
    # drivers/s390/char/vmcp.c
    "vmcp": "send commands to the hypervisor z/VM, which can stop the machine",
    # drivers/s390/cio/chsc_sch.c
    "chsc": "change the configuration of the machine's channels",
    # vsock(7), drivers/misc/vmw_vmci
    "vmci|vsock": "talk to the hypervisor and to other virtual machines",
    # drivers/xen/privcmd.c
    r"xen/(?:privcmd|hypercall)": "send commands to the hypervisor Xen, which controls all virtual machines",
    # drivers/xen, "Xen Project" manual pages
    r"xen/.*": "talk to the hypervisor Xen and share memory with other virtual machines",
    # drivers/platform/chrome/cros_ec_chardev.c
    r"cros_\w+": "send commands to the embedded controller, which switches the machine's power",
    # block/ublk.rst, userspace-api/vduse.rst
    r"ublk-control|vduse/control": "create disks of the host whose data it makes up itself",
    r"ublkc\d+|vduse/.*": "answer in place of the program that a disk of the host leads to",
    # drivers/char/nvram.c
    "nvram": "overwrite the settings of the firmware",
    # drivers/char/broadcom/bcm2835-gpiomem.c of Raspberry Pi's kernel
    r"gpiomem\d*": "switch every pin of the board, also those that the host uses",
    # "Mailbox property interface" in Raspberry Pi's documentation of the firmware
    "vcio": "send commands to the firmware, such as other clocks and voltages",
    # drivers/char/broadcom/rpivid-mem.c of Raspberry Pi's kernel
    r"rpivid-.*": "write to the registers of the video decoder, and through it to memory",
    # driver-api/ipmi.rst, ipmitool(1); drivers/misc/hpilo.c, hponcfg(8)
    r"ipmi(?:dev)?/?\d+|hpilo/.*": (
        "switch the machine off and change who may log in to its management controller"
    ),
    # admin-guide/pm/intel-speed-select.rst
    "isst_interface": "set the clocks of the host's processors and the limits of their power",
    # userspace-api/fwctl/fwctl.rst
    r"fwctl/.*": "send commands to the firmware of the hardware, for everybody who uses it",
    # drivers/remoteproc/remoteproc_cdev.c
    r"remoteproc\d+": "stop the coprocessor and start it with its firmware again",
    # driver-api/mei/mei.rst
    r"mei\d*": "talk to the management engine of the mainboard",
    # watchdog/watchdog-api.rst
    r"watchdog\d*": "restart the machine: it must write to the timer as long as it runs",
    # driver-api/rfkill.rst
    "rfkill": "switch the host's radios off",
    # rtc(4)
    r"rtc\d*": "set the clock with which the machine starts",
    # driver-api/ptp.rst
    r"ptp\d+": "set a clock of the hardware, such as that of a network card",
    # power/pm_qos_interface.rst
    "cpu_dma_latency": "keep the host's processors from saving power",
    # gpu/vgaarbiter.rst
    "vga_arbiter": "take graphics cards away from other programs",
    # admin-guide/mm/userfaultfd.rst
    "userfaultfd": "handle page faults of the kernel, which helps attacks on it; programs do without it",
    # arch/x86/sgx.rst
    "sgx_provision": "learn a number of the processor that lasts and identifies the machine",
    # drivers/crypto/intel/qat/qat_common/adf_ctl_drv.c
    "qat_adf_ctl": "configure the accelerators for the whole host",
    # "Security of Alveo Platform" in the documentation of XRT
    r"xclmgmt\d+": "load another design into the card, for everybody who uses it",
    # driver-api/mmc/mmc-dev-parts.rst
    r"mmcblk\d+rpmb": "write to the protected part of the host's flash, where keys are",
    # driver-api/tee.rst
    r"teepriv\d+": "answer the secure world in place of the host",
    # tpm2_unseal(1), systemd-cryptenroll(1)
    r"tpm(?:rm)?\d+": "use the keys in the host's TPM that have no password, such as that of a disk",
    # staging/rpmsg.rst
    "rpmsg_ctrl.*": "create and remove devices of the host",
}

#: Programs make virtual ones of these for a container (security/tpm/tpm_vtpm_proxy.rst), or hypervisors let
#: guests read them (drivers/ptp/ptp_kvm_common.c).
_MADE_FOR_GUESTS = frozenset({"tpm", "tpmrm", "ptp"})

#: Two containers with one of these would take input from, or write over, one another.
_NOT_SHARED = frozenset({"tty", "block", "input", "sound"})

#: sysfs attributes that tell which terminals are consoles of the kernel, beyond CORE_ATTRIBUTES
#: (Documentation/ABI/testing/sysfs-tty). Only verbs read them.
CONSOLE_ATTRIBUTES = frozenset({"active", "console"})

_CAUTIONS = {re.compile(name): text for name, text in _CAN.items()}


def what_it_can_do(node: UdevDevice) -> str:
    """What a container can do to the host with a device node; "" for one that is for programs."""
    if node.subsystem in _MADE_FOR_GUESTS and node.is_virtual:
        return ""
    return next((text for name, text in _CAUTIONS.items() if name.fullmatch(node.devname)), "")


def can_be_shared(nodes: Sequence[UdevDevice], *, is_software: bool) -> bool:
    """Whether several containers can use a device of these nodes at the same time.

    is_software  whether the kernel always gives it the same name, and no hardware is behind it
    """
    if is_software:
        return nodes[0].subsystem not in _NOT_SHARED
    if nodes[0].subsystem == "ptp":
        return nodes[0].is_virtual
    # gpu/drm-uapi.rst, "Render nodes"; userspace-api/tee.rst
    return nodes[0].subsystem == "tee" or any(node.sys_name.startswith("renderD") for node in nodes)


def consoles_of(nodes: Iterable[UdevDevice], present: Iterable[UdevDevice]) -> tuple[str, ...]:
    """The kernel's names of those terminals among these device nodes to which the kernel writes its messages.

    present  all device nodes of the machine
    """
    active = next((each.attributes.get("active", "") for each in present if each.devname == "console"), "")
    return tuple(
        node.sys_name
        for node in nodes
        if node.subsystem == "tty"
        and (node.sys_name in active.split() or node.attributes.get("console", "").strip() == "Y")
    )
