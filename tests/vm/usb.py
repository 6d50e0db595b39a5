"""The guest's USB ports: devices that QEMU plugs and unplugs.

The rules of this file:

* A port is named "3", or "1.2" for the second port of a hub in port 1.
* `unplug` returns once QEMU has reported that the device is gone.
"""

from typing import Any

from tests.vm.qmp import Qmp

#: The root ports of the guest's controller.
PORTS = 8

#: How much written data a serial adapter keeps, in bytes; a power of two.
_KEPT = 4096


class Usb:
    """The plugged devices, by port."""

    def __init__(self, qmp: Qmp) -> None:
        self._qmp = qmp
        self._plugged: dict[str, str] = {}

    def serial(self, port: str, serial: str) -> None:
        """Plug in an FTDI adapter (0403:6001) with this serial number; with "", QEMU's default."""
        chardev = f"line-{port.replace('.', '-')}"
        self._qmp.do("chardev-add", id=chardev, backend={"type": "ringbuf", "data": {"size": _KEPT}})
        # Without always-plugged, the adapter would wait for a peer at the other end of the line.
        numbered = {"serial": serial} if serial else {}
        self.plug(port, "usb-serial", chardev=chardev, always_plugged=True, **numbered)

    def written_to(self, port: str) -> str:
        """The data written to the adapter in this port since the last call."""
        chardev = f"line-{port.replace('.', '-')}"
        text: str = self._qmp.do("ringbuf-read", device=chardev, size=_KEPT)
        return text

    def storage(self, port: str) -> None:
        """Plug in a USB stick of one megabyte."""
        node = f"stick-{port.replace('.', '-')}"
        self._qmp.do("blockdev-add", driver="null-co", node_name=node, size=1 << 20, read_zeroes=True)
        self.plug(port, "usb-storage", drive=node)

    def plug(self, port: str, driver: str, **properties: Any) -> None:
        """Plug in a QEMU device, by the name of its driver."""
        name = f"usb-{port.replace('.', '-')}"
        self._qmp.do("device_add", driver=driver, id=name, bus="xhci.0", port=port, **properties)
        self._plugged[port] = driver

    def unplug(self, port: str) -> None:
        """Unplug the device in this port; a hub goes with everything behind it."""
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
        """Unplug everything."""
        for port in sorted(self._plugged, key=len):
            if port in self._plugged:
                self.unplug(port)
