"""Names that a device chose to keep the daemon busy, against rules that make others try for ages."""

from pathlib import Path

import pytest

from tests.scenes.builders import a_device, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene, ids_told

#: As long as a snapshot keeps a value.
LONG = 4096

#: (what a rule wants of a serial number, what a device says): none of them matches.
SLOW = [
    ('"*a*a*a*a*a*b"', "a" * 126),
    ('"*a*a*a*a*a*b"', "a" * LONG),
    ('"*-*-*-*-if00-port0"', "-if00-port" * (LONG // 10)),
    ('{ regex = "(a+)+b" }', "a" * 30),
    ('{ regex = "(a+)+b" }', "a" * LONG),
    ('{ not = [{ regex = "(a|aa)+b" }, "*a*a*a*a*b"] }', "a" * LONG),
]


@pytest.mark.parametrize(("wanted", "serial"), SLOW, ids=[f"{wanted} {len(value)}" for wanted, value in SLOW])
async def test_a_name_made_to_be_slow_to_match_keeps_nobody_from_starting_or_serving(
    short_dir: Path, wanted: str, serial: str
) -> None:
    rules = f"""{FTDI_RULE}
[[resource]]
name = "slow"
match = {{ SUBSYSTEM = "tty", ID_SERIAL_SHORT = {wanted} }}
[[resource]]
name = "slow-attribute"
match = {{ parent = {{ "ATTR{{serial}}" = {wanted} }} }}
[[resource]]
name = "slow-node"
match = {{ SUBSYSTEM = "misc", DEVNAME = {wanted} }}
"""
    hostile = a_usb_device("7", vendor="dead", serial=serial)
    node = a_device("/sys/devices/virtual/misc/slow", node=f"/dev/{serial[:200]}", number="c 10:200")
    async with a_scene(
        short_dir, a_usb_serial(0), a_usb_node(hostile, "tty", "ttyUSB7", number="c 188:7"), node, rules=rules
    ) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        assert ids_told(pod.container("main")) == ["ftdi_A50285BI"]
        # Others come and go as ever while it is there, and when it is plugged again.
        scene.unplug(a_usb_node(hostile, "tty", "ttyUSB7", number="c 188:7"))
        scene.plug(a_usb_node(hostile, "tty", "ttyUSB7", number="c 188:7"))
        scene.plug(a_usb_serial(1, serial="B", port="3"))
        await scene.until_allocatable(2)
        status = scene.kubelet.devices(FTDI)
        assert sorted(status) == ["ftdi_A50285BI", "ftdi_B"]
