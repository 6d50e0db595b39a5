"""Reading texts with `{fields}`: paths in containers, mounts, envs, annotations, CDI names."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from genericdp.core.limits import ENV_LIMIT, NAME_LIMIT, PATH_LIMIT, size_of_env
from genericdp.core.reading.kind import Kind, Schema, definition
from genericdp.core.reading.scalars import in_capitals, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.rules.name import CDI_ANNOTATION, PROPERTY_NAME, why_not_a_cdi_name
from genericdp.core.rules.template import FIELDS, BadTemplateError, Field, Template, parse
from genericdp.core.words import kind_of, listing, nearest

K = TypeVar("K")

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_CDI_HINT = 'write "vendor.example/class=name"'

_TEMPLATE_SCHEMA = definition("template")
_PATH_SCHEMA = definition("path")
_FIELD = rf"({'|'.join(FIELDS)}|{PROPERTY_NAME.pattern})"

#: The schemas that the kinds below refer to.
DEFINITIONS: Mapping[str, Schema] = {
    "template": {
        "type": "string",
        "minLength": 1,
        "pattern": rf"^([^{{}}\x00]|\{{\{{|\}}\}}|\{{{_FIELD}(\|[^{{}}\x00]*)?\}})*$",
    },
    "path": {
        "allOf": [{"type": "string", "pattern": "^(/|\\{link[|}])"}, {"pattern": "[^/]$"}, _TEMPLATE_SCHEMA]
    },
}


def template(at: At) -> Template:
    """A text with `{fields}`."""
    return _parsed(at, text(at))


def _parsed(at: At, text_: str, *, on_key: bool = False) -> Template:
    if "\0" in text_:
        # Neither a path nor a variable can contain one, so no runtime would create the container.
        message = f"'{at.key}' must not contain a null character"
        raise Mistake(at, message, "leave out '\\u0000'", on_key=on_key)
    try:
        return parse(text_)
    except BadTemplateError as error:
        hint = nearest(error.field, FIELDS)
        if error.field and not hint:
            hint = in_capitals(error.field, "{{{}}}") or f"the fields are udev properties, {listing(FIELDS)}"
        raise Mistake(at, str(error), hint, on_key=on_key) from None


def path_template(at: At) -> Template:
    """An absolute path with `{fields}`. No value of a field can make it leave its directory."""
    parsed = template(at)
    first = parsed.parts[0]
    if isinstance(first, Field):
        if first.name != "link":
            hint = f'write "/dev/{parsed.text}"' if first.name == "devname" else "begin it with '/'"
            raise Mistake(at, f"'{at.key}' must be an absolute path, not '{parsed.text}'", hint)
    elif not first.startswith("/"):
        below = parsed.text.removeprefix("./").removeprefix("dev/")
        # Only a device node surely belongs below /dev.
        elsewhere = "mounts" in at.path or ".." in below.split("/")
        hint = "begin it with '/'" if elsewhere else f'write "/dev/{below}"'
        raise Mistake(at, f"'{at.key}' must be an absolute path, not '{parsed.text}'", hint)
    components = _shape(parsed).split("/")[1:]
    if ".." in components or "." in components:
        raise Mistake(at, f"'{at.key}' must not contain '.' or '..' as a directory")
    if "" in components:
        raise Mistake(at, f"'{parsed.text}' has an empty component", "it must not end in '/' or contain '//'")
    if components in (["dev"], ["proc"], ["sys"]):
        raise Mistake(at, f"'{parsed.text}' is a directory in every container", "name a file below it")
    literals = [part for part in parsed.parts if isinstance(part, str)]
    size = len("".join(literals).encode())
    if size > PATH_LIMIT:
        message = f"'{at.key}' has at least {size} bytes; a path has at most {PATH_LIMIT}"
        raise Mistake(at, message, "write a shorter path")
    longest = max((len(name.encode()) for part in literals for name in part.split("/")), default=0)
    if longest > NAME_LIMIT:
        message = f"'{at.key}' has a component of {longest} bytes; a file name has at most {NAME_LIMIT}"
        raise Mistake(at, message, "write a shorter name")
    return parsed


PATH = Kind(path_template, _PATH_SCHEMA)


def _mount_source(at: At) -> Template:
    """What a mount takes from the host. The container could not open a mounted device node."""
    parsed = path_template(at)
    parts = _shape(parsed).split("/")
    if parts[1] == "dev" and parts[2:3] not in (["shm"], ["hugepages"], ["mqueue"]):
        raise Mistake(
            at,
            "a mount does not let the container open a device node",
            "nodes that 'match' selects need no mount; of /dev only shm, hugepages and mqueue can be mounted",
        )
    return parsed


MOUNT_SOURCE = Kind(_mount_source, _PATH_SCHEMA)


def _cdi_name(at: At) -> Template:
    """A CDI device name, `vendor/class=name`, with fields."""
    if not isinstance(at.value, str):
        raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", _CDI_HINT)
    parsed = template(at)
    hint = why_not_a_cdi_name(_shape(parsed))
    if hint:
        raise Mistake(at, f"'{parsed.text}' is not a CDI device name", hint)
    return parsed


CDI_NAME = Kind(_cdi_name, _TEMPLATE_SCHEMA)


def _shape(parsed: Template) -> str:
    """The template with a plain word in place of each field. CDI has no vendor of a single letter."""
    return "".join(
        part if isinstance(part, str) else ("/dev/x" if part.name == "link" else "xx")
        for part in parsed.parts
    )


def _table_of(
    read_pair: Callable[[At], tuple[K, Template]], name: str
) -> Kind[tuple[tuple[K, Template], ...]]:
    """A table of templates. `name` is the pattern of its keys."""

    def read(at: At) -> tuple[tuple[K, Template], ...]:
        if not isinstance(at.value, dict):
            raise Mistake(at, f"'{at.key}' must be a table, not {kind_of(at.value)}")
        pairs = [at.child(each).attempt(read_pair) for each in at.value]
        return tuple(pair for pair in pairs if pair is not None)

    patterns = {f"^{name}$": _TEMPLATE_SCHEMA}
    return Kind(read, {"type": "object", "patternProperties": patterns, "additionalProperties": False})


def _variable(at: At) -> tuple[Template, Template]:
    """An environment variable, whose name may have fields, too."""
    name = _parsed(at, at.key, on_key=True)
    literal = "".join(part if isinstance(part, str) else "x" for part in name.parts)
    if name.parts and isinstance(name.parts[0], Field):
        hint = "begin it with a letter: a device may choose what follows, but not a whole name"
        raise Mistake(at, f"'{at.key}' begins with a field", hint, on_key=True)
    if _ENV_NAME.fullmatch(literal) is None:
        hint = "letters, digits, '_', '-' and '.', a letter or '_' first"
        raise Mistake(at, f"'{at.key}' is not a valid environment variable name", hint, on_key=True)
    value = template(at)
    literals = [part for each in (name, value) for part in each.parts if isinstance(part, str)]
    if (size := size_of_env("", "".join(literals))) > ENV_LIMIT:
        message = f"'{at.key}' has at least {size} bytes with its name; an env has at most {ENV_LIMIT}"
        raise Mistake(at, message, "write a shorter text")
    return name, value


ENV = _table_of(_variable, rf"[A-Za-z_]([A-Za-z0-9_.-]|\{{{_FIELD}(\|[^{{}}\x00]*)?\}})*")


def _annotation(at: At) -> tuple[str, Template]:
    if _ANNOTATION.fullmatch(at.key) is None:
        hint = 'for example "example.com/model"'
        raise Mistake(at, f"'{at.key}' is not a valid annotation name", hint, on_key=True)
    parsed = template(at)
    if at.key.startswith(CDI_ANNOTATION):
        names = _shape(parsed)
        hint = next(filter(None, map(why_not_a_cdi_name, names.split(","))), "")
        if hint:
            hint = "leave out the spaces" if " " in names else hint
            raise Mistake(at, f"'{parsed.text}' is not a list of CDI device names", hint)
    return at.key, parsed


ANNOTATIONS = _table_of(_annotation, _ANNOTATION.pattern)
