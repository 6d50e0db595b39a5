"""Reading what a condition wants of a value: a glob, a hex id, a list, or one of the forms in FORM_DOCS."""

import re
from collections.abc import Mapping

from genericdp.core.reading.kind import Kind, list_schema, read_list
from genericdp.core.reading.scalars import boolean, is_number, number, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.rules import pattern
from genericdp.core.rules.pattern import BadPatternError, Pattern
from genericdp.core.words import kind_of, listing, nearest

_HEX = re.compile(r"[0-9a-f*?\[\]!-]*")

#: What a value may be instead of a string.
FORM_DOCS: Mapping[str, str] = {
    "not": "any other value, or no value at all",
    "regex": "a regular expression that must match the whole value",
    "exists": "`true`: any value; `false`: no value",
    "at_least": "a number that is not smaller, decimal or hex",
    "at_most": "a number that is not larger; `at_least` may stand beside it",
}

#: The forms that may stand side by side.
BOUNDS = ("at_least", "at_most")


def wanted(at: At, hex_digits: int = 0) -> Pattern:
    """What a condition wants: a glob, a list of alternatives, or one of the forms in FORM_DOCS.

    With hex_digits > 0 the value is a hex id of so many digits; case, 0x and leading zeros do not matter.
    """
    match at.value:
        case str():
            return _hex_glob(at, hex_digits) if hex_digits else _glob(at, at.value)
        case list():
            if not at.value:
                raise Mistake(at, f"'{at.key}' must not be an empty list", "it could never match")
            return pattern.any_of(tuple(wanted(child, hex_digits) for child in at.children()))
        case dict():
            return _wanted_table(at, hex_digits)
        case _:
            hint = f'write "{at.value}"' if is_number(at.value) else ""
            if hint and hex_digits == 4 and isinstance(at.value, int):
                hint = f'write "{at.value:04d}"'
            raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", hint)


def _glob(at: At, glob: str) -> Pattern:
    try:
        return pattern.glob(glob)
    except BadPatternError as error:
        raise Mistake(at, str(error), error.hint) from None


def _hex_glob(at: At, digits: int) -> Pattern:
    parts = [part.lower().removeprefix("0x") for part in at.value.split("|")]
    for part in parts:
        if not part or _HEX.fullmatch(part) is None:
            raise Mistake(
                at, f"'{at.value}' is not a hex id", f"a hex id has up to {digits} digits, 0-9 and a-f"
            )
        if len(part) > digits and not set(part) & set("*?["):
            raise Mistake(at, f"'{at.value}' has more than {digits} hex digits")
    try:
        return pattern.glob("|".join(parts), fold=lambda value: pattern.hex_id(value, digits))
    except BadPatternError as error:
        raise Mistake(at, str(error), error.hint) from None


def _wanted_table(at: At, hex_digits: int) -> Pattern:
    forms = tuple(FORM_DOCS)
    unknown = next((name for name in at.value if name not in forms), None)
    if unknown is not None:
        hint = nearest(unknown, forms) or f"the forms are {listing(forms)}"
        raise Mistake(at.child(unknown), f"unknown form '{unknown}'", hint, on_key=True)
    if at.value and all(form in BOUNDS for form in at.value):
        return _between(at, hex_digits)
    if len(at.value) != 1:
        raise Mistake(
            at,
            f"'{at.key}' takes one of {listing(forms, 'or')}, not {len(at.value)} of them",
            f"only {listing(BOUNDS)} go together" if at.value else "",
        )
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
                raise Mistake(child, str(error), error.hint) from None


def _between(at: At, hex_digits: int) -> Pattern:
    least, most = (number(at.child(form)) if form in at.value else None for form in BOUNDS)
    if least is not None and most is not None and least > most:
        raise Mistake(at, f"no number is at least {least} and at most {most}", "exchange the two")
    return pattern.between(least, most, hex_id=bool(hex_digits))


def _devlink(at: At) -> Pattern:
    return _glob(at, text(at))


def _devlinks(at: At) -> tuple[Pattern, ...]:
    for each in at.value if isinstance(at.value, list) else [at.value]:
        if isinstance(each, str) and not each.startswith("/dev/"):
            raise Mistake(
                at, f"'{each}' is not a devlink", "devlinks begin with /dev/, for example /dev/serial/by-id/*"
            )
    return read_list(at, _devlink) if isinstance(at.value, list) else (_devlink(at),)


_DEVLINK = {"type": "string", "pattern": "^/dev/"}

DEVLINKS = Kind(_devlinks, {"anyOf": [_DEVLINK, list_schema(_DEVLINK)]})
