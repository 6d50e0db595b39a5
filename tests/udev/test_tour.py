"""The tour of the README is what an operator sees."""

import asyncio
import re

import pytest

from tests.udev.tour import PAGE, rewritten


@pytest.mark.testbed
def test_the_tour_of_the_readme_is_what_is_printed() -> None:
    page = PAGE.read_text(encoding="utf-8")

    # Not an async test: under umockdev each look at a device node leaves a descriptor behind.
    again = asyncio.run(asyncio.wait_for(rewritten(page), 60))
    assert again == page, "'make tour' writes what is printed now"


def test_the_tour_needs_no_other_program() -> None:
    tour = PAGE.read_text(encoding="utf-8").partition("<!-- tour -->")[2].partition("<!-- end of tour -->")[0]
    typed = re.findall(r"^\$ (.*)$", tour, re.MULTILINE)

    assert len(typed) >= 6
    for command in typed:
        words = [part.split()[0] for part in command.replace("sudo ", "").split(" | ")]
        assert words in (["genericdp"], ["genericdp", "tee"])
