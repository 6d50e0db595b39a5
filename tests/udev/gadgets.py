"""Devices that a test can plug in, as the kernel and udev describe them: values, nothing more.

A gadget is a tuple of entries, parents first. `Entry.record` is its text in umockdev's format:
tests/data/devices/*.umockdev are these gadgets, written by `python -m tests.udev.gadgets`, for
`umockdev-run --device FILE -- genericdp list`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTROLLER = "/devices/pci0000:00/0000:00:14.0"

#: What the kernel numbers characters devices of these subsystems with.
_USB, _TTY_USB, _USBMISC, _VIDEO, _MEDIA, _INPUT, _HIDRAW, _SOUND, _GPIO = (
    189, 188, 180, 81, 510, 13, 240, 116, 254,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One device of sysfs.

    path        below /sys
    node        below /dev ("ttyUSB0"), "" without one
    number      "major:minor", "" without a node
    kernel      properties of the kernel's uevent beside those that follow from the other fields
    udev        properties that udev's rules add
    shared      it stays when the gadget is unplugged: the host controller, a root hub
    """

    path: str
    subsystem: str
    node: str = ""
    number: str = ""
    devtype: str = ""
    driver: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    kernel: Mapping[str, str] = field(default_factory=dict)
    udev: Mapping[str, str] = field(default_factory=dict)
    devlinks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    shared: bool = False

    @property
    def sys_path(self) -> str:
        return f"/sys{self.path}"

    @property
    def kernel_properties(self) -> dict[str, str]:
        """What the kernel's uevent says, DEVNAME as the kernel has it (without /dev)."""
        major, _, minor = self.number.partition(":")
        known = {
            "MAJOR": major,
            "MINOR": minor,
            "DEVNAME": self.node,
            "DEVTYPE": self.devtype,
            "DRIVER": self.driver,
        }
        return {**{name: value for name, value in known.items() if value}, **self.kernel}

    @property
    def properties(self) -> dict[str, str]:
        """What udev says when it has dealt with the device."""
        known = {**self.kernel_properties, "DEVPATH": self.path, "SUBSYSTEM": self.subsystem, **self.udev}
        if self.node:
            known["DEVNAME"] = f"/dev/{self.node}"
        if self.devlinks:
            known["DEVLINKS"] = " ".join(self.devlinks)
        if self.tags:
            known["TAGS"] = known["CURRENT_TAGS"] = f":{':'.join(self.tags)}:"
        return known

    def record(self) -> str:
        """The entry in the format of umockdev-record."""
        lines = [f"P: {self.path}"]
        if self.node:
            lines.append(f"N: {self.node}")
        lines += [f"S: {link.removeprefix('/dev/')}" for link in self.devlinks]
        lines += [f"E: {name}={value}" for name, value in self.properties.items() if name != "DEVPATH"]
        if self.number:
            lines.append(f"A: dev={self.number}\\n")
        lines += [f"A: {name}={value}\\n" for name, value in self.attributes.items()]
        return "\n".join(lines) + "\n"


Gadget = tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Usb:
    """A USB device at `port` of bus 1 (`2.3`: port 3 of the hub at port 2), to hang entries off.

    serial    None: the unit has no serial number
    """

    port: str
    devnum: int
    vendor: str
    product: str
    maker: str
    model: str
    serial: str | None = None
    device_class: str = "00"

    @property
    def name(self) -> str:
        return f"1-{self.port}"

    @property
    def path(self) -> str:
        hubs = [f"1-{self.port[:end]}" for end, char in enumerate(self.port) if char == "."]
        return "/".join([CONTROLLER, "usb1", *hubs, self.name])

    @property
    def udev(self) -> dict[str, str]:
        """The properties that udev gives to it and to what hangs off it."""
        maker, model = self.maker.replace(" ", "_"), self.model.replace(" ", "_")
        properties = {
            "ID_BUS": "usb",
            "ID_VENDOR": maker,
            "ID_VENDOR_ID": self.vendor,
            "ID_MODEL": model,
            "ID_MODEL_ID": self.product,
            "ID_SERIAL": "_".join(filter(None, (maker, model, self.serial))),
        }
        return properties if self.serial is None else {**properties, "ID_SERIAL_SHORT": self.serial}

    def entries(self) -> Gadget:
        """The bus that it is on, and itself."""
        named = {} if self.serial is None else {"serial": self.serial}
        return (
            *root_hub(),
            Entry(
                self.path,
                "usb",
                node=f"bus/usb/001/{self.devnum:03}",
                number=f"{_USB}:{self.devnum - 1}",
                devtype="usb_device",
                driver="usb",
                attributes={
                    "authorized": "1",
                    "bDeviceClass": self.device_class,
                    "busnum": "1",
                    "devnum": str(self.devnum),
                    "idProduct": self.product,
                    "idVendor": self.vendor,
                    "manufacturer": self.maker,
                    "product": self.model,
                    **named,
                },
                kernel={"BUSNUM": "001", "DEVNUM": f"{self.devnum:03}"},
                udev=self.udev,
                tags=("systemd",),
            ),
        )

    def interface(self, number: int, driver: str, interface_class: str = "ff") -> Entry:
        """One of its interfaces."""
        return Entry(
            f"{self.path}/{self.name}:1.{number}",
            "usb",
            devtype="usb_interface",
            driver=driver,
            attributes={
                "authorized": "1",
                "bInterfaceClass": interface_class,
                "bInterfaceNumber": f"{number:02x}",
            },
        )

    def below(
        self,
        interface: int,
        inner: str,
        subsystem: str,
        node: str = "",
        number: str = "",
        *,
        driver: str = "",
        attributes: Mapping[str, str] | None = None,
        kernel: Mapping[str, str] | None = None,
        udev: Mapping[str, str] | None = None,
        devlinks: Iterable[str] = (),
    ) -> Entry:
        """What hangs off an interface; `inner` is the rest of its path."""
        properties = {
            **self.udev,
            "ID_USB_INTERFACE_NUM": f"{interface:02x}",
            "ID_PATH": f"pci-0000:00:14.0-usb-0:{self.port}:1.{interface}",
        }
        return Entry(
            f"{self.path}/{self.name}:1.{interface}/{inner}",
            subsystem,
            node=node,
            number=number,
            driver=driver,
            attributes=attributes or {},
            kernel=kernel or {},
            udev={**properties, **(udev or {})},
            devlinks=tuple(devlinks),
        )

    def serial_port(self, interface: int, tty: int, driver: str) -> Gadget:
        """An interface with a USB serial port, ttyUSB`tty`."""
        by_id = f"/dev/serial/by-id/usb-{self.udev['ID_SERIAL']}-if{interface:02x}-port0"
        by_path = f"/dev/serial/by-path/pci-0000:00:14.0-usb-0:{self.port}:1.{interface}-port0"
        return (
            self.interface(interface, driver),
            self.below(interface, f"ttyUSB{tty}", "usb-serial", driver=driver),
            self.below(
                interface,
                f"ttyUSB{tty}/tty/ttyUSB{tty}",
                "tty",
                f"ttyUSB{tty}",
                f"{_TTY_USB}:{tty}",
                devlinks=(by_id, by_path),
            ),
        )


def root_hub() -> Gadget:
    """The host controller and its root hub, which every USB gadget begins with."""
    return (
        Entry(
            CONTROLLER,
            "pci",
            driver="xhci_hcd",
            attributes={"numa_node": "0", "vendor": "0x8086", "device": "0x9d2f"},
            shared=True,
        ),
        Entry(
            f"{CONTROLLER}/usb1",
            "usb",
            node="bus/usb/001/001",
            number=f"{_USB}:0",
            devtype="usb_device",
            driver="usb",
            attributes={
                "authorized": "1",
                "bDeviceClass": "09",
                "busnum": "1",
                "devnum": "1",
                "idProduct": "0002",
                "idVendor": "1d6b",
                "serial": "0000:00:14.0",
            },
            kernel={"BUSNUM": "001", "DEVNUM": "001"},
            shared=True,
        ),
    )


def serial_dongle(
    port: str = "2", *, tty: int = 0, serial: str | None = "A50285BI", devnum: int = 5
) -> Gadget:
    """An FTDI USB serial adapter: /dev/ttyUSB`tty`."""
    usb = Usb(port, devnum, "0403", "6001", "FTDI", "FT232R USB UART", serial)
    return (*usb.entries(), *usb.serial_port(0, tty, "ftdi_sio"))


def modem(port: str = "4", *, first_tty: int = 0, serial: str | None = None, devnum: int = 6) -> Gadget:
    """A Quectel EC25: the USB node, ttyUSB of interfaces 00 to 03, cdc-wdm0 and wwan0 of interface 04."""
    usb = Usb(port, devnum, "2c7c", "0125", "Quectel", "EC25-E", serial, device_class="ef")
    ports = [entry for n in range(4) for entry in usb.serial_port(n, first_tty + n, "option")]
    return (
        *usb.entries(),
        *ports,
        usb.interface(4, "qmi_wwan"),
        usb.below(4, "usbmisc/cdc-wdm0", "usbmisc", "cdc-wdm0", f"{_USBMISC}:176"),
        usb.below(4, "net/wwan0", "net", kernel={"INTERFACE": "wwan0", "IFINDEX": "7"}),
    )


def webcam(
    port: str = "1", *, first_video: int = 0, serial: str | None = "7F3A91C0", devnum: int = 7
) -> Gadget:
    """A UVC camera: pictures (index 0), their metadata (index 1), and a media controller."""
    usb = Usb(port, devnum, "046d", "0825", "Logitech", "C270", serial, device_class="ef")
    videos = [
        usb.below(
            0,
            f"video4linux/video{first_video + index}",
            "video4linux",
            f"video{first_video + index}",
            f"{_VIDEO}:{first_video + index}",
            attributes={"index": str(index), "name": "UVC Camera (046d:0825)"},
            udev={"ID_V4L_CAPABILITIES": ":capture:" if index == 0 else ":"},
            devlinks=(f"/dev/v4l/by-id/usb-{usb.udev['ID_SERIAL']}-video-index{index}",),
        )
        for index in (0, 1)
    ]
    return (
        *usb.entries(),
        usb.interface(0, "uvcvideo", "0e"),
        *videos,
        usb.below(0, "media0", "media", "media0", f"{_MEDIA}:0", attributes={"model": "UVC Camera"}),
    )


def twins(*, serial: str | None = "0001") -> tuple[Gadget, Gadget]:
    """Two identical serial dongles, on ports 1 and 2: with the same serial number, or (None) without."""
    return (
        serial_dongle("1", tty=0, serial=serial, devnum=5),
        serial_dongle("2", tty=1, serial=serial, devnum=6),
    )


def hub(port: str = "3", *, devnum: int = 8, behind: int = 0) -> Gadget:
    """A hub, with serial dongles on its first `behind` ports (ttyUSB10 and so on)."""
    usb = Usb(port, devnum, "05e3", "0610", "GenesysLogic", "USB2.1 Hub", device_class="09")
    dongles = [
        serial_dongle(f"{port}.{n}", tty=9 + n, serial=f"HUB{n:04}", devnum=devnum + n)
        for n in range(1, behind + 1)
    ]
    bus = len(root_hub())
    below = [entry for dongle in dongles for entry in dongle[bus:]]
    return (*usb.entries(), usb.interface(0, "hub", "09"), *below)


def gamepad(port: str = "5", *, event: int = 8, devnum: int = 20) -> Gadget:
    """A game controller: one interface with an event node, a joystick node and a raw HID node."""
    usb = Usb(port, devnum, "054c", "09cc", "Sony", "Wireless Controller", None)
    hid = "0003:054C:09CC.0001"
    inputs = f"{hid}/input/input{event}"
    return (
        *usb.entries(),
        usb.interface(3, "usbhid", "03"),
        usb.below(3, hid, "hid", driver="playstation", kernel={"HID_NAME": "Sony Wireless Controller"}),
        usb.below(3, inputs, "input", attributes={"name": "Sony Wireless Controller"}),
        usb.below(3, f"{inputs}/event{event}", "input", f"input/event{event}", f"{_INPUT}:{64 + event}"),
        usb.below(3, f"{inputs}/js0", "input", "input/js0", f"{_INPUT}:0"),
        usb.below(3, f"{hid}/hidraw/hidraw0", "hidraw", "hidraw0", f"{_HIDRAW}:0"),
    )


def sound_card(port: str = "6", *, card: int = 1, serial: str | None = None, devnum: int = 21) -> Gadget:
    """A USB headset: control, playback and capture nodes of one card."""
    usb = Usb(port, devnum, "0d8c", "0014", "C-Media", "USB Audio Device", serial)
    nodes = {f"controlC{card}": 32, f"pcmC{card}D0p": 48, f"pcmC{card}D0c": 56}
    return (
        *usb.entries(),
        usb.interface(0, "snd-usb-audio", "01"),
        usb.below(0, f"sound/card{card}", "sound", attributes={"id": "Device", "number": str(card)}),
        *(
            usb.below(0, f"sound/card{card}/{name}", "sound", f"snd/{name}", f"{_SOUND}:{minor}")
            for name, minor in nodes.items()
        ),
    )


def gpiochip(number: int = 0) -> Gadget:
    """A GPIO controller on the platform bus."""
    platform = "/devices/platform/soc/fe200000.gpio"
    return (
        Entry(platform, "platform", driver="pinctrl-bcm2711"),
        Entry(
            f"{platform}/gpiochip{number}",
            "gpio",
            node=f"gpiochip{number}",
            number=f"{_GPIO}:{number}",
            devtype="gpio_chip",
        ),
    )


#: The files of recorded devices, and what is in them.
RECORDED: Mapping[str, Gadget] = {
    "usb-serial": serial_dongle(),
    "lte-modem": modem(),
    "webcam": webcam(),
    "twins-same-serial": (*twins()[0], *twins()[1][2:]),
    "twins-without-serial": (*twins(serial=None)[0], *twins(serial=None)[1][2:]),
    "hub": hub(behind=3),
    "gamepad": gamepad(),
    "sound-card": sound_card(),
    "gpiochip": gpiochip(),
}

FOLDER = Path(__file__).parents[1] / "data" / "devices"


def text(gadget: Gadget) -> str:
    """The gadget as a recorded file."""
    return "\n".join(entry.record() for entry in gadget)


if __name__ == "__main__":
    for file_name, recorded in RECORDED.items():
        (FOLDER / f"{file_name}.umockdev").write_text(text(recorded), encoding="utf-8")
