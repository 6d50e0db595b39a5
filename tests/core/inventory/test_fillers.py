"""A serial number that tells nothing identifies a unit only together with its port."""

from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.past import Past
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from tests.scenes.builders import a_usb_serial, by_sys_path, resources_of
from tests.scenes.inventories import DOMAIN, devices_of, ids_of, inventory_of

RULE = '[[resource]]\nname = "meter"\nmatch = { SUBSYSTEM = "tty" }'


def test_units_with_a_filler_have_their_port_in_their_ids_whichever_came_first() -> None:
    (alone,) = ids_of(inventory_of(RULE, a_usb_serial(0, port="1", serial="0001")))
    pair = ids_of(
        inventory_of(RULE, a_usb_serial(0, port="1", serial="0001"), a_usb_serial(1, port="2", serial="0001"))
    )

    assert alone.startswith("meter_0001-port-1_")
    assert alone in pair
    assert inventory_of(RULE, a_usb_serial(0, port="1", serial="0001")).ties == {}


def test_a_unit_that_is_moved_to_another_port_is_another_device() -> None:
    before, after = (ids_of(inventory_of(RULE, a_usb_serial(port=port, serial="0"))) for port in "12")
    assert before != after


def test_an_id_that_an_earlier_release_gave_out_stays_with_its_port() -> None:
    unit = a_usb_serial(0, port="1", serial="0001")
    (device,) = devices_of(inventory_of(RULE, unit))
    builder = Builder(resources_of(RULE), DOMAIN)
    past = Past(port_of=lambda id_: device.port if id_ == "meter_0001" else "")

    assert ids_of(builder.build(by_sys_path(unit), past)) == ["meter_0001"]
    (other,) = ids_of(builder.build(by_sys_path(a_usb_serial(0, port="2", serial="0001")), past))
    assert other.startswith("meter_0001-port-2_")


def test_a_remembered_id_stays_for_as_long_as_it_is_remembered() -> None:
    devices, builder = (
        by_sys_path(a_usb_serial(0, port="1", serial="0001")),
        Builder(resources_of(RULE), DOMAIN),
    )
    (device,) = devices_of(inventory_of(RULE, *devices.values()))
    earlier = builder.build(devices, Past(port_of=lambda _: device.port))
    _, memory = remember(earlier, Memory(), 0.0, None)

    assert memory.past(0.0).port_of("meter_0001") == device.port
    assert ids_of(Builder(resources_of(RULE), DOMAIN).build(devices, memory.past(0.0))) == ["meter_0001"]


def test_when_such_an_id_is_forgotten_the_unit_gets_the_one_with_its_port() -> None:
    unit = a_usb_serial(0, port="1", serial="0001")
    (device,) = devices_of(inventory_of(RULE, unit))
    devices, builder = by_sys_path(unit), Builder(resources_of(RULE), DOMAIN)
    known = Past(port_of=lambda id_: device.port if id_ == "meter_0001" else "")

    assert ids_of(builder.build(devices, known)) == ["meter_0001"]
    assert ids_of(builder.build(devices)) == [device.id]


def test_ties_of_an_earlier_release_still_hold() -> None:
    units = [a_usb_serial(n, port=str(n), serial="0001") for n in (1, 2)]
    first = devices_of(inventory_of(RULE, units[0]))[0]

    ids = ids_of(inventory_of(RULE, *units, ties={"meter_0001": first.port}))

    assert "meter_0001" in ids
    assert len(set(ids)) == 2
