"""From the text of a rule file or of the settings to values, with every mistake in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from genericdp.core.reading.resource import RESOURCE_KEYS, SETTINGS_KEYS
from genericdp.core.reading.source import At, Mistake, line_of, nearest, parse_toml, read_list, read_table
from genericdp.core.rules.resource import EVERYTHING, NodeTable, Resource, env_names, why_not_a_resource_name
from genericdp.core.rules.settings import Settings
from genericdp.core.rules.template import Field
from genericdp.errors import Location, Problem


def parse_rules(file: str, text: str, domain: str) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    """The resources of a rule file and all problems in it, in the order of the lines.

    A file with a problem of severity "error" is not to be used, whatever resources it gave.
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
            hint = nearest(key, ["resource"]) or "a rule file holds [[resource]] tables"
            if key in {setting.name for setting in SETTINGS_KEYS}:
                hint = "it is a setting, for genericdp.toml: 'genericdp check --config FILE' checks those"
            document.source.note(Mistake(child, f"unknown key '{key}'", hint, on_key=True))
    return resources, tuple(sorted(document.source.problems, key=lambda problem: problem.location))


def parse_settings(file: str, text: str) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of a `genericdp.toml` and all problems in it; the defaults when there are any."""
    try:
        return _parse_settings(file, text)
    except RecursionError:
        return Settings(), (_too_deep(file),)


def _parse_settings(file: str, text: str) -> tuple[Settings, tuple[Problem, ...]]:
    document, problems = parse_toml(file, text)
    if document is None:
        return Settings(), problems
    if "resource" in document.value:
        hint = "rules are in files of their own, in /etc/genericdp/rules.d"
        rules = document.child("resource")
        rules = next(iter(rules.children()), rules) if isinstance(rules.value, list) else rules
        document.source.note(Mistake(rules, "[[resource]] is no setting", hint, on_key=True))
        document = At(document.source, (), {**document.value})
        del document.value["resource"]
    values = read_table(document, SETTINGS_KEYS, "the settings")
    problems = tuple(sorted(document.source.problems, key=lambda problem: problem.location))
    if values is None or problems:
        return Settings(), problems
    values["coalesce_s"] = values.pop("coalesce")
    values["rescan_s"] = values.pop("rescan")
    return Settings(**values), problems


def _too_deep(file: str) -> Problem:
    return Problem(Location(file, 1), "its tables and lists are nested too deeply", "no rule needs that")


def distinct(
    files: Sequence[tuple[str, Sequence[Resource]]],
) -> tuple[tuple[Resource, ...], tuple[Problem, ...]]:
    """The resources of (text, resources) in file order without those that an earlier one excludes."""
    names: dict[str, Resource] = {}
    envs: dict[str, Resource] = {}
    problems: list[Problem] = []
    for text, resources in files:
        for resource in resources:
            problem = _clash(resource, text, names, envs)
            if problem is not None:
                problems.append(problem)
                continue
            names[resource.name] = resource
            envs.update(dict.fromkeys(env_names(resource.name), resource))
    return tuple(names.values()), tuple(problems)


def _clash(
    resource: Resource, text: str, names: Mapping[str, Resource], envs: Mapping[str, Resource]
) -> Problem | None:
    """What an earlier resource has taken: the name, or the env in which containers find the devices."""
    line = line_of(text, resource.location.line)
    if (earlier := names.get(resource.name)) is not None:
        message = f"the resource '{resource.name}' is already defined"
        hint = f"the first one is at {earlier.location}; rename one of them or join their matches"
        return Problem(resource.location, message, hint, line)
    for env in env_names(resource.name):
        if (earlier := envs.get(env)) is not None:
            message = f"its env in containers, {env}, is also that of '{earlier.name}'"
            hint = f"the other one is at {earlier.location}; rename one of them"
            return Problem(resource.location, message, hint, line)
    return None


def _resources(at: At, domain: str) -> tuple[Resource, ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'resource' is a list of tables", "write [[resource]]", on_key=True)
    return read_list(at, lambda each: _resource(each, domain))


def _resource(at: At, domain: str) -> Resource | None:
    values = read_table(at, RESOURCE_KEYS, "[[resource]]")
    name = None
    if isinstance(at.value.get("name"), str) and at.value["name"]:
        name = at.child("name").attempt(lambda each: _full_name(each, domain))
    if values is None or name is None:
        return None
    tables: tuple[dict[str, Any], ...] = values["node"] or ({},)
    nodes = tuple(_node_table(values, table) for table in tables)
    _check_paths(at, nodes)
    return Resource(
        name=name,
        match=values["match"],
        description=values["description"],
        group_by=values["group_by"],
        identity=values["identity"],
        nodes=nodes,
        replicas=values["replicas"],
        env=values["env"],
        mounts=values["mounts"],
        annotations=values["annotations"],
        cdi=values["cdi"],
        prefer=values["prefer"],
        unplug_grace_s=values["unplug_grace"],
        prestart=values["prestart"],
        health=values["health"],
        kubevirt=values["kubevirt"],
        allow_dangerous=values["allow_dangerous"],
        location=at.source.location((*at.path, "name")),
    )


def _full_name(at: At, domain: str) -> str:
    name: str = at.value
    full = name if "/" in name else f"{domain}/{name}"
    why = why_not_a_resource_name(full)
    if why:
        raise Mistake(at, f"'{name}' is no resource name: {why}")
    return full


def _node_table(resource: dict[str, Any], table: dict[str, Any]) -> NodeTable:
    def written(key: str) -> Any:
        return table.get(key, resource[key])

    return NodeTable(
        match=table.get("match") or EVERYTHING,
        container_paths=written("container_path"),
        permissions=written("permissions"),
        devlinks=written("devlinks"),
        optional=written("optional"),
    )


def _check_paths(at: At, nodes: Sequence[NodeTable]) -> None:
    """Two tables that put their nodes under one fixed name: surely not meant."""
    seen: set[str] = set()
    for index, table in enumerate(nodes):
        for path in table.container_paths:
            fixed = not any(isinstance(part, Field) for part in path.parts)
            if fixed and path.text in seen:
                where = at
                if "node" in at.value and "container_path" in at.value["node"][index]:
                    where = at.child("node").child(index).child("container_path")
                raise Mistake(
                    where,
                    f"another node of the resource is '{path.text}' already",
                    "give each [[resource.node]] a 'container_path' of its own",
                )
            seen.add(path.text)
