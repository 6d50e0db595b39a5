"""Which paths of device nodes a rule can name."""

import pytest

from genericdp.core.reading.parse import parse_rules


@pytest.mark.parametrize(
    "pattern", [r"/dev/q\\|q00", r"/dev/a\\\\|/dev/b", "/dev/a|/dev/b", "?dev?a", "/dev/[a|b]c"]
)
def test_an_escaped_bar_is_part_of_a_name(pattern: str) -> None:
    text = f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = "{pattern}" }}\n'
    resources, problems = parse_rules("x.toml", text, "example.com")
    assert (len(resources), problems) == (1, ())


@pytest.mark.parametrize(
    ("pattern", "name"), [(r"/dev/a\\\\|b", "b"), ("/dev/a|b", "b"), (r"a\\|b", r"a\|b")]
)
def test_a_name_that_is_no_path_is_a_mistake(pattern: str, name: str) -> None:
    text = f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = "{pattern}" }}\n'
    (problem,) = parse_rules("x.toml", text, "example.com")[1]
    assert problem.message == f"'{name}' can never match: DEVNAME is the path of the device node"
