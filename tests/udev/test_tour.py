"""The transcripts in the documentation are what an operator sees."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.udev.tour import PAGES, commands, rewritten


@pytest.mark.testbed
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.stem))
def test_the_transcripts_of_a_page_are_what_is_printed(path: Path) -> None:
    page = path.read_text(encoding="utf-8")

    # Not an async test: under umockdev each look at a device node leaves a descriptor behind.
    again = asyncio.run(asyncio.wait_for(rewritten(page), 120))
    assert again == page, "'make tour' writes what is printed now"


#: What else an operator types: to look at a part of an output or at two files, and what prints nothing.
FILTERS = (["genericdp", "tee"], ["genericdp", "head"], ["genericdp", "grep"], ["diff"])
SILENT = (["chmod"], ["cat"])

_NODE = re.compile(
    r"^<!-- fresh node -->$(.*?)(?=^<!-- (?:fresh node|end) -->$|\Z)", re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def typed(text: str) -> list[tuple[str, str]]:
    """The commands of a text, and what is printed below each."""
    return [command for block in _BLOCK.findall(text) for command in commands(block)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.stem))
def test_every_command_of_a_transcript_is_of_the_program_and_prints_something(path: Path) -> None:
    found = typed("".join(_NODE.findall(path.read_text(encoding="utf-8"))))

    assert found
    for command, printed in found:
        words = [part.split()[0] for part in command.replace("sudo ", "").split(" | ")]
        assert words == ["genericdp"] or words in FILTERS or words in SILENT
        assert bool(printed) == (words not in SILENT), command


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if path.stem != "install"],  # where `make test-package` types the rest
    ids=lambda path: str(path.stem),
)
def test_everything_that_is_shown_as_typed_is_typed_by_the_test(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert typed(page) == typed("".join(_NODE.findall(page)))


def test_every_symptom_has_an_output_and_a_cure() -> None:
    (page,) = (path for path in PAGES if path.stem == "troubleshooting")
    _, *symptoms = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert len(symptoms) >= 15
    for symptom in symptoms:
        assert typed(symptom), symptom
        assert "\n**Cure**: " in symptom
