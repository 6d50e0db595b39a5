"""Where udev devices sit: ports, serial numbers and places of the chains that real machines have."""

from typing import Any

import pytest

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import UNKNOWN, Place, Spot, locate, unit_of
from tests.scenes.builders import (
    CONTROLLER,
    a_chain,
    a_device,
    a_fuse,
    a_modem,
    a_usb_device,
    a_usb_interface,
    a_usb_serial,
)

PLATFORM = "/sys/devices/platform/soc"


def within(device: UdevDevice) -> tuple[str, str]:
    place = locate(device)
    return place.within, place.spot.within


# Units and ports


def test_the_port_of_a_usb_device_is_its_chain_of_ports_below_the_controller() -> None:
    port = locate(a_usb_serial(port="2.3")).port
    assert port == Port(f"{CONTROLLER} usb 2.3", "port-2.3", f"{CONTROLLER} usb 2")


def test_bus_numbers_do_not_count() -> None:
    assert locate(a_usb_serial(bus=1, port="2.3")).port == locate(a_usb_serial(bus=7, port="2.3")).port


def test_the_two_root_hubs_of_a_controller_are_told_apart_by_their_generation() -> None:
    def on(bus: int, version: str) -> str:
        controller = a_device(CONTROLLER, subsystem="pci")
        root = a_device(
            f"{CONTROLLER}/usb{bus}",
            subsystem="usb",
            devtype="usb_device",
            attributes={"version": version},
            parent=controller,
        )
        stick = a_device(
            f"{root.sys_path}/{bus}-2",
            subsystem="usb",
            devtype="usb_device",
            parent=root,
            attributes={"version": "1"},
        )
        return locate(stick).port.exact

    assert on(1, " 2.00\n") == on(4, " 2.00") == f"{CONTROLLER} usb2 2"
    # Kernels differ about the minor version of one and the same root hub.
    assert on(2, " 3.00") == on(2, " 3.10") == f"{CONTROLLER} usb3 2"


def test_the_ports_of_two_controllers_differ() -> None:
    other = a_chain(("pci0000:00/0000:00:1a.0", "pci"), ("usb1", "usb"), ("1-2", "usb"), devtype="usb_device")
    assert locate(other).port.exact == "/sys/devices/pci0000:00/0000:00:1a.0 usb 2"
    assert locate(a_usb_device("2")).port.exact == f"{CONTROLLER} usb 2"


def test_a_controller_that_its_driver_made_is_not_told_by_the_number_of_its_arrival() -> None:
    def behind(number: int) -> Port:
        return locate(
            a_chain(
                ("platform/soc/a800000.usb", "platform"),
                (f"xhci-hcd.{number}.auto", "platform"),
                ("usb1", "usb"),
                ("1-1", "usb"),
                devtype="usb_device",
            )
        ).port

    assert behind(0) == behind(1)
    assert behind(0).exact == f"{PLATFORM}/a800000.usb/xhci-hcd.auto usb 1"


def test_a_root_hub_is_a_unit_too() -> None:
    root = a_usb_device().parent
    assert root is not None
    assert locate(root).port == Port(f"{CONTROLLER} usb 0", "port-0", f"{CONTROLLER} usb ")


def test_devices_at_the_ports_of_one_root_hub_share_a_hub() -> None:
    assert locate(a_usb_device("1")).port.hub == locate(a_usb_device("4")).port.hub
    assert locate(a_usb_device("1")).port.hub != locate(a_usb_device("1.1")).port.hub
    assert locate(a_usb_device("1.1")).port.hub == locate(a_usb_device("1.4")).port.hub


def test_a_usb_device_without_the_usual_parents_has_a_port_all_the_same() -> None:
    odd = a_device("/sys/devices/odd/1-2", subsystem="usb", devtype="usb_device")
    assert locate(odd).port == Port("/sys/devices/odd usb 2", "port-2", "/sys/devices/odd usb ")


def test_a_node_belongs_to_the_usb_device_not_to_the_hub_above() -> None:
    assert unit_of(a_usb_serial(port="2.3")).sys_name == "1-2.3"


def test_elsewhere_the_nearest_device_on_a_bus_with_addresses_is_the_unit() -> None:
    camera = a_chain(("pci0000:00/0000:00:1c.0", "pci"), ("0000:01:00.0", "pci"), ("dri/card0", "drm"))
    assert locate(camera).port == Port(
        "/sys/devices/pci0000:00/0000:00:1c.0/0000:01:00.0", "port-0000:01:00.0"
    )


def test_a_platform_device_that_a_driver_made_is_not_told_by_the_number_of_its_arrival() -> None:
    watchdog = a_chain(
        ("platform/pmc", "platform"), ("wdt.3.auto", "platform"), ("watchdog/watchdog0", "watchdog")
    )
    assert locate(watchdog).port == Port("/sys/devices/platform/pmc/wdt.auto", "port-wdt.auto")


def test_a_virtual_device_is_where_its_topmost_ancestor_is() -> None:
    assert locate(a_fuse()).port == Port("/sys/devices/virtual/misc/fuse", "fuse")
    tap = a_chain(("virtual/net/macvtap0", "net"), ("macvtap/tap7", "macvtap"))
    assert unit_of(tap).sys_name == "macvtap0"
    assert locate(tap).port.readable == "macvtap0"


# Serial numbers


def test_the_serial_number_is_the_units_own() -> None:
    assert locate(a_usb_serial(serial="A50285BI")).serial == "A50285BI"
    assert locate(a_usb_serial(serial=None)).serial is None
    assert locate(a_usb_serial(serial="  \n")).serial is None


def test_what_drivers_make_of_nothing_is_not_one_unit() -> None:
    """They are on a bus of their own, `/sys/devices/faux`."""
    cards = [a_chain(("faux", ""), (name, "faux"), ("drm/card0", "drm")) for name in ("vgem", "vkms")]
    assert [locate(card).port for card in cards] == [
        Port("/sys/devices/faux/vgem", "vgem"),
        Port("/sys/devices/faux/vkms", "vkms"),
    ]
    earlier = Spot("/sys/devices/faux", "", "card", UNKNOWN)
    assert [locate(card).before for card in cards] == [earlier, earlier]


def test_no_serial_number_of_what_the_unit_hangs_off_is_taken_for_the_units() -> None:
    enclosure = a_device("/sys/devices/enclosure", subsystem="x", attributes={"serial": "OUTER"})
    card = a_chain(("0000:01:00.0", "pci"), ("nvme/nvme0", "nvme"), parent=enclosure)
    assert locate(card).serial is None
    hub = a_usb_device("2", serial="HUB")
    behind = a_chain(("1-2.1", "usb"), parent=hub, devtype="usb_device")
    assert locate(behind).serial is None


def test_a_serial_number_below_the_unit_counts() -> None:
    nvme = a_chain(("0000:01:00.0", "pci"), ("nvme/nvme0", "nvme"), attributes={"serial": " S4GE \n"})
    namespace = a_chain(("nvme0n1", "block"), parent=nvme)
    assert locate(namespace).serial == "S4GE"


# Places within the unit


def test_the_unit_itself_is_no_place_within_it() -> None:
    assert within(a_usb_device()) == ("", "usb")
    assert within(a_fuse()) == ("", "node")


def test_the_one_node_that_one_expects_needs_no_name() -> None:
    assert within(a_usb_serial()) == ("", "if00")


def test_the_nodes_of_a_modem_are_told_apart_by_interface_and_kind() -> None:
    usb, first, second, third, control = a_modem()
    assert [within(each) for each in (usb, first, second, third, control)] == [
        ("", "usb"),
        ("", "if00"),
        ("if01", "if01"),
        ("if02", "if02"),
        ("if04-cdc-wdm", "if04-cdc-wdm"),
    ]


def test_an_interface_is_a_place() -> None:
    usb = a_usb_device()
    assert within(a_usb_interface(usb, "00")) == ("", "if00")
    assert within(a_usb_interface(usb, "0a")) == ("if0a", "if0a")
    numberless = a_chain((f"{usb.sys_name}:1.0", "usb"), parent=usb, devtype="usb_interface")
    assert within(numberless) == ("", "node")


def at(interface: str, *links: tuple[str, str], **last: Any) -> tuple[str, str]:
    return within(a_chain(*links, parent=a_usb_interface(a_usb_device(), interface), **last))


def test_the_nodes_of_a_camera_are_told_apart_by_index() -> None:
    assert at("00", ("video4linux/video0", "video4linux"), attributes={"index": "0"}) == ("", "if00")
    assert at("00", ("video4linux/video1", "video4linux"), attributes={"index": "1\n"}) == (
        "index1",
        "if00-index1",
    )
    assert at("00", ("video4linux/vbi0", "video4linux"))[0] == "vbi"
    assert at("00", ("video4linux/v4l-subdev3", "video4linux"))[0] == "v4l-subdev"


def test_the_ports_of_a_serial_adapter_are_told_apart_by_number() -> None:
    # The attribute stands on the usb-serial device between interface and tty.
    def port(number: str) -> str:
        usb_serial = a_device(
            "/sys/x/1-2:1.0/ttyUSB5",
            subsystem="usb-serial",
            attributes={"port_number": number},
            parent=a_usb_interface(a_usb_device(), "00"),
        )
        return within(a_chain(("tty/ttyUSB5", "tty"), parent=usb_serial))[0]

    assert [port(number) for number in ("0", "1", "3\n", "", "odd", "²")] == [
        "",
        "port1",
        "port3",
        "",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("subsystem", "name", "place"),
    [
        ("hidraw", "hidraw3", "hidraw"),
        ("sound", "controlC1", "control"),
        ("sound", "pcmC1D0p", "pcmD0p"),
        ("sound", "midiC2D1", "midiD1"),
        ("usbmisc", "hiddev0", "hiddev"),
        ("usbmisc", "lp1", "lp"),
        ("drm", "renderD128", "renderD"),
        ("dvb", "dvb1.frontend0", "dvb.frontend0"),
        ("spidev", "spidev1.0", "spidev.0"),
        ("spidev", "spidev0.1", "spidev.1"),
        ("i2c-dev", "i2c-11", "i2c"),
        ("gpio", "gpiochip512", "gpiochip"),
        ("iio", "iio:device2", "iio-device"),
        ("mtd", "mtd1ro", "mtdro"),
        ("ubi", "ubi0_1", "ubi-1"),
        ("vhost-vdpa", "vhost-vdpa-3", "vhost-vdpa"),
        ("apex", "apex_0", "apex"),
        ("block", "sdb", "disk"),
        ("bsg", "6:0:0:0", "bsg"),
        ("tpm", "tpmrm0", "tpmrm"),
        ("rfkill", "kfd", "kfd"),
    ],
)
def test_numbers_of_arrival_are_left_out_and_others_stay(subsystem: str, name: str, place: str) -> None:
    device = a_chain(("platform/soc/fe204000", "platform"), (f"{subsystem}/{name}", subsystem))
    assert within(device) == (place, place)


def test_a_partition_is_told_by_its_number() -> None:
    disk = a_chain(("platform/soc/fe204000", "platform"), ("block/mmcblk0", "block"), devtype="disk")
    partition = a_chain(("mmcblk0p2", "block"), parent=disk, devtype="partition", properties={"PARTN": "2"})
    assert within(partition) == ("part2", "part2")
    assert within(a_chain(("mmcblk0p2", "block"), parent=disk, devtype="partition"))[0] == "part"


def test_the_slots_of_a_card_reader_are_told_apart() -> None:
    def slot(address: str) -> str:
        target = a_chain((f"target{address[:5]}", "scsi"), parent=a_usb_interface(a_usb_device()))
        unit = a_chain((address, "scsi"), parent=target, devtype="scsi_device")
        return within(a_chain(("block/sdc", "block"), parent=unit))[0]

    assert slot("6:0:0:0") == "disk"
    assert slot("6:0:0:1") == "disk-lun0-0-1"
    assert slot("9:0:0:1") == "disk-lun0-0-1"


def test_disks_are_told_apart_by_their_port_of_the_controller() -> None:
    def disk(ata: int, port: str | None) -> str:
        attributes = {} if port is None else {f"ata_port/ata{ata}/port_no": port}
        at = a_chain(("pci0000:00/0000:00:1f.2", "pci"), (f"ata{ata}", ""), attributes=attributes)
        unit = a_chain((f"host{ata}", "scsi"), (f"{ata}:0:0:0", "scsi"), parent=at, devtype="scsi_device")
        return within(a_chain(("block/sda", "block"), parent=unit))[1]

    assert disk(3, "2") == disk(7, "2\n") == "disk-port2"
    assert disk(3, "0") == "disk-port0"
    assert disk(3, None) == disk(3, "x") == "disk"


def test_what_is_paired_with_a_receiver_has_its_own_place() -> None:
    receiver = ("0003:046D:C52B.0003", "hid")
    mouse = ("0003:046D:4026.0004", "hid")
    assert at("02", receiver, ("hidraw/hidraw0", "hidraw"))[0] == "if02-hidraw"
    assert at("02", receiver, mouse, ("hidraw/hidraw1", "hidraw"))[0] == "if02-hidraw-046D-4026"


def test_a_hid_device_is_named_without_the_number_of_its_arrival() -> None:
    assert at("00", ("0003:046D:C52B.0003", "hid"))[0] == "0003-046D-C52B"


def test_several_input_devices_of_one_interface_are_told_apart_by_what_they_call_themselves() -> None:
    def event(name: str) -> UdevDevice:
        keyboard = a_device(
            "/sys/x/input/input9",
            subsystem="input",
            attributes={"name": name},
            parent=a_usb_interface(a_usb_device(), "01"),
        )
        return a_chain(("event7", "input"), parent=keyboard)

    assert within(event("Keyboard Consumer Control\n")) == (
        "if01-event-Keyboard Consumer Control",
        "if01-event-Keyboard Consumer Control",
    )
    assert within(event("")) == ("if01-event", "if01-event")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        # Up to Linux 6.4, and from 6.5 on.
        ("platform/serial8250|tty/ttyS{line}", "line{line}"),
        ("platform/serial8250|serial8250:0/serial8250:0.{line}/tty/ttyS{line}", "line{line}"),
        # Elsewhere the line is the number in ttyS3: one of arrival.
        ("pnp0/00:04|tty/ttyS{line}", ""),
    ],
)
def test_the_line_of_a_serial_port_counts_where_it_is_an_address(path: str, place: str) -> None:
    unit, _, below = path.format(line=3).partition("|")
    subsystem = "pnp" if unit.startswith("pnp") else "platform"
    port = a_chain((unit, subsystem), (below, "tty"), attributes={"line": "3"})
    assert within(port) == (place.format(line=3), place.format(line=3) or "node")
    first = a_chain((unit, subsystem), (below, "tty"), attributes={"line": "0"})
    assert within(first) == ("", "node")


def test_a_place_is_a_value() -> None:
    tty = a_usb_serial(port="2", serial="A5")
    assert tty.usb_device is not None
    port = locate(tty.usb_device).port
    assert locate(tty) == Place(tty.usb_device, port, "A5", "", Spot(port.exact, "A5", "if00"))
    assert locate(tty).usb is tty.usb_device
    assert locate(a_fuse()).usb is None
