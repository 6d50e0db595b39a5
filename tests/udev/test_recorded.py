"""The recorded devices: what a person runs `genericdp list` on, and what the testbed is held against."""

import json
import os
import subprocess
import sys

import pytest

from genericdp.udev import UdevDevices
from tests.udev import gadgets
from tests.udev.listening import by_node
from tests.udev.testbed import Testbed

_SHOW = """
import json
from genericdp.udev import UdevDevices
devices = UdevDevices()
devices.resync()
print(json.dumps([
    [each.sys_path, each.subsystem, each.devtype, each.device_node, str(each.number), each.node_is_there,
     sorted(each.attributes.items()), [above.sys_path for above in each.ancestors()]]
    for each in devices.devices.values()
]))
"""


@pytest.mark.parametrize("name", gadgets.RECORDED)
def test_the_recorded_files_are_the_gadgets(name: str) -> None:
    recorded = (gadgets.FOLDER / f"{name}.umockdev").read_text(encoding="utf-8")

    assert recorded == gadgets.text(gadgets.RECORDED[name]), "run python -m tests.udev.gadgets"


def test_there_is_no_other_file() -> None:
    names = {path.name for path in gadgets.FOLDER.iterdir() if not path.is_dir()}

    assert names == {f"{name}.umockdev" for name in gadgets.RECORDED}


@pytest.mark.testbed
@pytest.mark.parametrize("name", ["lte-modem", "gamepad"])
def test_a_recorded_file_in_umockdev_is_the_gadget_in_the_testbed(name: str) -> None:
    shown = subprocess.run(
        ["umockdev-run", "--device", gadgets.FOLDER / f"{name}.umockdev", "--", sys.executable, "-c", _SHOW],
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        check=True,
        text=True,
    ).stdout

    with Testbed() as bed:
        bed.plug(gadgets.RECORDED[name])
        devices = UdevDevices()
        devices.resync()
        assert by_node(devices)
        ours = [
            [
                each.sys_path,
                each.subsystem,
                each.devtype,
                each.device_node,
                str(each.number),
                each.node_is_there,
                [list(item) for item in sorted(each.attributes.items())],
                [above.sys_path for above in each.ancestors()],
            ]
            for each in devices.devices.values()
        ]
    assert json.loads(shown) == ours
