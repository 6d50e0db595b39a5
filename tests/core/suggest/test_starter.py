"""The starter file for a machine, as it is read."""

from dataclasses import replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from tests.scenes.builders import (
    a_device,
    a_fuse,
    a_gpu,
    a_kfd,
    a_modem,
    a_terminal,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.suggestions import DOMAIN, offers_of


def started(*devices: UdevDevice, rules: str = "") -> str:
    present = by_sys_path(*devices)
    resources = resources_of(rules) if rules else ()
    text = starter(Present(present, DOMAIN), resources, Claims(resources)).text
    offers_of(text, present)
    return text


def test_devices_without_a_rule_get_one_and_the_rest_is_listed() -> None:
    null = a_device("/sys/devices/virtual/mem/null", subsystem="mem", node="/dev/null", number="c 1:3")
    mem = a_device("/sys/devices/virtual/mem/mem", subsystem="mem", node="/dev/mem", number="c 1:1")
    twins = [a_usb_serial(n, port=str(n), serial=f"S{n}", devnum=n) for n in (1, 2)]
    usb = [each for twin in twins if (each := twin.usb_device) is not None]
    consoles = [a_terminal(number) for number in range(20)]

    assert (
        started(a_fuse(), *twins, *usb, null, mem, *consoles, *a_modem())
        == """\
# Save it as /etc/genericdp/rules.d/90-found.toml, without what no pod needs.
[[resource]]
name = "usb-2c7c-0125"  # USB device (2c7c:0125): /dev/cdc-wdm0 and 3 more
match.SUBSYSTEM = ["tty", "usbmisc"]
match.usb = { vendor = "2c7c", product = "0125" }
group_by = "usb_device"
[[resource]]
name = "usb-0403-6001"  # /dev/ttyUSB1, /dev/ttyUSB2
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001" } }
# Left out; 'genericdp suggest DEVICE' writes a rule for any of these:
#   raw USB nodes of hubs and others: bus/usb/001/001 and 2 more
#   software of the kernel: fuse
#   control of the host: mem
#   terminals, and what every container has: null, vcs0, vcs1, vcs2 and 17 more
"""
    )


def test_a_machine_whose_devices_all_have_rules_needs_no_more() -> None:
    rules = '[[resource]]\nname = "all"\nmatch = { DEVNAME = "*" }'

    assert started(a_fuse(), rules=rules) == "# No device of this machine needs a rule.\n"


def test_a_node_for_which_no_rule_can_be_written_does_not_keep_the_others_from_having_one() -> None:
    node = a_device("/sys/devices/virtual/adc/adc0", subsystem="adc", node="/dev/adc0", number="c 9:1")
    other = a_device("/sys/devices/virtual/adc/adc1", subsystem="adc", node="/dev/adc1", number="c 9:2")
    confused = replace(other, properties={**other.properties, "DEVNAME": "/dev/adc0"})
    missing = """\
# Missing: no rule can distinguish /dev/adc0 from the other device nodes: udev
# gives one name to several of them; 'udevadm trigger' makes it look again.
# Missing: no rule can distinguish /dev/adc1 from the other device nodes: udev
# gives one name to several of them; 'udevadm trigger' makes it look again.
"""

    assert started(node, confused) == missing
    assert (
        started(node, confused, a_usb_serial(0))
        == f"""\
# Save it as /etc/genericdp/rules.d/90-found.toml, without what no pod needs.
[[resource]]
name = "usb-0403-6001"  # USB device (0403:6001): /dev/ttyUSB0
match = {{ SUBSYSTEM = "tty", usb = {{ vendor = "0403", product = "6001" }} }}
{missing}# Left out; 'genericdp suggest DEVICE' writes a rule for any of these:
#   raw USB nodes of hubs and others: bus/usb/001/004
"""
    )


def test_what_udev_has_not_finished_with_is_not_spoken_of() -> None:
    assert "fuse" not in started(replace(a_fuse(), initialized=False), a_usb_serial())


def test_a_unit_gets_its_own_rule_if_a_rule_matches_others_of_its_model() -> None:
    taken, free = a_usb_serial(0, serial="A"), a_usb_serial(1, port="3", serial="B")
    rules = '[[resource]]\nname = "meter"\nmatch = { usb = { serial = "A" } }'

    text = started(taken, free, rules=rules)

    assert 'serial = "B"' in text
    assert "ttyUSB0" not in text


def test_a_device_that_a_rule_matches_in_part_is_left_to_it() -> None:
    rules = '[[resource]]\nname = "at"\nmatch = { usb = { interface = "02" } }'

    assert "#   of devices that rules match in part: cdc-wdm0, ttyUSB1, ttyUSB2\n" in started(
        *a_modem(), rules=rules
    )


def test_hubs_are_left_out() -> None:
    hub = a_usb_device("2", vendor="05e3", product="0610", serial=None)
    behind = a_usb_device("2.1", devnum=7)
    behind = replace(behind, parent=hub)
    lonely = a_usb_device("3", vendor="05e3", product="0620", serial=None, devnum=9)
    lonely = replace(lonely, properties={**lonely.properties, "TYPE": "9/0/1"})
    root = a_usb_device("4", vendor="1d6b", product="0002", devnum=1)

    assert started(hub, behind, lonely, root).endswith(
        "#   raw USB nodes of hubs and others: bus/usb/001/001 and 2 more\n"
    )


def test_names_of_resources_are_not_given_twice() -> None:
    cameras = [
        a_usb_node(a_usb_device(port, product=f"000{port}"), "video4linux", f"video{port}") for port in "12"
    ]
    cameras = [replace(each, properties={**each.properties, "ID_MODEL": "Camera"}) for each in cameras]
    text = started(*cameras, rules='[[resource]]\nname = "Camera"\nmatch = { DEVNAME = "/dev/x" }')

    assert 'name = "camera-2"' in text
    assert 'name = "camera-3"' in text


def test_what_goes_along_with_devices_has_no_resource_of_its_own() -> None:
    text = started(*a_gpu(0), *a_gpu(1), a_kfd())
    assert text.count("[[resource]]") == 1
    assert text.count('match = { DEVNAME = "/dev/kfd" }\nshared = true') == 1
    assert text.endswith("#   software of the kernel: kfd\n")
    assert "kfd" in started(a_kfd())


def test_what_a_rule_shares_is_not_left() -> None:
    rules = '[[resource]]\nname = "gpu"\nmatch = { SUBSYSTEM = "drm" }\ngroup_by = "parent"\n'
    rules += '[[resource.node]]\nmatch = { DEVNAME = "/dev/kfd" }\nshared = true\n'
    assert started(*a_gpu(), a_kfd(), rules=rules) == "# No device of this machine needs a rule.\n"


def test_models_that_share_their_numbers_are_resources_of_their_own() -> None:
    units = [
        replace(each, properties={**each.properties, "ID_MODEL": model})
        for port, model in (("1", "uDMX"), ("2", "USBasp"), ("3", "uDMX"))
        for each in [a_usb_device(port, vendor="16c0", product="05dc", serial=None, devnum=int(port) + 1)]
    ]
    text = started(*units)
    assert (
        """\
name = "udmx"  # uDMX (16c0:05dc), 2 units: /dev/bus/usb/001/002 and 1 more
match.SUBSYSTEM = "usb"
match.usb = { vendor = "16c0", product = "05dc" }
match.ID_MODEL = "uDMX"
[[resource]]
name = "usbasp"  # USBasp (16c0:05dc): /dev/bus/usb/001/003
match.SUBSYSTEM = "usb"
match.usb = { vendor = "16c0", product = "05dc" }
match.ID_MODEL = "USBasp"
"""
        in text
    )


def test_ports_of_one_adapter_that_may_differ_are_said_to_be_any() -> None:
    usb = a_usb_device(serial="A")
    ports = [a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}") for n in range(2)]
    assert started(*ports).startswith(
        """\
# Save it as /etc/genericdp/rules.d/90-found.toml, without what no pod needs.
# A pod gets any of these ports. For one: 'genericdp suggest /dev/ttyUSB0'.
[[resource]]
"""
    )
    assert "any of these ports" not in started(a_usb_serial(0), a_usb_serial(1, port="3", serial="B"))


def test_what_nothing_distinguishes_is_said_once() -> None:
    boards = [
        a_device(
            f"/sys/devices/virtual/gpib_common/gpib{n}",
            subsystem="gpib_common",
            node=f"/dev/gpib{n}",
            number=f"c 160:{n}",
        )
        for n in range(4)
    ]
    text = started(*boards)
    assert text.count("CAUTION: nothing permanent distinguishes it from /dev/gpib1, /dev/gpib2,") == 1
    assert text.count("CAUTION") == 1
    assert text.count("[[resource]]") == 4
