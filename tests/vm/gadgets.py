"""USB devices that QEMU lacks, at ports inside the guest: with any descriptors and serial number.

The rules of this file:

* The ports are those of the kernel's dummy_hcd; inside/gadget.py acts as the plugged device.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote

from tests.vm.seed import INSIDE

PORTS = 4

_READY = f"""
modprobe -a libcomposite
[ -d /sys/module/dummy_hcd ] || modprobe dummy_hcd num={PORTS}
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
"""


@dataclass(frozen=True, slots=True)
class Gadget:
    """The descriptors of a device.

    functions    in the order of their interface numbers, under the names of inside/gadget.py
    """

    vendor: str
    product: str
    serial: str
    functions: Sequence[str]
    manufacturer: str = "Example"
    model: str = "Gadget"


def cdc_acm(serial: str, ports: int = 2) -> Gadget:
    """A board with `ports` serial ports of the standard class (ttyACM), with two interfaces each."""
    return Gadget("1d6b", "0104", serial, [f"acm.{number}" for number in range(ports)])


def modem(serial: str) -> Gadget:
    """A reduced Quectel EC25: NMEA on interface 1, AT on 2 (both for the `option` driver), and QMI."""
    functions = ["nothing", "gser.0", "gser.1", "qmi"]
    return Gadget("2c7c", "0125", serial, functions, manufacturer="Quectel", model="EC25-E")


class Gadgets:
    """The plugged gadgets, by port. `sh` runs a shell script inside."""

    def __init__(self, sh: Callable[[str], str]) -> None:
        self._sh = sh
        self._plugged: set[int] = set()

    def plug(self, port: int, gadget: Gadget) -> None:
        """Plug a gadget into a port, 0 … PORTS-1."""
        wanted = {
            "name": f"port{port}",
            "controller": f"dummy_udc.{port}",
            "vendor": gadget.vendor,
            "product": gadget.product,
            "strings": {
                "serialnumber": gadget.serial,
                "manufacturer": gadget.manufacturer,
                "product": gadget.model,
            },
            "functions": list(gadget.functions),
        }
        self._sh(
            f"{_READY}systemd-run --quiet --collect --unit=gadget-{port} --property=Type=notify "
            f"python3 {INSIDE}/gadget.py {quote(json.dumps(wanted))}"
        )
        self._plugged.add(port)

    def unplug(self, port: int) -> None:
        """Unplug the gadget in this port."""
        self._sh(f"systemctl stop gadget-{port}")
        self._plugged.remove(port)

    def unplug_all(self) -> None:
        """Unplug all gadgets."""
        for port in sorted(self._plugged):
            self.unplug(port)

    def forget(self) -> None:
        """Forget all gadgets: they do not survive a restart of the guest."""
        self._plugged.clear()
