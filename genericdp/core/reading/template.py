"""Reading texts with `{fields}`: paths in containers, mounts, envs, annotations, CDI names."""

import re
from collections.abc import Mapping

from genericdp.core.reading.kind import Kind, Schema, definition
from genericdp.core.reading.scalars import in_capitals, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.rules.name import PROPERTY_NAME
from genericdp.core.rules.template import FIELDS, BadTemplateError, Field, Template, parse
from genericdp.core.words import kind_of, listing, nearest

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANNOTATION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_CDI = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*=[A-Za-z0-9_.:+-]+")

_CDI_HINT = 'write "vendor.example/class=name"'

_TEMPLATE_SCHEMA = definition("template")
_PATH_SCHEMA = definition("path")
_FIELD = rf"({'|'.join(FIELDS)}|{PROPERTY_NAME.pattern})"

#: The schemas that the kinds below refer to.
DEFINITIONS: Mapping[str, Schema] = {
    "template": {
        "type": "string",
        "minLength": 1,
        "pattern": rf"^([^{{}}]|\{{\{{|\}}\}}|\{{{_FIELD}(\|[^{{}}]*)?\}})*$",
    },
    "path": {
        "allOf": [{"type": "string", "pattern": "^(/|\\{link[|}])"}, {"pattern": "[^/]$"}, _TEMPLATE_SCHEMA]
    },
}


def template(at: At) -> Template:
    """A text with `{fields}`."""
    try:
        return parse(text(at))
    except BadTemplateError as error:
        hint = nearest(error.field, FIELDS)
        if error.field and not hint:
            hint = in_capitals(error.field, "{{{}}}") or f"the fields are udev properties, {listing(FIELDS)}"
        raise Mistake(at, str(error), hint) from None


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
    if _CDI.fullmatch(_shape(parsed)) is None:
        raise Mistake(at, f"'{parsed.text}' is not a CDI device name", _CDI_HINT)
    return parsed


CDI_NAME = Kind(_cdi_name, _TEMPLATE_SCHEMA)


def _shape(parsed: Template) -> str:
    """The template with a plain word in place of each field."""
    return "".join(
        part if isinstance(part, str) else ("/dev/x" if part.name == "link" else "x") for part in parsed.parts
    )


def _by_name(name: re.Pattern[str], what: str, hint: str) -> Kind[tuple[tuple[str, Template], ...]]:
    """A table of templates by names of this form."""

    def read(at: At) -> tuple[tuple[str, Template], ...]:
        if not isinstance(at.value, dict):
            raise Mistake(at, f"'{at.key}' must be a table, not {kind_of(at.value)}")
        pairs: list[tuple[str, Template]] = []
        for each in at.value:
            child = at.child(each)
            if name.fullmatch(each) is None:
                at.source.note(Mistake(child, f"'{each}' is not a valid {what} name", hint, on_key=True))
            elif (value := child.attempt(template)) is not None:
                pairs.append((each, value))
        return tuple(pairs)

    patterns = {f"^{name.pattern}$": _TEMPLATE_SCHEMA}
    return Kind(read, {"type": "object", "patternProperties": patterns, "additionalProperties": False})


ENV = _by_name(_ENV_NAME, "environment variable", "letters, digits and '_', no digit first")

ANNOTATIONS = _by_name(_ANNOTATION, "annotation", 'for example "example.com/model"')
