"""USB devices whose ids change when a program loads their firmware: a rule for one pair would lose the unit.

The rules of this file:

* Only what the program itself looks for is here, so that no other model is taken for the unit.
* Before and after, the unit has the same port and nothing else: its serial number comes with the firmware.
"""

from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.rules.match import usb_value


@dataclass(frozen=True, slots=True)
class Loaded:
    """A device that gets its firmware from a program.

    ids   the pairs of vendor and product that the program finds it by, in the order in which it has them
    what  what loads the firmware
    """

    ids: tuple[str, ...]
    what: str


_LOADED = (
    # libedgetpu, driver/beagle/beagle_usb_driver_provider.cc: in DFU mode, and then as an accelerator.
    Loaded(("1a6e:089a", "18d1:9302"), "libedgetpu"),
    # XLink, src/pc/protocols/usb_host.cpp: of the first stick, of all others, of a boot loader, of a program.
    Loaded(("03e7:2150", "03e7:2485", "03e7:f63c", "03e7:f63b"), "OpenVINO or DepthAI"),
)


def loaded_of(usb: UdevDevice) -> Loaded | None:
    """What gets its firmware from a program, if a USB device is that; None for any other."""
    own = ":".join(usb_value(usb, key) or "" for key in ("vendor", "product"))
    return next((each for each in _LOADED if own in each.ids), None)
