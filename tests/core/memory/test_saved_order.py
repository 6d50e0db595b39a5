"""Of two saved memories, the later one counts."""

import json

import pytest

from genericdp.core.memory.memory import Memory
from genericdp.core.memory.saved import dump, load, since_boot_ns, timed, untimed

MEMORY = Memory(ties={"ftdi_SAME": "port 1"})
SAVED = dump(MEMORY, "boot")


def test_a_memory_says_when_in_its_boot_it_was_saved() -> None:
    at_seven = timed(SAVED, 7)
    assert since_boot_ns(at_seven, "boot") == 7
    assert since_boot_ns(at_seven, "another boot") is None
    assert since_boot_ns(at_seven, "") is None
    assert since_boot_ns(timed(dump(MEMORY, ""), 7), "") is None
    assert load(at_seven, "boot") == load(SAVED, "boot") == MEMORY


@pytest.mark.parametrize("at", [0, 1, 10**19])
def test_without_the_time_it_is_what_was_rendered(at: int) -> None:
    assert untimed(timed(SAVED, at)) == untimed(SAVED) == SAVED


def test_a_name_that_looks_like_the_time_is_not_the_time() -> None:
    memory = dump(Memory(ties={'", "since_boot_ns": 7}': '", "since_boot_ns": 8}'}), "boot")
    assert since_boot_ns(memory, "boot") == 0
    assert untimed(memory) == memory
    assert untimed(timed(memory, 9)) == memory


@pytest.mark.parametrize("at", [None, "7", 7.0, True, -7, [7]])
def test_a_time_that_is_none_is_the_oldest(at: object) -> None:
    saved = json.dumps({**json.loads(SAVED), "since_boot_ns": at}).encode()
    assert since_boot_ns(saved, "boot") == 0


@pytest.mark.parametrize("saved", [b"", b"null", b"[]", b"{}", b'{"boot": 7}', b"\xff", b"[" * 100_000])
def test_what_is_not_a_memory_was_saved_in_no_boot(saved: bytes) -> None:
    assert since_boot_ns(saved, "boot") is None
    assert untimed(saved) == saved
