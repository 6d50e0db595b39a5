"""Whatever a device calls itself, its other properties are those of the kernel."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.udev.uevent_file import WITH_TEXTS, node_name, without_forged

#: Subsystem -> a `uevent` file as the kernel writes it, with TEXT for what the device chooses.
FILES = {
    "hid": b"""DRIVER=hid-generic
HID_ID=0003:0000046D:0000C52B
HID_NAME=TEXT
HID_PHYS=usb-0000:00:14.0-1/input0
HID_UNIQ=TEXT
MODALIAS=hid:b0003g0001v0000046Dp0000C52B
""",
    "input": b"""PRODUCT=3/46d/c52b/111
NAME="TEXT"
PHYS="usb-0000:00:14.0-1/input0"
UNIQ="TEXT"
PROP=0
EV=120013
KEY=1000000000007
MSC=10
LED=7
MODALIAS=input:b0003v046Dp
""",
    "mmc": b"""DRIVER=mmcblk
OF_NAME=card
MMC_TYPE=SDcombo
SDIO_ID=02D0:A9A6
SDIO_REVISION=2.0
SDIO_INFO1=TEXT
SDIO_INFO2=TEXT
MMC_NAME=TEXT
MODALIAS=mmc:block
""",
    "rc": b"""NAME=rc-rc6-mce
DRV_NAME=mceusb
DEV_NAME=TEXT
""",
    "sdio": b"""DRIVER=brcmfmac
SDIO_CLASS=00
SDIO_ID=02D0:A9A6
SDIO_REVISION=2.0
SDIO_INFO1=TEXT
MODALIAS=sdio:c00v02D0dA9A6
""",
}

#: What some devices of a subsystem have and these have not: nothing shows that it is a text that says it.
OPTIONAL = {
    "hid": re.compile(b"HID_FIRMWARE_VERSION"),
    "input": re.compile(b"REL|ABS|SND|FF|SW"),
    "mmc": re.compile(rb"SDIO_INFO\d+"),
    "rc": re.compile(b"(?!)"),
    "sdio": re.compile(rb"SDIO_INFO\d+"),
}

#: What somebody would write who knows the file.
_LINES = st.tuples(
    st.sampled_from(
        sorted(
            {name for file in FILES.values() for name in re.findall(rb"(?m)^\w+(?==)", file)}
            | {
                b"SUBSYSTEM",
                b"DEVTYPE",
                b"MAJOR",
                b"MINOR",
                b"DEVNAME",
                b"IFINDEX",
                b"ID_VENDOR_ID",
                b"TAGS",
                b"REL",
                b"HID_FIRMWARE_VERSION",
            }
        )
    ),
    st.sampled_from([b"", b"1", b"usb", b"x=y", b"\xff"]),
).map(b"=".join)
_TEXTS = st.lists(
    st.one_of(_LINES, st.sampled_from([b"\n", b"\r", b'"', b"=", b"Pad"]), st.binary(max_size=3))
)


def as_libudev_reads(file: bytes) -> dict[bytes, bytes]:
    """The properties in a `uevent` file, where the last line of each counts."""
    lines = (line.partition(b"=") for line in re.split(rb"[\r\n\0]", file))
    return {name: value for name, equals, value in lines if equals}


def filled(file: bytes, *texts: bytes) -> bytes:
    """The file with these texts of the device; the last one stands in for any further ones."""
    parts = file.split(b"TEXT")
    between = [*texts, *[texts[-1]] * len(parts)]
    return b"".join(part + text for part, text in zip(parts, [*between[: len(parts) - 1], b""], strict=True))


def test_all_subsystems_are_here() -> None:
    assert FILES.keys() == WITH_TEXTS


@pytest.mark.parametrize("subsystem", FILES)
@pytest.mark.parametrize("text", [b"Pad", b"", b"a=b", b"Pad\n", b"Pad\r\n", b"\n\n", b"\xff\xfe"])
def test_an_honest_device_has_all_its_properties(subsystem: str, text: bytes) -> None:
    assert without_forged(filled(FILES[subsystem], text), subsystem) is None


@pytest.mark.parametrize("subsystem", FILES)
@given(texts=st.lists(_TEXTS.map(b"".join), min_size=1, max_size=3))
def test_a_text_changes_no_property_that_the_kernel_chooses(subsystem: str, texts: list[bytes]) -> None:
    file = FILES[subsystem]
    honest = as_libudev_reads(filled(file, b"Pad"))
    chosen = {name for name, value in honest.items() if b"Pad" in value}
    written = filled(file, *texts)
    own = without_forged(written, subsystem)
    properties = as_libudev_reads(written) if own is None else own

    for name, value in properties.items():
        assert name in chosen or honest.get(name) == value or OPTIONAL[subsystem].fullmatch(name)


def test_the_name_of_the_node_is_the_first_one() -> None:
    assert node_name(b"MAJOR=7\nMINOR=20\nDEVNAME=vcs20\nNAME=x\nDEVNAME=kvm\n") == b"vcs20"
    assert node_name(b"MODALIAS=x\n") == b""
