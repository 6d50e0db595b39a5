"""What is suggested for device nodes whose hardware is elsewhere, and against numbers of arrival."""

from dataclasses import replace

import pytest

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.place import locate
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Suggestion, suggest
from tests.scenes.builders import a_device, by_sys_path, resources_of
from tests.scenes.machines import after_reboot, machine
from tests.scenes.suggestions import ATTRIBUTES, DOMAIN, offers_of


def present(name: str) -> Present:
    return Present(machine(name, *ATTRIBUTES), DOMAIN)


def suggested(name: str, path: str) -> Suggestion:
    """The suggestion for a device node of a machine."""
    (node,) = (each for each in present(name).nodes if each.device_node == path)
    return suggest(node, present(name))


@pytest.mark.parametrize(
    ("name", "path", "match"),
    [
        # an image of a Ceph cluster
        (
            "storage-server",
            "/dev/rbd0",
            """\
match.parent = { SUBSYSTEM = "rbd", "ATTR{pool}" = "kube", "ATTR{name}" = "scratch" }
""",
        ),
        # a serial port over Bluetooth
        (
            "service-laptop",
            "/dev/rfcomm0",
            """\
match."ATTR{address}" = "00:12:F3:1B:22:07"
match."ATTR{channel}" = "1"
""",
        ),
    ],
)
def test_a_node_whose_hardware_is_elsewhere_is_known_by_what_it_leads_to(
    name: str, path: str, match: str
) -> None:
    suggestion = suggested(name, path)
    assert suggestion.by is By.TARGET
    assert suggestion.reasons[0] == "By what it leads to: the rule finds it whatever its number is."
    assert match in suggestion.text


def test_the_command_node_of_a_namespace_has_a_number_that_does_not_last() -> None:
    """The kernel does not say which namespace it is, and udev knows nothing of it."""
    suggestion = suggested("storage-server", "/dev/ng1n2")
    assert suggestion.by is By.ARRIVAL
    assert suggestion.rivals == ("/dev/ng1n1",)
    assert suggestion.table[2:4] == (
        'match.DEVNAME = "/dev/ng1n2"',
        'match.parent = { SUBSYSTEM = "nvme-subsystem", "ATTR{subsysnqn}" = "nqn.2014-08.org.example:tank" }',
    )


def test_another_namespace_of_another_subsystem_is_not_taken_for_it() -> None:
    (resource,) = resources_of(suggested("storage-server", "/dev/ng1n2").text)
    (mine,) = (each for each in present("storage-server").nodes if each.devname == "ng1n2")
    assert mine.parent is not None
    another = replace(mine.parent, attributes={**mine.parent.attributes, "subsysnqn": "nqn.example:other"})
    assert resource.match.matches(mine)
    assert not resource.match.matches(replace(mine, device_node="/dev/ng4n2", parent=another))


def test_a_disk_on_pci_is_no_target_though_it_has_the_name_of_a_subsystem() -> None:
    card = a_device(
        "/sys/devices/pci0000:00/0000:00:1d.0", subsystem="pci", properties={"PCI_ID": "144D:A824"}
    )
    drive = a_device(
        f"{card.sys_path}/nvme/nvme0",
        subsystem="nvme",
        node="/dev/nvme0",
        number="c 243:0",
        parent=card,
        attributes={"subsysnqn": "nqn.1994-11.com.samsung:nvme:PM1735"},
    )
    assert suggest(drive, Present(by_sys_path(drive), DOMAIN)).by is By.MODEL


def test_a_connected_serial_port_over_bluetooth_is_below_its_adapter_and_matched_all_the_same() -> None:
    (resource,) = resources_of(suggested("service-laptop", "/dev/rfcomm0").text)
    connected = moved(suggested("service-laptop", "/dev/rfcomm0").group.nodes[0])
    assert resource.match.matches(connected)
    assert suggest(connected, Present(by_sys_path(connected), DOMAIN)).by is By.TARGET


def test_a_serial_port_over_bluetooth_keeps_its_id_when_a_program_opens_it() -> None:
    suggestion = suggested("service-laptop", "/dev/rfcomm0")
    closed = suggestion.group.nodes[0]
    (before,), (after,) = (
        offers_of(suggestion.text, by_sys_path(port))[0].devices for port in (closed, moved(closed))
    )
    assert before.id == after.id
    assert locate(closed).spot == locate(moved(closed)).spot


def moved(port: UdevDevice) -> UdevDevice:
    """The port after a program has opened it."""
    usb = next(each for each in machine("service-laptop").values() if each.devtype == "usb_device")
    hci = a_device(f"{usb.sys_path}/1-0:1.0/bluetooth/hci0", subsystem="bluetooth", parent=usb)
    link = a_device(f"{hci.sys_path}/hci0:11", subsystem="bluetooth", parent=hci)
    return replace(port, sys_path=f"{link.sys_path}/tty/rfcomm0", parent=link)


@pytest.mark.parametrize(
    ("path", "match"),
    [
        # The driver calls the bus after the number of the one before the multiplexer.
        ("/dev/i2c-3", 'match.parent = { OF_FULLNAME = "/axi/i2c@ff030000/i2c-mux@74/i2c@1" }\n'),
        ("/dev/iio:device2", 'match.OF_FULLNAME = "/axi/i2c@ff030000/i2c-mux@74/i2c@1/adc@48"\n'),
    ],
)
def test_what_is_behind_a_multiplexer_is_known_by_its_place_in_the_device_tree(path: str, match: str) -> None:
    suggestion = suggested("fpga-board", path)
    assert suggestion.by is By.PLACE
    assert match in suggestion.text


def test_a_clock_that_is_called_after_the_number_of_another_device_has_no_name_that_lasts() -> None:
    suggestion = suggested("fpga-board", "/dev/pps0")
    assert suggestion.by is By.ARRIVAL
    assert suggestion.rivals == ("/dev/pps2",)


def test_a_number_that_the_class_of_a_node_has_is_not_that_of_the_node() -> None:
    assert 'DEVPATH = "/devices/virtual/hfi1_user/hfi1_*"' in suggested("storage-server", "/dev/hfi1_0").text


@pytest.mark.parametrize("path", ["/dev/dm-3", "/dev/md127", "/dev/sdb"])
def test_the_id_of_a_volume_stays_when_the_next_boot_gives_it_another_number(path: str) -> None:
    suggestion = suggested("storage-server", path)
    assert not any("identity" in line for line in suggestion.table)
    (before,), (after,) = (
        offers_of(suggestion.text, devices)[0].devices
        for devices in (machine("storage-server"), after_reboot("storage-server"))
    )
    assert before.id == after.id
    assert before.nodes[0].path != after.nodes[0].path


def test_a_virtual_device_that_only_its_number_tells_has_what_udev_says_as_its_identity() -> None:
    board = UdevDevice(
        "/sys/devices/virtual/board/board0",
        subsystem="board",
        device_node="/dev/board0",
        number=DeviceNumber("c", 240, 0),
        properties={"ID_SERIAL": "Maker_Board_4711"},
    )
    suggestion = suggest(board, Present(by_sys_path(board), DOMAIN))
    assert 'identity = ["ID_SERIAL"]  # the id stays when the number changes' in suggestion.table


@pytest.mark.parametrize(("path", "identity"), [("/dev/dm-3", "DM_UUID"), ("/dev/sdb", "ID_SERIAL")])
def test_a_disk_that_its_bus_does_not_name_has_an_identity(path: str, identity: str) -> None:
    devices = machine("storage-server", attributes=False)
    disk = next(each for each in devices.values() if each.device_node == path)
    suggestion = suggest(disk, Present(devices, DOMAIN))
    assert f'identity = ["{identity}"]  # the id stays when the number changes' in suggestion.table
    (offer,) = offers_of(suggestion.text, devices)
    assert [node.path for device in offer.devices for node in device.nodes] == [path]


def test_a_disk_of_this_machine_keeps_its_id_without_a_word() -> None:
    assert not any("identity" in line for line in suggested("server", "/dev/sda").table)


def test_a_volume_is_no_disk_with_partitions_but_has_a_file_system_all_the_same() -> None:
    assert suggested("storage-server", "/dev/dm-3").reasons[1:] == (
        (
            "A container gets the whole volume. If it writes to what is mounted, it destroys the file "
            "system; for files, use a local persistent volume."
        ),
    )


def test_a_disk_over_a_network_is_called_after_what_it_is_a_part_of() -> None:
    assert suggested("storage-server", "/dev/nvme1n2").text.splitlines()[2] == (
        "# NVMe subsystem Linux: /dev/nvme1n2"
    )


def test_a_further_function_of_a_card_is_not_called_the_only_one() -> None:
    assert suggested("storage-server", "/dev/vhost-vdpa-0").reasons[0] == (
        "By model: this machine has no other vhost-vdpa device of the model. A second one would match, too."
    )


@pytest.mark.parametrize(
    ("name", "path", "can"),
    [
        (
            "service-laptop",
            "/dev/cros_ec",
            "send commands to the embedded controller, which switches the machine's power",
        ),
        (
            "storage-server",
            "/dev/xen/gntdev",
            "talk to the hypervisor Xen and share memory with other virtual machines",
        ),
    ],
)
def test_what_acts_on_the_whole_host_is_not_offered_to_several_containers(
    name: str, path: str, can: str
) -> None:
    suggestion = suggested(name, path)
    caution = f"CAUTION: it belongs to the host as a whole. A container with it can {can}."
    assert suggestion.reasons[1:] == (caution,)
    assert "replicas" not in suggestion.text


def test_hardware_with_a_name_of_its_own_is_no_software_that_several_containers_share() -> None:
    chip = a_device("/sys/devices/platform/soc/a0.dsp", subsystem="platform")
    node = a_device(
        f"{chip.sys_path}/misc/dsp", subsystem="misc", node="/dev/dsp-core", number="c 10:99", parent=chip
    )
    assert "replicas" not in suggest(node, Present(by_sys_path(node), DOMAIN)).text


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        # two ports of one card
        ("serial-gateway", "/dev/ttyn0", "Digi Neo 2, 2 devices: "),
        # two chips
        ("fpga-board", "/dev/iio:device1", "ads1115, 2 units: "),
    ],
)
def test_a_draft_counts_units_not_the_ports_of_one(name: str, path: str, title: str) -> None:
    (chapter,) = (
        each for each in starter(present(name), (), Claims(())).chapters if f"{path}" in "".join(each)
    )
    assert title in "".join(chapter)


# Units with a number of their maker


@pytest.mark.parametrize(
    ("name", "path", "match"),
    [
        # a camera on FireWire, which is numbered in the order of arrival
        ("test-stand", "/dev/fw1", 'match = { SUBSYSTEM = "firewire", "ATTR{guid}" = "0x00b09d0100a1b2c3" }'),
        # an NVMe disk and its command node
        ("backup-server", "/dev/nvme1", 'match = { SUBSYSTEM = "nvme", "ATTR{serial}" = "S4EMNX0R100002" }'),
        (
            "backup-server",
            "/dev/ng1n1",
            'match.parent = { SUBSYSTEM = "nvme", "ATTR{serial}" = "S4EMNX0R100002" }',
        ),
        # a tape drive
        (
            "backup-server",
            "/dev/nst1",
            'match.parent = { SUBSYSTEM = "scsi", "ATTR{wwid}" = "naa.50050763129f8e7d" }',
        ),
        # a disk with a cache
        ("backup-server", "/dev/bcache0", 'match.CACHED_UUID = "4a7b2f60-0b5e-4d0e-8a11-3f0f8f0f1c22"'),
    ],
)
def test_a_unit_is_known_by_the_number_that_its_driver_has_of_it(name: str, path: str, match: str) -> None:
    suggestion = suggested(name, path)
    assert suggestion.by is By.SERIAL
    assert suggestion.group.paths == (path,)
    assert match in suggestion.table


def test_a_number_that_a_driver_fills_with_spaces_is_matched_with_any_number_of_them() -> None:
    drive = a_device(
        "/sys/devices/pci0000:00/0000:00:1d.0/nvme/nvme0",
        subsystem="nvme",
        node="/dev/nvme0",
        number="c 243:0",
        parent=a_device("/sys/devices/pci0000:00/0000:00:1d.0", subsystem="pci"),
        attributes={"serial": "S4EMNX0R100002      "},
    )
    suggestion = suggest(drive, Present(by_sys_path(drive), DOMAIN))
    assert 'match = { SUBSYSTEM = "nvme", "ATTR{serial}" = "S4EMNX0R100002*" }' in suggestion.table


def test_a_device_on_firewire_is_called_by_the_name_of_its_model_not_by_the_number() -> None:
    assert suggested("test-stand", "/dev/fw1").name == "grasshopper-gras-50s5c"


def test_a_draft_matches_a_serial_port_over_bluetooth_by_its_address_too() -> None:
    """Its adapter has the driver, and the port is below it only while it is open."""
    (chapter,) = (
        each
        for each in starter(present("gadget-board"), (), Claims(())).chapters
        if "rfcomm3" in "".join(each)
    )
    assert 'match."ATTR{address}" = "98:D3:31:F4:0A:11"' in chapter


def test_a_draft_offers_a_tape_drive_once() -> None:
    draft = starter(present("backup-server"), (), Claims(()))
    (chapter,) = (each for each in draft.chapters if "nst0" in "".join(each))
    assert chapter[1] == 'name = "ult3580-hh8"  # ULT3580-HH8, 2 units: /dev/nst0, /dev/nst1'
    assert "/dev/st0" in dict(draft.left_out)["seldom what a pod needs"]


def test_a_glob_of_one_digit_is_no_way_to_tell_disks_apart() -> None:
    nodes = {
        path: replace(each, properties={})
        for path, each in machine("backup-server").items()
        if each.devname.startswith("bcache")
    }
    for each in nodes.values():
        assert suggest(each, Present(nodes, DOMAIN)).by is By.ARRIVAL


@pytest.mark.parametrize(
    ("path", "can"),
    [
        ("/dev/ublk-control", "create disks of the host whose data it makes up itself"),
        ("/dev/ublkc0", "answer in place of the program that a disk of the host leads to"),
    ],
)
def test_what_serves_a_disk_of_the_host_acts_on_the_whole_host(path: str, can: str) -> None:
    suggestion = suggested("backup-server", path)
    assert suggestion.reasons[-1] == (
        f"CAUTION: it belongs to the host as a whole. A container with it can {can}."
    )


@pytest.mark.parametrize("names", [("ttyr02", "ttyr03"), ("tnt0", "tnt1"), ("gsmtty1", "gsmtty2")])
def test_a_name_that_the_configuration_of_a_driver_fixes_is_matched_without_a_caution(
    names: tuple[str, str],
) -> None:
    ports = [
        a_device(
            f"/sys/devices/virtual/tty/{name}", subsystem="tty", node=f"/dev/{name}", number=f"c 240:{n}"
        )
        for n, name in enumerate(names)
    ]
    present = Present(by_sys_path(*ports), DOMAIN)
    suggestion = suggest(ports[1], present)
    assert suggestion.reasons == ("By name: the configuration of its driver fixes it.",)
    assert suggestion.table[2:] == (f'match = {{ DEVNAME = "/dev/{names[1]}" }}',)
    # Something is behind it, unlike other software of the kernel.
    assert len(starter(present, (), Claims(())).chapters) == 2


def aggregated(number: int) -> UdevDevice:
    """A GPIO chip that somebody made of lines of others."""
    above = a_device(
        f"/sys/devices/platform/gpio-aggregator.{number}", subsystem="platform", driver="gpio-aggregator"
    )
    return a_device(
        f"{above.sys_path}/gpiochip{number + 5}",
        subsystem="gpio",
        node=f"/dev/gpiochip{number + 5}",
        number=f"c 254:{number + 5}",
        parent=above,
    )


def test_a_chip_that_somebody_makes_has_no_place_in_the_machine() -> None:
    chips = [aggregated(0), aggregated(1)]
    alone = suggest(chips[0], Present(by_sys_path(chips[0]), DOMAIN))
    assert alone.by is By.KIND
    assert alone.reasons == (
        (
            "CAUTION: it is numbered in the order in which such devices are made, so the rule takes any of "
            "them. This machine has only one."
        ),
    )
    assert alone.table[2:] == (
        'match.SUBSYSTEM = "gpio"',
        'match.DEVPATH = "/devices/platform/gpio-aggregator.*/*"',
    )
    of_two = suggest(chips[1], Present(by_sys_path(*chips), DOMAIN))
    assert of_two.reasons == (
        (
            "CAUTION: nothing permanent distinguishes it from /dev/gpiochip5. The rule uses the name that "
            "the kernel has given it for now; after a re-plug or reboot, another device may have that name."
        ),
    )


def test_of_two_sensors_of_one_controller_each_is_known_by_its_label() -> None:
    sensors = []
    for number, label in enumerate(("accel-base", "accel-display")):
        above = a_device(
            f"/sys/devices/platform/GOOG0004:00/cros-ec-sensorhub.2.auto/cros-ec-accel.{13 + number}.auto",
            subsystem="platform",
            driver="cros-ec-accel",
        )
        sensors.append(
            a_device(
                f"{above.sys_path}/iio:device{number}",
                subsystem="iio",
                node=f"/dev/iio:device{number}",
                number=f"c 244:{number}",
                attributes={"name": "cros-ec-accel", "label": label},
                parent=above,
            )
        )
    suggestion = suggest(sensors[1], Present(by_sys_path(*sensors), DOMAIN))
    assert suggestion.by is By.PLACE
    assert suggestion.table[-1] == 'match."ATTR{label}" = "accel-display"'
    assert not any("DEVNAME" in line for line in suggestion.table)


@pytest.mark.parametrize(
    ("subsystem", "names", "attribute", "values"),
    [
        ("infiniband_verbs", ("uverbs2", "uverbs3"), "ibdev", ("rxe0", "siw0")),
        ("ptp", ("ptp1", "ptp2"), "clock_name", ("KVM virtual PTP", "netdevsim")),
    ],
)
def test_a_virtual_device_is_known_by_what_its_driver_calls_it(
    subsystem: str, names: tuple[str, str], attribute: str, values: tuple[str, str]
) -> None:
    nodes = [
        a_device(
            f"/sys/devices/virtual/{subsystem}/{name}",
            subsystem=subsystem,
            node=f"/dev/{name}",
            number=f"c 231:{minor}",
            attributes={attribute: value},
        )
        for minor, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    for node, value in zip(nodes, values, strict=True):
        suggestion = suggest(node, Present(by_sys_path(*nodes), DOMAIN))
        assert suggestion.by is By.LABEL
        assert f'"ATTR{{{attribute}}}" = "{value}"' in suggestion.text


def test_a_clock_of_the_hypervisor_that_nobody_can_set_is_shared_without_a_caution() -> None:
    clock = a_device(
        "/sys/devices/virtual/ptp/ptp1",
        subsystem="ptp",
        node="/dev/ptp1",
        number="c 246:1",
        attributes={"clock_name": "KVM virtual PTP"},
    )
    text = suggest(clock, Present(by_sys_path(clock), DOMAIN)).text
    assert "CAUTION" not in text
    assert "# replicas = 10  # how many containers can share it\n" in text
