"""What a match wants of a device."""

from tests.scenes.builders import resources_of


def test_what_a_match_wants_is_said_without_any_device() -> None:
    (resource,) = resources_of(
        """
[[resource]]
name = "x"
match = [
  { usb = { vendor = "2c7c", product = ["0125", "0121"] }, SUBSYSTEM = { not = "usb" } },
  { "ATTR{name}" = { regex = "a+" }, parent = { DRIVER = "x", parent = { SUBSYSTEM = "pci" } } },
]
"""
    )
    assert resource.match.in_words == (
        "usb.vendor '2c7c', usb.product '0125' or '0121', SUBSYSTEM not 'usb'",
        "ATTR{name} regex 'a+', parent.DRIVER 'x', parent.parent.SUBSYSTEM 'pci'",
    )
