"""Looking for a device by what it is."""

import pytest

from genericdp.core.explain.query import Query, usb_id
from genericdp.core.inventory.build import Builder
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from tests.scenes.builders import a_fuse, a_modem, a_usb_serial, by_sys_path, resources_of


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (Query(serial="A"), "device with the serial number 'A'"),
        (Query(vendor="0403", product="6001"), "USB device 0403:6001"),
        (Query(vendor="0403"), "USB device 0403:*"),
        (Query("A", "0403", "6001"), "USB device 0403:6001 with the serial number 'A'"),
    ],
)
def test_a_query_in_words(query: Query, text: str) -> None:
    assert str(query) == text


def test_the_nodes_of_what_all_of_it_is_true_of_are_found() -> None:
    one, other = a_usb_serial(0, serial="A"), a_usb_serial(1, port="3", product="6015", serial="A")
    nodes = [one, other, a_fuse(), *a_modem()]

    assert Query(serial="A").among(nodes) == [one, other]
    assert Query(vendor="0403", product="6015").among(nodes) == [other]
    assert Query("A", "0403", "6001").among(nodes) == [one]
    assert Query("B", "0403").among(nodes) == []


def test_what_is_of_the_same_maker_or_has_nearly_the_number_is_similar() -> None:
    one, other = a_usb_serial(0, serial="A50285BI"), a_usb_serial(1, port="3", product="6015", serial="xyz")
    nodes = [one, other, a_fuse()]

    assert Query(vendor="0403", product="6010").similar(nodes) == [
        (one, "usb 0403:6001"),
        (other, "usb 0403:6015"),
    ]
    assert Query(serial="a50285b1").similar(nodes) == [(one, "serial A50285BI")]
    assert Query(vendor="0403").similar(nodes) == []


@pytest.mark.parametrize(
    ("match", "query", "asked"),
    [
        ('usb = { serial = "A*" }', Query(serial="AB"), True),
        ('usb = { serial = "A*" }', Query(serial="BB"), False),
        ('usb = { vendor = "0403", serial = "A" }', Query(serial="A"), True),
        ('usb = { vendor = "0403" }', Query(serial="A"), False),
        ('usb = { vendor = "403", product = "6001" }', Query(vendor="0403", product="6001"), True),
        ('usb = { vendor = "403", product = "6001" }', Query(vendor="0403", product="6015"), False),
        ('ID_VENDOR_ID = "0403", SUBSYSTEM = "tty"', Query(vendor="0403", product="6001"), True),
        ('ID_SERIAL_SHORT = "A"', Query(serial="A"), True),
        ('parent = { "ATTR{idVendor}" = "0403" }', Query(vendor="0403"), True),
        ('usb = { vendor = "0403", serial = "B" }', Query("A", "0403", "6001"), False),
        ('SUBSYSTEM = "tty"', Query("A", "0403", "6001"), False),
    ],
)
def test_a_rule_asks_for_it_when_what_is_known_of_it_is_wanted(match: str, query: Query, asked: bool) -> None:
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {{ {match} }}\n')

    assert query.is_wanted_by(resource) is asked


@pytest.mark.parametrize("identity", ['"serial"', '["ID_SERIAL_SHORT"]'])
@pytest.mark.parametrize("serial", ["A50285BI", "A_B", "é"])
def test_an_absent_device_is_remembered_by_its_serial_number(identity: str, serial: str) -> None:
    rules = f'[[resource]]\nname = "x"\nmatch = {{ SUBSYSTEM = "tty" }}\nidentity = {identity}\n'
    builder = Builder(resources_of(rules), "example.com")
    present = by_sys_path(a_usb_serial(0, serial=serial))
    _, memory = remember(builder.build(present), Memory(), 0.0)
    query = Query(serial=serial)

    assert query.remembered(memory, "example.com") == ()
    _, memory = remember(builder.build({}), memory, 0.0)

    (known,) = query.remembered(memory, "example.com")
    assert known.resource == "example.com/x"
    assert Query(serial="other").remembered(memory, "example.com") == ()
    assert Query(vendor="0403").remembered(memory, "example.com") == ()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0403:6001", ("0403", "6001")),
        ("0x403:0x6001", ("0403", "6001")),
        ("2C7C", ("2c7c", None)),
        ("2c7c:", ("2c7c", None)),
        ("2c7c:*", ("2c7c", None)),
        ("2c7c:\\", None),
        ("0403:60011", None),
        (":6001", None),
        ("", None),
    ],
)
def test_a_usb_id_is_read_as_lsusb_prints_it(text: str, ids: tuple[str, str | None] | None) -> None:
    assert usb_id(text) == ids
