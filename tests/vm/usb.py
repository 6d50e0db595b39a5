"""The USB ports of the guest, seen from outside: what QEMU plugs into them and pulls out.

The rules of this file:

* A device is plugged by the name of its port: "3", or "1.2" for the second port of a hub in port 1.
* To pull something out is to return once QEMU has said that it is gone.
"""

from typing import Any

from tests.vm.qmp import Qmp

#: The root ports of the guest's controller.
PORTS = 8

#: What a serial adapter keeps of what was written to it, in bytes; a power of two.
_KEPT = 4096


class Usb:
    """What is plugged in, by the port."""

    def __init__(self, qmp: Qmp) -> None:
        self._qmp = qmp
        self._plugged: dict[str, str] = {}

    def serial(self, port: str, serial: str) -> None:
        """Plug in an FTDI adapter (0403:6001) with this serial number; "" has QEMU's own."""
        chardev = f"line-{port.replace('.', '-')}"
        self._qmp.do("chardev-add", id=chardev, backend={"type": "ringbuf", "data": {"size": _KEPT}})
        # Without always-plugged, the adapter would wait for somebody at the other end of the line.
        numbered = {"serial": serial} if serial else {}
        self.plug(port, "usb-serial", chardev=chardev, always_plugged=True, **numbered)

    def written_to(self, port: str) -> str:
        """What came out of the serial line of the adapter in this port since last asked."""
        chardev = f"line-{port.replace('.', '-')}"
        text: str = self._qmp.do("ringbuf-read", device=chardev, size=_KEPT)
        return text

    def storage(self, port: str) -> None:
        """Plug in a stick of a megabyte."""
        node = f"stick-{port.replace('.', '-')}"
        self._qmp.do("blockdev-add", driver="null-co", node_name=node, size=1 << 20, read_zeroes=True)
        self.plug(port, "usb-storage", drive=node)

    def plug(self, port: str, driver: str, **properties: Any) -> None:
        """Plug in one of QEMU's devices, by the name of its driver."""
        name = f"usb-{port.replace('.', '-')}"
        self._qmp.do("device_add", driver=driver, id=name, bus="xhci.0", port=port, **properties)
        self._plugged[port] = driver

    def unplug(self, port: str) -> None:
        """Pull out what is in this port; of a hub, with all that is behind it."""
        behind = [each for each in self._plugged if each.startswith(f"{port}.")]
        name = port.replace(".", "-")
        self._qmp.do("device_del", id=f"usb-{name}")
        self._qmp.wait_for("DEVICE_DELETED", device=f"usb-{name}")
        for each in (*behind, port):
            driver = self._plugged.pop(each)
            if driver == "usb-serial":
                self._qmp.do("chardev-remove", id=f"line-{each.replace('.', '-')}")
            elif driver == "usb-storage":
                self._qmp.do("blockdev-del", node_name=f"stick-{each.replace('.', '-')}")

    def unplug_all(self) -> None:
        """Pull out everything; what is behind a hub goes with it."""
        for port in sorted(self._plugged, key=len):
            if port in self._plugged:
                self.unplug(port)
