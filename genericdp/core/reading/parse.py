"""From the text of a rule file or of the settings to values, with every mistake in it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

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


def distinct(
    files: Sequence[tuple[str, Sequence[Resource]]],
) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    """The resources of all files, given as (text, resources) in file order, without those that clash with
    an earlier one; a problem for each clash.
    """
    names: dict[str, Resource] = {}
    envs: dict[str, Resource] = {}
    problems: list[Problem] = []
    for text, resources in files:
        lines = Lines(text)
        clashes = 0
        for each in resources:
            if (clash := _clash(each, names, envs)) is not None:
                clashes += 1
                if clashes <= MISTAKES_LIMIT:
                    problems.append(Problem(each.location, *clash, lines.at(each.location.line)))
                elif clashes == MISTAKES_LIMIT + 1:
                    problems.append(too_many(each.location))
                continue
            names[each.name] = each
            envs.update(dict.fromkeys(env_names(each.name), each))
    return tuple(names.values()), tuple(problems)


def _clash(
    resource: Resource, names: Mapping[str, Resource], envs: Mapping[str, Resource]
) -> tuple[str, str] | None:
    """What an earlier resource already uses, the name or the env in which containers find the devices:
    a message and a hint.
    """
    if (earlier := names.get(resource.name)) is not None:
        return (
            f"the resource '{resource.name}' is already defined",
            f"it is first defined at {earlier.location}; rename one of them or merge their matches",
        )
    for env in env_names(resource.name):
        if (earlier := envs.get(env)) is not None:
            return (
                f"its environment variable {env} is also that of '{earlier.name}'",
                f"the other resource is at {earlier.location}; rename one of them",
            )
    return None


def _resources(at: At, domain: str) -> tuple[Resource, ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'resource' must be a list of tables", "write [[resource]]", on_key=True)
    return read_list(at, lambda each: resource(each, domain))
