"""From the text of a rule file or of the settings to values, with every mistake in it."""

from collections.abc import Mapping, Sequence

from genericdp.core.reading.kind import read_list
from genericdp.core.reading.resource import resource
from genericdp.core.reading.settings import SETTINGS_KEYS, settings
from genericdp.core.reading.source import At, Mistake, Source, line_of
from genericdp.core.reading.toml import parse_toml
from genericdp.core.rules.name import env_names
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.words import nearest
from genericdp.errors import Location, Problem


def parse_rules(file: str, text: str, domain: str) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    """The resources of a rule file and all problems in it, in the order of the lines.

    A file with a problem of severity "error" must not be used, whatever resources are returned.
    """
    try:
        return _parse_rules(file, text, domain)
    except RecursionError:
        return (), (_too_deep(file),)


def _parse_rules(file: str, text: str, domain: str) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    document, problems = parse_toml(file, text)
    if document is None:
        return (), problems
    resources: tuple[Resource, ...] = ()
    for key in document.value:
        child = document.child(key)
        if key == "resource":
            resources = child.attempt(lambda at: _resources(at, domain)) or ()
        else:
            hint = nearest(key, ["resource"]) or "a rule file contains [[resource]] tables"
            if key in {setting.name for setting in SETTINGS_KEYS}:
                hint = "it is a setting: it belongs in genericdp.toml, which 'check --config FILE' checks"
            document.source.note(Mistake(child, f"unknown key '{key}'", hint, on_key=True))
    return resources, _in_order(document.source)


def parse_settings(file: str, text: str) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of a `genericdp.toml` and all problems in it; with a problem, the defaults."""
    try:
        return _parse_settings(file, text)
    except RecursionError:
        return Settings(), (_too_deep(file),)


def _parse_settings(file: str, text: str) -> tuple[Settings, tuple[Problem, ...]]:
    document, problems = parse_toml(file, text)
    if document is None:
        return Settings(), problems
    if "resource" in document.value:
        hint = "rules belong in files of their own, in /etc/genericdp/rules.d"
        rules = document.child("resource")
        rules = next(iter(rules.children()), rules) if isinstance(rules.value, list) else rules
        document.source.note(Mistake(rules, "[[resource]] is not a setting", hint, on_key=True))
        document = At(document.source, (), {**document.value})
        del document.value["resource"]
    read = settings(document)
    problems = _in_order(document.source)
    return (Settings() if read is None or problems else read), problems


def _in_order(source: Source) -> tuple[Problem, ...]:
    return tuple(sorted(source.problems, key=lambda problem: problem.location))


def _too_deep(file: str) -> Problem:
    return Problem(Location(file, 1), "its tables and lists are nested too deeply", "no rule needs that")


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
        for each in resources:
            problem = _clash(each, text, names, envs)
            if problem is not None:
                problems.append(problem)
                continue
            names[each.name] = each
            envs.update(dict.fromkeys(env_names(each.name), each))
    return tuple(names.values()), tuple(problems)


def _clash(
    resource: Resource, text: str, names: Mapping[str, Resource], envs: Mapping[str, Resource]
) -> Problem | None:
    """What an earlier resource already uses: the name, or the env in which containers find the devices."""
    line = line_of(text, resource.location.line)
    if (earlier := names.get(resource.name)) is not None:
        message = f"the resource '{resource.name}' is already defined"
        hint = f"it is first defined at {earlier.location}; rename one of them or merge their matches"
        return Problem(resource.location, message, hint, line)
    for env in env_names(resource.name):
        if (earlier := envs.get(env)) is not None:
            message = f"its environment variable {env} is also that of '{earlier.name}'"
            hint = f"the other resource is at {earlier.location}; rename one of them"
            return Problem(resource.location, message, hint, line)
    return None


def _resources(at: At, domain: str) -> tuple[Resource, ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'resource' must be a list of tables", "write [[resource]]", on_key=True)
    return read_list(at, lambda each: resource(each, domain))
