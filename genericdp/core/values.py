"""The kinds of values that rule files and settings hold: durations, patterns, paths, names.

Each function reads one value (`source.At`) into something in which nothing can be wrong, or raises
`Mistake` with what to write instead.
"""

import re
from collections.abc import Callable, Mapping

from genericdp.core import pattern, template
from genericdp.core.pattern import BadPatternError, Pattern
from genericdp.core.source import At, Mistake, kind_of, listing, nearest, read_list
from genericdp.core.template import FIELDS, BadTemplateError, Field, Template

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HEX = re.compile(r"[0-9a-f*?\[\]!-]*")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ANNOTATION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_CDI = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*=[A-Za-z0-9_.:+-]+")
#: What a value may be instead of a string.
FORM_DOCS: Mapping[str, str] = {
    "not": "any other value, or no value at all",
    "regex": "a regular expression that must match the whole value",
    "exists": "`true`: any value; `false`: no value",
}
PROPERTY_NAME = re.compile(r"[A-Z][A-Z0-9_.:-]*")
LISTENING_ADDRESS = re.compile(
    r"(unix:/[!-~]+|[0-9]{1,3}(\.[0-9]{1,3}){3}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5})?"
)
#: The kernel's limit for the path of a unix socket (unix(7): 108 bytes with the zero).
_SOCKET_PATH_LIMIT = 107


def text(at: At) -> str:
    """A string that says something."""
    if not isinstance(at.value, str):
        hint = f'write "{at.value}"' if _is_number(at.value) else ""
        raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", hint)
    if not at.value:
        raise Mistake(at, f"'{at.key}' must not be empty")
    return at.value


def boolean(at: At) -> bool:
    if not isinstance(at.value, bool):
        raise Mistake(at, f"'{at.key}' must be true or false, not {kind_of(at.value)}")
    return at.value


def whole_number(smallest: int, largest: int) -> Callable[[At], int]:
    """A reader of whole numbers within bounds."""

    def read(at: At) -> int:
        if not isinstance(at.value, int) or isinstance(at.value, bool):
            raise Mistake(at, f"'{at.key}' must be a whole number, not {kind_of(at.value)}")
        if not smallest <= at.value <= largest:
            raise Mistake(at, f"'{at.key}' must be from {smallest} to {largest}, not {at.value}")
        return at.value

    return read


def duration(shortest_s: float, longest_s: float) -> Callable[[At], float]:
    """A reader of durations like "500ms", "10s", "5m", "1h", "7d", in seconds, within bounds."""

    def read(at: At) -> float:
        if not isinstance(at.value, str):
            hint = f'write "{at.value}s"' if _is_number(at.value) else ""
            raise Mistake(at, f"'{at.key}' must be a duration such as \"10s\", not {kind_of(at.value)}", hint)
        found = _DURATION.fullmatch(at.value)
        if found is None:
            raise Mistake(at, f"'{at.value}' is no duration", 'write "500ms", "10s", "5m", "1h" or "7d"')
        seconds = float(found.group(1)) * _SECONDS[found.group(2)]
        if not shortest_s <= seconds <= longest_s:
            raise Mistake(at, f"'{at.key}' must be from {shortest_s:g}s to {longest_s:g}s, not {at.value}")
        return seconds

    return read


def one_of(*words: str) -> Callable[[At], str]:
    """A reader of one word of a closed set."""

    def read(at: At) -> str:
        word = text(at)
        if word not in words:
            raise Mistake(
                at,
                f"'{at.key}' is {listing(words).replace(' and ', ' or ')}, not '{word}'",
                nearest(word, words),
            )
        return word

    return read


def absolute_path(at: At) -> str:
    """An absolute path of the host, without `..`."""
    path = text(at)
    if not path.startswith("/"):
        raise Mistake(at, f"'{at.key}' must be an absolute path, not '{path}'", "begin it with '/'")
    if ".." in path.split("/"):
        raise Mistake(at, f"'{at.key}' must not go up with '..'")
    return path.rstrip("/") or "/"


def listening_address(at: At) -> str:
    """Where somebody may listen: "unix:/path", "127.0.0.1:9101", "[::1]:9101"; "" for nowhere."""
    if not isinstance(at.value, str):
        return text(at)  # which says what is wrong
    address = at.value
    if LISTENING_ADDRESS.fullmatch(address) is None or not (
        not address or address.startswith("unix:") or _is_ip_address(address)
    ):
        raise Mistake(
            at,
            f"'{address}' is no address to listen on",
            "write unix:/run/genericdp/metrics.sock, 127.0.0.1:9101 or [::1]:9101; names are not looked up",
        )
    if len(address) > len("unix:") + _SOCKET_PATH_LIMIT:
        raise Mistake(at, f"the path of a unix socket has {_SOCKET_PATH_LIMIT} characters at the most")
    return address


def _is_ip_address(address: str) -> bool:
    from ipaddress import ip_address  # noqa: PLC0415  (few have metrics, and the daemon is to stay small)

    host, _, port = address.rpartition(":")
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return 0 < int(port) < 65536


def own_directory(at: At) -> str:
    """An absolute path that is no directory of the whole system: what we do in it would do harm there."""
    path = absolute_path(at)
    if path.count("/") == 1:
        hint = "a directory below it, for example '/dev/genericdp'"
        raise Mistake(at, f"'{at.key}' must be a directory of its own, not '{path}'", hint)
    return path


def property_name(at: At) -> str:
    """The name of a udev property."""
    name = text(at)
    if PROPERTY_NAME.fullmatch(name) is None:
        hint = (
            f"udev properties are in capitals: '{name.upper()}'"
            if PROPERTY_NAME.fullmatch(name.upper())
            else ""
        )
        raise Mistake(at, f"'{name}' is no name of a udev property", hint)
    return name


def permissions(at: At) -> str:
    """A non-empty subset of "rwm", in that order (runc refuses an empty one, drops other letters)."""
    letters = text(at) if at.value != "" else ""
    if not letters:
        raise Mistake(
            at, "'permissions' must not be empty", "'r' read, 'w' write, 'm' mknod; the default is \"rw\""
        )
    wrong = [letter for letter in letters if letter not in "rwm"]
    if wrong:
        raise Mistake(
            at, f"'{wrong[0]}' is no permission", "'r' read, 'w' write, 'm' mknod, for example \"rw\""
        )
    return "".join(letter for letter in "rwm" if letter in letters)


def a_template(at: At) -> Template:
    """A text with `{fields}`."""
    try:
        return template.parse(text(at))
    except BadTemplateError as error:
        hint = nearest(error.field, FIELDS)
        if error.field and PROPERTY_NAME.fullmatch(error.field.upper()) and not hint:
            hint = f"udev properties are in capitals: '{{{error.field.upper()}}}'"
        elif error.field and not hint:
            hint = f"fields are {listing(FIELDS)} and udev properties"
        raise Mistake(at, str(error), hint) from None


def path_template(at: At) -> Template:
    """An absolute path with `{fields}`, which no value of a field can lead astray."""
    parsed = a_template(at)
    first = parsed.parts[0]
    if isinstance(first, Field):
        if first.name != "link":
            hint = f'write "/dev/{parsed.text}"' if first.name == "devname" else "begin it with '/'"
            raise Mistake(at, f"'{at.key}' must be an absolute path, not '{parsed.text}'", hint)
    elif not first.startswith("/"):
        below = parsed.text.removeprefix("./").removeprefix("dev/")
        # Only of a device node we know where it belongs.
        elsewhere = "mounts" in at.path or ".." in below.split("/")
        hint = "begin it with '/'" if elsewhere else f'write "/dev/{below}"'
        raise Mistake(at, f"'{at.key}' must be an absolute path, not '{parsed.text}'", hint)
    components = _shape(parsed).split("/")[1:]
    if ".." in components or "." in components:
        raise Mistake(at, f"'{at.key}' must not hold '.' or '..' as a directory")
    if "" in components:
        raise Mistake(at, f"'{parsed.text}' has an empty component", "it must not end in '/' or hold '//'")
    if components in (["dev"], ["proc"], ["sys"]):
        raise Mistake(at, f"'{parsed.text}' is a directory of every container", "name a file below it")
    return parsed


def mount_source(at: At) -> Template:
    """What a mount takes from the host. A mounted device node could not be opened by the container."""
    parsed = path_template(at)
    parts = _shape(parsed).split("/")
    if parts[1] == "dev" and parts[2:3] not in (["shm"], ["hugepages"], ["mqueue"]):
        raise Mistake(
            at,
            "a mount gives no right to open a device node",
            "what 'match' takes needs no mount; of /dev, only shm, hugepages and mqueue can be mounted",
        )
    return parsed


def _shape(parsed: Template) -> str:
    """The template with a harmless word for each field."""
    return "".join(
        part if isinstance(part, str) else ("/dev/x" if part.name == "link" else "x") for part in parsed.parts
    )


def one_or_more(read: Callable[[At], Template]) -> Callable[[At], tuple[Template, ...]]:
    """A reader of one template, or of a list of them that is not empty."""

    def read_all(at: At) -> tuple[Template, ...]:
        if not isinstance(at.value, list):
            return (read(at),)
        if not at.value:
            raise Mistake(at, f"'{at.key}' must not be an empty list")
        return read_list(at, read)

    return read_all


def env(at: At) -> tuple[tuple[str, Template], ...]:
    """A table of environment variables."""
    return _names_and_templates(
        at, ENV_NAME, "environment variable", "letters, digits and '_', no digit first"
    )


def annotations(at: At) -> tuple[tuple[str, Template], ...]:
    """A table of annotations."""
    return _names_and_templates(at, ANNOTATION, "annotation", 'for example "example.com/model"')


def _names_and_templates(
    at: At, allowed: re.Pattern[str], what: str, hint: str
) -> tuple[tuple[str, Template], ...]:
    if not isinstance(at.value, dict):
        raise Mistake(at, f"'{at.key}' must be a table, not {kind_of(at.value)}")
    pairs: list[tuple[str, Template]] = []
    for name in at.value:
        child = at.child(name)
        if allowed.fullmatch(name) is None:
            at.source.note(Mistake(child, f"'{name}' is no name of an {what}", hint, on_key=True))
        elif (value := child.attempt(a_template)) is not None:
            pairs.append((name, value))
    return tuple(pairs)


def cdi_name(at: At) -> Template:
    """A CDI device name, `vendor/class=name`, with fields."""
    parsed = a_template(at)
    if _CDI.fullmatch(_shape(parsed)) is None:
        raise Mistake(at, f"'{parsed.text}' is no CDI device name", 'write "vendor.example/class=name"')
    return parsed


def glob(at: At) -> Pattern:
    """A glob of udev."""
    try:
        return pattern.glob(text(at))
    except BadPatternError as error:
        raise Mistake(at, str(error)) from None


def wanted(at: At, hex_digits: int = 0) -> Pattern:
    """What a condition wants: a glob, a list of alternatives, `{ not | regex | exists = … }`.

    hex_digits > 0: the value is a hex id of so many digits, whose case, 0x and zeros do not matter.
    """
    match at.value:
        case str():
            return _hex_glob(at, hex_digits) if hex_digits else _plain_glob(at)
        case list():
            if not at.value:
                raise Mistake(at, f"'{at.key}' must not be an empty list", "it could never match")
            return pattern.any_of(tuple(wanted(child, hex_digits) for child in at.children()))
        case dict():
            return _wanted_table(at, hex_digits)
        case _:
            hint = (
                f'write "{at.value:04d}"'
                if _is_number(at.value) and hex_digits == 4 and isinstance(at.value, int)
                else ""
            )
            if not hint and _is_number(at.value):
                hint = f'write "{at.value}"'
            raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", hint)


def _plain_glob(at: At) -> Pattern:
    try:
        return pattern.glob(at.value)
    except BadPatternError as error:
        raise Mistake(at, str(error)) from None


def _hex_glob(at: At, digits: int) -> Pattern:
    parts = [part.lower().removeprefix("0x") for part in at.value.split("|")]
    for part in parts:
        if not part or _HEX.fullmatch(part) is None:
            raise Mistake(
                at, f"'{at.value}' is no hex id", f"a hex id has up to {digits} of the digits 0-9 and a-f"
            )
        if len(part) > digits and not set(part) & set("*?["):
            raise Mistake(at, f"'{at.value}' has more than {digits} hex digits")
    try:
        return pattern.glob("|".join(parts), fold=lambda value: hex_id(value, digits))
    except BadPatternError as error:
        raise Mistake(at, str(error)) from None


def hex_id(value: str, digits: int) -> str:
    """A hex id in its one form: lower case, no 0x, leading zeros."""
    return value.strip().lower().removeprefix("0x").zfill(digits)


def _wanted_table(at: At, hex_digits: int) -> Pattern:
    forms = tuple(FORM_DOCS)
    unknown = next((name for name in at.value if name not in forms), None)
    if unknown is not None:
        hint = nearest(unknown, forms) or f"the forms are {listing(forms)}"
        raise Mistake(at.child(unknown), f"unknown form '{unknown}'", hint, on_key=True)
    if len(at.value) != 1:
        raise Mistake(at, f"'{at.key}' wants one of {listing(forms)}, not {len(at.value)} of them")
    ((form, _),) = at.value.items()
    child = at.child(form)
    match form:
        case "not":
            return pattern.negation(wanted(child, hex_digits))
        case "exists":
            return pattern.exists(boolean(child))
        case _:
            try:
                return pattern.regex(text(child))
            except BadPatternError as error:
                raise Mistake(child, str(error)) from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
