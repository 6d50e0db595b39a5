"""Which devices there are: found, read, kept current, by looking only (no monitor here)."""

import errno
from dataclasses import replace

import pytest

from genericdp.core.device import DeviceNumber
from genericdp.core.hint import Poll, RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices
from genericdp.udev.unread import complaint, failure
from tests.udev import gadgets
from tests.udev.gadgets import Entry, Gadget
from tests.udev.listening import by_node
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed


def the(gadget: Gadget, node: str) -> Entry:
    return next(entry for entry in gadget if entry.node == node)


def changed(entry: Entry, action: str = "change") -> Uevent:
    return Uevent(action, entry.sys_path, entry.subsystem, "udev")


def removed(entry: Entry) -> Uevent:
    return Uevent("remove", entry.sys_path, entry.subsystem, "kernel")


def test_a_machine_without_devices_has_none(bed: Testbed) -> None:
    devices = UdevDevices()

    assert not devices.resync()
    assert devices.devices == {}


def test_a_serial_dongle_is_read_with_everything_it_hangs_off(bed: Testbed) -> None:
    dongle = gadgets.serial_dongle()
    bed.plug(dongle)
    devices = UdevDevices()

    assert devices.resync()

    tty = by_node(devices)["/dev/ttyUSB0"]
    entry = the(dongle, "ttyUSB0")
    assert tty.sys_path == entry.sys_path
    assert tty.subsystem == "tty"
    assert tty.number == DeviceNumber("c", 188, 0)
    assert tty.node_is_there
    assert tty.initialized
    assert tty.devlinks == tuple(sorted(entry.devlinks))
    assert tty.properties["ID_SERIAL_SHORT"] == "A50285BI"
    assert tty.properties["DEVNAME"] == "/dev/ttyUSB0"
    assert [(each.subsystem, each.devtype, each.driver) for each in tty.ancestors()] == [
        ("usb-serial", "", "ftdi_sio"),
        ("usb", "usb_interface", "ftdi_sio"),
        ("usb", "usb_device", "usb"),
        ("usb", "usb_device", "usb"),
        ("pci", "", "xhci_hcd"),
    ]
    assert tty.usb_interface is not None
    assert tty.usb_interface.attributes == {
        "authorized": "1",
        "bInterfaceClass": "ff",
        "bInterfaceNumber": "00",
    }
    assert tty.usb_device is not None
    assert tty.usb_device.attributes == {
        "authorized": "1",
        "busnum": "1",
        "devnum": "5",
        "idProduct": "6001",
        "idVendor": "0403",
        "serial": "A50285BI",
    }
    assert tty.usb_device.tags == {"systemd"}


@pytest.mark.parametrize("name", gadgets.RECORDED)
def test_every_node_of_a_gadget_is_found_and_hangs_off_the_gadget(bed: Testbed, name: str) -> None:
    gadget = gadgets.RECORDED[name]
    bed.plug(gadget)
    devices = UdevDevices()
    devices.resync()

    nodes = {f"/dev/{entry.node}": entry.sys_path for entry in gadget if entry.node}

    assert {node: device.sys_path for node, device in by_node(devices).items()} == nodes
    above = {entry.sys_path for entry in gadget}
    for device in by_node(devices).values():
        assert {each.sys_path for each in device.ancestors()} <= above


def test_a_device_without_a_node_at_or_below_it_is_not_read(bed: Testbed) -> None:
    bed.plug(gadgets.modem())
    devices = UdevDevices()
    devices.resync()

    assert not [path for path in devices.devices if path.endswith("/net/wwan0")]


def test_an_event_for_what_has_no_node_changes_nothing(bed: Testbed) -> None:
    modem = gadgets.modem()
    bed.plug(modem)
    devices = UdevDevices()
    devices.resync()

    net = next(entry for entry in modem if entry.subsystem == "net")
    assert not devices.apply(changed(net))
    assert not devices.apply(Uevent("add", "/sys/module/option", "module", "udev"))


def test_siblings_share_their_parents(bed: Testbed) -> None:
    bed.plug(gadgets.webcam())
    devices = UdevDevices()
    devices.resync()

    video = by_node(devices)
    assert video["/dev/video0"].parent is video["/dev/video1"].parent
    assert video["/dev/video0"].parent is video["/dev/media0"].parent
    assert video["/dev/video0"].usb_device is devices.devices[gadgets.webcam()[2].sys_path]


@pytest.mark.parametrize(
    ("below", "attribute"),
    [
        ("ata3", "ata_port/ata3/port_no"),
        ("host0/port-0:1/end_device-0:1", "sas_device/end_device-0:1/sas_address"),
        ("host0/rport-0:0-3", "fc_remote_ports/rport-0:0-3/port_name"),
        ("host3/session2", "iscsi_session/session2/targetname"),
        ("host3/3:0:0:1", "wwid"),
        ("virtual/block/dm-0", "dm/uuid"),
        ("virtual/block/md127", "md/uuid"),
        ("nvme/nvme0/nvme0n1", "nsid"),
        ("nvme/nvme0/ng0n1", "../nvme0n1/nsid"),
    ],
)
def test_what_a_bus_calls_a_disk_is_read(bed: Testbed, below: str, attribute: str) -> None:
    above = f"/devices/pci0000:00/0000:00:1f.2/{below}"
    bed.plug((Entry(f"{above}/block/sdb", "block", node="sdb", number="8:16", devtype="disk"),))
    file = bed.root / f"sys{above}/{attribute}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("2\n")
    (bed.root / f"sys{above}/uevent").touch()
    devices = UdevDevices()
    devices.resync()

    parent = by_node(devices)["/dev/sdb"].parent
    assert parent is not None
    assert parent.attributes == {attribute: "2"}


@pytest.mark.parametrize("has_peer", [False, True])
def test_the_port_in_the_same_socket_is_read(bed: Testbed, *, has_peer: bool) -> None:
    controller = "/devices/pci0000:00/0000:00:14.0"
    below, node = f"{controller}/usb2/2-3", "bus/usb/002/004"
    unit = Entry(below, "usb", node=node, number="189:131", devtype="usb_device")
    bed.plug((unit,))
    port = bed.root / f"sys{controller}/usb2/2-0:1.0/usb2-port3"
    port.mkdir(parents=True)
    if has_peer:
        (port / "peer").symlink_to("../../../usb1/1-0:1.0/usb1-port7")
    devices = UdevDevices()
    devices.resync()

    found = by_node(devices)[f"/dev/{node}"].attributes.get("port/peer")
    assert found == (f"/sys{controller}/usb1/1-0:1.0/usb1-port7" if has_peer else None)
    # It is also known of what cannot be read.
    part = f"/sys{below}/2-3:1.0/ttyUSB0"
    error = complaint({part: failure({}, part, OSError(errno.EIO, "Input/output error"))})
    assert error is not None
    assert error.paths == {part: f"/sys{controller}/usb1/1-7" if has_peer else ""}


def test_what_did_not_change_stays_the_same_object(bed: Testbed) -> None:
    bed.plug(gadgets.webcam(), gadgets.modem(), gadgets.hub(behind=3))
    devices = UdevDevices()
    devices.resync()
    before = dict(devices.devices)

    assert not devices.resync()
    for sys_path in before:
        assert not devices.apply(Uevent("change", sys_path, "", "udev"))

    assert all(devices.devices[sys_path] is device for sys_path, device in before.items())
    assert len(devices.devices) == len(before)


def test_links_and_tags_are_in_the_same_order_however_often_they_are_read(bed: Testbed) -> None:
    """Sets come out of libudev in another order each time, which is not a change."""
    links = tuple(f"/dev/link/{n}" for n in range(9))
    tags = tuple("abcdefgh")
    entry = replace(gadgets.gpiochip()[1], devlinks=links, tags=tags)
    bed.plug((entry,))
    devices = UdevDevices()
    devices.resync()

    for _ in range(20):
        assert not devices.apply(Uevent("change", entry.sys_path, "", "udev"))

    device = by_node(devices)["/dev/gpiochip0"]
    assert device.devlinks == links
    assert device.properties["DEVLINKS"] == " ".join(links)
    assert device.properties["TAGS"] == ":a:b:c:d:e:f:g:h:"
    assert device.tags == set(tags)


def test_a_new_device_leaves_the_others_as_they_are(bed: Testbed) -> None:
    bed.plug(gadgets.webcam())
    devices = UdevDevices()
    devices.resync()
    before = dict(devices.devices)

    dongle = gadgets.serial_dongle()
    bed.plug(dongle)
    assert devices.apply(changed(the(dongle, "ttyUSB0"), "add"))

    assert by_node(devices)["/dev/ttyUSB0"].usb_device is by_node(devices)["/dev/bus/usb/001/005"]
    assert all(devices.devices[sys_path] is device for sys_path, device in before.items())


def test_a_device_that_is_unplugged_goes_with_all_that_was_there_for_its_sake(bed: Testbed) -> None:
    camera, dongle = gadgets.webcam(), gadgets.serial_dongle()
    bed.plug(camera, dongle)
    devices = UdevDevices()
    devices.resync()

    bed.unplug(dongle)
    assert devices.apply(removed(dongle[2]))

    left = {entry.sys_path for entry in camera}
    assert set(devices.devices) == left
    assert not devices.resync()
    assert not devices.apply(removed(dongle[2])), "each of its uevents is followed"


def test_a_hub_that_is_unplugged_takes_everything_behind_it_away_at_the_first_event(bed: Testbed) -> None:
    hub = gadgets.hub(behind=4)
    bed.plug(hub)
    devices = UdevDevices()
    devices.resync()
    assert "/dev/ttyUSB13" in by_node(devices)

    bed.unplug(hub)
    assert devices.apply(removed(hub[2]))

    assert set(by_node(devices)) == {"/dev/bus/usb/001/001"}


def test_a_unit_that_comes_back_under_another_name_is_another_incarnation(bed: Testbed) -> None:
    bed.plug(gadgets.serial_dongle(tty=0))
    devices = UdevDevices()
    devices.resync()
    before = by_node(devices)["/dev/ttyUSB0"]

    bed.unplug(gadgets.serial_dongle(tty=0))
    bed.plug(gadgets.serial_dongle(tty=1, devnum=9))
    devices.resync()

    after = by_node(devices)["/dev/ttyUSB1"]
    assert "/dev/ttyUSB0" not in by_node(devices)
    assert after.usb_device is not None
    assert before.usb_device is not None
    assert after.usb_device.sys_path == before.usb_device.sys_path
    assert after.usb_device.incarnation != before.usb_device.incarnation
    assert after.usb_device.attributes["devnum"] == "9"


def test_another_unit_at_the_same_place_is_never_mistaken_for_the_old_one(bed: Testbed) -> None:
    """All events of the swap but the last are lost: what hangs off the newcomer is the newcomer."""
    bed.plug(gadgets.serial_dongle(serial="OLD"))
    devices = UdevDevices()
    devices.resync()

    bed.unplug(gadgets.serial_dongle(serial="OLD"))
    new = gadgets.serial_dongle(serial="NEW")
    bed.plug(new)
    assert devices.apply(changed(the(new, "ttyUSB0"), "add"))

    tty = by_node(devices)["/dev/ttyUSB0"]
    assert tty.properties["ID_SERIAL_SHORT"] == "NEW"
    assert tty.usb_device is not None
    assert tty.usb_device.attributes["serial"] == "NEW"
    assert tty.usb_device is by_node(devices)["/dev/bus/usb/001/005"]
    assert not devices.resync()


def test_a_late_remove_of_the_kernel_spares_the_successor(bed: Testbed) -> None:
    """The two sockets are read one after the other: udev's `add` may be heard before the `remove`."""
    old, new = gadgets.serial_dongle(serial="OLD"), gadgets.serial_dongle(serial="NEW")
    bed.plug(old)
    devices = UdevDevices()
    devices.resync()
    bed.unplug(old)
    bed.plug(new)
    for entry in new:
        devices.apply(changed(entry, "add"))

    for entry in reversed(old):
        assert not devices.apply(removed(entry))

    assert by_node(devices)["/dev/ttyUSB0"].properties["ID_SERIAL_SHORT"] == "NEW"


def test_a_remove_of_the_kernel_takes_the_old_one_away_although_another_is_there_already(
    bed: Testbed,
) -> None:
    """What is there now is udev's to announce."""
    old, new = gadgets.serial_dongle(serial="OLD"), gadgets.serial_dongle(serial="NEW")
    bed.plug(old)
    devices = UdevDevices()
    devices.resync()
    bed.unplug(old)
    bed.attach(new)

    assert devices.apply(removed(the(old, "ttyUSB0")))

    assert "/dev/ttyUSB0" not in by_node(devices)


def test_a_device_is_gone_at_the_remove_of_the_kernel_although_its_directory_still_exists(
    bed: Testbed,
) -> None:
    """The kernel sends the event before it removes the directory, so a fast reader still sees it."""
    dongle = gadgets.serial_dongle()
    bed.plug(dongle)
    devices = UdevDevices()
    devices.resync()

    bed.dismantle(the(dongle, "ttyUSB0"))
    assert devices.apply(removed(the(dongle, "ttyUSB0")))

    assert "/dev/ttyUSB0" not in by_node(devices)


def test_a_remove_without_an_add_changes_nothing(bed: Testbed) -> None:
    bed.plug(gadgets.webcam())
    devices = UdevDevices()
    devices.resync()

    dongle = gadgets.serial_dongle()
    for entry in dongle[2:]:
        assert not devices.apply(removed(entry))
        assert not devices.apply(changed(entry, "remove"))


def test_an_add_for_a_device_that_is_gone_already_changes_nothing(bed: Testbed) -> None:
    bed.plug(gadgets.webcam())
    devices = UdevDevices()
    devices.resync()

    for entry in gadgets.serial_dongle():
        assert not devices.apply(changed(entry, "add"))


@pytest.mark.parametrize("action", ["add", "change", "bind", "unbind", "online", "offline", "move", "x"])
def test_no_action_but_the_real_removal_takes_a_device_away(bed: Testbed, action: str) -> None:
    dongle = gadgets.serial_dongle()
    bed.plug(dongle)
    devices = UdevDevices()
    devices.resync()

    for entry in dongle:
        assert not devices.apply(changed(entry, action))
        assert not devices.apply(Uevent(action, entry.sys_path, entry.subsystem, "kernel"))
        assert not devices.apply(removed(entry))

    assert "/dev/ttyUSB0" in by_node(devices)


def test_a_device_that_moves_takes_what_is_below_it_along(bed: Testbed) -> None:
    """The kernel sends one event for the device that is renamed and none for those below it."""
    old, new = gadgets.gamepad(event=8), gadgets.gamepad(event=9)
    bed.plug(old)
    devices = UdevDevices()
    devices.resync()

    moved_from = [entry for entry in old if "input8" in entry.path]
    moved_to = [entry for entry in new if "input9" in entry.path]
    for entry in reversed(moved_from):
        bed.detach(entry)
    for entry in bed.attach(tuple(moved_to)):
        bed.initialize(entry)
    move = Uevent("move", moved_to[0].sys_path, "input", "udev", old_sys_path=moved_from[0].sys_path)
    assert devices.apply(move)

    assert "/dev/input/event8" not in by_node(devices)
    assert by_node(devices)["/dev/input/event9"].sys_path == the(new, "input/event9").sys_path
    assert not devices.resync()


def test_what_changes_in_a_parent_reaches_its_children(bed: Testbed) -> None:
    camera = gadgets.webcam()
    bed.plug(camera)
    devices = UdevDevices()
    devices.resync()
    before = by_node(devices)

    bed.set_attribute(camera[2], "authorized", "0")
    assert devices.apply(changed(camera[2]))

    for node in ("/dev/video0", "/dev/video1", "/dev/media0"):
        device = by_node(devices)[node]
        assert device is not before[node]
        assert device.usb_device is devices.devices[camera[2].sys_path]
        assert device.usb_device.attributes["authorized"] == "0"
    assert by_node(devices)["/dev/video0"].parent is by_node(devices)["/dev/video1"].parent


def test_an_attribute_that_changes_without_an_event_is_found_when_it_is_asked_for(bed: Testbed) -> None:
    camera = gadgets.webcam()
    bed.plug(camera)
    devices = UdevDevices(["bConfigurationValue", "name"])
    devices.resync()
    before = by_node(devices)
    path = before["/dev/video0"].sys_path
    ask = Poll({path: frozenset({"authorized", "not_wanted"}), "/sys/devices/gone": frozenset({"name"})})
    assert not devices.apply(ask)
    assert by_node(devices) == before

    bed.set_attribute(camera[2], "authorized", "0")
    assert devices.apply(ask)

    usb = by_node(devices)["/dev/video0"].usb_device
    assert usb is not None
    assert usb.attributes["authorized"] == "0"
    assert by_node(devices)["/dev/video1"].usb_device is usb
    assert not devices.apply(ask)


def test_other_attributes_are_read_when_the_rules_ask_for_others(bed: Testbed) -> None:
    camera = gadgets.webcam()
    bed.plug(camera)
    devices = UdevDevices(["product"])
    devices.resync()
    usb = devices.devices[camera[2].sys_path]
    assert usb.attributes["product"] == "C270"
    assert "manufacturer" not in usb.attributes

    assert not devices.want(["product"])
    assert devices.want(["manufacturer", "not_there"])

    usb = devices.devices[camera[2].sys_path]
    assert usb.attributes["manufacturer"] == "Logitech"
    assert usb.attributes["idVendor"] == "046d"
    assert "product" not in usb.attributes
    assert "not_there" not in usb.attributes


def test_an_attribute_may_lie_in_a_folder_below_the_device_or_beyond_a_link(bed: Testbed) -> None:
    camera = gadgets.webcam()
    bed.plug(camera)
    interface = camera[3]
    (bed.root / "sys" / interface.path.lstrip("/") / "power").mkdir()
    bed.set_attribute(interface, "power/control", "auto")
    devices = UdevDevices(["power/control", "driver", "subsystem/uevent"])
    devices.resync()

    read = devices.devices[interface.sys_path].attributes
    assert (read["power/control"], read["driver"]) == ("auto", "uvcvideo")


def test_a_driver_that_lets_go_is_noticed(bed: Testbed) -> None:
    dongle = gadgets.serial_dongle()
    bed.plug(dongle)
    devices = UdevDevices()
    devices.resync()

    interface = dongle[3]
    (bed.root / "sys" / interface.path.lstrip("/") / "driver").unlink()
    (bed.root / "sys" / interface.path.lstrip("/") / "uevent").write_text("DEVTYPE=usb_interface\n")
    assert devices.apply(changed(interface, "unbind"))

    device = devices.devices[interface.sys_path]
    assert device.driver == ""
    assert device.property("DRIVER") is None


def test_a_block_device_differs_from_a_character_device_of_the_same_number(bed: Testbed) -> None:
    block = Entry("/devices/virtual/block/vdx", "block", "vdx", "188:0", devtype="disk")
    bed.plug(gadgets.serial_dongle(), (block,))
    devices = UdevDevices()
    devices.resync()

    assert str(by_node(devices)["/dev/vdx"].number) == "b 188:0"
    assert str(by_node(devices)["/dev/ttyUSB0"].number) == "c 188:0"
    assert by_node(devices)["/dev/vdx"].node_is_there
    assert by_node(devices)["/dev/ttyUSB0"].node_is_there


def test_a_resync_finds_what_no_event_told(bed: Testbed) -> None:
    devices = UdevDevices()
    devices.resync()

    bed.plug(gadgets.modem())

    assert devices.apply(Resync(RescanCause.DEAF))
    assert "/dev/cdc-wdm0" in by_node(devices)
    assert not devices.apply(Resync(RescanCause.DEAF))


def test_the_view_of_the_devices_is_live_and_cannot_be_written(bed: Testbed) -> None:
    devices = UdevDevices()
    view = devices.devices
    bed.plug(gadgets.gpiochip())
    devices.resync()

    assert view == devices.devices
    with pytest.raises(TypeError):
        view["x"] = replace(next(iter(view.values())))  # type: ignore[index]  # that is the point
