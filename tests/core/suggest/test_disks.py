"""What is suggested for disks, partitions and the slots of card readers, as operators have them."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.fixed_names import without_numbers
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.suggestion import Suggestion, suggest
from genericdp.core.suggest.units.disks import is_disk
from genericdp.core.suggest.units.siblings import subject_of
from genericdp.errors import GenericdpError
from tests.scenes.builders import a_device, a_usb_device, a_usb_interface, by_sys_path, resources_of
from tests.scenes.inventories import ids_of, inventory_of
from tests.scenes.machines import MACHINES, machine, node
from tests.scenes.suggestions import ATTRIBUTES, DOMAIN

WORKBENCH = "workbench"
MOUNTED = (
    "If it writes to what is mounted, it destroys the file system; for files, use a local persistent volume."
)


def suggested(path: str, *, by_itself: bool = False) -> Suggestion:
    """The suggestion for a device node of the workbench."""
    return suggest(node(WORKBENCH, path), Present(machine(WORKBENCH), DOMAIN), by_itself=by_itself)


def test_a_usb_disk_is_its_block_node_and_the_rest_of_the_drive_is_offered_instead() -> None:
    assert (
        suggested("/dev/sdd").text
        == """\
# /etc/genericdp/rules.d/50-pssd-t7.toml
#
# Samsung PSSD T7 (04e8:61f5): /dev/sdd
#
# By serial number: the rule finds this unit wherever it is plugged in.
#
# A container gets the whole disk: it can read and write all partitions, but
# gets no device nodes for them. If it writes to what is mounted, it destroys
# the file system; for files, use a local persistent volume.

[[resource]]
name = "pssd-t7"  # pods request example.com/pssd-t7
match.SUBSYSTEM = "block"
match.DEVTYPE = "disk"
match.usb = { vendor = "04e8", product = "61f5", serial = "S6WXNS0T707581" }
allow_dangerous = true  # it gives control of the host

# For another part of the drive, replace the match by one of these:
#
# /dev/sdd1, a partition:
# match.SUBSYSTEM = "block"
# match.usb = { vendor = "04e8", product = "61f5", serial = "S6WXNS0T707581" }
# match.PARTN = "1"
#
# /dev/sdd2, a partition:
# match.SUBSYSTEM = "block"
# match.usb = { vendor = "04e8", product = "61f5", serial = "S6WXNS0T707581" }
# match.PARTN = "2"
#
# /dev/sg3, to send commands to the drive:
# match.SUBSYSTEM = "scsi_generic"
# match.usb = { vendor = "04e8", product = "61f5", serial = "S6WXNS0T707581" }
"""
    )


def test_a_partition_of_a_usb_disk_is_known_by_its_number_and_named_after_it() -> None:
    suggestion = suggested("/dev/sdd1")
    assert suggestion.name == "pssd-t7-part1"
    assert suggestion.group.paths == ("/dev/sdd1",)
    assert suggestion.reasons == (
        "By serial number: the rule finds this unit wherever it is plugged in.",
        f"A container gets this partition and nothing else of the disk. {MOUNTED}",
    )
    assert suggestion.table == (
        "[[resource]]",
        'name = "pssd-t7-part1"  # pods request example.com/pssd-t7-part1',
        'match.SUBSYSTEM = "block"',
        'match.PARTN = "1"',
        'match.usb = { vendor = "04e8", product = "61f5", serial = "S6WXNS0T707581" }',
        "allow_dangerous = true  # it gives control of the host",
    )
    assert [each.remark for each in suggestion.instead] == [
        "/dev/sdd, the whole disk:",
        "/dev/sdd2, a partition:",
        "/dev/sg3, to send commands to the drive:",
    ]
    assert suggested("/dev/sdd1", by_itself=True) == suggestion


def test_each_slot_of_a_card_reader_is_a_device_known_by_its_number() -> None:
    first, second = suggested("/dev/sde"), suggested("/dev/sdf")
    assert (first.group.paths, second.group.paths) == (("/dev/sde",), ("/dev/sdf",))
    assert (first.by, second.by) == (By.SERIAL, By.SERIAL)
    assert (first.name, second.name) == ("storage-device", "storage-device-lun1")
    assert 'match.parent = { DEVTYPE = "scsi_device", DEVPATH = "*:1" }' in second.table
    assert [each.remark for each in first.instead] == [
        "/dev/sde1, a partition:",
        "/dev/sdf, another disk of the drive (LUN 1):",
        "/dev/sg4, to send commands to the drive:",
    ]


def test_who_names_the_command_node_of_a_drive_gets_that_one() -> None:
    assert suggested("/dev/sg5").group.paths == ("/dev/sg5",)
    assert suggested("/dev/bsg/9:0:0:1").group.paths == ("/dev/bsg/9:0:0:1",)


def test_a_drive_means_its_disk_and_a_card_reader_is_asked_for_the_slot() -> None:
    present = Present(machine(WORKBENCH), DOMAIN)
    drive, reader = (node(WORKBENCH, path).usb_device for path in ("/dev/sdd", "/dev/sde"))
    assert drive is not None
    assert reader is not None

    assert subject_of(drive, "2-6", present.nodes).device_node == "/dev/sdd"
    with pytest.raises(GenericdpError) as raised:
        subject_of(reader, "2-7", present.nodes)
    assert raised.value.hint is not None
    assert "/dev/sde, /dev/sde1, /dev/sdf" in raised.value.hint


@pytest.mark.parametrize(
    ("path", "lasting"),
    [
        ("/block/sdf", "/block/sd*"),
        ("/block/sde/sde1", "/block/sd*/sd*1"),
        ("/block/vdb/vdb12", "/block/vd*/vd*12"),
    ],
)
def test_the_letter_of_a_disk_follows_the_order_of_arrival(path: str, lasting: str) -> None:
    assert without_numbers(path, subsystem="block") == lasting


@pytest.mark.parametrize("name", MACHINES)
def test_no_suggestion_for_a_disk_or_a_partition_takes_a_partition_that_is_made_later(name: str) -> None:
    present = Present(machine(name), DOMAIN)
    later = [made_later(each) for each in present.nodes if is_disk(each)]
    for each in present.nodes:
        # The kernel always says the number of a partition, but two recordings do not have it.
        if is_disk(each) or "PARTN" in each.properties:
            (resource,) = resources_of(suggest(each, present).text)
            assert [made.sys_path for made in later if resource.match.matches(made)] == []


def made_later(disk: UdevDevice) -> UdevDevice:
    """A partition of a disk that it has not had before."""
    suffix = "p99" if disk.sys_name[-1].isdigit() else "99"
    path, node = f"{disk.sys_path}/{disk.sys_name}{suffix}", f"{disk.device_node}{suffix}"
    properties = {
        **disk.properties,
        "DEVTYPE": "partition",
        "PARTN": "99",
        "DEVNAME": node,
        "DEVPATH": path.removeprefix("/sys"),
    }
    return replace(
        disk, sys_path=path, devtype="partition", device_node=node, properties=properties, parent=disk
    )


@pytest.mark.parametrize(
    ("path", "program"),
    [("/dev/nbd0", "nbd-client"), ("/dev/drbd1000", "drbdadm")],
)
def test_a_disk_that_a_program_attaches_is_known_by_its_name_with_a_caution(path: str, program: str) -> None:
    suggestion = suggested(path)
    assert suggestion.by is By.NAME
    assert suggestion.reasons == (
        "By name: the kernel always gives it the same name.",
        (
            "A container gets the whole disk: it can read and write all partitions, but gets no device "
            f"nodes for them. {MOUNTED}"
        ),
        f"CAUTION: the rule takes whatever {program} attaches there.",
    )


@pytest.mark.parametrize(
    ("name", "path", "match"),
    [
        ("server", "/dev/dm-0", 'DM_UUID = "LVM-abc"'),
        ("gpu-server", "/dev/md0", 'MD_UUID = "0b1c2d3e:4f5a6b7c:8d9e0f1a:2b3c4d5e"'),
    ],
)
def test_a_volume_is_known_by_its_uuid(name: str, path: str, match: str) -> None:
    suggestion = suggest(node(name, path), Present(machine(name), DOMAIN))
    assert suggestion.reasons[0] == "By its UUID: the rule finds it whatever its number is."
    assert match in "".join(suggestion.table)


@pytest.mark.parametrize("path", ["/dev/mpt2ctl", "/dev/mpt3ctl"])
def test_the_control_node_of_a_driver_has_a_fixed_name_and_is_not_shared(path: str) -> None:
    suggestion = suggested(path)
    assert suggestion.reasons == ("By name: the kernel always gives it the same name.",)
    assert suggestion.table[2:] == (
        f'match = {{ DEVNAME = "{path}" }}',
        "allow_dangerous = true  # it gives control of the host",
    )


def test_a_changer_says_which_node_takes_its_commands() -> None:
    server = Present(machine("accelerator-server"), DOMAIN)
    changer = suggest(node("accelerator-server", "/dev/sch0"), server)
    assert changer.rest == ("/dev/sg2",)


def test_a_slot_does_not_count_the_partitions_and_command_nodes_of_the_other_slots() -> None:
    assert suggested("/dev/sdf").rest == ()


def a_card(port: str, serial: str) -> UdevDevice:
    """An SD card in a reader on USB that says the same serial number as any other of its model."""
    usb = a_usb_device(port, vendor="0bda", product="0129", serial="20100201396000000")
    slot = a_device(
        f"{a_usb_interface(usb).sys_path}/rtsx_usb_sdmmc.2.auto/mmc_host/mmc0/mmc0:aaaa",
        subsystem="mmc",
        driver="mmcblk",
        attributes={"serial": serial},
        parent=a_usb_interface(usb),
    )
    return a_device(
        f"{slot.sys_path}/block/mmcblk0",
        subsystem="block",
        devtype="disk",
        node="/dev/mmcblk0",
        number="b 179:0",
        properties={"ID_NAME": "SC32G", "ID_SERIAL": serial},
        parent=slot,
    )


def test_an_sd_card_in_a_reader_on_usb_is_known_by_its_own_serial_number() -> None:
    card = a_card("3", "0x31a4b8cd")
    suggestion = suggest(card, Present(by_sys_path(card), DOMAIN))
    assert suggestion.by is By.SERIAL
    assert suggestion.table[2:] == (
        'match = { SUBSYSTEM = "block", DEVTYPE = "disk", ID_SERIAL = "0x31a4b8cd" }',
        'identity = ["ID_SERIAL"]  # the id is that of the card, not of its reader',
        "allow_dangerous = true  # it gives control of the host",
    )
    assert suggestion.reasons[0] == "By serial number: the rule finds this card in whichever reader it is."
    (moved,) = ids_of(inventory_of(suggestion.text, a_card("4", "0x31a4b8cd")))
    assert ids_of(inventory_of(suggestion.text, card)) == [moved]


def test_a_drive_for_discs_is_offered_with_its_command_node_too() -> None:
    present = Present(machine("workstation", *ATTRIBUTES), DOMAIN)
    (drive,) = (each for each in present.nodes if each.device_node == "/dev/sr0")
    suggestion = suggest(drive, present)
    assert suggestion.group.paths == ("/dev/sr0",)
    assert suggestion.rest == ("/dev/sg1",)
    (both,) = suggestion.instead
    assert both.remark == "/dev/sr0, /dev/sg1, for programs that also send commands to the drive:"
    assert both.lines[-1] == 'group_by = { DEVTYPE = "scsi_device" }'
    assert "# For more of the drive, replace the match by this:\n" in suggestion.text
