"""Which device nodes a first draft leaves out, and why: what no pod asks for.

The rules of this file:

* What udev does not know a kind for is offered: it may be what the operator is here for.
* Nothing is hidden: a rule for each of these can still be suggested by its name.
"""

import re

from genericdp.core.device import UdevDevice
from genericdp.core.explain import selection
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.place import unit_of
from genericdp.core.suggest.cautions import what_it_can_do
from genericdp.core.suggest.fixed_names import has_a_fixed_name, is_configured
from genericdp.core.suggest.units.models import driver_of

#: What a list leaves out, too; in a draft, these share a line.
_TERMINALS = frozenset({"nodes that every container has", "virtual consoles", "pseudo-terminals"})
_CONSOLES = re.compile(r"hvc\d+|console|ttyprintk")

#: What the host's own services need, and what programs open only together with something else.
_SELDOM_KINDS = frozenset(
    {
        *("rtc", "ptp", "pps", "watchdog", "mei", "cec", "graphics", "drm_dp_aux_dev", "nvme"),
        *("nvme-generic", "mtd", "ubi", "tee", "rpmsg", "mmc_rpmb", "infiniband_mad", "virtio-ports", "lirc"),
        *("scsi_generic", "adf_ctl", "bcm2708_vcio", "hidraw-control", "ppdev", "nd", "ndctl", "ptp_kvm"),
    }
)

#: Why terminals and consoles are left out.
TERMINALS = "terminals, and what every container has"

#: Why displays, clocks, buttons and the like are left out.
SELDOM = "seldom what a pod needs"

#: Software of the kernel that pods do ask for; named first.
POPULAR = ("/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vhost-net")


#: What these drivers run is inside the chip or leads to a display: nothing is connected that a pod could use.
_INTERNAL = frozenset({"brcmstb-i2c", "brcmstb-gpio", "raspberrypi-exp-gpio"})


def why_left_out(node: UdevDevice) -> str:
    """Why a draft leaves a device node out, as the head of a list; "" when it does not."""
    if is_dangerous(node):
        return "control of the host"
    kind = selection.why_left_out(node)
    if kind in _TERMINALS or _CONSOLES.fullmatch(node.devname):
        return TERMINALS
    if kind == selection.WITHOUT_HARDWARE:
        return kind
    if what_it_can_do(node):
        return "they act on the whole host"
    if has_a_fixed_name(node) and node.is_virtual and not is_configured(node):
        return "software of the kernel"
    if node.subsystem in _SELDOM_KINDS or _is_seldom(node):
        return SELDOM
    return ""


def _is_seldom(node: UdevDevice) -> bool:
    unit = unit_of(node)
    match node.subsystem:
        case "input":
            # Buttons, lids, jacks of sound cards, the mouse of a guest.
            return node.usb_device is None and not any(each.subsystem == "hid" for each in node.ancestors())
        case "i2c-dev":
            # Memory modules, sensors of the mainboard and displays are there.
            return unit.subsystem == "pci" or driver_of(node) in _INTERNAL
        case "video4linux" | "media":
            # A camera's library sets the image processor up together with other parts.
            return node.sys_name.startswith(("swradio", "radio")) or "isp" in driver_of(node)
        case "sound":
            return "hdmi" in driver_of(node)
        case "gpio":
            return driver_of(node) in _INTERNAL
        case "scsi_tape":
            # The same drive with other settings for density and compression, or rewound when it is closed.
            return node.sys_name[-1] in "alm" or not node.sys_name.startswith("nst")
        case _:
            return False
