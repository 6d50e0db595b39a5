"""Which files are in effect if several define the same resource."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.reading.parse import RulesText, parse_rules, settled
from genericdp.core.rules.name import env_names
from genericdp.core.rules.resource import Resource


def read(file: str, names: str) -> tuple[str, tuple[Resource, ...]]:
    text = "".join(f'[[resource]]\nname = "{name}"\nmatch = {{ TAG = "{name}" }}\n' for name in names.split())
    return text, parse_rules(file, text, "example.com")[0]


def unchanged(names: str) -> RulesText:
    return RulesText(*read("old.toml", names), is_in_effect=True)


def edited(names: str, before: str = "") -> RulesText:
    return RulesText(*read("new.toml", names), before=read("before.toml", before)[1])


def in_effect(files: Sequence[RulesText]) -> list[str]:
    """The names of the resources of each file, with an exclamation mark if the file has a mistake."""
    return [
        " ".join(each.name.partition("/")[2] for each in resources) + ("!" if problems else "")
        for resources, problems in settled(files)
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # Nothing is known of before: the first one has the name.
        ([edited("a"), edited("a b")], ["a", "!"]),
        ([edited("x-y"), edited("x_y")], ["x-y", "!"]),
        # The file that came or changed has the mistake, wherever it is in the order.
        ([edited("a"), unchanged("a")], ["!", "a"]),
        ([unchanged("a"), edited("a", "b")], ["a", "b!"]),
        ([edited("a c", "c"), unchanged("a b")], ["c!", "a b"]),
        # A resource may move from one file to another, in both directions.
        ([edited("a"), edited("b", "a b")], ["a", "b"]),
        ([edited("a", "a b"), edited("b")], ["a", "b"]),
        ([edited("b", "a"), edited("a", "b")], ["b", "a"]),
        # The file that has defined a resource until now goes on with it, wherever it is in the order.
        ([edited("a b", "a"), edited("b c", "b")], ["a!", "b c"]),
        ([edited("b c", "b"), edited("a b", "a")], ["b c", "a!"]),
        ([edited("x-y", "a"), edited("x_y c", "x_y")], ["a!", "x_y c"]),
        # What was in effect comes back, so another new text has a mistake, too.
        ([edited("b", "a"), edited("a b", "b")], ["a!", "b!"]),
        ([edited("b", "a"), edited("a b", "b"), edited("d")], ["a!", "b!", "d"]),
        # An edited file goes on with what it defined, whatever a new one defines.
        ([edited("a"), edited("a c", "a b")], ["!", "a c"]),
        # Two that were in effect, if the domain of one of them has changed since.
        ([unchanged("a"), unchanged("a b")], ["a", "!"]),
        ([unchanged("a"), edited("a", "a")], ["a", "!"]),
        # A mistake does not hide a file that clashes with nothing else.
        ([unchanged("a"), edited("a b"), edited("b")], ["a", "!", "b"]),
    ],
)
def test_what_was_in_effect_wins_over_what_came_or_changed(
    files: list[RulesText], expected: list[str]
) -> None:
    assert in_effect(files) == expected


def test_a_clash_is_a_problem_of_the_file_that_came_and_names_the_other_one() -> None:
    ((_, problems), _) = settled([edited("b a"), unchanged("a")])
    (problem,) = problems
    assert problem.render() == (
        "new.toml:5:8: error: the resource 'example.com/a' is already defined\n"
        '    5 | name = "a"\n'
        "      |        ^^^\n"
        "  hint: it is also defined at old.toml:2:8; rename one of them or merge their matches"
    )


some_names = st.lists(st.sampled_from(["a", "b", "c", "x-y", "x_y"]), unique=True, max_size=3).map(
    lambda names: " ".join(name for name in names if name != "x_y" or "x-y" not in names)
)
some_files = st.lists(
    st.one_of(some_names.map(unchanged), st.builds(edited, some_names, some_names)), max_size=4
)


@given(some_files)
def test_nothing_that_is_in_effect_clashes_and_a_file_is_in_effect_whole_or_not_at_all(
    files: list[RulesText],
) -> None:
    result = settled(files)
    envs = [env for resources, _ in result for each in resources for env in env_names(each.name)]
    assert len(envs) == len(set(envs))
    for file, (resources, problems) in zip(files, result, strict=True):
        assert resources in ((file.before, ()) if problems else (file.resources,))


@given(some_files)
def test_without_a_clash_every_file_is_used_as_it_is(files: list[RulesText]) -> None:
    names = [name for file in files for each in file.resources for name in env_names(each.name)]
    if len(names) == len(set(names)):
        assert settled(files) == tuple((file.resources, ()) for file in files)


@given(some_files)
def test_a_file_that_is_in_effect_and_clashes_with_no_other_of_them_stays(files: list[RulesText]) -> None:
    first = next((file for file in files if file.is_in_effect), None)
    kept = [resources for file, (resources, _) in zip(files, settled(files), strict=True) if file is first]
    assert first is None or first.resources in kept
