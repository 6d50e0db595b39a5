"""Which devices READY waits for after a boot."""

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.returning import Returning, healthy_in, returning
from tests.scenes.builders import a_fuse, a_usb_serial
from tests.scenes.inventories import inventory_of

FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
BOTH = {"fuse_fuse", "ftdi_A50285BI"}

#: Both were there, and now nothing is.
_, MEMORY = remember(inventory_of(FUSE + FTDI, a_fuse(), a_usb_serial(0)), Memory(), 0.0)


def test_a_device_that_was_healthy_is_waited_for_and_how_long_depends_on_the_resource() -> None:
    inventory = remember(inventory_of(FUSE + f'{FTDI}boot_wait = "60s"\n'), MEMORY, 0.0)[0]
    fuse = Returning("example.com/fuse", "fuse_fuse", 12.0)
    ftdi = Returning("example.com/ftdi", "ftdi_A50285BI", 57.0)
    assert returning(BOTH, inventory, 15.0, 3.0) == (fuse, ftdi)
    assert returning(BOTH, inventory, 15.0, 15.0) == (Returning(ftdi.resource, ftdi.id, 45.0),)
    assert returning(BOTH, inventory, 15.0, 60.0) == ()
    assert returning({"fuse_fuse"}, inventory, 15.0, 3.0) == (fuse,)


def test_a_wait_of_nothing_is_none() -> None:
    inventory = remember(inventory_of(FUSE + f'{FTDI}boot_wait = "0s"\n'), MEMORY, 0.0)[0]
    assert [each.id for each in returning(BOTH, inventory, 15.0, 0.0)] == ["fuse_fuse"]
    assert returning(BOTH, inventory, 0.0, 0.0) == ()


def test_neither_what_is_back_nor_what_nobody_offers_any_more_nor_what_is_new_is_waited_for() -> None:
    back = remember(inventory_of(FUSE, a_fuse()), MEMORY, 0.0)[0]
    assert back.orphaned_links
    assert returning(BOTH, back, 15.0, 0.0) == ()
    assert healthy_in(back) == {"fuse_fuse"}
    unhealthy = inventory_of(f'{FTDI}health = {{ DRIVER = "x" }}\n', a_usb_serial(0))
    assert healthy_in(unhealthy) == set()
    assert returning((), unhealthy, 15.0, 0.0) == ()
    assert [each.id for each in returning(BOTH, unhealthy, 15.0, 0.0)] == ["ftdi_A50285BI"]


@given(
    before=st.frozensets(st.sampled_from(sorted({*BOTH, "x"}))),
    waits=st.tuples(st.integers(0, 600), st.one_of(st.none(), st.integers(0, 600))),
    waited=st.integers(0, 700),
)
def test_the_wait_only_gets_shorter_and_ends(
    before: frozenset[str], waits: tuple[int, int | None], waited: int
) -> None:
    default, own = waits
    rules = FTDI if own is None else f'{FTDI}boot_wait = "{own}s"\n'
    inventory = remember(inventory_of(FUSE + rules), MEMORY, 0.0)[0]
    now = returning(before, inventory, default, waited)
    later = returning(before, inventory, default, waited + 1)
    assert {each.id for each in later} <= {each.id for each in now} <= before & BOTH
    assert all(0 < each.left_s <= 600 for each in now)
    assert returning(before, inventory, default, max(default, own or 0)) == ()
