"""From the text of a rule file or of the settings to values, with every mistake in it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from genericdp.core.reading.kind import read_list
from genericdp.core.reading.resource import resource
from genericdp.core.reading.settings import SETTINGS_KEYS, settings
from genericdp.core.reading.source import MISTAKES_LIMIT, At, Lines, Mistake, TooManyMistakesError, too_many
from genericdp.core.reading.toml import parse_toml
from genericdp.core.rules.name import env_names
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.words import nearest
from genericdp.errors import Problem


def parse_rules(file: str, text: str, domain: str) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    """The resources of a rule file and all problems in it, in the order of the lines.

    A file with a problem of severity "error" must not be used, whatever resources are returned.
    """
    document, problems = parse_toml(file, text)
    if document is None:
        return (), problems
    resources: tuple[Resource, ...] = ()
    with suppress(TooManyMistakesError):
        for key in document.value:
            child = document.child(key)
            if key == "resource":
                resources = child.attempt(lambda at: _resources(at, domain)) or ()
            else:
                child.source.note(_unknown(child))
    return resources, document.source.in_order()


def _unknown(at: At) -> Mistake:
    shown = "{}" if at.header == "{}" else "[[{}]]"
    hint = nearest(at.key, ["resource"], shown=shown) or "a rule file contains [[resource]] tables"
    if at.key in {setting.name for setting in SETTINGS_KEYS}:
        hint = "it is a setting: it belongs in genericdp.toml, which 'check --config FILE' checks"
    return Mistake(at, f"unknown key '{at.key}'", hint, on_key=True)


def parse_settings(file: str, text: str) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of a `genericdp.toml` and all problems in it; with a problem, the defaults."""
    document, problems = parse_toml(file, text)
    if document is None:
        return Settings(), problems
    if "resource" in document.value:
        hint = "rules belong in files of their own, in /etc/genericdp/rules.d"
        rules = document.child("resource")
        document.source.note(Mistake(rules, "[[resource]] is not a setting", hint, on_key=True))
        document = At(document.source, (), {**document.value})
        del document.value["resource"]
    read = None
    with suppress(TooManyMistakesError):
        read = settings(document)
    problems = document.source.in_order()
    return (Settings() if read is None or problems else read), problems


@dataclass(frozen=True, slots=True)
class RulesText:
    """A rule file as it is now.

    resources     those of the text
    is_in_effect  this text was in effect until now
    before        the resources that were in effect instead of it; empty if none were, or nobody knows
    """

    text: str
    resources: tuple[Resource, ...]
    is_in_effect: bool = False
    before: tuple[Resource, ...] = ()


def settled(files: Sequence[RulesText]) -> tuple[tuple[tuple[Resource, ...], tuple[Problem, ...]], ...]:
    """What is in effect of each file, and the problems of its text: resources that another file defines, too.

    A file with a problem is not used, and what was in effect before stays. What is in effect comes first, so
    the problem is in a file that is new or has changed. Of these, the file that has defined a resource until
    now goes on with it; then files of which something was in effect come before new ones; otherwise, file
    order decides.
    """
    kept = [file.resources for file in files]
    problems: list[tuple[Problem, ...]] = [()] * len(files)
    ranks = [0 if file.is_in_effect else 2 if file.before else 3 for file in files]
    owners: dict[str, int] = {}
    for index in _in_order(ranks):
        before = files[index].resources if files[index].is_in_effect else files[index].before
        for name in (name for each in before for name in _names(each)):
            owners.setdefault(name, index)
    while True:
        order = _in_order(ranks)
        named = [(name, index, each) for index in order for each in kept[index] for name in _names(each)]
        # The names that files go on with are theirs, whatever comes first.
        taken = {name: each for name, index, each in named if owners.get(name) == index}
        refused = []
        for index in order:
            clashes = [(each, clash) for each in kept[index] if (clash := _clash(each, taken)) is not None]
            if clashes:
                refused.append(index)
                problems[index] = problems[index] or _problems(files[index].text, clashes)
            else:
                taken.update((name, each) for each in kept[index] for name in _names(each))
        if not refused:
            return tuple(zip(kept, problems, strict=True))
        # What stays instead may be what another changed file now defines: then that file is judged again.
        for index in refused:
            kept[index] = files[index].before if ranks[index] > 1 else ()
            ranks[index] = 1


def _in_order(ranks: Sequence[int]) -> list[int]:
    """The indices of files: the lowest rank first, in file order within a rank."""
    return sorted(range(len(ranks)), key=ranks.__getitem__)


def _problems(text: str, clashes: Sequence[tuple[Resource, tuple[str, str]]]) -> tuple[Problem, ...]:
    lines = Lines(text)
    found = [
        Problem(each.location, *clash, lines.at(each.location.line))
        for each, clash in clashes[:MISTAKES_LIMIT]
    ]
    more = [too_many(each.location) for each, _ in clashes[MISTAKES_LIMIT : MISTAKES_LIMIT + 1]]
    return (*found, *more)


def _names(resource: Resource) -> tuple[str, ...]:
    """What no other resource may use: the name, and the variables in which containers find the devices."""
    return (resource.name, *env_names(resource.name))


def _clash(resource: Resource, taken: Mapping[str, Resource]) -> tuple[str, str] | None:
    """What another resource already uses: a message and a hint."""
    if (earlier := taken.get(resource.name, resource)) is not resource:
        return (
            f"the resource '{resource.name}' is already defined",
            f"it is also defined at {earlier.location}; rename one of them or merge their matches",
        )
    for env in env_names(resource.name):
        if (earlier := taken.get(env, resource)) is not resource:
            return (
                f"its environment variable {env} is also that of '{earlier.name}'",
                f"the other resource is at {earlier.location}; rename one of them",
            )
    return None


def _resources(at: At, domain: str) -> tuple[Resource, ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'resource' must be a list of tables", "write [[resource]]", on_key=True)
    resources = read_list(at, lambda each: resource(each, domain))
    taken: dict[str, Resource] = {}
    for each in resources:
        if (clash := _clash(each, taken)) is not None:
            at.source.add(each.location, *clash)
        else:
            taken.update(dict.fromkeys(_names(each), each))
    return resources
