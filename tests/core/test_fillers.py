"""Which serial numbers tell nothing."""

import pytest

from genericdp.core.fillers import why_filler


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("noserial", "udev writes it for devices without a serial number"),
        ("0", "it is zero"),
        ("000000000000", "it is zero"),
        ("00:00:00:00:00:00", "it is zero"),
        (" ", "it is zero"),
        ("0001", "chips leave the factory with it, such as CP210x (0001) and RTL2832U (00000001)"),
        ("SN0001", "chips leave the factory with it, such as CP210x (0001) and RTL2832U (00000001)"),
        ("FFFFFFFF", "it repeats one character"),
        ("88888888", "it repeats one character"),
        ("0000:00:14.0", "it is the PCI address of the host controller"),
        ("01.00.00", "it is a version of the firmware"),
        ("200901010001", "it is the date of a firmware"),
        ("20100201396000000", "it is the date of a firmware"),
        ("0X0201", "it is the address of a disk of a mainframe, from which its label is made"),
        ("HIDPC", "Arduino's library makes it of what the board can do"),
        ("deadbeef", "it is a test pattern"),
        ("Default string", "it is a word that firmware keeps from its template"),
        ("To Be Filled By O.E.M.", "it is a word that firmware keeps from its template"),
        ("None", "it is a word that firmware keeps from its template"),
        ("123", "it counts up from its first digit"),
        ("123456", "it counts up from its first digit"),
        ("0123456789ABCDEF", "it counts up from its first digit"),
        ("1234567890", "it counts up from its first digit"),
        ("FT232R_USB_UART", "it is the name of the model"),
    ],
)
def test_a_filler_is_told_with_the_reason(value: str, why: str) -> None:
    assert why_filler(value, "FT232R USB UART", "") == why


@pytest.mark.parametrize(
    "value",
    [
        "A50285BI",
        "A",
        "9",
        "12",
        "13579",
        "0002",
        "EC25-17",
        "20170101AB3",
        "20100201396012345",
        "7F3A",
        "11",
        "1.a",
        "x",
    ],
)
def test_what_may_be_the_number_of_one_unit_is_no_filler(value: str) -> None:
    assert why_filler(value, "Meter", "Maker") == ""
