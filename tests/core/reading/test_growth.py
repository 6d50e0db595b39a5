"""Reading costs time and memory in proportion to the file; what would cost more is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from genericdp.core.reading.parse import RulesText, parse_rules, parse_settings, settled
from genericdp.core.reading.positions import find
from genericdp.core.rules.settings import Settings
from tests.scenes.texts import LARGE, TOO_DEEP
from tests.scenes.work import IN_PROPORTION, growth, growth_of_memory, peak

REPOSITORY = Path(__file__).resolve().parents[3]


def read(text: str) -> None:
    resources, _ = parse_rules("x.toml", text, "example.com")
    settled([RulesText(text, resources)])
    parse_settings("x.toml", text)


@pytest.mark.parametrize("what", LARGE)
def test_the_time_to_read_a_file_grows_in_proportion_to_it(what: str) -> None:
    text = LARGE[what]
    # Even the small text has more globs than `re` keeps compiled.
    assert growth(lambda size: read(text(size)), 8_000) < IN_PROPORTION


@pytest.mark.parametrize("what", [*LARGE, *TOO_DEEP])
def test_the_memory_to_read_a_file_grows_in_proportion_to_it(what: str) -> None:
    text = LARGE.get(what) or TOO_DEEP[what]
    assert growth_of_memory(lambda size: read(text(size)), 1_000) < IN_PROPORTION


@pytest.mark.parametrize("what", LARGE)
def test_the_places_in_a_text_need_at_most_48_bytes_for_each_character(what: str) -> None:
    text = LARGE[what](20_000)
    assert peak(lambda: find(text)) < 48 * len(text)


@pytest.mark.parametrize("what", TOO_DEEP)
def test_what_is_nested_too_deeply_is_refused_at_its_place(what: str) -> None:
    text = TOO_DEEP[what](10_000)
    resources, problems = parse_rules("deep.toml", text, "example.com")
    settings, same = parse_settings("deep.toml", text)
    assert (resources, settings) == ((), Settings())
    assert problems == same
    (problem,) = problems
    assert problem.message == "nested more than 32 levels deep"
    assert problem.hint == "no rule needs that"
    assert problem.source == text.split("\n")[problem.location.line - 1]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (".".join("a" * 32) + " = 1", 0),
        (".".join("a" * 33) + " = 1", 65),
        ("a = " + "[" * 31 + "1" + "]" * 31, 0),
        ("a = " + "[" * 32 + "1" + "]" * 32, 37),
        ("a = " + "{ a = " * 31 + "1" + "}" * 31, 0),
        ("a = " + "{ a = " * 32 + "1" + "}" * 32, 193),
        ("[" + ".".join("a" * 31) + "]\nb = 1", 0),
        ("[" + ".".join("a" * 32) + "]\nb = 1", 1),
        ("[[" + ".".join("a" * 31) + "]]", 0),
        ("[[" + ".".join("a" * 32) + "]]", 1),
    ],
)
def test_32_levels_are_read_and_33_are_refused(text: str, column: int) -> None:
    _, problems = parse_settings("deep.toml", text)
    too_deep = [
        each.location.column for each in problems if each.message == "nested more than 32 levels deep"
    ]
    assert too_deep == ([column] if column else [])


def test_of_a_file_with_very_many_mistakes_the_first_hundred_are_shown_and_that_there_are_more() -> None:
    wrong = "".join(f'[[resource]]\nname = "r{n}"\nreplicas = 0\n' for n in range(101))
    _, problems = parse_rules("x.toml", wrong, "example.com")
    assert [problem.location.line for problem in problems] == [3 + 3 * n for n in range(101)]
    assert {problem.message for problem in problems[:100]} == {"'replicas' must be from 1 to 10000, not 0"}
    assert problems[100].render() == (
        "x.toml:303:12: error: the file has more than 100 mistakes\n"
        "  hint: correct the others first; the rest of the file has not been checked"
    )
    right = wrong.removesuffix("replicas = 0\n") + 'match = { SUBSYSTEM = "tty" }\n'
    _, exactly = parse_rules("x.toml", right, "example.com")
    assert [problem.location.line for problem in exactly] == [3 + 3 * n for n in range(100)]


@pytest.mark.parametrize(
    "read_it", [parse_settings, lambda file, text: parse_rules(file, text, "example.com")]
)
def test_unknown_keys_and_numbers_beyond_64_bits_are_counted_like_any_mistake(
    read_it: Callable[[str, str], tuple[object, tuple[object, ...]]],
) -> None:
    for text in ("".join(f"k{n} = 1\n" for n in range(500)), f"a = [{'9999999999999999999,' * 500}]"):
        _, problems = read_it("x.toml", text)
        assert len(problems) == 101
        assert "more than 100 mistakes" in str(problems[-1])


def test_clashes_of_names_are_counted_like_any_mistake() -> None:
    text = '[[resource]]\nname = "r"\nmatch = { SUBSYSTEM = "tty" }\n' * 300
    _, problems = parse_rules("a.toml", text, "example.com")
    assert len(problems) == 101
    assert problems[99].message == "the resource 'example.com/r' is already defined"
    assert problems[99].source == 'name = "r"'
    assert problems[100].message == "the file has more than 100 mistakes"


def test_of_clashes_with_other_files_the_first_hundred_are_shown() -> None:
    text = "".join(f'[[resource]]\nname = "r{n}"\nmatch = {{ SUBSYSTEM = "tty" }}\n' for n in range(300))
    files = [RulesText(text, parse_rules(file, text, "example.com")[0]) for file in ("a.toml", "b.toml")]
    (first, none), (second, problems) = settled(files)
    assert (len(first), none, second) == (300, (), ())
    assert [each.location.file for each in problems] == ["b.toml"] * 101
    assert problems[99].message == "the resource 'example.com/r99' is already defined"
    assert problems[99].source == 'name = "r99"'
    assert problems[100].message == "the file has more than 100 mistakes"


def test_the_older_reader_of_toml_needs_as_little_for_the_same_texts() -> None:
    """Where 40 kB took 2 GB: a limit on the address space ends it in a MemoryError."""
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\n"
        "from genericdp.core.reading.toml import parse_toml\n"
        "from tests.scenes.texts import LARGE, TOO_DEEP\n"
        "for text in (*LARGE.values(), *TOO_DEEP.values()):\n"
        "    parse_toml('x.toml', text(40_000))\n"
        "print('read')\n"
    )
    for python in (sys.executable, os.environ["GENERICDP_FLOOR_PYTHON"]):
        result = subprocess.run(
            [python, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert (result.stdout, result.stderr) == ("read\n", "")
