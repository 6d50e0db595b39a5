"""Ids: what they look like, what they are a function of, and who keeps which among twins."""

import itertools
import re

import pytest

from genericdp.core.buses.port import Port
from genericdp.core.inventory.group import identify
from genericdp.core.inventory.identity import (
    ID_LIMIT,
    OF_ALL,
    REPLICA_ROOM,
    Assignment,
    Identity,
    UnidentifiedError,
    assign,
    hash_of,
    natural,
)
from genericdp.core.inventory.past import Past, Ties
from genericdp.core.inventory.place import locate
from tests.scenes.builders import a_fuse, a_modem, a_usb_serial

DOMAIN = "example.com"
RESOURCE = "example.com/ftdi"


def a_serial(serial: str, port: str = "1", place: str = "", order: str = "") -> Identity:
    return Identity("serial", serial, serial, place, Port(f"c usb {port}", f"port-{port}"), order or port)


def ids(
    *identities: Identity, resource: str = RESOURCE, ties: Ties | None = None, known: Ties | None = None
) -> tuple[str, ...]:
    return assigned(*identities, resource=resource, ties=ties, known=known).ids


def assigned(
    *identities: Identity, resource: str = RESOURCE, ties: Ties | None = None, known: Ties | None = None
) -> Assignment:
    return assign(resource, identities, DOMAIN, Past(ties or {}, known or {}))


# Identities


def no_property(name: str) -> None:
    raise AssertionError(name)


def test_a_device_is_its_serial_number() -> None:
    place = locate(a_usb_serial(serial="A50285BI"))
    assert identify(place, place.within, "o", "serial", no_property) == Identity(
        "serial", "A50285BI", "A50285BI", "", place.port, "o"
    )


def test_a_device_without_serial_number_is_its_port() -> None:
    place = locate(a_usb_serial(serial=None))
    expected = Identity("port", place.port.exact, "port-2", "", place.port, "o")
    assert identify(place, place.within, "o", "serial", no_property) == expected


def test_where_the_rule_says_port_the_serial_number_does_not_count() -> None:
    place = locate(a_usb_serial(serial="A50285BI"))
    expected = Identity("port", place.port.exact, "port-2", "", place.port, "o")
    assert identify(place, place.within, "o", "port", no_property) == expected


def test_a_virtual_device_is_its_name() -> None:
    place = locate(a_fuse())
    for wanted in ("serial", "port"):
        expected = Identity("name", "fuse", "fuse", "", place.port, "o")
        assert identify(place, "", "o", wanted, no_property) == expected


def test_a_rule_may_name_the_properties_that_a_device_is() -> None:
    place = locate(a_usb_serial())
    properties = {"ID_SERIAL": "x_y", "ID_USB_INTERFACE_NUM": "00"}
    one = identify(place, "if01", "o", ("ID_SERIAL",), properties.get)
    assert one == Identity("property ID_SERIAL", "x_y", "x_y", "if01", place.port, "o")
    two = identify(place, "", "o", ("ID_SERIAL", "ID_USB_INTERFACE_NUM"), properties.get)
    basis = "property ID_SERIAL ID_USB_INTERFACE_NUM"
    assert two == Identity(basis, "['x_y', '00']", "x_y-00", "", place.port, "o")


def test_the_same_values_of_other_properties_are_another_identity() -> None:
    place = locate(a_usb_serial())
    properties = {"FOO": "x", "BAR": "x"}
    one, other = (identify(place, "", "o", (name,), properties.get) for name in properties)
    assert ids(one) != ids(other)


@pytest.mark.parametrize("value", [None, ""])
def test_a_device_that_lacks_such_a_property_has_no_identity(value: str | None) -> None:
    place = locate(a_usb_serial())
    with pytest.raises(UnidentifiedError) as unidentified:
        identify(place, "", "o", ("ID_SERIAL", "ID_MODEL"), {"ID_SERIAL": "x", "ID_MODEL": value}.get)
    assert str(unidentified.value) == "it has no property ID_MODEL, which 'identity' uses"


# What ids look like


def test_an_id_is_readable() -> None:
    assert ids(a_serial("A50285BI")) == ("ftdi_A50285BI",)
    assert ids(a_serial("7F3A", place="index1"), resource="example.com/camera") == ("camera_7F3A.index1",)
    fuse = Identity("name", "fuse", "fuse", "", Port("/sys/devices/virtual/misc/fuse", "fuse"), "")
    assert ids(fuse, resource="example.com/fuse") == ("fuse_fuse",)


def test_what_a_resource_takes_as_a_whole_is_called_like_the_resource() -> None:
    assert ids(OF_ALL, resource="example.com/videocore") == ("videocore",)
    assert ids(OF_ALL, resource="example.com/video-core.v4") == ("video-core.v4",)
    # Another domain; what could be the id of a device, or of a replica; no room for the number of a replica.
    assert ids(OF_ALL, resource="other.example/videocore") == ("videocore_all_5sqb3mukrz",)
    assert ids(OF_ALL, resource="example.com/video_core") == ("video-core_all_t6luitig54",)
    assert ids(OF_ALL, resource="example.com/video.4") == ("video.4_all_lo2jqezwtu",)
    assert ids(OF_ALL, resource=f"example.com/{'x' * 60}") == (f"{'x' * 20}_all_2ve6sipkhg",)


def test_an_id_that_says_a_port_says_exactly_which_by_a_hash() -> None:
    port = Port("/sys/devices/pci0000:00/0000:00:14.0 usb2 1.4", "port-1.4")
    identity = Identity("port", port.exact, port.readable, "", port, "")
    assert ids(identity, resource="example.com/modem") == ("modem_port-1-4_4goruxttei",)


@pytest.mark.parametrize(
    ("resource", "serial", "place", "id_"),
    [
        # Characters would have to be left out.
        (RESOURCE, "A B", "", "ftdi_A-B_*"),
        (RESOURCE, "A_B", "", "ftdi_A-B_*"),
        (RESOURCE, "-A-", "", "ftdi_A_*"),
        (RESOURCE, "../../etc/passwd", "", "ftdi_etc-passwd_*"),
        (RESOURCE, "Größe 7", "", "ftdi_Gr-e-7_*"),
        (RESOURCE, "\n\0\x1b[31m", "", "ftdi_31m_*"),
        (RESOURCE, "\udcff\udcfe", "", "ftdi__*"),
        (RESOURCE, "A", "event-My Keyboard", "ftdi_A-event-My-Keyboard_*"),
        # It could be read in two ways.
        (RESOURCE, "A.index1", "", "ftdi_A-index1_*"),
        ("example.com/my_dongle", "A", "", "my-dongle_A_*"),
        # Another domain may have a resource of this name.
        ("other.example/ftdi", "A", "", "ftdi_A_*"),
        # It would be too long.
        (RESOURCE, "A" * 53, "", "ftdi_" + "A" * 41 + "_*"),
        ("example.com/" + "n" * 63, "A" * 99, "", "n" * 20 + "_" + "A" * 25 + "_*"),
        ("example.com/" + "n" * 19 + "-x", "A.", "", "n" * 19 + "_A_*"),
    ],
)
def test_whatever_cannot_stand_as_it_is_gets_a_hash(resource: str, serial: str, place: str, id_: str) -> None:
    (made,) = ids(a_serial(serial, place=place), resource=resource)
    assert re.sub(r"_[a-z2-7]{10}$", "_*", made) == id_
    assert len(made) <= ID_LIMIT - REPLICA_ROOM
    assert re.fullmatch(r"[A-Za-z0-9._-]+", made)


def test_the_longest_plain_id_leaves_room_for_the_number_of_a_replica() -> None:
    (made,) = ids(a_serial("A" * 52))
    assert made == "ftdi_" + "A" * 52
    assert len(made) + REPLICA_ROOM == ID_LIMIT


def test_what_differs_in_anything_never_shares_an_id() -> None:
    serials = ["A", "a", "A B", "A_B", "A-B", "A.B", "-A", "A ", "AB" * 40, "AB" * 40 + "C", "port-1", ""]
    serials += ["A\0B", "['A', 'B']", "\udc80", "\\udc80"]
    made = [
        id_
        for resource in (RESOURCE, "other.example/ftdi", "example.com/ft_di", "example.com/ft-di")
        for place in ("", "if01", "if 01", "if-01", "B")
        for serial in serials
        for id_ in ids(a_serial(serial, place=place), resource=resource)
    ]
    assert len(set(made)) == len(made)


def test_a_hash_covers_where_its_parts_end() -> None:
    assert hash_of("a", "bc") != hash_of("ab", "c")
    assert hash_of("a", "") != hash_of("a")
    assert hash_of("1") != hash_of(1)
    assert hash_of("a\ud800") != hash_of("a\\ud800")


# Twins


A, B, C = a_serial("S", "1"), a_serial("S", "2"), a_serial("S", "3")
PLAIN = "ftdi_S"
TWIN_B, TWIN_C = "ftdi_S-port-2_toxbzijn7v", "ftdi_S-port-3_diytziyqso"


def test_of_twins_that_appear_at_once_the_lower_port_has_the_plain_id() -> None:
    both = assigned(A, B)
    assert both.ids == (PLAIN, TWIN_B)
    assert both.units == (PLAIN, PLAIN)
    assert both.ties == {PLAIN: "c usb 1"}
    assert both.unsure == ()


def test_the_order_of_enumeration_does_not_matter() -> None:
    for order in itertools.permutations((A, B, C)):
        made = assigned(*order)
        assert dict(zip(order, made.ids, strict=True)) == {A: PLAIN, B: TWIN_B, C: TWIN_C}
        assert made.ties == {PLAIN: "c usb 1"}


def test_the_first_keeps_its_id_when_a_twin_appears_at_a_lower_port() -> None:
    assert ids(B) == (PLAIN,)
    both = assigned(A, B, known={PLAIN: "c usb 2"})
    assert both.ids == ("ftdi_S-port-1_vb23icyr4k", PLAIN)
    assert both.ties == {PLAIN: "c usb 2"}


def test_a_twin_has_its_own_id_from_then_on_even_when_it_is_alone() -> None:
    ties = assigned(A, B).ties
    assert ids(B, ties=ties) == (TWIN_B,)
    assert ids(A, ties=ties) == (PLAIN,)


def test_a_third_twin_changes_nobodys_id() -> None:
    ties = assigned(A, B).ties
    third = assigned(C, B, A, ties=ties)
    assert third.ids == (TWIN_C, TWIN_B, PLAIN)
    assert third.ties == ties


def test_a_tie_holds_against_every_later_order_of_arrival() -> None:
    ties = {PLAIN: "c usb 2"}
    for present in ([A], [A, C], [C, A, B]):
        for known in ({}, {PLAIN: "c usb 1"}, {PLAIN: "c usb 3"}):
            made = assigned(*present, ties=ties, known=known)
            assert made.ties == ties
            assert dict(zip(present, made.ids, strict=True)).get(B, PLAIN) == PLAIN
            assert made.ids.count(PLAIN) == (B in present)


def test_the_first_that_was_moved_while_it_was_alone_is_the_one_at_its_new_port() -> None:
    # Replugged at another port it is the same unit: nobody can know better.
    assert ids(B, known={PLAIN: "c usb 1"}) == (PLAIN,)
    back = assigned(A, B, known={PLAIN: "c usb 2"})
    assert back.ids[1] == PLAIN


def test_a_known_port_that_nobody_is_at_decides_nothing() -> None:
    assert ids(A, B, known={PLAIN: "c usb 9"}) == (PLAIN, TWIN_B)


def test_the_id_stays_at_its_port_when_two_that_may_be_the_first_are_seen_elsewhere() -> None:
    """Nobody can tell which of them it is."""
    here, one, other = (
        Identity("serial", "S", "S", "", Port(f"/sys/devices/pci0000:00 usb2 {number}", f"port-{number}"), "")
        for number in (9, 1, 2)
    )
    known = {PLAIN: here.port.exact}
    made = assigned(one, other, known=known)
    assert PLAIN not in made.ids
    assert made.ties == known
    assert ids(one, other, here, ties=made.ties) == (*made.ids, PLAIN)


def test_twins_of_several_nodes_are_told_apart_as_units() -> None:
    a0, a1, b0, b1 = (a_serial("S", port, place) for port in "12" for place in ("", "if01"))
    made = assigned(b1, a1, b0, a0, resource="example.com/m")
    assert made.ids[1::2] == ("m_S.if01", "m_S")
    assert made.ids[0].startswith("m_S-port-2-if01_")
    assert made.ids[2].startswith("m_S-port-2_")
    assert made.ties == {"m_S": "c usb 1"}


def test_the_nodes_of_one_unit_are_no_twins() -> None:
    made = assigned(a_serial("S", "1"), a_serial("S", "1", "if01"))
    assert made.ids == ("ftdi_S", "ftdi_S.if01")
    assert made.ties == {}


def test_other_units_and_ties_are_left_alone() -> None:
    ties = {"ftdi_OLD": "c usb 7"}
    made = assigned(A, B, a_serial("T", "4"), ties=ties)
    assert made.ids == (PLAIN, TWIN_B, "ftdi_T")
    assert made.ties == {"ftdi_OLD": "c usb 7", PLAIN: "c usb 1"}
    assert ties == {"ftdi_OLD": "c usb 7"}


FUSE = Identity("name", "fuse", "fuse", "", Port("/sys/devices/virtual/misc/fuse", "fuse"), "")


def test_a_serial_number_that_spells_the_id_of_another_device_does_not_take_it() -> None:
    (alone,) = ids(a_serial("fuse", "1"))
    assert alone == "ftdi_fuse_nd7sc6sndk"
    both = assigned(FUSE, a_serial("fuse", "1"), known={"ftdi_fuse": "c usb 1"})
    assert both.ids == ("ftdi_fuse", alone)
    assert both.ties == {}


@pytest.mark.parametrize(
    "name",
    [
        "fuse",
        "kvm",
        "vhost-net",
        "tty7",
        "vcsa63",
        "loop0",
        "dm-12",
        "macvtap0",
        "i2c-0",
        "ttyGS1",
        "renderD128",
    ],
)
def test_the_short_form_of_what_looks_like_a_name_of_the_kernel_belongs_to_that_name(name: str) -> None:
    port = Port(f"/sys/devices/virtual/misc/{name}", name)
    assert ids(Identity("name", name, name, "", port, "")) == (f"ftdi_{name}",)
    (serial,) = ids(a_serial(name))
    assert re.fullmatch(rf"ftdi_{name}_[a-z2-7]{{10}}", serial)


@pytest.mark.parametrize(
    "serial",
    [
        "0002",
        "7",
        "A50285BI",
        "7F3A",
        "fedcba9876543210",
        "28f4e2a4a43fec11a4a86ba838b9e54a",
        "a1b2c3",
        "FUSE",
    ],
)
def test_the_short_form_of_anything_else_belongs_to_the_serial_number(serial: str) -> None:
    assert ids(a_serial(serial)) == (f"ftdi_{serial}",)
    (name,) = ids(
        Identity("name", serial, serial, "", Port(f"/sys/devices/virtual/vfio/{serial}", serial), "")
    )
    assert re.fullmatch(rf"ftdi_{serial}_[a-z2-7]{{10}}", name)


def test_properties_have_no_short_form() -> None:
    (made,) = ids(Identity("property ID_SERIAL", "A50285BI", "A50285BI", "", Port("c usb 1", "port-1"), ""))
    assert re.fullmatch(r"ftdi_A50285BI_[a-z2-7]{10}", made)


def test_a_place_that_reads_like_the_number_of_a_replica_gets_a_hash() -> None:
    (made,) = ids(a_serial("A", place="7"))
    assert re.fullmatch(r"ftdi_A-7_[a-z2-7]{10}", made)


# Siblings


def test_siblings_that_nothing_tells_apart_are_numbered_in_the_order_of_their_paths() -> None:
    first, second, third = (a_serial("S", order=f"/sys/x/i2c-{n}") for n in (2, 9, 10))
    made = assigned(third, first, second)
    assert made.ids[1] == PLAIN
    assert len(set(made.ids)) == 3
    assert made.unsure == tuple(sorted(made.ids))
    again = assigned(first, second, third)
    assert again.ids == (made.ids[1], made.ids[2], made.ids[0])


def test_siblings_of_a_twin_are_numbered_too() -> None:
    twins = [a_serial("S", port, order=f"{port}-{n}") for port in "12" for n in (0, 1)]
    made = assigned(*twins)
    assert len(set(made.ids)) == 4
    assert made.unsure == tuple(sorted(made.ids))


# Order


def test_numbers_are_sorted_as_numbers() -> None:
    names = ["ttyUSB10", "ttyUSB9", "ttyUSB", "ttyS0", "1-10", "1-9.2", "1-9.10", "a1b2", "a1b", "a1"]
    assert sorted(names, key=natural) == [
        "1-9.2", "1-9.10", "1-10", "a1", "a1b", "a1b2", "ttyS0", "ttyUSB", "ttyUSB9", "ttyUSB10",
    ]  # fmt: skip


def test_no_two_texts_are_equal_in_order() -> None:
    assert natural("A01") != natural("A1")
    assert sorted(["A1", "A01"], key=natural) == sorted(["A01", "A1"], key=natural)


def test_a_number_of_any_length_is_a_number() -> None:
    assert natural("9" * 5000) < natural("1" + "0" * 5000)


def test_the_members_of_a_modem_have_ids_of_their_own() -> None:
    places = [locate(node) for node in a_modem(serial="EC25")]
    identities = [identify(place, place.within, "", "serial", no_property) for place in places[1:]]
    assert ids(*identities, resource="example.com/m") == (
        "m_EC25", "m_EC25.if01", "m_EC25.if02", "m_EC25.if04-cdc-wdm",
    )  # fmt: skip


def of_unknown(*held: str, among: tuple[Identity, ...]) -> Assignment:
    """Pods hold ids of which nothing is known."""
    return assign(RESOURCE, among, DOMAIN, Past(unknown=frozenset(held)))


def test_no_twin_gets_an_id_that_a_pod_holds_if_nobody_knows_which_one_came_first() -> None:
    twins = (a_serial("S", "1"), a_serial("S", "2"))
    found = of_unknown("ftdi_S", among=twins)
    assert found.ties == {"ftdi_S": ""}
    assert all(id_.startswith(f"ftdi_S-port-{port}_") for id_, port in zip(found.ids, "12", strict=True))
    assert found.doubted == {"ftdi_S": [*found.ids]}
    one, other = found.ids
    assert of_unknown("ftdi_S", one, among=twins).doubted == {"ftdi_S": [other]}


def test_an_id_with_a_port_that_a_pod_holds_says_that_there_was_a_twin() -> None:
    alone, twins = (a_serial("S", "1"),), (a_serial("S", "1"), a_serial("S", "2"))
    with_port = of_unknown("ftdi_S", among=twins).ids[0]
    assert of_unknown(with_port, among=alone).ids == (with_port,)
    assert of_unknown("ftdi_S", among=alone).ids == ("ftdi_S",)


def test_a_twin_whose_port_is_known_keeps_its_id_whatever_else_pods_hold() -> None:
    twins = (a_serial("S", "1"), a_serial("S", "2"))
    _, with_port = ids(*twins, ties={"ftdi_S": twins[0].port.exact})
    past = Past(known_ports={"ftdi_S": twins[0].port.exact}, unknown=frozenset({with_port}))
    assert assign(RESOURCE, twins, DOMAIN, past).ids == ("ftdi_S", with_port)
