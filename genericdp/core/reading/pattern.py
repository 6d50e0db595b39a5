"""Reading what a condition wants of a value: a glob, a hex id, a list, or one of the forms in FORM_DOCS."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from genericdp.core.reading.kind import Kind, list_schema, read_list
from genericdp.core.reading.scalars import boolean, is_number, number, text
from genericdp.core.reading.source import PARTS_LIMIT, At, Mistake
from genericdp.core.rules import pattern
from genericdp.core.rules.pattern import BadPatternError, Pattern
from genericdp.core.words import kind_of, listing, nearest

_HEX = re.compile(r"[0-9a-f*?\[\]!-]*")
_PCI_ID = re.compile(r"[0-9a-f]{1,4}:[0-9a-f]{1,4}")
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_WILDCARDS = frozenset("*?[\\")

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


@dataclass(frozen=True, slots=True)
class Form:
    """How the strings of a condition are written and compared.

    glob    reads one; raises Mistake
    digits  those of a hex id; 0 for anything else
    """

    glob: Callable[[At], Pattern]
    digits: int = 0


def wanted(at: At, form: Form | None = None) -> Pattern:
    """What a condition wants: a glob, a list of alternatives, or one of the forms in FORM_DOCS."""
    form = form or PLAIN
    match at.value:
        case str():
            return form.glob(at)
        case list():
            if not at.value:
                raise Mistake(at, f"'{at.key}' must not be an empty list", "it could never match")
            return pattern.any_of(wanted(child, form) for child in at.children())
        case dict():
            return _wanted_table(at, form)
        case _:
            hint = f'write "{at.value}"' if is_number(at.value) else ""
            if hint and form.digits == 4 and isinstance(at.value, int):
                hint = f'write "{at.value:04d}"'
            raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", hint)


def _glob(at: At, glob: str, fold: Callable[[str], str] | None = None) -> Pattern:
    try:
        return pattern.glob(glob, fold=fold)
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
    return _glob(at, "|".join(parts), lambda value: pattern.hex_id(value, digits))


def hex_form(digits: int) -> Form:
    """Hex ids of so many digits: case, 0x and leading zeros do not matter. 0 digits: plain strings."""
    return Form(lambda at: _hex_glob(at, digits), digits) if digits else PLAIN


def _pci_id(at: At) -> Pattern:
    """VENDOR:DEVICE as lspci prints it or as the kernel does, in capitals and with four digits each."""
    parts = [re.sub(r"\b0x", "", part.lower()) for part in at.value.split("|")]
    for part in parts:
        if not _WILDCARDS & {*part} and _PCI_ID.fullmatch(part) is None:
            is_vendor = re.fullmatch("[0-9a-f]{4}", part)
            hint = f'write "{part}:*"' if is_vendor else 'write VENDOR:DEVICE as lspci -nn does: "8086:1572"'
            raise Mistake(at, f"'{part}' is not the id of a PCI device", hint)
    return _glob(at, "|".join(parts).upper(), _folded_pci_id)


def _folded_pci_id(value: str) -> str:
    return ":".join(pattern.hex_id(number, 4) for number in value.split(":")).upper()


def _pci_address(at: At) -> Pattern:
    for part in at.value.lower().split("|"):
        if not _WILDCARDS & {*part} and _PCI_ADDRESS.fullmatch(part) is None:
            lacks_domain = _PCI_ADDRESS.fullmatch(f"0000:{part}")
            hint = f'write "0000:{part}"' if lacks_domain else 'write it as lspci -D does: "0000:03:00.0"'
            raise Mistake(at, f"'{part}' is not the address of a PCI function", hint)
    return _glob(at, at.value.lower(), str.lower)


def _pci_class(at: At) -> Pattern:
    """Six digits: class, subclass and programming interface. The kernel leaves out the first zero."""
    for part in at.value.lower().split("|"):
        number = part.removeprefix("0x")
        if re.fullmatch("[0-9a-f]{1,4}", number):
            hint = f'write "{number.zfill(len(number) + len(number) % 2)}*"'
            raise Mistake(at, f"'{part}' is not a whole PCI class, which has six digits", hint)
    whole = _hex_glob(at, 6)
    as_written = _glob(at, re.sub(r"\b0x", "", at.value.lower()), lambda value: pattern.hex_id(value, 0))
    return Pattern(whole.text, lambda value: whole.holds(value) or as_written.holds(value))


PLAIN = Form(lambda at: _glob(at, at.value))

PCI_ID, PCI_ADDRESS, PCI_CLASS = Form(_pci_id), Form(_pci_address), Form(_pci_class, 6)


def _wanted_table(at: At, form: Form) -> Pattern:
    forms = tuple(FORM_DOCS)
    unknown = next((name for name in at.value if name not in forms), None)
    if unknown is not None:
        hint = nearest(unknown, forms) or f"the forms are {listing(forms)}"
        raise Mistake(at.child(unknown), f"unknown form '{unknown}'", hint, on_key=True)
    if at.value and all(word in BOUNDS for word in at.value):
        return _between(at, form)
    if len(at.value) != 1:
        raise Mistake(
            at,
            f"'{at.key}' takes one of {listing(forms, 'or')}, not {len(at.value)} of them",
            f"only {listing(BOUNDS)} go together" if at.value else "",
        )
    ((word, _),) = at.value.items()
    child = at.child(word)
    match word:
        case "not":
            return pattern.negation(wanted(child, form))
        case "exists":
            return pattern.exists(boolean(child))
        case _:
            return _regex(child)


def _regex(at: At) -> Pattern:
    try:
        found = pattern.regex(text(at))
    except BadPatternError as error:
        raise Mistake(at, str(error), error.hint) from None
    at.source.parts += found.parts
    if at.source.parts > PARTS_LIMIT:
        raise Mistake(
            at,
            f"the regular expressions of this file have more than {PARTS_LIMIT} parts "
            "with their repetitions written out",
            "repeat with '*' or '+', or split the file",
        )
    return found


def _between(at: At, form: Form) -> Pattern:
    least, most = (number(at.child(word)) if word in at.value else None for word in BOUNDS)
    if least is not None and most is not None and least > most:
        raise Mistake(at, f"no number is at least {least} and at most {most}", "exchange the two")
    return pattern.between(least, most, hex_id=bool(form.digits))


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
