"""Where a mistake is shown when it is about something that is not in the file, and how much of it is."""

import pytest

from genericdp.core.reading.parse import RulesText, parse_rules, settled
from genericdp.core.reading.toml import parse_toml


def test_what_is_not_written_is_shown_at_the_nearest_thing_that_is() -> None:
    document, problems = parse_toml("x.toml", 'a = { b = "c" }\n')
    assert document is not None
    assert problems == ()
    source = document.source
    assert str(source.location(("a", "b"))) == "x.toml:1:11"
    assert str(source.location(("a", "b"), on_key=True)) == "x.toml:1:7"
    assert str(source.location(("a", "nothing"))) == "x.toml:1:5"
    assert str(source.location(("nothing", 0))) == "x.toml:1:1"
    assert str(source.location(())) == "x.toml:1:1"


def test_a_very_long_value_is_not_repeated_whole() -> None:
    text = f'[[resource]]\nname = "a"\nmatch = {{ DEVNAME = "{"a" * 4000}" }}\n'
    _, (problem,) = parse_rules("x.toml", text, "example.com")
    assert problem.message.startswith("'aaaa")
    assert "aaaa…aaaa" in problem.message
    assert problem.message.endswith("aaaa' can never match: DEVNAME is the path of the device node")
    assert problem.hint.startswith('write "/dev/aaaa')
    assert (len(problem.message), len(problem.hint)) == (801, 801)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_problems_of_a_line_keep_one_copy_of_it(end: str) -> None:
    mistakes = ", ".join(f'{{ name = "r{n}", mach = 1 }}' for n in range(50))
    _, problems = parse_rules("x.toml", f"resource = [{mistakes}]{end}", "example.com")
    assert len(problems) == 50
    assert {problem.source for problem in problems} == {f"resource = [{mistakes}]"}
    assert len({id(problem.source) for problem in problems}) == 1

    same = ", ".join(f'{{ name = "r{n}", match = {{ DRIVER = "a" }} }}' for n in range(50))
    text = f"resource = [{same}]{end}"
    files = [RulesText(text, parse_rules(file, text, "example.com")[0]) for file in ("a.toml", "b.toml")]
    _, (_, clashes) = settled(files)
    assert len(clashes) == 50
    assert len({id(problem.source) for problem in clashes}) == 1
