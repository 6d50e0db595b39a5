"""What is suggested for USB devices whose ids change when a program loads their firmware."""

import pytest

from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import suggest
from tests.scenes.builders import a_usb_device, by_sys_path
from tests.scenes.machines import machine, node
from tests.scenes.suggestions import DOMAIN, offers_of


def test_an_edge_tpu_has_one_rule_before_and_after_its_firmware_is_loaded() -> None:
    cold = node("workstation", "/dev/bus/usb/001/005")
    assert (
        suggest(cold, Present(machine("workstation"), DOMAIN)).text
        == """\
# /etc/genericdp/rules.d/50-usb-1a6e-089a.toml
#
# Global Unichip Corp. (1a6e:089a): /dev/bus/usb/001/005
#
# By model: it has no serial number, and no other unit of the model is plugged
# in. A second one would match, too; to exclude it, add port = "9" to 'usb'.
#
# Its USB ids change when libedgetpu loads its firmware. The rule takes it
# before and after (1a6e:089a, 18d1:9302), and its id is that of the port.
#
# Its path changes each time it is plugged in, and libusb opens it by that path.
# With answer = "cdi", a container that starts again gets the new path, if the
# container runtime reads CDI.

[[resource]]
name = "usb-1a6e-089a"  # pods request example.com/usb-1a6e-089a
match.SUBSYSTEM = "usb"
match.usb = { vendor = ["18d1", "1a6e"], product = ["089a", "9302"] }
identity = "port"  # it has new USB ids when its firmware is loaded
# answer = "cdi"  # its path follows a re-plug
"""
    )


#: The USB ids of a unit before and after, with a serial number that comes with the firmware.
_KINDS = [
    (("1a6e", "089a", None), ("18d1", "9302", None)),
    (("03e7", "2150", "03e72150"), ("03e7", "f63b", "VSC123")),
    (("03e7", "2485", "03e72485"), ("03e7", "f63b", "14442C10D1A2B3D000")),
]


@pytest.mark.parametrize(("before", "after"), _KINDS)
def test_a_unit_keeps_its_rule_and_its_id_when_its_firmware_is_loaded(
    before: tuple[str, str, str | None], after: tuple[str, str, str | None]
) -> None:
    cold, warm = (
        a_usb_device(vendor=vendor, product=product, serial=serial, devnum=number)
        for number, (vendor, product, serial) in enumerate((before, after), start=4)
    )
    for now, then in ((cold, warm), (warm, cold)):
        text = suggest(now, Present(by_sys_path(now), DOMAIN)).text
        ids = [
            [device.id for offer in offers_of(text, by_sys_path(each)) for device in offer.devices]
            for each in (now, then)
        ]
        assert ids[0] == ids[1] != []


@pytest.mark.parametrize(("before", "after"), _KINDS)
def test_a_unit_with_its_firmware_is_told_from_one_without_by_its_port(
    before: tuple[str, str, str | None], after: tuple[str, str, str | None]
) -> None:
    cold, warm = (
        a_usb_device(port, vendor=vendor, product=product, serial=serial, devnum=int(port))
        for port, (vendor, product, serial) in (("2", before), ("3", after))
    )
    present = Present(by_sys_path(cold, warm), DOMAIN)
    for each in (cold, warm):
        suggestion = suggest(each, present)
        assert suggestion.by is By.PORT
        assert "has the same serial number" not in suggestion.text
    (offer,) = offers_of(starter(present, (), Claims(())).text, by_sys_path(cold, warm))
    assert len(offer.devices) == 2
