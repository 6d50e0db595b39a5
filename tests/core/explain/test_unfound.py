"""Container paths under which libraries do not find a device node."""

import pytest

from genericdp.core.explain.container import container_of
from genericdp.core.explain.unfound import unfound
from genericdp.core.rules.settings import Settings
from tests.scenes.builders import a_gpu, resources_of
from tests.scenes.inventories import DOMAIN, inventory_of


def found_wrong(rule: str) -> list[str]:
    (resource,) = resources_of(f'[[resource]]\nname = "x"\n{rule}')
    return [str(each) for each in unfound(resource)]


def test_a_rule_that_renames_what_a_library_looks_for_is_told() -> None:
    (text,) = found_wrong('match = { SUBSYSTEM = "accel" }\ncontainer_path = "/dev/accel0"')
    assert text == (
        "example.com/x: the driver's library looks for the kernel's name, such as /dev/accel/accel0, not for "
        "/dev/accel0"
    )


@pytest.mark.parametrize(
    "rule",
    [
        'match = { SUBSYSTEM = "usb" }\ncontainer_path = "/dev/scanner"',
        'match = { SUBSYSTEM = "hidraw", usb = { vendor = "1050" } }\ncontainer_path = "/dev/key{index}"',
        'match = { SUBSYSTEM = ["drm", "tty"] }\ncontainer_path = "{link}"',
        'match = { DEVNAME = "/dev/dri/renderD*" }\ncontainer_path = "/dev/gpu"',
        'match = { DEVNAME = "/dev/fuse" }\ncontainer_path = "/dev/my-fuse"',
        'match.usb.vendor = "1"\n[[resource.node]]\nmatch.SUBSYSTEM = "sound"\ncontainer_path = "/dev/snd"',
    ],
)
def test_each_kind_with_such_a_library_is_told(rule: str) -> None:
    assert len(found_wrong(rule)) == 1


@pytest.mark.parametrize(
    "rule",
    [
        'match = { SUBSYSTEM = "tty" }\ncontainer_path = "/dev/meter"',
        'match = { SUBSYSTEM = "video4linux" }\ncontainer_path = ["/dev/video{index}", "{link}"]',
        'match = { SUBSYSTEM = "drm" }',
        'match = { SUBSYSTEM = "drm" }\ncontainer_path = "/dev/dri/card{index}"',
        'match = { SUBSYSTEM = "drm" }\ncontainer_path = ["/dev/{devname}", "{link}"]',
        'match = { SUBSYSTEM = "usb" }\ncontainer_path = "/dev/bus/usb/{BUSNUM}/{DEVNUM}"',
        'match = { SUBSYSTEM = "misc" }\ncontainer_path = "/dev/x"',
        'match = { SUBSYSTEM = "*" }\ncontainer_path = "/dev/x"',
        'match = { SUBSYSTEM = "usb", DEVNAME = "/dev/usb/lp0" }\ncontainer_path = "/dev/printer"',
        'match = { usb = { vendor = "1050" } }\ncontainer_path = "/dev/x{index}"',
    ],
)
def test_programs_that_take_a_path_and_rules_that_leave_the_kind_open_are_not(rule: str) -> None:
    assert found_wrong(rule) == []


def test_explain_says_it_of_the_container() -> None:
    rule = '[[resource]]\nname = "gpu"\nmatch = { DEVNAME = "/dev/dri/card0" }\ncontainer_path = "/dev/%s"'
    for name, texts in (
        ("gpu", ("libdrm looks for /dev/dri/card0, not for /dev/gpu",)),
        ("dri/card0", ()),
    ):
        offer = inventory_of(rule % name, *a_gpu()).offers["example.com/gpu"]
        container = container_of(offer, offer.devices[0], Settings(domain=DOMAIN), [None])
        assert container is not None
        assert container.unfound == texts
